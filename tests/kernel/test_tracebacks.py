"""A long traceback is formatted once for each piece of code, and reads as IPython writes it."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.ultratb import AutoFormattedTB

from quire.kernel.inside.tracebacks import remembering

DEEP = """\
def deeper(n):
    if n == 0:
        del n
        raise ValueError("the bottom")
    text = "something to colour"
    return other(n - 1)
def other(n):
    return deeper(n)
deeper(60)
"""
LOST = "def lost(n):\n    return lost(n - 1) if n else 1 / 0\nlost(40)\n"
CHAINED = """\
def f(n):
    try:
        return f(n - 1) if n else 1 / 0
    except ZeroDivisionError as error:
        raise KeyError(n) from error
f(5)
"""


@pytest.fixture(autouse=True)
def _cells() -> Iterator[None]:
    before = dict(linecache.cache)
    yield
    linecache.cache.clear()
    linecache.cache.update(before)


def as_cell(source: str, tmp_path: Path) -> str:
    """As IPython keeps a cell: its file does not exist, its text is known."""
    name = str(tmp_path / "ipykernel_1" / "1.py")
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    return name


def as_file(source: str, tmp_path: Path) -> str:
    path = tmp_path / "module.py"
    path.write_text(source)
    return str(path)


def as_nothing(source: str, tmp_path: Path) -> str:
    """Source that nobody can find."""
    return "<made up>"


def failed(source: str, name: str) -> BaseException:
    try:
        exec(compile(source, name, "exec"), {"__name__": "somewhere"})
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError("it did not fail")


def written(formatter: Any, error: BaseException) -> list[str]:
    lines: list[str] = formatter.structured_traceback(
        type(error), error, error.__traceback__, tb_offset=1
    )
    return lines


@pytest.mark.parametrize("where", [as_cell, as_file, as_nothing])
@pytest.mark.parametrize("source", [DEEP, LOST, CHAINED], ids=["deep", "lost", "chained"])
@pytest.mark.parametrize("mode", ["Context", "Verbose", "Plain"])
def test_it_reads_the_same(
    mode: str, source: str, where: Callable[[str, Path], str], tmp_path: Path
) -> None:
    error = failed(source, where(source, tmp_path))
    formatter = AutoFormattedTB(mode=mode, theme_name="linux", tb_offset=1)
    expected = written(formatter, error)
    with remembering(formatter):
        assert written(formatter, error) == expected
    assert written(formatter, error) == expected


@pytest.mark.parametrize("source", [
    "import os\n\nrows = [{}]\nnames = [row['id'] for row in rows]\n",
    "import os\n\nclass Table:\n    rows = {}\n    names = rows['id']\n",
], ids=["comprehension", "class"])  # fmt: skip
def test_the_line_that_failed_is_marked_and_no_other(source: str, tmp_path: Path) -> None:
    error = failed(source, as_cell(source, tmp_path))
    formatter = AutoFormattedTB(mode="Context", theme_name="nocolor", tb_offset=1)
    with remembering(formatter):
        shown = "\n".join(written(formatter, error))
    marked = re.findall(r"^-+> (\d+) (.*)$", shown, re.MULTILINE)
    rows = source.split("\n")
    mine = [(rows[int(number) - 1], text) for number, text in marked if int(number) <= len(rows)]
    assert len(mine) >= 2
    assert all(row.strip() == text.strip() for row, text in mine)


def test_a_thousand_frames_are_looked_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = failed(LOST.replace("40", "400"), as_cell(LOST, tmp_path))
    asked = []
    look = inspect.getsourcefile
    monkeypatch.setattr(inspect, "getsourcefile", lambda one: asked.append(one) or look(one))
    formatter = AutoFormattedTB(mode="Context", theme_name="linux", tb_offset=1)
    with remembering(formatter):
        lines = written(formatter, error)
    assert len([line for line in lines if "lost" in line]) > 390
    frames = [one for one in asked if inspect.isframe(one) or inspect.iscode(one)]
    assert 0 < len(frames) < 20


def test_nothing_of_it_stays(tmp_path: Path) -> None:
    error = failed(LOST, as_cell(LOST, tmp_path))
    formatter = AutoFormattedTB(mode="Context", theme_name="linux")
    before = inspect.getmodule, inspect.getsourcelines

    def interrupted() -> None:
        with remembering(formatter):
            written(formatter, error)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (inspect.getmodule, inspect.getsourcelines) == before
    assert "format_record" not in vars(formatter)


def test_one_inside_another_does_without(tmp_path: Path) -> None:
    """A formatter of the task's own may format another error meanwhile."""
    error = failed(LOST, as_cell(LOST, tmp_path))
    formatter = AutoFormattedTB(mode="Context", theme_name="linux")
    expected = written(formatter, error)
    with remembering(formatter):
        with remembering(formatter):
            assert written(formatter, error) == expected
        assert written(formatter, error) == expected
    assert "format_record" not in vars(formatter)
