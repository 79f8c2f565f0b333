"""Where an error came from, where IPython's own traceback does not say it."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator

import pytest

from quire.kernel.inside.error_origin import FRAMES, is_untold, told

CHAINED = """\
def load(path, *, twice=False):
    try:
        return {}[path]
    except KeyError as error:
        raise ValueError("nothing there") from error
load("a")
"""
GROUP = """\
def inner(n):
    return 1 / n
held = [ValueError("never raised")]
try:
    inner(0)
except ZeroDivisionError as error:
    held.append(error)
raise ExceptionGroup("several", [*held, ExceptionGroup("more", [KeyError(1)])])
"""
groups = pytest.mark.skipif(sys.version_info < (3, 11), reason="has no groups of errors")


@pytest.fixture(autouse=True)
def _cells() -> Iterator[None]:
    before = dict(linecache.cache)
    yield
    linecache.cache.clear()
    linecache.cache.update(before)


def failed(source: str) -> BaseException:
    linecache.cache["<cell>"] = (len(source), None, source.splitlines(keepends=True), "<cell>")
    try:
        exec(compile(source, "<cell>", "exec"), {"__name__": "somewhere"})
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError("it did not fail")


def lines(error: BaseException) -> list[str]:
    """From the cell on: before it stand the frames of this test."""
    rows = list(told(error, {"<cell>": 7}.get))
    return rows[next(at for at, row in enumerate(rows) if "In[7]" in row) :]


def test_a_cause_has_the_line_that_raised_it() -> None:
    error = failed(CHAINED)
    assert is_untold(error)
    rows = lines(error)
    assert rows[:3] == [
        "Cell In[7], line 3, in load(path, twice)",
        "----> 3 return {}[path]",
        "KeyError: 'a'",
    ]
    assert "The above exception was the direct cause of the following exception:" in rows
    assert rows[-3:] == [
        "Cell In[7], line 5, in load(path, twice)",
        '----> 5 raise ValueError("nothing there") from error',
        "ValueError: nothing there",
    ]


def test_exit_has_a_line() -> None:
    error = failed("import sys\nsys.exit(3)\n")
    assert is_untold(error)
    assert lines(error) == ["Cell In[7], line 2", "----> 2 sys.exit(3)", "SystemExit: 3"]


def test_what_ipython_tells_itself_is_left_to_it() -> None:
    assert not is_untold(failed("1 / 0\n"))
    hidden = "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError from None\n"
    assert not is_untold(failed(hidden))
    assert not is_untold(None)


@groups
def test_a_group_says_where_each_of_its_errors_came_from() -> None:
    error = failed(GROUP)
    assert is_untold(error)
    rows = lines(error)
    assert rows[1] == (
        '----> 8 raise ExceptionGroup("several", [*held, ExceptionGroup("more", [KeyError(1)])])'
    )
    assert [row for row in rows if "in the group" in row] == [
        "Error 1 of 3 in the group: ValueError: never raised",
        "Error 2 of 3 in the group: ZeroDivisionError: division by zero",
        "Error 3 of 3 in the group: ExceptionGroup: more (1 sub-exception)",
        "Error 1 of 1 in the group: KeyError: 1",
    ]
    assert "Cell In[7], line 2, in inner(n)" in rows


@groups
def test_it_has_an_end() -> None:
    """However deep, wide or circular it is."""
    wide = failed("raise ExceptionGroup('wide', [KeyError(n) for n in range(1_000)])\n")
    assert "and 984 more errors in the group" in lines(wide)
    deep = failed("def f(n):\n    return f(n - 1) if n else 1 / 0\nf(500)\n")
    around = ExceptionGroup("around", [deep])  # type: ignore[type-var]
    rows = list(told(around, {"<cell>": 7}.get))
    assert len(rows) < 2 * FRAMES + 20
    assert any(row.startswith("[quire: 44") and "frames are left out" in row for row in rows)
    first, second = ValueError(1), ValueError(2)
    first.__context__, second.__context__ = second, first
    assert len(list(told(first, {}.get))) < 60
