"""What of a run is searched: its pieces, its values, its failure, its summary."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from made_events import journals
from made_records import made, stream
from quire.record.events import CellError, ResultGlued
from quire.record.record import fold
from quire.search.breadcrumbs import LONGEST, summary
from quire.search.pieces import OF_AN_OUTPUT, facts, failing_line, fingerprint, own, shared
from quire.search.schema import indexed


def test_a_summary_is_made_of_what_is_in_the_record() -> None:
    record = made(
        before=(("markdown", "# Health\n\n## Architecture\nx\n\n## Tests\n"),),
        results=(ResultGlued("c1", "score", "json", 0.8),),
        plan={"parameters": {"region": "eu"}},
    )
    assert summary(record) == (
        'ok in 1.50 s. With region = "eu". Results: score = 0.8. Sections: Architecture, Tests.'
    )


def test_a_summary_of_a_failure_names_the_cell_and_the_error() -> None:
    record = made(error=CellError("KeyError", "'a\x1b[31m'", ()))
    assert summary(record) == "failed at c0: KeyError: 'a'."


@given(journals())
def test_any_run_has_a_short_summary_and_can_be_indexed(events: list[Any]) -> None:
    record = fold(events)
    assert len(summary(record)) <= LONGEST
    pieces = [*own(record, ""), *shared(record)]
    json.dumps([fact.value for fact in facts(record)])
    assert not [piece for piece in pieces if "\x1b" in piece.text]
    assert indexed(record, source=False) == indexed(record)._replace(source=None)


def test_outputs_are_bounded_and_keep_head_and_tail() -> None:
    pieces = own(made(stream("begin " + "x" * 50_000 + " end")), "")
    (output,) = [piece.text for piece in pieces if piece.field == "output"]
    assert len(output) <= OF_AN_OUTPUT + 10
    assert output.startswith("begin")
    assert output.endswith("end")


def test_values_inside_results_can_be_compared() -> None:
    value = {"f1": 0.5, "by": {"eu": 1, "deep": {"er": 2}}}
    found = facts(made(results=(ResultGlued("c0", "m", "json", value),)))
    assert {(fact.name, fact.value) for fact in found} == {("m.f1", 0.5), ("m.by.eu", 1)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("'user_id'", "'order_id'"),
        ("object at 0x7f11 has 3 rows", "object at 0x8a2e has 41 rows"),
        ("no file '/data/a.csv'", "no file '/home/b/c.csv'"),
        ("no file /data/a.csv here", "no file /srv/c.csv here"),
        ("run 2026-01-02T10:00:00Z", "run 2027-03-04T11:30:00Z"),
        ("GET https://a.example/x failed", "GET https://b.example/y failed"),
    ],
)
def test_what_differs_from_run_to_run_is_no_part_of_a_failure(one: str, other: str) -> None:
    assert fingerprint("E", one) == fingerprint("E", other)
    assert fingerprint("a.b.E", one) == fingerprint("E", one) != fingerprint("F", one)
    assert fingerprint("E", one) != fingerprint("E", f"{one} entirely")


def test_the_failing_line_is_the_task_s_own() -> None:
    trace = ("Cell In[1]", "----> 1 d['x']", "File lib.py", "---> 88 raise KeyError(key)")
    record = made(source="d['x']", error=CellError("KeyError", "'x'", trace))
    assert failing_line(record) == "d['x']"


def test_the_failing_line_is_that_of_its_number() -> None:
    frames = ({"count": 1, "line": 2}, {"count": None, "line": 1, "file": "lib.py", "code": "no"})
    source = "import os\n[d['x'] for d in e]"
    record = made(source=source, error=CellError("KeyError", "'x'", ("----> 1 import os",), frames))
    assert failing_line(record) == "[d['x'] for d in e]"
