from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.record.events import RunStarted, dumps, loads
from quire.record.plan import Limits, Plan, jsonable, run_id
from quire.task.document import Cell, Document, identified

NOW = datetime(2026, 11, 16, 23, 30, 5, tzinfo=timezone(timedelta(hours=-2)))


@pytest.mark.parametrize(
    ("task", "slug"),
    [
        ("notebooks/Agent Task_1.py", "agent-task-1"),
        ("über.ipynb", "ber"),
        ("日本.py", "task"),
        ("--.py", "task"),
        ("x" * 100 + ".py", "x" * 40),
        ("a" * 39 + "-b.py", "a" * 39),
        ("../../etc/passwd", "passwd"),
    ],
)
def test_the_id_says_when_and_what(task: str, slug: str) -> None:
    assert run_id(task, NOW, "0a1b") == f"2026-11-17-013005-{slug}-0a1b"


@given(st.text(max_size=80))
def test_any_name_gives_an_id_that_the_store_finds(name: str) -> None:
    made = run_id(name.replace("\0", ""), NOW, "0000")
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{6}-[a-z0-9-]+-0000", made)
    assert len(made) < 80


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1.5, 1.5),
        (True, True),
        (10**100, 10**100),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (time(3, 4), "03:04:00"),
        ((1, {2}), [1, [2]]),
        ({1: Path("/x")}, {"1": "/x"}),
        ({"a": [float("inf")]}, {"a": ["inf"]}),
    ],
    ids=repr,
)
def test_the_nearest_json_has(value: Any, expected: Any) -> None:
    assert jsonable(value) == expected
    json.dumps(jsonable(value), allow_nan=False)


def test_an_integer_that_python_will_not_print_is_kept_exactly() -> None:
    huge = 7**9_999
    told = json.loads(json.dumps(jsonable({"x": huge})))["x"]
    assert int(told, 16) == huge


def plan(**more: Any) -> Plan:
    cells = identified([Cell("markdown", "# T"), Cell("code", "x = 1", tags=("a",))])
    document = Document(cells, {"kernelspec": {"name": "python3"}})
    return Plan("run", "uuid", "t.py", Path("/w/t.py"), document, "# %%\nx = 1\n", **more)


def test_what_a_record_keeps_of_it() -> None:
    told = plan(
        parameters={"day": date(2026, 1, 2)}, defaults={"n": float("nan")}, limits=Limits(1.0, 2.0)
    ).as_json({"kind": "native"})
    assert told["parameters"] == {"day": "2026-01-02"}
    assert told["defaults"] == {"n": "nan"}
    assert told["limits"] == {"cell_timeout": 1.0, "timeout": 2.0}
    assert told["kernel"] == {"kind": "native"}
    assert told["metadata"] == {"kernelspec": {"name": "python3"}}
    assert re.fullmatch("[0-9a-f]{64}", told["source_sha256"])


def test_it_travels_as_an_event() -> None:
    made = plan(parameters={"x": {1, 2}})
    event = RunStarted("r", "u", "", "t", "", made.cells_as_json(), made.as_json({}))
    assert loads(dumps(event)) == event
    markdown, code = made.cells_as_json()
    assert (markdown["kind"], code["tags"], code["source"]) == ("markdown", ["a"], "x = 1")
