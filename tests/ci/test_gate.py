"""The gate: tasks side by side, on real kernels."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import nbformat
import pytest

from quire.ci.gate import Gate, gate
from quire.ci.gate_report import MARK, GateResult, TaskFinished, TaskRun, TaskStarted
from quire.errors import ConfigError, UsageError
from quire.workspace import Engine, Workspace
from scratch import Scratch


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def workspace(repo: Scratch, engine: Engine, cwd: str = "", **env: str) -> Workspace:
    everything = {**repo.environment(), **env}
    return Workspace(repo.root, cwd=repo.root / cwd, env=everything, engine=engine)


def task(repo: Scratch, name: str, *cells: str, ci: str = "") -> Path:
    header = f"# ---\n# jupyter:\n#   quire:\n#     ci: {ci}\n# ---\n" if ci else ""
    return repo.write(f"notebooks/{name}.py", header + "".join(f"# %%\n{c}\n" for c in cells))


def outcomes(result: GateResult) -> dict[str, str]:
    names = (Path(run.task).stem for run in result.tasks)
    return dict(zip(names, (run.outcome for run in result.tasks), strict=True))


def one(result: GateResult, name: str) -> TaskRun:
    return next(run for run in result.tasks if Path(run.task).stem == name)


def cases(path: Path) -> dict[str, list[str]]:
    """Test cases of a JUnit file, with what is said of each."""
    return {
        case.attrib["name"]: [child.tag for child in case]
        for case in ET.parse(path).getroot().iter("testcase")
    }


# Waits for a file that another task writes; there is no time that would be enough for luck.
WAIT = """
import pathlib, time
def wait(name):
    deadline = time.monotonic() + 60
    while not pathlib.Path(name).exists():
        assert time.monotonic() < deadline, name
        time.sleep(0.01)
