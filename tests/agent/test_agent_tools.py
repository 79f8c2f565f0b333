"""The definitions of the tools, and what is checked of a call before anything is done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from quire.agent.call_tool import _DO, call
from quire.agent.caller import Caller
from quire.agent.tool_arguments import checked, tool
from quire.agent.tool_definitions import BY_NAME, TOOLS
from quire.agent.tool_schemas import schemas
from quire.agent.tool_texts import bounded
from quire.errors import UsageError
from quire.render.quoting import EXPLAINED
from quire.task import formats
from quire.workspace import Workspace


def test_the_promised_names_and_arguments_are_there() -> None:
    promised = {
        "notebook_create": ("task_description",),
        "notebook_edit": ("path", "cell_index", "new_source"),
        "notebook_execute": ("path", "parameters"),
        "notebook_commit": ("path", "message"),
        "notebook_pr": ("branch", "title", "description"),
    }
    for name, arguments in promised.items():
        assert set(arguments) <= set(BY_NAME[name].arguments)
        given = {a: {"object": {}, "integer": 1}.get(str(BY_NAME[name].arguments[a]["type"]), "x")
                 for a in arguments}  # fmt: skip
        assert checked(BY_NAME[name], given)
    assert checked(tool("notebook_edit"), {"path": "a", "cell_index": 0, "delete": True}) == {
        "path": "a",
        "cell": 0,
        "delete": True,
    }


def test_every_tool_is_done_and_every_schema_is_one() -> None:
    assert set(_DO) == set(BY_NAME)
    for one in TOOLS:
        Draft202012Validator.check_schema(one.schema())
        assert set(one.required) <= set(one.arguments)
        assert one.read_only == (one.scope == "read")
        assert not (one.read_only and one.destructive)


@pytest.mark.parametrize("shape", ["openai", "anthropic", "hermes"])
def test_the_same_tools_in_other_shapes(shape: str) -> None:
    found = schemas(shape)
    inner = [one.get("function", one) for one in found]
    assert [one["name"] for one in inner] == [one.name for one in TOOLS]
    parameters = [one.get("parameters") or one["input_schema"] for one in inner]
    assert parameters == [one.schema() for one in TOOLS]
    assert ("function" in found[0]) == (shape == "openai")
    assert len(json.dumps(found)) < 9_000


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("notebook_read", {"paht": "a"}, "no argument 'paht', did you mean path?"),
        ("notebook_read", {"path": None}, "path is required"),
        ("notebook_read", {"path": ["a"]}, "path must be a string, not list"),
        ("notebook_edit", {"path": "a"}, "cell is required"),
        ("notebook_edit", {"path": "a", "cell": True}, "cell must be a string or an integer"),
        ("notebook_edit", {"path": "a", "cell": 1, "cell_index": 2}, "name different things"),
        ("notebook_edit", {"path": "a", "cell": 1, "tags": [1]}, "must be a list of strings"),
        ("notebook_edit", {"path": "a", "cell": 1, "insert": "on"}, "must be one of before, after"),
        ("notebook_execute", {"path": "a", "parameters": "{}"}, "parameters must be an object"),
        ("notebook_create", {"task_description": "a", "parameters": [{"typ": 1}]}, "has no name"),
        ("notebook_create", {"task_description": "a", "parameters": ["x"]}, "a list of objects"),
        ("notebook_execute", {"path": "a", "wait": -1}, "wait must be a number of at least 0"),
        ("notebook_execute", {"path": "a", "wait": float("nan")}, "wait must be a number"),
        ("notebook_execute", {"path": "a\0"}, "path holds a NUL"),
        ("notebook_read", {"path": ""}, "path is empty: give it a value"),
        ("notebook_read", {"path": "a", "cells": ""}, "cells is empty: give it a value or leave"),
        ("notebook_edit", {"path": "a", "cell": " ", "delete": True}, "cell is empty: give it a"),
        ("notebook_edit", {"path": "a", "cell": 1, "expect": ""}, "expect is empty"),
        ("notebook_session", {"action": "promote", "to": ""}, "to is empty"),
        ("notebook_session", {"action": "open", "path": "a", "session": ""}, "session is empty"),
        ("notebook_edit", {"path": "a", "cell": 1, "find": "", "replace": ""}, "find is empty"),
        ("run_find", {"like": ""}, "like is empty"),
        ("run_find", {"limit": 101}, "limit must be from 1 to 100"),
        ("run_find", {"limit": True}, "limit must be an integer"),
    ],
)
def test_what_does_not_fit_is_said(name: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked(tool(name), given)
    assert said in refused.value.message
    assert refused.value.hint


def test_a_notebook_is_created_with_the_parameters_that_are_given(tmp_path: Path) -> None:
    ws = Workspace(tmp_path, cwd=tmp_path, env={})
    given = [
        {"name": "share", "type": "float", "default": 1, "help": "of all"},
        {"name": "names", "type": "list[str]", "default": ["a"]},
        {"name": "who"},
    ]
    arguments = {"task_description": "Sum above 5", "path": "a.py", "parameters": given}
    told = call(ws, "notebook_create", arguments, Caller())
    assert not told.failed, told.text
    cell = formats.loads((tmp_path / "a.py").read_text(), ".py").cells[1]
    assert cell.source == 'share: float = 1.0  # of all\nnames: list[str] = ["a"]\nwho: str'
    wrong = {**arguments, "path": "b.py", "parameters": [{"name": "n", "type": "itn"}]}
    told = call(ws, "notebook_create", wrong, Caller())
    assert told.failed
    assert "'itn' is no type for the parameter n" in told.text
    assert not (tmp_path / "b.py").exists()


def test_an_empty_text_is_taken_where_it_says_something() -> None:
    for name, given in (
        ("notebook_edit", {"path": "a", "cell": 1, "new_source": "", "title": ""}),
        ("notebook_edit", {"path": "a", "cell": 1, "find": " ", "replace": ""}),
        ("notebook_pr", {"branch": "a", "title": "b", "description": ""}),
        ("run_find", {"query": ""}),
    ):
        assert checked(tool(name), given) == given


def test_a_whole_number_is_an_integer_however_it_is_written() -> None:
    """Some clients know only floating point."""
    given = checked(tool("notebook_edit"), {"path": "a", "cell_index": 3.0, "new_source": "x"})
    assert repr(given["cell"]) == "3"
    with pytest.raises(UsageError, match="limit must be an integer"):
        checked(tool("run_find"), {"limit": 1.5})


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(UsageError) as refused:
        checked(tool("notebook_commit"), {"push": "yes", "mesage": "x"})
    for part in ("path is required", "message is required", "push must be", "'mesage'"):
        assert part in refused.value.message


def test_a_name_that_is_no_tool_finds_the_nearest() -> None:
    with pytest.raises(UsageError) as refused:
        tool("notebook_exec")
    assert refused.value.hint == "did you mean notebook_execute?"


def test_a_long_list_says_how_to_see_the_rest() -> None:
    lines = ["first", "x" * 700, "row\n" * 3_000, "last"]
    shown = bounded(lines, "read(cells=…)", 8_000)
    assert len(shown) <= 8_000
    assert shown.startswith("first\nxxx")
    assert "more characters of it are not shown" in shown
    assert shown.endswith("… 1 more: read(cells=…)")
    assert bounded(lines[:2], "") == "first\n" + "x" * 700


def parts(ws: Workspace, call_: str) -> Iterator[str]:
    """What a cell's source is told as, from one call to the next that is named."""
    while call_:
        given = dict(re.findall(r'(\w+)="([^"]*)"', call_))
        told = call(ws, "notebook_read", given, Caller()).text
        assert len(told) <= 24_000
        assert told.startswith(f"[1] code {given['cells']}")
        yield from (row.removeprefix("| ") for row in told.split("\n") if row.startswith("| "))
        found = re.search(r"; read on: (notebook_read\(.*\))$", told)
        call_ = found[1] if found is not None else ""


