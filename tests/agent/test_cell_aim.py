"""An edit hits the cell that its caller has read, however it was named, or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.agent.call_tool import call
from quire.agent.caller import Caller
from quire.render.agent_run import Told
from quire.workspace import Engine, Workspace

TWINS = "# %% a\nx = 1\n\n# %% b\nx = 1\n\n# %% c\nx = 1\n"
THREE = "# %% one\na = 1\n\n# %% two\nb = 2\n\n# %% three\nc = 3\n"

Use = Callable[..., Told]


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Use]:
    (tmp_path / "quire.toml").write_text("")
    engine = Engine(outlives=True)

    def use(who: str, tool: str, **arguments: Any) -> Told:
        ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
        return call(ws, tool, {"path": "t.py", **arguments}, Caller(who))

    yield use
    engine.close()


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return tmp_path / "t.py"


def ids(told: Told) -> list[str]:
    return re.findall(r"^\[\d+\] code (\S+)", told.text, re.MULTILINE)


def sources(task: Path) -> list[str]:
    return re.findall(r"^# %%.*\n((?:(?!# %%).+\n?)*)", task.read_text(), re.MULTILINE)


def test_the_id_of_an_equal_cell_is_the_one_that_was_read(use: Use, task: Path) -> None:
    task.write_text(TWINS)
    second = ids(use("ada", "notebook_read"))[1]
    assert second.endswith("-2")
    assert not use("ada", "notebook_edit", cell=0, new_source="y = 0").failed
    assert not use("ada", "notebook_edit", cell=second, new_source="x = 5").failed
    assert sources(task) == ["y = 0\n", "x = 5\n", "x = 1\n"]


def test_where_somebody_else_changed_an_equal_cell_it_is_refused(use: Use, task: Path) -> None:
    task.write_text(TWINS)
    second = ids(use("ada", "notebook_read"))[1]
    use("ben", "notebook_edit", cell=0, new_source="y = 0")
    told = use("ada", "notebook_edit", cell=second, new_source="x = 5")
    assert told.failed
    assert "3 cells were equal" in told.text
    assert "2 are now (at 1, 2)" in told.text
    assert sources(task) == ["y = 0\n", "x = 1\n", "x = 1\n"]
    use("ada", "notebook_read")
    assert not use("ada", "notebook_edit", cell=second, new_source="x = 5").failed
    assert sources(task)[2] == "x = 5\n"


@pytest.mark.parametrize("by", ["place", "id", "title"])
def test_a_cell_that_changed_is_refused_until_it_was_shown(use: Use, task: Path, by: str) -> None:
    task.write_text(THREE)
    second = ids(use("ada", "notebook_read"))[1]
    use("ben", "notebook_edit", cell=1, new_source="b = 20\nIMPORTANT = 1")
    cell = {"place": 1, "id": second, "title": "two"}[by]
    told = use("ada", "notebook_edit", cell=cell, delete=True)
    assert told.failed
    assert "| IMPORTANT = 1" in told.text
    assert not use("ada", "notebook_edit", cell=1, new_source="b = 3").failed
    assert sources(task)[1] == "b = 3\n"


def test_a_refusal_of_another_kind_teaches_nothing(use: Use, task: Path) -> None:
    task.write_text(THREE)
    use("ada", "notebook_read")
    use("ben", "notebook_edit", cell=1, new_source="IMPORTANT = 1")
    assert use("ada", "notebook_edit", cell="tow", new_source="b = 3").failed
    assert use("ada", "notebook_edit", cell=1, new_source="b = 3").failed
    assert sources(task)[1] == "IMPORTANT = 1\n"


def test_places_move_with_what_the_caller_itself_does(use: Use, task: Path) -> None:
    task.write_text(THREE)
    use("ada", "notebook_read")
    use("ada", "notebook_edit", cell=0, insert="after", new_source="new = 1")
    assert not use("ada", "notebook_edit", cell=3, new_source="c = 4").failed
    assert not use("ada", "notebook_edit", cell=1, delete=True).failed
    assert not use("ada", "notebook_edit", cell="two", new_source="b = 5").failed
    assert sources(task) == ["a = 1\n", "b = 5\n", "c = 4\n"]


def test_a_cell_that_another_one_put_there_is_refused(use: Use, task: Path) -> None:
    task.write_text(THREE)
    use("ada", "notebook_read")
    use("ben", "notebook_edit", cell=0, insert="after", new_source="IMPORTANT = 1")
    use("ada", "notebook_edit", cell=0, new_source="a = 7")  # tells nothing of the others
    told = use("ada", "notebook_edit", cell=1, new_source="gone = 1")
    assert told.failed
    assert "the cell that was read is now at index 2" in told.text
    assert "| IMPORTANT = 1" in told.text
    assert not use("ada", "notebook_edit", cell=2, new_source="b = 5").failed
    assert sources(task) == ["a = 7\n", "IMPORTANT = 1\n", "b = 5\n", "c = 3\n"]


@pytest.mark.parametrize("cell", [1, -2])
def test_a_place_is_the_one_that_was_shown_whoever_moved_cells(
    use: Use, task: Path, cell: int
) -> None:
    """The answer to an edit tells nothing of the others."""
    task.write_text("# %%\na = 1\n\n# %%\nb = 1\n\n# %%\nc = 1\n\n# %%\nd = 1\n")
    last = ids(use("ben", "notebook_read"))[3]
    use("ada", "notebook_edit", cell=0, insert="before", new_source="x = 1")
    assert not use("ben", "notebook_edit", cell=last, delete=True).failed
    told = use("ben", "notebook_edit", cell=cell, new_source="b = 22")
    if cell == 1:
        assert told.failed
        assert "the cell that was read is now at index 2" in told.text
        assert not use("ben", "notebook_edit", cell=2, new_source="b = 22").failed
    assert sources(task) == ["x = 1\n", "a = 1\n", "b = 22\n", "c = 1\n"]