"""


def test_tasks_run_and_everything_is_written(repo: Scratch, engine: Engine) -> None:
    task(repo, "sub/deep", "print('deep')")
    task(repo, "bad", "x = 1", "1 / 0", "print('never')")
    result = gate(workspace(repo, engine), everything=True)
    assert outcomes(result) == {"bad": "failed", "deep": "ok", "sum": "ok"}
    assert not result.ok
    out = repo.root / ".quire" / "ci"
    for name in ("bad.ipynb", "sub/deep.ipynb", "sum.ipynb"):
        nb = nbformat.read(out / name, as_version=4)
        nbformat.validate(nb)
        assert nb.metadata.quire.run_id
    assert cases(out / "junit.xml") == {
        "notebooks/bad.py": ["failure", "system-out"],
        "notebooks/sub/deep.py": ["system-out"],
        "notebooks/sum.py": ["system-out"],
    }
    summary = (out / "summary.md").read_text()
    assert "## Tasks: 2 ok, 1 failed" in summary
    assert "`total` `6`" in summary
    assert "ZeroDivisionError" in summary
    assert repo.git("status", "--porcelain", "--", ".quire") == ""
    bad = one(result, "bad")
    assert [cell.status for cell in bad.cells] == ["ok", "failed", "not run"]
    assert (bad.error, bad.value) == ("ZeroDivisionError: division by zero", "division by zero")
    assert bad.where == f"cell {bad.cells[1].id}"
    assert one(result, "sum").values == {"total": 6}


def test_only_what_the_change_affects(repo: Scratch, engine: Engine) -> None:
    repo.git("switch", "--quiet", "-c", "work")
    task(repo, "new", "print('new')")
    result = gate(workspace(repo, engine))
    assert outcomes(result) == {"new": "ok"}
    assert result.unaffected == ("notebooks/sum.py",)
    assert one(result, "new").because == "it changed"
    assert result.base == repo.git("rev-parse", "main")


def test_nothing_is_affected(repo: Scratch, engine: Engine) -> None:
    gate(workspace(repo, engine), everything=True)
    repo.git("switch", "--quiet", "-c", "work")
    result = gate(workspace(repo, engine))
    assert result.ok
    assert result.tasks == ()
    out = repo.root / ".quire" / "ci"
    assert cases(out / "junit.xml") == {}
    assert "no task is affected" in (out / "summary.md").read_text()
    assert not list(out.glob("*.ipynb")), "what the gate before left is gone"


def test_no_tasks_at_all(scratch: Scratch, engine: Engine) -> None:
    (scratch.root / "notebooks").mkdir()
    result = gate(workspace(scratch, engine))
    assert result.ok
    assert "there are no tasks" in (scratch.root / ".quire/ci/summary.md").read_text()


def test_tasks_run_side_by_side(repo: Scratch, engine: Engine) -> None:
    """Each waits for the other: one after the other they would never end."""
    task(repo, "a", WAIT, "pathlib.Path('a').touch(); wait('b')")
    task(repo, "b", WAIT, "pathlib.Path('b').touch(); wait('a')")
    result = gate(workspace(repo, engine), everything=True, jobs=2)
    assert outcomes(result) == {"a": "ok", "b": "ok", "sum": "ok"}


ALONE = "import os, time\nos.close(os.open('busy', os.O_CREAT | os.O_EXCL))"


def test_never_more_at_a_time_than_asked_for(repo: Scratch, engine: Engine) -> None:
    for name in "abcd":
        task(repo, name, ALONE, "time.sleep(0.02)", "os.unlink('busy')")
    result = gate(workspace(repo, engine), everything=True, jobs=1)
    assert set(outcomes(result).values()) == {"ok"}, result.failures


def test_many_tasks_none_is_lost(repo: Scratch, engine: Engine) -> None:
    """All are there: in the result, in the archive, as notebooks; each with its own numbers."""
    for n in range(24):
        task(repo, f"t{n:02}", "from quire.runtime import glue", f"glue('n', {n})\nprint({n})")
    ws = workspace(repo, engine)
    result = gate(ws, everything=True, jobs=6)
    assert result.ok, result.failures
    assert len(result.tasks) == 25
    for n, run in enumerate(result.tasks[1:]):
        assert run.values == {"n": n}
        assert run.task == f"notebooks/t{n:02}.py"
        nb = json.loads((repo.root / run.notebook).read_text())
        assert nb["cells"][1]["outputs"][1]["text"] == [f"{n}\n"]
    assert len({run.run_id for run in result.tasks}) == 25
    assert [run.warnings for run in result.tasks if run.warnings] == []
    assert set(ws.archive.ids()) == {run.run_id for run in result.tasks}
    assert all(run.archived for run in result.tasks)


def test_no_task_changes_what_the_gate_runs(repo: Scratch, engine: Engine) -> None:
    """Every source is read before the first task runs."""
    task(repo, "b", "print('as it was')")
    task(repo, "c", "print('c')")
    task(
        repo,
        "a",
        "import pathlib",
        "pathlib.Path('notebooks/b.py').write_text('# %%\\n1 / 0\\n')\n"
        "pathlib.Path('notebooks/c.py').unlink()\n"
        "pathlib.Path('notebooks/d.py').write_text('# %%\\n1 / 0\\n')\n"
        "pathlib.Path('quire.toml').write_text('timeout = -1')\n",
    )
    result = gate(workspace(repo, engine), everything=True, jobs=1)
    assert outcomes(result) == {"a": "ok", "b": "ok", "c": "ok", "sum": "ok"}


def test_tasks_run_where_the_workspace_is(repo: Scratch, engine: Engine) -> None:
    """Wherever the gate was called; what it was told to write is named from there."""
    repo.write("data.txt", "here")
    task(repo, "reads", "assert open('data.txt').read() == 'here'")
    (repo.root / "deep" / "er").mkdir(parents=True)
    ws = workspace(repo, engine, "deep/er")
    going = Gate(ws, everything=True, output="out", junit="j/report.xml", summary="s/report.md")
    list(going)
    assert going.result.ok
    there = repo.root / "deep" / "er"
    assert (there / "out" / "reads.ipynb").is_file()
    assert "notebooks/reads.py" in cases(there / "j" / "report.xml")
    assert (there / "s" / "report.md").is_file()
    assert not (there / "out" / "junit.xml").exists()


def test_parameters_for_ci(repo: Scratch, engine: Engine) -> None:
    wants = '# %% tags=["parameters"]\nregion: str\nn: int = 2\n# %%\nprint(region, n)\n'
    repo.write("notebooks/asks.py", wants)
    header = "# ---\n# jupyter:\n#   quire:\n#     ci: {parameters: {region: eu}}\n# ---\n"
    repo.write("notebooks/given.py", header + wants)
    repo.write("notebooks/misfit.py", header.replace("region", "n") + wants)
    result = gate(workspace(repo, engine), everything=True)
    assert outcomes(result) == {"asks": "error", "given": "ok", "misfit": "error", "sum": "ok"}
    asks = one(result, "asks")
    assert asks.error == "region is required (str) and was not given"
    assert "quire: {ci: {parameters:" in asks.hint
    nb = json.loads((repo.root / ".quire/ci/given.ipynb").read_text())
    assert nb["metadata"]["papermill"]["parameters"] == {"region": "eu"}
    junit = cases(repo.root / ".quire/ci/junit.xml")
    assert junit["notebooks/asks.py"] == ["error", "system-out"]


def test_a_task_can_be_left_out(repo: Scratch, engine: Engine) -> None:
    task(repo, "manual", "1 / 0", ci="false")
    result = gate(workspace(repo, engine), everything=True)
    assert outcomes(result) == {"sum": "ok"}
    assert [item.task for item in result.left_out] == ["notebooks/manual.py"]
    assert "notebooks/manual.py" in (repo.root / ".quire/ci/summary.md").read_text()


HOWS = ["new", "changed", "renamed"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("ref", ["", "main", "elsewhere"])
def test_a_change_cannot_leave_its_task_out(
    repo: Scratch, engine: Engine, how: str, ref: str
) -> None:
    """Only what the base says so is left out; a base that is not in the clone says nothing."""
    task(repo, "old", "print(1)")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Old")
    repo.git("switch", "--quiet", "-c", "work")
    name = "old" if how == "changed" else "fresh"
    task(repo, name, "1 / 0", ci="false")
    if how == "renamed":
        (repo.root / "notebooks/old.py").unlink()
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Leave it out")
    env = {"GITHUB_BASE_REF": ref} if ref else {}
    result = gate(workspace(repo, engine, **env))
    assert one(result, name).outcome == "failed"
    assert "does not count" in one(result, name).because
    removed = [item.task for item in result.left_out]
    assert removed == (["notebooks/old.py"] if how == "renamed" and ref != "elsewhere" else [])


def test_what_the_base_leaves_out_stays_so(repo: Scratch, engine: Engine) -> None:
    task(repo, "manual", "1 / 0", ci="false")
    task(repo, "given", "print(2)", ci="{run: false, timeout: 9}")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "By hand only")
    repo.git("switch", "--quiet", "-c", "work")
    for name in ("manual", "given"):
        task(repo, name, "2 / 0", ci="false")
    result = gate(workspace(repo, engine))
    assert result.ok
    assert {item.task for item in result.left_out} == {"notebooks/manual.py", "notebooks/given.py"}


def hidden_by_a_configuration(repo: Scratch) -> None:
    repo.write("quire.toml", 'notebooks = "other"\n')
    repo.write("other/x.py", "# %%\n1\n")


def hidden_by_a_virtual_environment(repo: Scratch) -> None:
    repo.write("notebooks/team/pyvenv.cfg", "")


def hidden_by_a_link(repo: Scratch) -> None:
    (repo.root / "notebooks/team").rename(repo.root / "kept")
    (repo.root / "notebooks/team").symlink_to("../kept")


@pytest.mark.parametrize(
    "hide", [hidden_by_a_configuration, hidden_by_a_virtual_environment, hidden_by_a_link]
)
def test_a_change_cannot_hide_a_task(
    repo: Scratch, engine: Engine, hide: Callable[[Scratch], None]
) -> None:
    repo.write("notebooks/team/bad.py", "# %%\n1\n")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "A team's")
    repo.git("switch", "--quiet", "-c", "work")
    repo.write("notebooks/team/bad.py", "# %%\n1 / 0\n")
    hide(repo)
    repo.git("add", "--all")
    repo.git("commit", "--quiet", "-m", "Hide it")
    assert one(gate(workspace(repo, engine)), "bad").outcome == "failed"


def test_a_task_that_becomes_a_link_out_is_not_left_out(
    repo: Scratch, engine: Engine, tmp_path: Path
) -> None:
    repo.git("switch", "--quiet", "-c", "work")
    (tmp_path / "out.py").write_text("# %%\n1\n")
    (repo.root / "notebooks/sum.py").unlink()
    (repo.root / "notebooks/sum.py").symlink_to(tmp_path / "out.py")
    repo.git("commit", "--quiet", "-a", "-m", "A link")
    result = gate(workspace(repo, engine))
    assert one(result, "sum").outcome == "error"
    assert "leads out" in one(result, "sum").error
    assert not result.left_out


def test_a_change_cannot_name_its_own_base(repo: Scratch, engine: Engine) -> None:
    repo.git("switch", "--quiet", "-c", "work")
    repo.write("quire.toml", '[forge]\nbase = "work"\n')
    task(repo, "bad", "1 / 0", ci="false")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Onto itself")
    assert one(gate(workspace(repo, engine)), "bad").outcome == "failed"


def test_a_removed_task_is_named(repo: Scratch, engine: Engine) -> None:
    """Also one that is moved to where the gate does not look."""
    repo.git("switch", "--quiet", "-c", "work")
    repo.write("notebooks/plain.py", "x = 1\n")
    repo.git("mv", "notebooks/sum.py", "sum.py")
    result = gate(workspace(repo, engine))
    assert [item.task for item in result.left_out] == ["notebooks/sum.py"]


def test_what_cannot_run_stops_nobody(repo: Scratch, engine: Engine) -> None:
    (repo.root / "notebooks/nul.py").write_bytes(b"# %%\n\0")
    repo.write("notebooks/broken.ipynb", "{")
    repo.write("notebooks/header.py", "# ---\n# jupyter:\n#   - {{\n# ---\n# %%\n1\n")
    task(repo, "strange", "1", ci="{speed: 3}")
    beside = "# ---\n# jupyter:\n# quire:\n#   ci: false\n# ---\n# %%\n1\n"
    repo.write("notebooks/beside.py", beside)
    foreign = "# ---\n# jupyter:\n#   kernelspec:\n#     name: no-such\n# ---\n# %%\n1\n"
    repo.write("notebooks/kernel.py", foreign)
    result = gate(workspace(repo, engine), everything=True)
    wrong = {name: outcome for name, outcome in outcomes(result).items() if outcome != "ok"}
    names = ("nul", "broken", "header", "strange", "kernel", "beside")
    assert wrong == dict.fromkeys(names, "error")
    assert "speed" in one(result, "strange").error
    assert "`quire:` in the header" in one(result, "beside").error
    assert all(run.error and run.hint for run in result.failures)


def test_limits(repo: Scratch, engine: Engine) -> None:
    """The lower of what the gate and the task say."""
    forever = "import time\nwhile True:\n    time.sleep(0.01)"
    (repo.root / "notebooks/sum.py").unlink()  # every limit here is too low for luck
    task(repo, "own", forever, ci="{timeout: 0.2}")
    task(repo, "cell", forever, ci="{cell_timeout: 0.2, timeout: 600}")
    task(repo, "greedy", forever, ci="{timeout: 100000}")
    result = gate(workspace(repo, engine), everything=True, timeout=0.4, jobs=3)
    assert outcomes(result) == dict.fromkeys(("cell", "greedy", "own"), "timed_out")
    assert "longer than 0.2 s" in one(result, "own").error
    assert "longer than 0.4 s" in one(result, "greedy").error
    assert cases(repo.root / ".quire/ci/junit.xml")["notebooks/own.py"][0] == "failure"


def test_the_configurations_limit_holds(repo: Scratch, engine: Engine) -> None:
    repo.write("quire.toml", "timeout = 0.2\n")
    (repo.root / "notebooks/sum.py").unlink()
    task(repo, "slow", "import time\nwhile True:\n    time.sleep(0.01)")
    result = gate(workspace(repo, engine), everything=True)
    assert outcomes(result) == {"slow": "timed_out"}


def left_of(pids: list[int]) -> list[int]:
    """Those that are still there after a few seconds: a process is gone when it is buried."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.01)
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def pids(repo: Scratch) -> list[int]:
    return [int(path.read_text()) for path in repo.root.glob("*.pid") if path.read_text()]


