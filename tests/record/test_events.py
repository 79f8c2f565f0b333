from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given

from made_events import journals
from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    KernelDied,
    OutputAdded,
    ResultGlued,
    RunFinished,
    ToolCalled,
    Warned,
    as_dict,
    dumps,
    loads,
)


def same(left: Any, right: Any) -> bool:
    """Equal, with nan equal to itself."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def same_event(left: Event, right: Event) -> bool:
    return type(left) is type(right) and all(
        same(getattr(left, f.name), getattr(right, f.name)) for f in fields(left)
    )


@given(journals())
def test_every_event_survives_the_journal(events: list[Event]) -> None:
    for event in events:
        line = dumps(event)
        assert "\n" not in line
        line.encode("ascii")
        assert same_event(loads(line), event)
        assert same_event(loads(line.encode() + b"\n"), event)


@pytest.mark.parametrize(
    "value",
    [
        "\ud800 alone",
        "\udcff",
        "line\u2028separator\r\n",
        "\x00\x1b[31m",
        10**100,
        -(2**64),
        float("nan"),
        float("-inf"),
        5e-324,
        {"a": [None, True, {"b": ""}]},
    ],
    ids=repr,
)
def test_odd_values(value: Any) -> None:
    event = ResultGlued("c", "x", "json", value)
    assert same_event(loads(dumps(event)), event)


def test_every_kind_of_event_has_a_tag() -> None:
    for kind in get_args(Event):
        assert kind.__name__ in {as_dict(e)["event"] for e in (_made(kind),)}


def _made(kind: type[Any]) -> Event:
    event: Event = kind(**{f.name: _value(f.name) for f in fields(kind)})
    assert same_event(loads(dumps(event)), event)
    return event


def _value(name: str) -> Any:
    given: dict[str, Any] = {
        "cells": ({"id": "c"},),
        "error": CellError("E", "v", ("line",)),
        "output": {"output_type": "stream", "name": "stdout", "text": "x"},
        "memory": {"max_rss": 1},
        "duration": 0.5,
        "omitted": 3,
        "choices": ("yes", "no"),
        "variables": ({"name": "x", "type": "int"},),
        "ok": True,
        "stop": True,
        "wait": True,
        "signal": 9,
        "status": "ok",
    }
    if name in ("plan", "data", "metadata", "arguments", "result"):
        return {name: [1]}
    return given.get(name, name)


def test_what_a_newer_version_adds_is_dropped() -> None:
    line = json.dumps({"event": "CellStarted", "cell": "c", "at": "now", "mood": "good"})
    assert loads(line) == CellStarted("c", "now")


def test_what_an_older_version_lacks_has_a_default() -> None:
    assert loads('{"event":"CellFinished","cell":"c","status":"ok"}') == CellFinished("c", "ok")


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "null", "3", '{"event":"Nothing"}', "{}", '{"event":"RunFinished"}']
)
def test_what_is_no_event_says_so(line: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        loads(line)


def test_an_error_travels_as_an_object() -> None:
    frame = {"where": "f(x)", "line": 3, "count": None, "file": "a.py", "code": "1 / x"}
    event = CellFinished("c", "failed", error=CellError("E", "v", ("a", "b"), (frame,)))
    told = json.loads(dumps(event))
    assert told["error"] == {
        "name": "E", "value": "v", "traceback": ["a", "b"], "frames": [frame],
    }  # fmt: skip
    assert loads(dumps(event)) == event
    del told["error"]["frames"]  # as an earlier Quire wrote it
    assert loads(json.dumps(told)) == replace(event, error=CellError("E", "v", ("a", "b")))


def test_events_are_values() -> None:
    assert Warned("c", "x") == Warned("c", "x")
    with pytest.raises(AttributeError):
        Warned("c", "x").message = "y"  # type: ignore[misc]
    for event in (
        KernelDied("c", "gone", memory={"max_rss": 3}),
        RunFinished("ok", "now", 1.0),
        ToolCalled("c", "run", {"path": "x"}, ok=True, duration=0.1),
        OutputAdded("c", {"output_type": "stream", "name": "stdout", "text": ""}, None),
    ):
        assert loads(dumps(event)) == event
