"""`quire init`, `quire new` and `quire doctor`, in good places and bad ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from quire.authoring.create import slug
from quire.authoring.draft import draft
from quire.git import init_repository as verb
from quire.git.setup import Program
from quire.task import formats
from quire.workspace import Workspace
from scratch import Scratch

ROOT = Path(__file__).parents[2]
FILES = (
    "notebooks/agent_task_system_health.py",
    "docs/NOTEBOOK_WORKFLOW.md",
    ".gitea/workflows/notebook-ci.yml",
    ".github/workflows/notebook-ci.yml",
    ".gitattributes",
    ".gitignore",
    ".quire-keys",
    "quire.toml",
)


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and link under a folder, the git folder too."""
    return {
        str(path.relative_to(root)): (
            stat.S_IMODE(path.lstat().st_mode),
            os.readlink(path).encode() if path.is_symlink() else path.read_bytes(),
        )
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def init(scratch: Scratch, *args: str) -> dict[str, Any]:
    done = scratch.quire("init", *args, "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def refused(scratch: Scratch, *words: str, code: int = 2) -> None:
    """Says why, names the thing, has a next step, and has changed nothing."""
    top = scratch.root
    while (top.parent / ".git").exists() or top.name == ".git":
        top = top.parent
    before = everything(top)
    done = scratch.quire("init")
    assert done.returncode == code, done.stdout
    for word in words:
        assert word in done.stderr
    assert "\nhint: " in done.stderr
    assert everything(top) == before


def made(root: Path, *options: str) -> Scratch:
    root.mkdir(parents=True, exist_ok=True)
    scratch = Scratch(root)
    scratch.git("init", "--quiet", "--initial-branch=main", *options)
    return scratch


# What it writes


def test_everything_is_there_afterwards(repo: Scratch) -> None:
    told = init(repo)
    assert told["changed"] is True
    assert told["root"] == str(repo.root)
    assert not [name for name in FILES if not (repo.root / name).is_file()]
    assert repo.git("check-attr", "filter", "merge", "diff", "--", "notebooks/a.ipynb") == (
        "notebooks/a.ipynb: filter: quire\n"
        "notebooks/a.ipynb: merge: quire\n"
        "notebooks/a.ipynb: diff: quire"
    )
    assert repo.git("config", "filter.quire.required") == "false"
    assert tomllib.loads((repo.root / "quire.toml").read_text()) == {
        "notebooks": "notebooks",
        "archive": {"push": True},
    }
    assert repo.quire("doctor").returncode == 0


def test_the_shipped_example_is_the_one_of_this_repository() -> None:
    shipped = verb.SHIPPED / f"{verb.EXAMPLE}.txt"
    assert shipped.read_bytes() == (ROOT / "notebooks" / verb.EXAMPLE).read_bytes()


@pytest.mark.parametrize("forge", ["gitea", "github"])
def test_the_workflows_run_the_gate(repo: Scratch, forge: str) -> None:
    init(repo)
    text = (repo.root / f".{forge}/workflows/notebook-ci.yml").read_text()
    flow = yaml.load(text, yaml.BaseLoader)  # 1.1 takes `on` for a truth
    assert set(flow["on"]) == {"push", "pull_request"}
    (job,) = flow["jobs"].values()
    calls = [step["run"] for step in job["steps"] if "quire ci" in step.get("run", "")]
    assert len(calls) == 1
    options = re.findall(r"--[a-z-]+", calls[0])
    known = repo.quire("ci", "--help").stdout
    assert options
    assert not [option for option in options if option not in known]
    folder = calls[0].split("--output ")[1].split()[0]
    (upload,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    assert upload["with"]["path"] == folder
    assert upload["if"] == "always()"
    assert not folder.startswith(".")  # which are not uploaded unless asked for


def test_the_guide_speaks_of_this_repository(repo: Scratch) -> None:
    repo.write("quire.toml", 'notebooks = "tasks"\n[archive]\nbranch = "proof"\n')
    init(repo)
    guide = (repo.root / "docs/NOTEBOOK_WORKFLOW.md").read_text()
    assert "`tasks/`" in guide
    assert "`proof`" in guide
    assert "{" not in guide
    assert (repo.root / "tasks" / verb.EXAMPLE).is_file()


def test_the_commands_of_the_guide_exist(repo: Scratch) -> None:
    init(repo)
    guide = (repo.root / "docs/NOTEBOOK_WORKFLOW.md").read_text()
    calls = re.findall(r"`(quire [^`]+)`|^    (quire .+)$", guide, re.MULTILINE)
    assert len(calls) > 10
    for call in (one or other for one, other in calls):
        name, *words = call.split()[1:]
        options = [word for word in words if word.startswith("-")]
        known = repo.quire(name, "--help")
        assert known.returncode == 0, call
        assert not [option for option in options if option not in known.stdout], call


def test_a_second_call_changes_not_a_byte(repo: Scratch) -> None:
    init(repo)
    before = everything(repo.root)
    assert init(repo)["changed"] is False
    assert everything(repo.root) == before
    assert "everything is in place" in repo.quire("init").stdout


@pytest.mark.parametrize("git", [True, False])
def test_a_dry_run_does_nothing_and_tells_all(tmp_path: Path, git: bool) -> None:
    scratch = made(tmp_path / "x") if git else Scratch(tmp_path / "x")
    scratch.root.mkdir(exist_ok=True)
    before = everything(tmp_path)
    told = init(scratch, "--dry-run")
    assert everything(tmp_path) == before
    assert (told["dry_run"], told["changed"]) == (True, False)
    done = init(scratch)
    kinds = {(s["action"], s["target"]) for s in done["steps"]}
    assert {(s["action"], s["target"]) for s in told["steps"]} == kinds


def test_a_folder_becomes_a_repository(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    told = init(scratch)
    assert told["steps"][0]["action"] == "git init"
    assert scratch.git("rev-parse", "--is-inside-work-tree") == "true"
    assert init(scratch)["changed"] is False


def test_without_git_only_files(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    init(scratch, "--no-git")
    assert not (tmp_path / ".git").exists()
    assert not (tmp_path / ".gitattributes").exists()
    assert (tmp_path / "notebooks" / verb.EXAMPLE).is_file()
    assert init(scratch, "--no-git")["changed"] is False


def test_a_folder_above_that_has_a_mark_is_not_set_up_instead(tmp_path: Path) -> None:
    (tmp_path / ".quire").mkdir()
    (tmp_path / "new").mkdir()
    told = init(Scratch(tmp_path / "new"))
    assert told["root"] == str(tmp_path / "new")
    assert not (tmp_path / ".git").exists()


def test_from_a_subfolder_the_repository_is_set_up(repo: Scratch) -> None:
    assert init(Scratch(repo.root / "notebooks"))["root"] == str(repo.root)
    assert not (repo.root / "notebooks" / "notebooks").exists()


# What is there already


def test_nothing_of_the_users_is_written_over(repo: Scratch) -> None:
    mine = {name: f"mine: {name}\n" for name in FILES[:4]}
    mine["quire.toml"] = "# mine\n"
    for name, text in mine.items():
        repo.write(name, text)
    repo.write(".gitattributes", "*.png binary")  # without a newline at the end
    repo.write(".gitignore", "*.pyc\r\n")
    init(repo)
    assert {name: (repo.root / name).read_text() for name in mine} == mine
    assert (repo.root / ".gitattributes").read_text() == (
        "*.png binary\n"
        "*.[iI][pP][yY][nN][bB] filter=quire merge=quire -diff linguist-generated=true\n"
    )
    assert (repo.root / ".gitignore").read_bytes() == b"*.pyc\r\n/.quire/\r\n"


def test_what_the_repository_says_of_notebooks_stays(repo: Scratch) -> None:
    repo.write(".gitattributes", "*.ipynb filter=lfs diff=lfs merge=lfs -text\n")
    told = init(repo)
    notes = [s["note"] for s in told["steps"] if s["target"] == ".gitattributes"]
    assert any("filter: lfs" in note for note in notes)
    assert (
        repo.git("check-attr", "filter", "--", "notebooks/a.ipynb")
        == "notebooks/a.ipynb: filter: lfs"
    )
    assert init(repo)["changed"] is False
    assert "filter is lfs" in repo.quire("doctor").stdout


def test_a_file_that_was_removed_is_not_brought_back(repo: Scratch) -> None:
    init(repo)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "Set up")
    repo.git("rm", "-q", f"notebooks/{verb.EXAMPLE}", "docs/NOTEBOOK_WORKFLOW.md")
    repo.git("commit", "-q", "-m", "We know now")
    assert init(repo)["changed"] is False
    assert not (repo.root / "notebooks" / verb.EXAMPLE).exists()


PYPROJECTS = {
    "plain": b'[project]\nname = "x"\n',
    "no newline": b'[project]\nname = "x"',
    "windows": b'[project]\r\nname = "x"\r\n',
    "comment": "# é\n[tool.other]\na = 1 # [tool.quire]\n".encode(),
    "empty": b"",
    "many": b"[[tool.x.y]]\na = 1\n[tool]\nz = 2\n\n\n",
}


@pytest.mark.parametrize("name", PYPROJECTS)
def test_a_pyproject_keeps_every_byte(repo: Scratch, name: str) -> None:
    old = PYPROJECTS[name]
    (repo.root / "pyproject.toml").write_bytes(old)
    init(repo)
    new = (repo.root / "pyproject.toml").read_bytes()
    assert new.startswith(old)
    want = tomllib.loads(old.decode())
    want.setdefault("tool", {})["quire"] = {
        "notebooks": "notebooks",
        "archive": {"push": True},
    }
    assert tomllib.loads(new.decode()) == want
    assert (b"\r\n" in new) == (b"\r\n" in old)
    assert b"\n\n" not in new.replace(b"\r\n", b"\n").removeprefix(old)[1:].replace(b"\n\n[t", b"")
    assert not (repo.root / "quire.toml").exists()
    assert init(repo)["changed"] is False


@pytest.mark.parametrize("text", ["[tool.quire]\n", "[tool.quire.archive]\nbranch = 'x'\n"])
def test_a_table_that_is_there_stays(repo: Scratch, text: str) -> None:
    repo.write("pyproject.toml", text)
    init(repo)
    assert (repo.root / "pyproject.toml").read_text() == text


# Bad places


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    refused(made(tmp_path / "x.git", "--bare"), "x.git", "working tree")


def test_in_a_bare_repository_the_doctor_asks_for_a_clone(tmp_path: Path) -> None:
    bare = made(tmp_path / "x", "--bare")
    found = findings(bare, 1)
    assert list(found) == ["git"]
    assert "no working tree" in found["git"]
    said = bare.quire("doctor").stdout
    assert "clone" in said
    assert "quire init" not in said


def test_a_repository_of_somebody_else_is_named_as_such(repo: Scratch) -> None:
    env = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    before = everything(repo.root)
    for command in (("init",), ("init", "--dry-run"), ("doctor",)):
        done = repo.quire(*command, env=env)
        assert done.returncode in (1, 2)
        said = done.stdout + done.stderr
        assert "dubious ownership" in said
        assert f"git config --global --add safe.directory {repo.root}" in said
        assert "--local" not in said
    assert everything(repo.root) == before


def test_a_notebook_in_capitals_is_one(repo: Scratch) -> None:
    init(repo)
    for name in ("UP.IPYNB", "notebooks/Up.Ipynb"):
        repo.write(name, json.dumps(OUT))
        repo.git("add", name)
        assert '"output_type"' not in repo.git("show", f":{name}")


def test_what_quire_wrote_before_it_knew_of_capitals_is_mended(repo: Scratch) -> None:
    init(repo)
    for path in (repo.root / ".gitattributes", repo.root / ".git/info/attributes"):
        path.write_text(path.read_text().replace("[iI][pP][yY][nN][bB]", "ipynb"))
    assert init(repo)["changed"] is True
    assert "filter: quire" in repo.git("check-attr", "filter", "--", "UP.IPYNB")
    assert "diff: quire" in repo.git("check-attr", "diff", "--", "UP.IPYNB")
    assert init(repo)["changed"] is False
    assert findings(repo, 0) == {}


def test_a_git_folder_is_refused(repo: Scratch) -> None:
    refused(Scratch(repo.root / ".git"), "working tree")


@pytest.mark.parametrize(
    "name",
    ["notebooks", "docs", ".github", ".github/workflows", ".gitea"],
)
def test_a_file_where_a_folder_should_be_is_refused(tmp_path: Path, name: str) -> None:
    scratch = made(tmp_path / "x")
    scratch.write(name, "a file\n")
    refused(scratch, name, "not a folder")


@pytest.mark.parametrize("name", [".gitattributes", "quire.toml", "docs/NOTEBOOK_WORKFLOW.md"])
def test_a_folder_where_a_file_should_be_is_refused(tmp_path: Path, name: str) -> None:
    scratch = made(tmp_path / "x")
    (scratch.root / name).mkdir(parents=True)
    refused(scratch, name)


@pytest.mark.parametrize("name", ["notebooks", "docs", ".github"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    scratch = made(tmp_path / "x")
    (tmp_path / "outside").mkdir()
    (scratch.root / name).symlink_to("../outside")
    refused(scratch, name, "link")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_that_stays_inside_is_followed(tmp_path: Path) -> None:
    scratch = made(tmp_path / "x")
    (scratch.root / "src" / "tasks").mkdir(parents=True)
    (scratch.root / "notebooks").symlink_to("src/tasks")
    init(scratch)
    assert (scratch.root / "src/tasks" / verb.EXAMPLE).is_file()


@pytest.mark.parametrize("name", [".gitattributes", ".gitignore"])
def test_a_linked_list_of_gits_is_refused(tmp_path: Path, name: str) -> None:
    scratch = made(tmp_path / "x")
    (tmp_path / "elsewhere").write_text("x\n")
    (scratch.root / name).symlink_to("../elsewhere")
    refused(scratch, name, "link")
    assert (tmp_path / "elsewhere").read_text() == "x\n"


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("quire.toml", "[", "TOML"),
        ("pyproject.toml", "x = [", "TOML"),
        ("pyproject.toml", "tool = {other = 1}\n", "[tool.quire]"),
        ("quire.toml", "notebooks = '../elsewhere'\n", "outside"),
        ("quire.toml", "notebooks = '/elsewhere'\n", "outside"),
        ("quire.toml", "note = 1\n", "note"),
        (".quire-keys", "not a key\n", ".quire-keys"),
    ],
)
def test_what_cannot_be_read_is_refused(repo: Scratch, name: str, text: str, word: str) -> None:
    repo.write(name, text)
    refused(repo, word)


# Root may write anywhere, unless that is taken from it.
POWERLESS = ("setpriv", "--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search")


@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write anywhere"
)
@pytest.mark.parametrize("closed", ["", ".git", ".git/hooks", "notebooks"])
def test_a_repository_one_may_not_write_to_is_refused(repo: Scratch, closed: str) -> None:
    (repo.root / ".git/hooks").mkdir(exist_ok=True)
    (repo.root / closed).chmod(0o555)
    before = everything(repo.root)
    done = subprocess.run(
        [*(POWERLESS if os.geteuid() == 0 else ()), sys.executable, "-m", "quire", "init"],
        cwd=repo.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    (repo.root / closed).chmod(0o755)
    assert done.returncode == 2
    assert "read-only" in done.stderr
    assert "\nhint: " in done.stderr
    assert everything(repo.root) == before


@pytest.mark.parametrize(
    "name",
    ["with space", "it's", 'a"b', "ünï 笔记", "-dash", "100%f", "$(touch x)`id`", "new\nline"],
)
def test_odd_names_of_folders(tmp_path: Path, name: str) -> None:
    scratch = Scratch(tmp_path / name)
    scratch.root.mkdir()
    init(scratch)
    assert init(scratch)["changed"] is False
    assert scratch.quire("doctor").returncode == 0
    scratch.git("config", "user.email", "a@example.org")
    scratch.git("config", "user.name", "A")
    scratch.git("add", "-A")
    scratch.git("commit", "-q", "-m", "All")
    scratch.git("checkout", "-q", "-b", "other")
    assert {path.name for path in tmp_path.iterdir()} == {name}


def test_a_detached_head_and_one_without_commits(repo: Scratch, tmp_path: Path) -> None:
    repo.git("checkout", "-q", "--detach")
    init(repo)
    assert repo.quire("doctor").returncode == 0
    new = made(tmp_path / "new")
    init(new)
    assert init(new)["changed"] is False


def test_a_worktree(repo: Scratch, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", str(tmp_path / "side"))
    side = Scratch(tmp_path / "side")
    assert init(side)["root"] == str(side.root)
    assert init(side)["changed"] is False
    assert (repo.root / ".git/hooks/post-checkout").is_file()
    assert not (repo.root / "quire.toml").exists()
    assert side.quire("doctor").returncode == 0


def test_a_submodule(repo: Scratch, tmp_path: Path) -> None:
    upper = made(tmp_path / "upper")
    upper.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo.root), "sub")
    before = (upper.root / ".git/config").read_bytes()
    sub = Scratch(upper.root / "sub")
    assert init(sub)["root"] == str(sub.root)
    assert (upper.root / ".git/modules/sub/hooks/post-checkout").is_file()
    assert (upper.root / ".git/config").read_bytes() == before
    assert not (upper.root / "quire.toml").exists()


# Interrupted


def test_wherever_it_is_cut_short_the_next_call_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fresh() -> Workspace:
        """The same folder each time: what is written names it."""
        shutil.rmtree(tmp_path / "x", ignore_errors=True)
        made(tmp_path / "x")
        (tmp_path / "x/pyproject.toml").write_text("[project]\n")
        script = tmp_path / "x/.git/hooks/post-merge"
        script.parent.mkdir(exist_ok=True)
        script.write_text("#!/bin/sh\n")
        return Workspace(tmp_path / "x", cwd=tmp_path / "x")

    whole = verb.init(fresh())
    want = everything(tmp_path / "x")
    take = verb._take
    steps = sum(step.changes for step in whole.steps)
    assert steps > 20
    for stop in range(len(whole.steps)):
        done = 0

        def until(ws: Workspace, step: verb.Step, stop: int = stop) -> None:
            nonlocal done
            if done == stop:
                raise KeyboardInterrupt
            done += 1
            take(ws, step)

        ws = fresh()
        monkeypatch.setattr(verb, "_take", until)
        with pytest.raises(KeyboardInterrupt):
            verb.init(ws)
        monkeypatch.setattr(verb, "_take", take)
        verb.init(Workspace(tmp_path / "x", cwd=tmp_path / "x"))
        assert everything(tmp_path / "x") == want, f"after step {stop}"


# Programs


def test_the_program_beside_the_interpreter_is_called(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    assert Program.here(str(python)).words == (str(python), "-P", "-m", "quire")
    (tmp_path / "bin" / "quire").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "quire").chmod(0o755)
    assert Program.here(str(python)).words == (str(tmp_path / "bin" / "quire"),)


def test_an_installation_that_moved_is_told_and_mended(repo: Scratch) -> None:
    init(repo)
    for key in ("filter.quire.process", "diff.quire.textconv"):
        repo.git("config", key, "q() { exec /old/quire git x; }; q")
    hook = repo.root / ".git/hooks/post-merge"
    hook.write_text(hook.read_text().replace("bin/quire", "old/quire"))
    told = repo.quire("doctor").stdout
    assert "filter.quire.process differ from what this Quire sets" in told
    assert "post-merge differ from what this Quire sets" in told
    assert init(repo)["changed"] is True
    assert "differ from" not in repo.quire("doctor").stdout


# New


def test_a_new_task_is_no_work_done(repo: Scratch) -> None:
    done = repo.quire("new", "Report the health of this machine")
    assert done.stdout == "notebooks/report_the_health_of_this_machine.py\n"
    path = repo.root / done.stdout.strip()
    doc = formats.loads(path.read_text(), ".py")
    assert doc.title == "Report the health of this machine"
    wanted = json.loads(repo.quire("params", str(path), "--json").stdout)
    assert wanted == []
    code, told = repo.run(str(path))
    assert (code, told["outcome"], told["results"]) == (1, "failed", {})
    assert told["error"]["value"] == "cells wait: gather, decide, report, check"


def test_a_new_task_is_never_written_over_anything(repo: Scratch) -> None:
    repo.write("notebooks/again.py", "mine\n")
    repo.write("notebooks/nb.ipynb", "mine\n")
    for name in ("Again", "nb"):
        before = everything(repo.root)
        done = repo.quire("new", name, "--json")
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["hint"]
        assert everything(repo.root) == before


def test_new_with_a_path(repo: Scratch) -> None:
    done = repo.quire("new", "A thing", "--path", "notebooks/deep/er/thing.py", "--json")
    told = json.loads(done.stdout)
    assert told["path"] == str(repo.root / "notebooks/deep/er/thing.py")
    assert told["title"] == "A thing"
    assert (repo.root / "notebooks/deep/er/thing.py").is_file()


@pytest.mark.parametrize(
    "path",
    [
        "../out.py",
        "/out.py",
        "notebooks/x.txt",
        "notebooks",
        "link/x.py",
        ".git/x.py",
        ".GIT/hooks/x.py",
        ".quire/x.py",
        "notebooks/.quire/x.py",
        "inner/x.py",
    ],
)
def test_new_refuses_other_places(repo: Scratch, tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (repo.root / "link").symlink_to("../outside")
    (repo.root / "inner").symlink_to(".git/hooks")
    before = everything(tmp_path)
    done = repo.quire("new", "x", "--path", path)
    assert done.returncode == 2
    assert "hint: " in done.stderr
    assert everything(tmp_path) == before


@pytest.mark.parametrize("text", ["", "  \n\t ", "\x07\x1b"])
def test_new_wants_a_description(repo: Scratch, text: str) -> None:
    assert repo.quire("new", text).returncode == 2


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Report the health of this machine", "report_the_health_of_this_machine"),
        ("../../etc/passwd", "etc_passwd"),
        ("Überprüfe Größe", "uberprufe_grosse"),
        ("json", "task_json"),
        ("-rf /", "rf"),
        ("x" * 500, "x" * 60),
        ("a " * 500, "_".join("a" * 30)),
    ],
)
def test_slugs(text: str, want: str) -> None:
    assert slug(text) == want


@given(st.text(min_size=1, max_size=300))
def test_any_text_gives_a_name_and_a_task(text: str) -> None:
    name = slug(text)
    assert re.fullmatch(r"[a-z0-9_]{1,70}", name)
    title = " ".join(text.split()) or "x"
    if not any(c in title for c in "\x1c\x1d\x1e\x1f\x85\u2028\u2029\r\n"):
        doc = formats.loads(draft([f"T {title}", title]).text, ".py")
        assert [c.kind for c in doc.cells].count("code") == 5


def test_names_that_cannot_be_said_in_ascii_differ() -> None:
    assert slug("検査") != slug("報告")
    assert re.fullmatch(r"task_[0-9a-f]{8}", slug("検査"))


def test_a_description_cannot_bring_cells_of_its_own(repo: Scratch) -> None:
    done = repo.quire("new", "Title\n# %%\nimport os\n%% [markdown]\n```", "--json")
    assert done.returncode == 0, done.stderr
    path = Path(json.loads(done.stdout)["path"])
    doc = formats.loads(path.read_text(), ".py")
    assert [c.kind for c in doc.cells].count("code") == 5
    assert not any("import os" in c.source for c in doc.cells if c.kind == "code")
    assert repo.run(str(path))[1]["error"]["value"].startswith("cells wait")


# Doctor


def findings(scratch: Scratch, code: int) -> dict[str, str]:
    done = scratch.quire("doctor", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    found: dict[str, str] = {}
    for item in json.loads(done.stdout):
        assert item["level"] == "ok" or item["hint"], item
        if item["level"] != "ok":
            found[item["about"]] = f"{item['level']}: {item['message']}"
    return found


def test_a_folder_that_was_not_set_up(tmp_path: Path) -> None:
    found = findings(Scratch(tmp_path), 1)
    assert "in no repository" in found["git"]
    assert "no folder notebooks" in found["configuration"]
    repo = made(tmp_path / "x")
    found = findings(repo, 1)
    for about in ("filter", "drivers", "attributes"):
        assert found[about].startswith("problem")
    assert found["hooks"] == "problem: not set up"
    assert "quire init" in repo.quire("doctor").stdout


def test_a_repository_that_was_set_up_has_nothing_to_say(repo: Scratch) -> None:
    init(repo)
    assert findings(repo, 0) == {}
    assert repo.run("notebooks/sum.py")[0] == 0
    assert findings(repo, 0) == {}


def test_what_is_wrong_is_found(repo: Scratch) -> None:
    init(repo)
    repo.quire("sync", "notebooks")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "All")
    # A notebook behind its text, and one with outputs that got past the filter.
    path = repo.root / "notebooks/sum.py"
    path.write_text(path.read_text() + "\n# %%\nmore = 1\n")
    repo.write("notebooks/out.ipynb", json.dumps(OUT))
    blob = repo.git("hash-object", "-w", "--no-filters", "notebooks/out.ipynb")
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},notebooks/out.ipynb")
    # A branch of somebody else's, a socket without a host, a key everybody can read.
    repo.git("branch", "reports")
    (repo.root / ".quire").mkdir(exist_ok=True)
    (repo.root / ".quire/host-00000000.sock").write_text("")
    keys = repo.root.parent / "keys"
    env = {"QUIRE_KEYS": str(keys)}
    repo.quire("key", "show", env=env)
    done = repo.quire("doctor", "--json", env=env)
    found = {f["about"]: f["message"] for f in json.loads(done.stdout) if f["level"] != "ok"}
    assert done.returncode == 1
    assert "notebooks/sum.ipynb" in found["notebooks"]
    assert "notebooks/out.ipynb" in found["outputs"]
    assert "reports" in found["archive"]
    assert "host-00000000.sock" in found["host"]
    assert "does not have your key" in found["keys"]
    for key in keys.iterdir():
        key.chmod(0o644)
    done = repo.quire("doctor", "--json", env=env)
    assert [f["level"] for f in json.loads(done.stdout) if f["about"] == "keys"] == ["problem"]


OUT = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "a",
            "metadata": {},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["x"]}],
            "source": ["1"],
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_settings_that_were_taken_away_are_found(repo: Scratch) -> None:
    init(repo)
    repo.git("config", "--unset", "filter.quire.process")
    repo.git("config", "--remove-section", "merge.quire")
    (repo.root / ".git/hooks/post-merge").unlink()
    (repo.root / ".git/info/attributes").unlink()
    repo.write(".gitignore", "")
    repo.write("quire.toml", "kernel = 'nope'\n")
    found = findings(repo, 1)
    assert "filter.quire.process" in found["filter"]
    assert "merge.quire.driver" in found["drivers"]
    assert "post-merge" in found["hooks"]
    assert "diff is unset" in found["attributes"]
    assert "does not ignore" in found["ignored"]
    assert "nope" in found["kernels"]
    repo.write("quire.toml", "")
    init(repo)
    assert findings(repo, 0) == {}