HANGS = """
import os, pathlib, time
pathlib.Path(NAME + '.tmp').write_text(str(os.getpid()))
os.rename(NAME + '.tmp', NAME + '.pid')
while True:
    time.sleep(0.01)
"""


def test_cancelling_ends_all_kernels(repo: Scratch, engine: Engine) -> None:
    for name in "abcd":
        task(repo, name, f"NAME = '{name}'{HANGS}")
    cancel = threading.Event()
    going = Gate(workspace(repo, engine), everything=True, jobs=2, cancel=cancel)
    seen = 0
    for event in going:
        if isinstance(event, TaskStarted):
            seen += 1
        if seen == 2 and not cancel.is_set():
            while len(list(repo.root.glob("*.pid"))) < 2:
                threading.Event().wait(0.01)
            cancel.set()
    result = going.result
    assert result.cancelled
    assert not result.ok
    assert set(outcomes(result).values()) == {"cancelled"}
    assert len(result.tasks) == 5
    assert seen == 2, "what had not begun does not begin"
    assert len(pids(repo)) == 2
    assert left_of(pids(repo)) == []
    assert len(cases(repo.root / ".quire/ci/junit.xml")) == 5


def test_a_gate_that_nobody_follows_ends_its_kernels(repo: Scratch, engine: Engine) -> None:
    task(repo, "a", f"NAME = 'a'{HANGS}")
    events = iter(Gate(workspace(repo, engine), everything=True, jobs=1))
    assert isinstance(next(events), TaskStarted)
    while not list(repo.root.glob("*.pid")):
        threading.Event().wait(0.01)
    events.close()  # type: ignore[attr-defined]
    assert left_of(pids(repo)) == []


