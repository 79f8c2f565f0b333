"""`quire ci` as a person and a workflow call it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from processes import marked, wait_until_none

from scratch import Scratch

DOCS = Path(__file__).parent.parent.parent / "docs" / "ci.md"


def task(repo: Scratch, name: str, *cells: str) -> None:
    repo.write(f"notebooks/{name}.py", "".join(f"# %%\n{cell}\n" for cell in cells))


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout.count("\n") == 1, f"not one object on stdout: {done.stdout!r}"
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def test_all_are_ok(repo: Scratch) -> None:
    done = repo.quire("ci")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\[1/1\] ok +[\d.]+ s  notebooks/sum\.py$", done.stderr, re.MULTILINE)
    assert re.search(r"^ok +notebooks/sum\.py +[\d.]+ s  total = 6$", done.stdout, re.MULTILINE)
    assert "1 ok in " in done.stdout
    assert (repo.root / ".quire/ci/sum.ipynb").is_file()
    assert repo.git("status", "--porcelain") == ""


def test_one_fails(repo: Scratch) -> None:
    task(repo, "bad", "def f():\n    raise ValueError('no such price')", "f()")
    done = repo.quire("ci", "-q")
    assert done.returncode == 1
    assert "failed    notebooks/bad.py" in done.stdout
    assert "1 ok, 1 failed" in done.stdout
    assert re.search(r"^notebooks/bad\.py, cell [0-9a-f]{10}:$", done.stderr, re.MULTILINE)
    assert "  | ValueError: no such price" in done.stderr
    top = ET.parse(repo.root / ".quire/ci/junit.xml").getroot()
    assert top.attrib["failures"] == "1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--base", "--all"], "git knows no commit '--all'"),
        (["-j", "0"], "0 is not in the range"),
        (["--timeout", "nan"], "--timeout must be above 0"),
        (["--summary", "README.md"], "README.md is in git"),
        (["--nonsense"], "No such option"),
        (["notebooks/sum.py"], "unexpected extra argument"),
    ],
)
def test_a_wrong_request(repo: Scratch, options: list[str], said: str) -> None:
    readme = repo.write("README.md", "# Ours\n")
    repo.git("add", "README.md")
    done = repo.quire("ci", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert "hint:" in done.stderr
    assert not (repo.root / ".quire").exists()
    assert readme.read_text() == "# Ours\n"


def test_an_error_as_json(repo: Scratch) -> None:
    done = repo.quire("ci", "--base", "nix", "--json")
    assert done.returncode == 2
    assert told(done)["error"]["hint"]


def keys(value: Any, prefix: str = "") -> set[str]:
    if isinstance(value, list):
        return set().union(*(keys(item, f"{prefix}[]") for item in value), set())
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, item in value.items():
        name = f"{prefix}.{key}" if prefix else key
        found |= {name} if key == "results" else {name} | keys(item, name)
    return found


def test_the_json_object_is_as_documented(repo: Scratch) -> None:
    task(repo, "bad", "1 / 0")
    task(repo, "gone", "# nothing")
    header = "# ---\n# jupyter:\n#   quire: {ci: false}\n# ---\n# %%\n1\n"
    repo.write("notebooks/manual.py", header)
    done = repo.quire("ci", "--json", "-q", "--all")
    assert done.returncode == 1
    assert done.stderr == ""
    value = told(done)
    assert keys(value) <= set(re.findall(r"`([^`\n]+)`", DOCS.read_text()))
    assert value["outcome"] == "failed"
    assert {t["task"]: t["outcome"] for t in value["tasks"]} == {
        "notebooks/bad.py": "failed",
        "notebooks/gone.py": "ok",
        "notebooks/sum.py": "ok",
    }
    assert value["tasks"][2]["results"] == {"total": 6}
    assert value["left_out"][0]["task"] == "notebooks/manual.py"
    assert Path(value["junit"]).is_file()
    assert value["everything"] == "--all was given"
    # The same words and numbers as of a run that somebody has made by hand.
    code, ran = repo.run("notebooks/bad.py", "--no-host")
    assert code == 1
    bad = value["tasks"][0]
    assert set(ran) - {"recovered"} <= set(bad)  # the gate witnesses its own runs
    assert set(bad["error"]) == {*ran["error"], "hint"}
    for key in ("outcome", "results"):
        assert bad[key] == ran[key]
    for key in ("cell", "name", "value"):
        assert bad["error"][key] == ran["error"][key]
    assert [c["id"] for c in bad["cells"]] == [c["id"] for c in ran["cells"]]
    assert set(bad["cells"][0]) == set(ran["cells"][0])
    assert Path(bad["notebook"]).is_file()
    assert set(bad["archived"]) == set(ran["archived"])
    assert bad["run_id"] in bad["archived"]["place"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_cancelled(repo: Scratch, number: int) -> None:
    """All kernels end, what they started too, and the reports say how far it came."""
    for name in "abc":
        task(
            repo,
            name,
            "import pathlib, subprocess, time",
            f"child = subprocess.Popen(['sleep', '600'])\npathlib.Path('{name}.up').touch()",
            "while True:\n    time.sleep(0.01)",
        )
    mark = uuid.uuid4().hex
    process = repo.start("ci", "-j", "2", "--json", env={"QUIRE_TEST_MARK": mark})
    try:
        while len(list(repo.root.glob("*.up"))) < 2:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    value = json.loads(out)
    assert value["outcome"] == "cancelled"
    assert [t["outcome"] for t in value["tasks"]].count("cancelled") == 4
    assert len(list(repo.root.glob("*.up"))) == 2, "the third one never began"
    assert wait_until_none(mark, root=repo.root) == []
    assert ET.parse(repo.root / ".quire/ci/junit.xml").getroot().attrib["errors"] == "4"


def test_killed(repo: Scratch) -> None:
    """Its kernels do not outlive it, and the next gate finds nothing in its way."""
    task(
        repo,
        "a",
        "import pathlib, time\npathlib.Path('a.up').touch()\nwhile True:\n    time.sleep(0.01)",
    )
    mark = uuid.uuid4().hex
    process = repo.start("ci", env={"QUIRE_TEST_MARK": mark})
    while not (repo.root / "a.up").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    assert marked(mark, repo.root)
    process.kill()
    process.communicate(timeout=60)
    assert wait_until_none(mark, root=repo.root) == []
    task(repo, "a", "print('mended')")
    done = repo.quire("ci")
    assert done.returncode == 0, done.stderr


def test_a_strangers_names_and_errors_stay_text(repo: Scratch) -> None:
    """Neither a terminal nor the log of a workflow obeys them."""
    name = "::error::x \x1b[31m##[group]"
    task(
        repo, name, "raise ValueError('::set-output name=a::b\\n::add-mask::x \\x1b[2J ##[error]y')"
    )
    done = repo.quire("ci")
    assert done.returncode == 1
    for line in (done.stdout + done.stderr).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert "\x1b" not in line


def test_a_workflow_of_a_pull_request(repo: Scratch, tmp_path: Path) -> None:
    """As a runner does it: a clone, a detached head, variables, a page for the summary."""
    task(repo, "other", "print(1)")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Another")
    repo.git("switch", "--quiet", "-c", "work")
    task(repo, "new", "print(2)")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "New")
    repo.git("switch", "--quiet", "main")
    clone = Scratch(tmp_path / "clone")
    clone.root.mkdir()
    clone.git("clone", "--quiet", f"file://{repo.root}", ".")
    clone.git("switch", "--quiet", "--detach", "origin/work")
    page = tmp_path / "page.md"
    env = {"GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(page), "CI": "true"}
    done = clone.quire("ci", "--output", "notebook-ci", env=env)
    assert done.returncode == 0, done.stderr
    assert "2 others are not affected" in done.stdout
    out = clone.root / "notebook-ci"
    assert sorted(path.name for path in out.glob("[!.]*")) == [
        "junit.xml",
        "new.ipynb",
        "summary.md",
    ]
    assert (out / "summary.md").read_text().endswith(page.read_text())
    assert "`notebooks/new.py`" in page.read_text()


def test_a_fresh_clone_has_the_archive_at_hand(repo: Scratch, tmp_path: Path) -> None:
    """As with `fetch-depth: 0`: another machine, with no branch of the archive but origin's."""
    assert repo.quire("key", "trust", "--name", "ada").returncode == 0
    (repo.root / "docs").mkdir()
    assert repo.run("notebooks/sum.py", "--no-host", "-o", "docs/honest.ipynb")[0] == 0
    honest = (repo.root / "docs/honest.ipynb").read_text()
    repo.write("docs/forged.ipynb", honest.replace("total 6", "total 7"))
    repo.git("add", ".quire-keys", "docs")
    repo.git("commit", "--quiet", "-m", "Show it")
    clone = Scratch(tmp_path / "clone")
    clone.root.mkdir()
    clone.git("init", "--quiet")
    clone.git("remote", "add", "origin", f"file://{repo.root}")
    clone.git("fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*")
    clone.git("checkout", "--quiet", "--detach", "origin/main")
    assert clone.git("branch", "--list", "reports") == ""
    (clone.root / "notebooks/sum.py").unlink()
    done = clone.quire("ci", "--json", "-q", env={"QUIRE_KEYS": str(tmp_path / "keys")})
    tasks = {t["task"]: t["outcome"] for t in told(done)["tasks"]}
    assert tasks == {"docs/forged.ipynb": "uncovered"}
    clone.git("update-ref", "-d", "refs/remotes/origin/reports")
    again = told(clone.quire("ci", "--json", "-q", env={"QUIRE_KEYS": str(tmp_path / "keys")}))
    assert {t["task"] for t in again["tasks"]} == {"docs/forged.ipynb", "docs/honest.ipynb"}


def test_two_gates_at_once(repo: Scratch) -> None:
    """In one folder the second is refused; with a folder of its own it runs."""
    wait = "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)"
    task(repo, "waits", "import pathlib\npathlib.Path('up').touch()", wait)
    first = repo.start("ci")
    while not (repo.root / "up").exists():
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    second = repo.quire("ci")
    assert second.returncode == 2
    assert "another gate is at work" in second.stderr
    (repo.root / "go").touch()
    third = repo.quire("ci", "--output", "other")
    assert third.returncode == 0, third.stderr
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, err
    assert "2 ok" in out


def test_a_task_that_ends_the_kernel_server_costs_no_record(repo: Scratch) -> None:
    """What it leaves is swept up; git, which archives other runs meanwhile, is not."""
    for n in range(8):
        task(repo, f"t{n:02}", f"print({n})")
    task(repo, "t05", "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(600)")
    done = repo.quire("ci", "-q", "--json", "-j", "4")
    value = told(done)
    assert [t["task"] for t in value["tasks"] if t["outcome"] != "ok"] == ["notebooks/t05.py"]
    assert [t["warnings"] for t in value["tasks"] if t["warnings"]] == []
    assert all(t["archived"] for t in value["tasks"])
    repo.git("fsck", "--strict")
