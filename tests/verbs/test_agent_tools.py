"""The definitions of the tools, and what is checked of a call before anything is done."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from quire.errors import UsageError
from quire.verbs.agent.arguments import checked, tool
from quire.verbs.agent.call import _DO
from quire.verbs.agent.definitions import BY_NAME, TOOLS
from quire.verbs.agent.schemas import schemas
from quire.verbs.agent.texts import bounded


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