def test_a_task_that_ends_the_kernel_server(repo: Scratch, engine: Engine) -> None:
    """Others that were forked from it run again, alone; it is the one to blame."""
    task(
        repo,
        "innocent",
        WAIT,
        "begun = pathlib.Path('begun')",
        "if not begun.exists():\n    begun.touch()\n    wait('never')",
    )
    task(
        repo, "killer", WAIT, "wait('begun')", "import os\nos.kill(os.getppid(), 9)\nwait('never')"
    )
    result = gate(workspace(repo, engine), everything=True, jobs=3)
    assert outcomes(result) == {"innocent": "ok", "killer": "died", "sum": "ok"}


def test_a_task_that_runs_another(repo: Scratch, engine: Engine) -> None:
    task(repo, "parent", "from quire.runtime import run", "print(run('notebooks/sum.py', n=3))")
    result = gate(workspace(repo, engine), everything=True)
    assert result.ok, result.failures


def test_the_forges_page_gets_the_summary(repo: Scratch, engine: Engine, tmp_path: Path) -> None:
    page = tmp_path / "step.md"
    page.write_text("before\n")
    ws = workspace(repo, engine, GITHUB_STEP_SUMMARY=str(page))
    assert gate(ws).ok
    text = page.read_text()
    assert text.startswith("before\n## Tasks: 1 ok")
    summary = (repo.root / ".quire/ci/summary.md").read_text()
    assert f"{MARK}\n{text.removeprefix('before' + chr(10))}" == summary


