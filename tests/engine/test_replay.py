"""`quire replay`: a run, run again as it was, whatever has become of its file."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import made_environments as environments
import quire
from quire.archive.read import find
from quire.engine.replay import prepare, replay
from quire.errors import UsageError
from quire.workspace import Workspace
from scratch import Scratch

STEADY = """# %% tags=["parameters"]
n: int = 4
day: object = None

# %% add
from quire.runtime import glue
total = sum(range(n))
print("total", total, repr(day))
glue("total", total)
"""
CLOCK = """
# %% clock tags=["volatile"]
import time
print(time.time_ns())
"""
COUNTER = """# %%
from pathlib import Path
place = Path("count")
count = int(place.read_text()) + 1 if place.exists() else 1
place.write_text(str(count))
print("run", count)
"""


def replayed(scratch: Scratch, *args: str, **env: str) -> tuple[int, dict[str, Any]]:
    done = scratch.quire("replay", *args, "--json", "-q", env=env)
    assert done.stdout.count("\n") == 1, done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_steady_run_is_equal(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY)
    _, told = scratch.run("a.py", "-p", "n", "7", "-p", "day", "2026-11-16")
    code, compared = replayed(scratch, told["run_id"])
    assert (code, compared["verdict"]) == (0, "equal")
    assert compared["old"] == told["run_id"]
    assert compared["new"] != told["run_id"]
    done = scratch.quire("replay", told["run_id"])
    assert done.returncode == 0
    assert done.stdout.endswith("equal\n")


def test_a_replay_is_a_run_that_says_what_it_repeats(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY)
    _, told = scratch.run("a.py", "-p", "n", "7")
    _, compared = replayed(scratch, "last")
    workspace = Workspace(scratch.root, cwd=scratch.root)
    old, new = (find(workspace, compared[side]).record for side in ("old", "new"))
    assert new.replays == old.run_id == told["run_id"]
    assert (new.task, new.parameters) == (old.task, old.parameters)
    assert new.plan["mode"] == "clean"
    assert [cell.id for cell in new.cells] == [cell.id for cell in old.cells]
    assert compared["archived"]


def test_a_replay_is_not_the_run_before(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY)
    _, first = scratch.run("a.py")
    _, compared = replayed(scratch, "last")
    _, third = scratch.run("a.py")
    for new in (compared["new"], third["run_id"]):
        told = json.loads(scratch.quire("diff", new, "--json").stdout)
        assert (told["old"], told["verdict"]) == (first["run_id"], "equal")


def test_volatile_cells_may_differ(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY + CLOCK)
    scratch.run("a.py")
    code, compared = replayed(scratch, "last")
    assert (code, compared["verdict"]) == (0, "volatile")
    assert "equal up to volatile cells" in scratch.quire("replay", "last").stdout


def test_a_run_that_depends_on_what_was_before_is_different(scratch: Scratch) -> None:
    scratch.write("a.py", COUNTER)
    scratch.run("a.py")
    done = scratch.quire("replay", "last")
    assert done.returncode == 1
    assert "-run 1" in done.stdout
    assert "+run 2" in done.stdout


def test_the_file_may_have_changed_or_be_gone(scratch: Scratch) -> None:
    path = scratch.write("a.py", STEADY)
    _, told = scratch.run("a.py")
    path.write_text("# %%\nprint('something else')\n")
    assert replayed(scratch, told["run_id"])[1]["verdict"] == "equal"
    assert path.read_text() == "# %%\nprint('something else')\n"
    path.unlink()
    assert replayed(scratch, told["run_id"])[1]["verdict"] == "equal"
    assert not path.exists()


def test_it_runs_where_it_ran(scratch: Scratch) -> None:
    scratch.write("sub/helper.py", "ANSWER = 42\n")
    scratch.write("tasks/a.py", "# %%\nimport helper, os\nprint(helper.ANSWER, os.getcwd())\n")
    _, told = scratch.run("tasks/a.py", "--cwd", "sub")
    assert told["outcome"] == "ok"
    assert replayed(scratch, told["run_id"])[1]["verdict"] == "equal"
    code, compared = replayed(scratch, told["run_id"], "--cwd", ".")
    assert code == 1
    assert [change["name"] for change in compared["run"]] == ["outcome", "error"]


def test_a_folder_that_is_gone_is_said(scratch: Scratch) -> None:
    (scratch.root / "sub").mkdir()
    scratch.write("a.py", STEADY)
    _, told = scratch.run("a.py", "--cwd", "sub")
    (scratch.root / "sub").rmdir()
    _, compared = replayed(scratch, told["run_id"])
    assert compared["verdict"] == "equal"
    assert "sub, is not in this workspace" in compared["notes"][0]


def test_a_failed_run_that_fails_again_is_equal(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nx = {}\n\n# %%\nx['missing']\n\n# %%\nprint('never')\n")
    _, told = scratch.run("a.py")
    assert told["outcome"] == "failed"
    code, compared = replayed(scratch, told["run_id"])
    assert (code, compared["verdict"]) == (0, "equal")


def test_from_the_archive_alone(repo: Scratch) -> None:
    repo.write("notebooks/sum.py", (repo.root / "notebooks/sum.py").read_text() + CLOCK)
    _, told = repo.run("notebooks/sum.py", "-p", "n", "9")
    shutil.rmtree(Path(told["notebook"]).parent)
    (repo.root / "notebooks/sum.py").unlink()
    code, compared = replayed(repo, told["run_id"])
    assert (code, compared["verdict"]) == (0, "volatile")
    new = find(Workspace(repo.root, cwd=repo.root), compared["new"]).record
    assert new.results["total"].value == 36
    assert repo.git("status", "--porcelain") == " D notebooks/sum.py"


def test_parameters_come_back_exactly(scratch: Scratch) -> None:
    """A record has dates, tuples and nan as JSON has them; the cell that set them has more."""
    scratch.write(
        "a.py",
        '# %% tags=["parameters"]\nday = None\npair = None\nodd = None\n\n'
        "# %%\nprint(type(day), pair, odd)\n",
    )
    workspace = Workspace(scratch.root, cwd=scratch.root)
    import datetime

    given = {"day": datetime.date(2026, 11, 16), "pair": (1, 2), "odd": float("nan")}
    old = quire.run("a.py", given, workspace=workspace)
    assert old.ok
    assert replay(workspace, old.run_id).verdict == "equal"


def test_a_source_with_an_encoding_of_its_own(scratch: Scratch) -> None:
    (scratch.root / "a.py").write_bytes("# coding: latin-1\n# %%\nprint('é')\n".encode("latin-1"))
    scratch.run("a.py")
    assert replayed(scratch, "last")[1]["verdict"] == "equal"


def test_a_notebook_is_replayed_too(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY)
    scratch.quire("sync", "a.py")
    _, told = scratch.run("a.ipynb", "-p", "n", "3")
    assert replayed(scratch, told["run_id"])[1]["verdict"] == "equal"


def test_a_secret_in_a_parameter_cannot_be_replayed(scratch: Scratch) -> None:
    scratch.write("a.py", '# %% tags=["parameters"]\ntoken: str = ""\n\n# %%\nprint(len(token))\n')
    env = {"MY_TOKEN": "correct-horse-battery-staple"}
    _, told = scratch.run("a.py", "-p", "token", env["MY_TOKEN"], env=env)
    done = scratch.quire("replay", told["run_id"])
    assert done.returncode == 2
    assert "the parameter token, which held a secret" in done.stderr
    assert "hint:" in done.stderr


def test_a_secret_in_the_source_cannot_be_replayed(scratch: Scratch) -> None:
    env = {"MY_TOKEN": "correct-horse-battery-staple"}
    scratch.write("a.py", f"# %%\ntoken = {env['MY_TOKEN']!r}\n")
    _, told = scratch.run("a.py", env=env)
    before = scratch.quire("runs", "--json").stdout
    done = scratch.quire("replay", told["run_id"])
    assert done.returncode == 2
    assert "its source held a secret" in done.stderr
    assert scratch.quire("runs", "--json").stdout == before


def test_a_source_that_somebody_changed_is_not_run(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY)
    _, told = scratch.run("a.py")
    source = Path(told["notebook"]).parent / "source.py"
    source.write_text(source.read_text() + "\nopen('owned', 'w')\n")
    done = scratch.quire("replay", told["run_id"])
    assert done.returncode == 2
    assert "not the one that was run" in done.stderr
    assert not (scratch.root / "owned").exists()


def test_a_resumed_run_is_replayed_from_the_beginning(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nx = 20\nprint('first')\n\n# %%\nprint(x / 0)\n")
    _, failed = scratch.run("a.py")
    scratch.write("a.py", "# %%\nx = 20\nprint('first')\n\n# %%\nprint(x / 2)\n")
    code, resumed = scratch.run("a.py", "--resume", failed["run_id"])
    assert code == 0
    assert [cell["status"] for cell in resumed["cells"]] == ["carried", "ok"]
    code, compared = replayed(scratch, resumed["run_id"])
    assert (code, compared["verdict"]) == (0, "equal")
    assert "all run, in a clean kernel" in compared["notes"][0]


def test_another_environment_is_told(scratch: Scratch, tmp_path: Path) -> None:
    python = environments.make(tmp_path / "other", "ipython", "ipykernel", "quire")
    scratch.write("a.py", "# %%\nprint('hello')\n")
    _, told = scratch.run("a.py", "--python", str(python))
    assert told["outcome"] == "ok", told["error"]
    done = scratch.quire("replay", told["run_id"])
    assert done.returncode == 0
    assert "environment is not" not in done.stderr, "the interpreter it had is used again"
    done = scratch.quire("replay", told["run_id"], "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    assert "the environment is not the one the run had" in done.stderr
    assert "pandas" in done.stderr
    python.unlink()
    _, compared = replayed(scratch, told["run_id"])
    assert "is not here" in compared["notes"][0]


def test_the_same_kernel_is_used_again(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nprint(type(get_ipython()).__name__)\n")
    _, told = scratch.run("a.py", "--kernel", "python3")
    _, compared = replayed(scratch, told["run_id"])
    assert compared["verdict"] == "equal"
    new = find(Workspace(scratch.root, cwd=scratch.root), compared["new"]).record
    assert new.plan["kernel"]["kind"] == "jupyter"


def test_limits_are_kept(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY)
    _, told = scratch.run("a.py", "--cell-timeout", "33", "--timeout", "44")
    workspace = Workspace(scratch.root, cwd=scratch.root)
    limits = prepare(workspace, told["run_id"]).execution.plan.limits
    assert (limits.cell_timeout, limits.timeout) == (33, 44)


def test_archives_of_others_choose_no_folder_outside(scratch: Scratch) -> None:
    scratch.write("a.py", STEADY)
    _, told = scratch.run("a.py", "--no-archive")
    events = Path(told["notebook"]).parent / "events.jsonl"
    events.write_text(events.read_text().replace('"cwd": "."', '"cwd": "/etc"'))
    events.write_text(events.read_text().replace('"cwd":"."', '"cwd":"/etc"'))
    assert "/etc" in events.read_text()
    prepared = prepare(Workspace(scratch.root, cwd=scratch.root), told["run_id"])
    assert prepared.execution.plan.cwd == "."
    assert "/etc, is not in this workspace" in prepared.notes[0]


def test_a_run_that_is_not_there_or_not_over(scratch: Scratch) -> None:
    done = scratch.quire("replay", "2020")
    assert (done.returncode, "hint:" in done.stderr) == (2, True)
    assert scratch.quire("replay", "last", "--timeout", "0").returncode == 2
    scratch.write("a.py", "# %%\nopen('started', 'w').close()\nimport time\ntime.sleep(600)\n")
    with scratch.start("run", "a.py", "--no-host") as process:
        try:
            while not (scratch.root / "started").exists():
                assert process.poll() is None
            with pytest.raises(UsageError, match="still running"):
                prepare(Workspace(scratch.root, cwd=scratch.root), "last")
        finally:
            process.terminate()
            process.communicate(timeout=60)


def test_an_output_that_is_elsewhere_is_compared_by_its_digest(repo: Scratch) -> None:
    repo.write("quire.toml", "[archive]\nlarge = 1000\n")
    repo.write(
        "a.py", "# %%\nprint('x' * 5000)\nfrom IPython.display import HTML\nHTML('y' * 5000)\n"
    )
    _, told = repo.run("a.py")
    for name in ("runs", "objects"):
        shutil.rmtree(repo.root / ".quire" / name)
    code, compared = replayed(repo, told["run_id"])
    assert (code, compared["verdict"]) == (0, "equal"), compared
    repo.write(
        "a.py", "# %%\nprint('z' * 5000)\nfrom IPython.display import HTML\nHTML('y' * 5000)\n"
    )
    _, other = repo.run("a.py")
    for name in ("runs", "objects"):
        shutil.rmtree(repo.root / ".quire" / name)
    done = repo.quire("diff", told["run_id"], other["run_id"])
    assert done.returncode == 1
    assert "stream, which is not at hand:" in done.stdout
    assert "value" not in done.stdout
