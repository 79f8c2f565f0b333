"""Cells that fail in odd ways, as an agent reads of them: the line, and where it came from."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quire.agent.call_tool import call
from quire.agent.caller import Caller
from quire.workspace import Engine, Workspace

Fail = Callable[[str], str]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(outlives=True)
    yield engine
    engine.close()


@pytest.fixture
def fail(engine: Engine, tmp_path: Path) -> Fail:
    (tmp_path / "quire.toml").write_text("")

    def run(source: str) -> str:
        (tmp_path / "t.py").write_text(f"# %% work\n{source}\n")
        ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
        told = call(ws, "notebook_execute", {"path": "t.py", "wait": 60}, Caller("test"))
        assert told.failed
        return re.sub(r"[0-9a-f]{10}", "ID", told.text)

    return run


def test_what_came_before_has_its_own_line(fail: Fail) -> None:
    text = fail(
        "def load(path):\n"
        "    try:\n"
        "        return {}[path]\n"
        "    except KeyError as error:\n"
        "        raise ValueError('nothing there') from error\n"
        "load('a')"
    )
    assert "error, line 6: " in text
    assert "| > 6  load('a')" in text
    assert "| cell 0 (ID) line 3 in load(path): return {}[path]\n| KeyError: 'a'\n" in text
    assert "| cell 0 (ID) line 5 in load(path): raise ValueError" in text


def test_the_line_of_a_generator_is_the_one_that_is_named(fail: Fail) -> None:
    """IPython shows the first line of what is around it."""
    text = fail("parts = ['1', 'x']\ntotal = 0\ntotal = sum(\n    float(one) for one in parts\n)")
    assert "| cell 0 (ID) line 3: total = sum(\n" in text
    assert re.search(r"line 4 in <genexpr>\(.*\): float\(one\) for one in parts\n", text)


def test_a_task_that_ends_itself_with_a_status(fail: Fail) -> None:
    text = fail("import sys\nsys.exit(3)")
    assert 'error, line 2: "SystemExit"\n| 3\n' in text
    assert "| > 2  sys.exit(3)" in text
    assert "%tb" not in text


@pytest.mark.parametrize("text", ["raise RuntimeError('no')", "return self.__str__()"])
def test_an_error_whose_text_cannot_be_had_is_told_by_its_name(fail: Fail, text: str) -> None:
    bad = f"class Bad(Exception):\n    def __str__(self):\n        {text}"
    told = fail(f"{bad}\nx = 1\nraise Bad()")
    assert 'error, line 5: "Bad"\n' in told
    assert "| > 5  raise Bad()" in told


@pytest.mark.skipif(sys.version_info < (3, 11), reason="has no groups of errors")
def test_a_group_of_errors(fail: Fail) -> None:
    text = fail(
        "import asyncio, sys\n"
        "async def one(n):\n"
        "    return 1 / n\n"
        "async def main():\n"
        "    async with asyncio.TaskGroup() as group:\n"
        "        group.create_task(one(0))\n"
        "print('  + not a traceback', file=sys.stderr)\n"
        "await main()"
    )
    assert "| > 8  await main()" in text
    part = "| Error 1 of 1 in the group: ZeroDivisionError: division by zero\n"
    assert f"{part}| cell 0 (ID) line 3 in one(n): return 1 / n\n" in text
    # Python prints it too; it is not told again.
    assert text.count("ZeroDivisionError") == 1
    assert text.endswith("stderr:\n|   + not a traceback\n| (the traceback of the error)")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors take no notes")
def test_what_was_added_to_an_error_is_told_with_it(fail: Fail) -> None:
    text = fail("error = ValueError('bad')\nerror.add_note('look\\nat row 7')\nraise error")
    assert 'error, line 3: "ValueError"\n| bad\n| look\n| at row 7\nsource' in text
    text = fail("e = ExceptionGroup('all', [KeyError('a')])\ne.add_note('look at row 7')\nraise e")
    assert "\n| look at row 7\nsource" in text
    assert text.count("in the group") == 1


def test_frames_of_a_compiled_library_are_no_frames_of_the_task(fail: Fail) -> None:
    pytest.importorskip("pandas")
    text = fail("import pandas\npandas.DataFrame({'a': [1]})['zz']")
    frames = text.split("the task's own frames:\n")[1].split("\nvariables")[0].split("\n")
    assert "line 2: pandas.DataFrame" in "\n".join(frames)
    assert all("(of a library)" in one for one in frames if one.startswith("| ") and ".py" in one)