def test_a_page_that_cannot_be_written_fails_nothing(
    repo: Scratch, engine: Engine, tmp_path: Path
) -> None:
    result = gate(workspace(repo, engine, GITHUB_STEP_SUMMARY=str(tmp_path)))
    assert result.ok
    assert result.warnings == ("$GITHUB_STEP_SUMMARY cannot be written: Is a directory",)


def hub(repo: Scratch) -> Path:
    """A remote that counts how often it is pushed to."""
    place = repo.root.parent / "hub.git"
    repo.git("init", "--quiet", "--bare", str(place))
    repo.git("remote", "add", "hub", str(place))
    hook = place / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho once >> pushes\n")
    hook.chmod(0o755)
    repo.write("quire.toml", '[archive]\npush = true\nremote = "hub"\n')
    return place


def test_the_archive_is_pushed_once(repo: Scratch, engine: Engine) -> None:
    place = hub(repo)
    task(repo, "other", "1")
    ws = workspace(repo, engine)
    result = gate(ws, everything=True)
    assert result.ok
    assert result.warnings == ()
    assert (place / "pushes").read_text() == "once\n"
    there = Workspace(place, cwd=place, env=ws.env, engine=engine)
    assert set(there.archive.ids()) == {run.run_id for run in result.tasks}


