"""A session becomes a task only if a clean kernel sees what the session saw."""

from __future__ import annotations

import json
from typing import Any

import pytest
from live import Live

from quire.errors import UsageError
from quire.record.record import Record
from quire.sessions.promote import Promoted, promote
from scratch import Scratch

GLUE = "from quire.runtime import glue"


def promoted(live: Live, name: str, target: str = "clean.py", **options: Any) -> Promoted:
    return promote(live.workspace, name, target, options.pop("cancel", Never()), **options)


def read_run(live: Live, made: Promoted) -> Record:
    runs = live.workspace.runs
    return runs.read(runs.find(made.run_id))


class Never:
    def is_set(self) -> bool:
        return False


def test_what_holds_is_written(live: Live) -> None:
    name = live.open(GLUE, "xs = [1, 2]", "glue('total', sum(xs))")
    live.ran(name, "all")
    made = promoted(live, name)
    assert made.difference == ""
    assert (live.root / "clean.py").read_text() == (live.root / "t.py").read_text()
    record = read_run(live, made)
    assert record.outcome == "ok"
    assert record.plan["mode"] == "clean"
    assert record.values == {"total": 3}
    # The session is as it was.
    assert live.variables(name)["xs"] == "[1, 2]"
    assert live.inner(name).epoch == 1


def test_a_variable_of_loose_code_is_hidden_state(live: Live) -> None:
    name = live.open("xs = [1]", "print(xs, secret)")
    live.ran(name, "0")
    live.exec(name, code="secret = 42")
    live.ran(name, "1")
    made = promoted(live, name)
    assert made.path is None
    assert made.difference == (
        "cell 1 ran in the session but fails in a clean kernel: "
        "NameError: name 'secret' is not defined"
    )
    assert not (live.root / "clean.py").exists()
    assert read_run(live, made).outcome == "failed"


def test_a_variable_of_a_deleted_cell_is_hidden_state(live: Live) -> None:
    name = live.open("helper = 2", "print(helper)")
    live.ran(name, "all")
    live.write("print(helper)")
    assert "fails in a clean kernel: NameError" in promoted(live, name).difference
    assert not (live.root / "clean.py").exists()


def test_cells_run_out_of_order_are_hidden_state(live: Live) -> None:
    name = live.open(GLUE, "n = 1", "n = n * 10", "glue('n', n)")
    live.ran(name, "0", "1", "2", "2", "3")
    made = promoted(live, name)
    assert made.difference == "cell 3 gave n = 100 in the session, but 10 in a clean kernel"
    assert made.path is None
    # The last thing the session saw is what counts.
    live.ran(name, "1", "2", "3")
    assert promoted(live, name).difference == ""


def test_an_import_that_only_the_session_has_is_hidden_state(live: Live) -> None:
    name = live.open("n = math.pi")
    live.exec(name, code="import math")
    live.ran(name, "0")
    assert "NameError: name 'math' is not defined" in promoted(live, name).difference


def test_an_error_is_part_of_what_the_session_saw(live: Live) -> None:
    name = live.open("n = 1", "n.missing")
    live.exec(name, "all")
    assert promoted(live, name).difference == ""
    live.exec(name, code="n = {}")
    live.write("n = 1", "n['missing']")
    live.exec(name, "1")
    difference = promoted(live, name, "other.py").difference
    assert difference.startswith("cell 1 failed with KeyError in the session, now with TypeError")


def test_what_failed_in_the_session_but_not_in_a_clean_kernel(live: Live) -> None:
    name = live.open("n = 1", "print(n)")
    live.exec(name, "1")
    difference = promoted(live, name).difference
    assert difference.startswith("cell 1 failed in the session (NameError")
    assert difference.endswith("but not in a clean kernel")


def test_a_result_that_a_clean_kernel_does_not_give(live: Live) -> None:
    name = live.open(GLUE, "if 'flag' in globals():\n    glue('seen', 1)")
    live.exec(name, code="flag = True")
    live.ran(name, "all")
    assert promoted(live, name).difference == (
        "cell 1 gave the result seen in the session, but not in a clean kernel"
    )


def test_a_cell_that_never_ran_has_to_hold_too(live: Live) -> None:
    name = live.open("n = 1", "n.missing")
    live.ran(name, "0")
    difference = promoted(live, name).difference
    assert difference.startswith("cell 1 never ran in the session and fails in a clean kernel")


def test_with_the_sessions_parameters_and_folder(live: Live) -> None:
    (live.root / "deep").mkdir()
    (live.root / "t.py").write_text(
        f'# %%\n{GLUE}\n# %% tags=["parameters"]\nsize = 1\n'
        "# %%\nimport os\nglue('size', size)\nglue('here', os.path.basename(os.getcwd()))\n"
    )
    name = live.open(parameters={"size": 5}, cwd="deep")
    live.ran(name, "all")
    made = promoted(live, name)
    assert made.difference == ""
    values = read_run(live, made).values
    assert values == {"size": 5, "here": "deep"}


def test_what_is_there_is_not_overwritten(live: Live) -> None:
    name = live.open("n = 1")
    live.ran(name, "0")
    target = live.root / "clean.py"
    target.write_text("# mine\n")
    with pytest.raises(UsageError, match=r"clean\.py is already there"):
        promoted(live, name)
    assert target.read_text() == "# mine\n"
    assert promoted(live, name, force=True).path == target
    assert target.read_text() == (live.root / "t.py").read_text()
    for wrong, said in (("clean.txt", "is no task"), ("no/clean.py", "there is no folder")):
        with pytest.raises(UsageError, match=said):
            promoted(live, name, wrong)


def test_into_another_format_and_onto_itself(live: Live) -> None:
    name = live.open("n = 1", "print(n)")
    live.ran(name, "all")
    made = promoted(live, name, "clean.ipynb")
    assert made.path is not None
    notebook = json.loads(made.path.read_text())
    assert ["".join(cell["source"]) for cell in notebook["cells"]] == ["n = 1", "print(n)"]
    before = (live.root / "t.py").read_bytes()
    assert promoted(live, name, "t.py").difference == ""
    assert (live.root / "t.py").read_bytes() == before


def test_the_command(scratch: Scratch) -> None:
    scratch.write("t.py", "# %%\nn = 1\n# %%\nprint(n + extra)\n")
    scratch.quire("session", "open", "t.py")
    scratch.quire("exec", "t", "--code", "extra = 1")
    scratch.quire("exec", "t", "all")
    done = scratch.quire("session", "promote", "t", "clean.py")
    assert done.returncode == 1
    assert "not written: cell 1 ran in the session but fails in a clean kernel" in done.stderr
    assert "the clean run is " in done.stderr
    scratch.write("t.py", "# %%\nn = 1\nextra = 1\n# %%\nprint(n + extra)\n")
    scratch.quire("exec", "t", "all")
    done = scratch.quire("session", "promote", "t", "clean.py", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["written"]) == (0, str(scratch.root / "clean.py"))
    assert told["difference"] == ""
    assert scratch.quire("run", "clean.py").returncode == 0
    done = scratch.quire("session", "promote", "t", "clean.py")
    assert (done.returncode, "clean.py is already there" in done.stderr) == (2, True)
