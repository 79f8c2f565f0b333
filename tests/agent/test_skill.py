"""The skill: within the format's limits, installed where agents look, never over edits."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from quire.agent import skill
from quire.errors import UsageError
from quire.workspace import Workspace
from scratch import Scratch

ROOT = Path(__file__).parents[2]
TOOLS = (
    "notebook_create notebook_read notebook_edit notebook_execute notebook_session notebook_commit "
    "notebook_pr run_find run_show run_wait"
)


def head_and_body() -> tuple[dict[str, Any], str]:
    _, head, body = skill.files()["SKILL.md"].decode().split("---\n", 2)
    found: dict[str, Any] = yaml.safe_load(head)
    return found, body


def test_the_format_of_agent_skills() -> None:
    head, body = head_and_body()
    assert set(head) <= {"name", "description", "license", "compatibility", "metadata"}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert head["name"] == skill.NAME
    assert len(head["name"]) <= 64
    assert 0 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500
    assert len(body.splitlines()) < 500
    # No tokenizer makes more than a token of every two characters of such text.
    assert len(body) / 2 < 5_000


def test_the_skill_leads_to_all_of_its_references_and_tools() -> None:
    _, body = head_and_body()
    for name in skill.files():
        assert name == "SKILL.md" or f"]({name})" in body
        assert "<!--" not in skill.files()[name].decode()
    for tool in TOOLS.split():
        assert f"`{tool}`" in skill.show("mcp")


def installed(scratch: Scratch, *args: str) -> Any:
    done = scratch.quire("skill", "install", *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def everything(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_install_and_again(scratch: Scratch) -> None:
    (told,) = installed(scratch)
    folder = scratch.root / ".claude/skills/quire"
    assert told == {"folder": str(folder), "written": list(skill.files())}
    for name, data in skill.files().items():
        assert (folder / name).read_bytes() == data
    before = everything(scratch.root)
    assert installed(scratch) == [{"folder": str(folder), "written": []}]
    assert everything(scratch.root) == before


def test_it_goes_where_agents_are(scratch: Scratch) -> None:
    (scratch.root / ".agents").mkdir()
    assert [Path(t["folder"]).parts[-3] for t in installed(scratch)] == [".agents"]
    (scratch.root / ".claude").mkdir()
    assert [Path(t["folder"]).parts[-3] for t in installed(scratch)] == [".claude", ".agents"]


def test_a_folder_that_is_named(tmp_path: Path) -> None:
    ws = Workspace(tmp_path, cwd=tmp_path, env={"HOME": str(tmp_path / "home")})
    (done,) = skill.install(ws, to=["~/.hermes/skills"])
    assert done.folder == tmp_path / "home/.hermes/skills/quire"
    (again,) = skill.install(ws, to=[str(done.folder)])
    assert (again.folder, again.written) == (done.folder, ())
    with pytest.raises(UsageError, match="HOME"):
        skill.install(Workspace(tmp_path, cwd=tmp_path, env={}), to=["~/x"])
    with pytest.raises(UsageError, match="another user's home"):
        skill.install(ws, to=["~ada/.claude/skills"])
    assert not (tmp_path / "~ada").exists()


def test_several_folders_are_all_served(scratch: Scratch) -> None:
    done = scratch.quire("skill", "install", "--to", "a b", "--to", ".agents/skills", "--to", "a b")
    assert done.stdout == "a b/quire: 5 files written\n.agents/skills/quire: 5 files written\n"
    (scratch.root / "a b/quire/SKILL.md").write_text("mine")
    assert scratch.quire("skill", "install", "--to", "c", "--to", "a b").returncode == 2
    assert not (scratch.root / "c").exists()


def test_an_edited_copy_stays(scratch: Scratch) -> None:
    installed(scratch)
    page = scratch.root / ".claude/skills/quire/SKILL.md"
    page.write_text(page.read_text() + "mine\n")
    other = page.parent / "references/mcp.md"
    other.unlink()
    before = everything(scratch.root)
    done = scratch.quire("skill", "install")
    assert done.returncode == 2
    assert "was edited: SKILL.md" in done.stderr
    assert "--force" in done.stderr
    assert everything(scratch.root) == before
    (told,) = installed(scratch, "--force")
    assert told["written"] == ["SKILL.md", "references/mcp.md"]
    assert page.read_bytes() == skill.files()["SKILL.md"]


def test_an_older_copy_that_nobody_edited_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = Workspace(tmp_path, cwd=tmp_path)
    skill.install(ws)
    newer = {**skill.files(), "SKILL.md": b"newer\n"}
    monkeypatch.setattr(skill, "files", lambda: newer)
    (done,) = skill.install(ws)
    assert done.written == ("SKILL.md",)
    assert (done.folder / "SKILL.md").read_bytes() == b"newer\n"


@pytest.mark.parametrize("to", [".git/x", ".quire", "a/.GIT", "file", "file/x", "link", "x\0y"])
def test_places_that_cannot_be(tmp_path: Path, to: str) -> None:
    (tmp_path / "file").write_text("mine\n")
    (tmp_path / "elsewhere/quire").mkdir(parents=True)
    (tmp_path / "link").mkdir()
    (tmp_path / "link/quire").symlink_to("../elsewhere/quire")
    before = everything(tmp_path)
    with pytest.raises(UsageError) as caught:
        skill.install(Workspace(tmp_path, cwd=tmp_path), to=[to])
    assert caught.value.hint
    assert everything(tmp_path) == before


def test_a_clone_does_not_lead_out_of_itself(tmp_path: Path) -> None:
    """`.claude` that is a link: only a person who names the place can mean it."""
    root = tmp_path / "clone"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (root / ".claude").symlink_to("../outside")
    with pytest.raises(UsageError, match="leads out"):
        skill.install(Workspace(root, cwd=root))
    assert os.listdir(tmp_path / "outside") == []


def test_show(scratch: Scratch) -> None:
    assert scratch.quire("skill", "show").stdout.startswith("---\nname: quire\n")
    assert scratch.quire("skill", "show", "writing").stdout.startswith("# Writing a task\n")
    done = scratch.quire("skill", "show", "nothing")
    assert done.returncode == 2
    assert "logbooks" in done.stderr
    section = scratch.quire("skill", "show", "agents").stdout
    assert section.startswith("## Notebooks with Quire\n")
    for title, calls in skill.steps():
        assert title in section
        assert calls
        assert all(f"`{call}`" in section for call in calls)
    assert len(skill.steps()) == 7


def test_what_is_made_from_the_skill_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs/generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_section_in_agents_md_is_made_anew_between_its_marks() -> None:
    found = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert found is not None
    assert found.loader is not None
    generate = importlib.util.module_from_spec(found)
    found.loader.exec_module(generate)
    assert generate.agents("# Mine\n") == "# Mine\n"
    text = generate.agents(f"# Mine\n\n{generate.BEGIN}\nold\n{generate.END}\n\n## More\n")
    assert text.startswith("# Mine\n")
    assert text.endswith(f"{generate.END}\n\n## More\n")
    assert skill.agents_section() in text
    assert "\nold\n" not in text
    assert generate.agents(text) == text