def test_an_archive_that_cannot_be_pushed_fails_nothing(repo: Scratch, engine: Engine) -> None:
    hub(repo)
    repo.git("remote", "set-url", "hub", str(repo.root / "nowhere"))
    ws = workspace(repo, engine)
    try:
        result = gate(ws, everything=True)
    finally:
        engine.silent_remotes.clear()
    assert result.ok
    assert one(result, "sum").archived
    (said,) = result.warnings
    assert said.startswith("the archive could not be pushed: ")
    assert "could not be pushed" in (repo.root / ".quire/ci/summary.md").read_text()


def test_the_reason_to_run_everything_is_told(repo: Scratch, engine: Engine) -> None:
    repo.git("switch", "--quiet", "-c", "work")
    repo.write("quire.toml", "")
    result = gate(workspace(repo, engine))
    assert result.everything == "the configuration changed: quire.toml"
    assert result.base == repo.git("rev-parse", "main")
    assert one(result, "sum").because == result.everything


def test_links_that_are_not_followed_are_named(repo: Scratch, engine: Engine) -> None:
    (repo.root.parent / "outside").mkdir()
    (repo.root / "notebooks/shared").symlink_to(repo.root.parent / "outside")
    result = gate(workspace(repo, engine), everything=True)
    assert [item.task for item in result.left_out] == ["notebooks/shared"]
    summary = (repo.root / ".quire/ci/summary.md").read_text()
    assert "- `notebooks/shared`: `a link that leads out`" in summary


def test_events_come_for_every_task(repo: Scratch, engine: Engine) -> None:
    task(repo, "asks", "1", ci="{speed: 3}")
    task(repo, "z", "1")
    events = list(Gate(workspace(repo, engine), everything=True, jobs=1))
    started = [e.task for e in events if isinstance(e, TaskStarted)]
    finished = [(e.run.task, e.left) for e in events if isinstance(e, TaskFinished)]
    assert started == ["notebooks/sum.py", "notebooks/z.py"]
    assert finished == [("notebooks/asks.py", 2), ("notebooks/sum.py", 1), ("notebooks/z.py", 0)]


def before(root: Path) -> dict[str, bytes | None]:
    found = (path for path in root.rglob("*") if path.name != "index")
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