@pytest.mark.parametrize(
    "source",
    [
        "\n".join(f"x_{n} = {n} * {n}" for n in range(4_000)),
        "x = '" + "".join(f"{n}," for n in range(40_000)) + "'",
        "y = 1\nx = '" + "".join(f"{n}," for n in range(40_000)) + "'",
    ],
)
def test_a_long_cell_can_be_read_to_its_end(tmp_path: Path, source: str) -> None:
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "a.py").write_text(f"# %%\n1\n\n# %% long\n{source}\n\n# %%\n2\n")
    ws = Workspace(tmp_path, cwd=tmp_path)
    told = call(ws, "notebook_read", {"path": "a.py"}, Caller()).text
    found = re.search(
        r"characters of it are not shown; read on: (notebook_read\(.*\))$", told, re.M
    )
    assert found is not None
    assert told.endswith('… 1 more: notebook_read(path="a.py", cells="…")')
    shown = told[: found.start()].partition('"long"\n')[2].split("\n")[:-1]
    rows = [row.removeprefix("| ") for row in shown] + [*parts(ws, found[1])]
    assert "".join(rows) == source.replace("\n", "")


def test_lines_are_of_one_cell(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "a.py").write_text("# %% a\n1\n2\n3\n\n# %% b\n4\n")
    ws = Workspace(tmp_path, cwd=tmp_path)

    def asked(**given: str) -> str:
        return call(ws, "notebook_read", {"path": "a.py", **given}, Caller()).text

    assert asked(cells="a", lines="2-3").endswith("lines 2 to 3 of 3\n" + EXPLAINED + "\n| 2\n| 3")
    assert asked(cells="a", lines="9").endswith("its source in a.py has only 3 lines")
    for given in ({"lines": "1-2"}, {"lines": "1-2", "cells": "0-1"}):
        assert "lines are of one cell" in asked(**given)
    assert "no range of lines" in asked(cells="a", lines="x")