LINKS = {
    "link.md": "../elsewhere/report.md",
    "dangling.xml": "nowhere.xml",
    "out": "../elsewhere",
    "hidden": ".git",
    "loop": "loop",
}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"everything": True, "base": "main"}, "--all and --base were both given"),
        ({"base": "nix"}, "git knows no commit 'nix'"),
        ({"junit": "report.txt"}, "no name for this report"),
        ({"junit": "notebooks/sum.py"}, "no name for this report"),
        ({"summary": "x.ipynb"}, "no name for this report"),
        ({"junit": "folder.xml"}, "is a folder"),
        ({"junit": "mine.xml"}, r"mine\.xml is there, and no gate has written it"),
        ({"summary": "README.md"}, r"README\.md is in git"),
        ({"summary": "gone.md"}, r"gone\.md is in git"),
        ({"summary": "empty.md"}, r"empty\.md is there, and no gate has written it"),
        ({"summary": "link.md"}, r"link\.md is there, and no gate has written it"),
        ({"junit": "dangling.xml"}, r"dangling\.xml is there, and no gate has written it"),
        ({"junit": "out/x.xml"}, "behind a link that leads out of"),
        ({"junit": "out/sub/x.xml"}, "behind a link that leads out of"),
        ({"junit": "quire.toml/x.xml"}, "is a file, not a folder"),
        ({"junit": ".git/x.xml"}, "is where git keeps what is its own"),
        ({"summary": ".quire/x.md"}, "is where Quire keeps what is its own"),
        ({"output": ".git"}, "is where git keeps what is its own"),
        ({"output": ".git/hooks"}, "is where git keeps what is its own"),
        ({"output": "notebooks/../.git/x"}, "is where git keeps what is its own"),
        ({"output": "inner/.git"}, "is where git keeps what is its own"),
        ({"output": ".quire"}, "is where Quire keeps what is its own"),
        ({"output": ".quire/runs"}, "is where Quire keeps what is its own"),
        ({"output": ".quire/ci/deeper"}, "is where Quire keeps what is its own"),
        ({"output": "hidden"}, "is where git keeps what is its own"),
        ({"output": "out"}, "behind a link that leads out of"),
        ({"output": "loop"}, "leads nowhere"),
        ({"output": "notebooks"}, "would be taken for the twin of a task"),
        ({"output": "taken"}, "is there, and no gate has written it"),
        ({"output": "quire.toml"}, "is a file, not a folder"),
    ],
)
def test_a_wrong_request_changes_nothing(
    repo: Scratch, engine: Engine, options: dict[str, Any], said: str
) -> None:
    repo.write("quire.toml", "")
    repo.write("taken/sum.ipynb", "mine")
    repo.write("mine.xml", "<mine/>")
    repo.write("empty.md", "")
    repo.write("README.md", f"{MARK}\nours")
    repo.write("gone.md", f"{MARK}\nours")
    repo.git("add", "README.md", "gone.md")
    (repo.root / "gone.md").unlink()
    (repo.root / "folder.xml").mkdir()
    (repo.root.parent / "elsewhere" / "sub").mkdir(parents=True)
    (repo.root.parent / "elsewhere" / "report.md").write_text(f"{MARK}\nours")
    for name, target in LINKS.items():
        (repo.root / name).symlink_to(target)
    there = before(repo.root.parent)
    with pytest.raises(UsageError, match=said) as refused:
        gate_of(workspace(repo, engine), options)
    assert refused.value.hint
    assert before(repo.root.parent) == there


def test_a_report_of_an_earlier_gate_is_replaced(repo: Scratch, engine: Engine) -> None:
    options = {"junit": "j.xml", "summary": "s.md", "everything": True}
    gate_of(workspace(repo, engine), options)
    (repo.root / "notebooks/sum.py").rename(repo.root / "notebooks/other.py")
    gate_of(workspace(repo, engine), options)
    assert set(cases(repo.root / "j.xml")) == {"notebooks/other.py"}
    assert "notebooks/other.py" in (repo.root / "s.md").read_text()


def test_a_report_that_a_task_has_written_meanwhile(repo: Scratch, engine: Engine) -> None:
    task(repo, "writes", "open('report.md', 'w').write('mine')")
    going = Gate(workspace(repo, engine), everything=True, summary="report.md")
    list(going)
    assert (repo.root / "report.md").read_text() == "mine"
    assert "report.md was written by somebody else meanwhile" in going.result.warnings[0]
    assert "notebooks/writes.py" in cases(going.junit)


def gate_of(ws: Workspace, options: dict[str, Any]) -> None:
    for _ in Gate(ws, **options):
        pass


def test_no_folder_with_tasks(scratch: Scratch, engine: Engine) -> None:
    with pytest.raises(UsageError, match="there is no folder notebooks"):
        gate(workspace(scratch, engine))
    assert not (scratch.root / ".quire").exists()


def test_a_configuration_that_is_wrong(repo: Scratch, engine: Engine) -> None:
    repo.write("quire.toml", "timeout = -1\n")
    with pytest.raises(ConfigError):
        gate(workspace(repo, engine))


def test_a_folder_that_cannot_be_written(repo: Scratch, engine: Engine) -> None:
    if os.getuid() == 0:
        repo.write("dev", "").unlink()
        target = "/proc/quire-ci"
    else:
        (repo.root / "closed").mkdir(mode=0o500)
        target = "closed/out"
    from quire.errors import StorageError

    with pytest.raises(StorageError, match="cannot write"):
        gate(workspace(repo, engine), everything=True, output=target)
