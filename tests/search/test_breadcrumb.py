"""What a run leaves behind for search: its summary, its failure, its pieces; and the digest."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from made_events import journals
from made_records import made, stream
from quire.record.events import CellError, ResultGlued
from quire.record.record import fold
from quire.search.breadcrumb import LONGEST, summary
from quire.search.digest_page import LONGEST as DIGEST_LONGEST
from quire.search.digest_page import Told, digest
from quire.search.failure_signature import failing_line, fingerprint, from_text
from quire.search.indexed_texts import OF_AN_OUTPUT, indexed


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
    found = indexed(record)
    assert found.summary == summary(record)
    text = json.dumps([[p.text for p in found.pieces], [f.value for f in found.facts]])
    assert "\x1b" not in json.loads(text)[0]
    assert indexed(record, {found.version}).source is None


def test_outputs_are_bounded_and_keep_head_and_tail() -> None:
    found = indexed(made(stream("begin " + "x" * 50_000 + " end")))
    (output,) = [piece.text for piece in found.pieces if piece.field == "output"]
    assert len(output) <= OF_AN_OUTPUT + 10
    assert output.startswith("begin")
    assert output.endswith("end")


def test_values_inside_results_can_be_compared() -> None:
    value = {"f1": 0.5, "by": {"eu": 1, "deep": {"er": 2}}}
    found = indexed(made(results=(ResultGlued("c0", "m", "json", value),)))
    assert {(f.name, f.value) for f in found.facts} == {("m.f1", 0.5), ("m.by.eu", 1)}


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


def test_a_pasted_traceback_is_known_by_its_last_line() -> None:
    assert from_text("Traceback:\n  File \"x\"\nKeyError: 'a'\n") == ("KeyError", "'a'")
    assert from_text("ZeroDivisionError") == ("ZeroDivisionError", "")
    assert from_text("it is all broken now") == ("", "it is all broken now")
    assert from_text("") == ("", "")


@pytest.mark.parametrize(
    ("pasted", "name", "message"),
    [
        ("sqlite3.OperationalError: no such table: x", "OperationalError", "no such table: x"),
        ("E       KeyError: 'a'", "KeyError", "'a'"),
        ("  | ValueError: bad\n  +-----", "ValueError", "bad\n+-----"),
        ("KeyError: 'a'\n\nDuring handling …:\n\na.b.Late: x\nOSError: gone", "OSError", "gone"),
        ("ValidationError: 2 errors\nname\n  required", "ValidationError",
         "2 errors\nname\nrequired"),
        ("pkg.NotFound: no user", "NotFound", "no user"),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("\x1b[31mKeyError\x1b[0m: 'a'", "KeyError", "'a'"),
    ],
)  # fmt: skip
def test_an_error_is_known_however_it_was_pasted(pasted: str, name: str, message: str) -> None:
    assert from_text(pasted) == (name, message)


def test_the_failing_line_is_the_task_s_own() -> None:
    trace = ("Cell In[1]", "----> 1 d['x']", "File lib.py", "---> 88 raise KeyError(key)")
    record = made(source="d['x']", error=CellError("KeyError", "'x'", trace))
    assert failing_line(record) == "d['x']"


def test_the_failing_line_is_that_of_its_number() -> None:
    frames = ({"count": 1, "line": 2}, {"count": None, "line": 1, "file": "lib.py", "code": "no"})
    source = "import os\n[d['x'] for d in e]"
    record = made(source=source, error=CellError("KeyError", "'x'", ("----> 1 import os",), frames))
    assert failing_line(record) == "[d['x'] for d in e]"


def told(n: int, **more: Any) -> Told:
    day = datetime(2026, 11, 1 + n % 20, tzinfo=UTC).timestamp()
    return Told(**{"run_id": f"run-{n}", "task": "etl/load.py", "title": "Load", "outcome": "ok",
                   "started": day + n, **more})  # fmt: skip


def test_a_digest_says_what_was_learned_changed_and_failed() -> None:
    runs = [
        told(1, results=(("score", 0.7),), notes=("Nulls come from *EU*",)),
        told(2, outcome="failed", error="KeyError: 'a'", failure="KeyError: <value>"),
        told(3, results=(("score", 0.9),), notes=("Nulls come from *EU*",)),
    ]
    text = digest(runs, lambda run_id: f"runs/{run_id}")
    assert "3 runs of 1 task: 2 ok, 1 failed" in text
    assert "- result score: 0.7 → 0.9 ([run-3](runs/run-3))" in text
    assert text.count("Nulls come from \\*EU\\*") == 1
    assert "failed once: KeyError: 'a' (last [run-2](runs/run-2); passed since in [run-3]" in text
    for line in text.split("\n"):
        assert not line.startswith("- ") or "](runs/" in line


def test_a_digest_is_bounded_and_quotes_nothing_that_means_something() -> None:
    note = "<script>x</script> [a](http://b) \x1b[31m # h\n\n## not a heading"
    runs = [told(n, task=f"t{n}/{'x' * 90}.py", notes=(note * 5,)) for n in range(3000)]
    text = digest(runs, lambda run_id: run_id)
    assert len(text) <= DIGEST_LONGEST
    assert "more runs of" in text
    assert "<script>" not in text
    assert "\x1b" not in text
    assert "\n## not" not in text
    assert digest([], str) == "# Digest of runs\n\nNo runs.\n"


def test_a_folder_with_too_many_tasks_is_cut_and_not_left_out() -> None:
    runs = [
        told(n, task=f"notebooks/t{n % 40}.py", notes=(f"{n} " + "learned " * 40,))
        for n in range(600)
    ]
    text = digest(runs, lambda run_id: run_id)
    assert DIGEST_LONGEST * 0.8 < len(text) <= DIGEST_LONGEST
    assert text.count("\n### ") > 10
    shown = [int(n) for n in re.findall(r"^- 2026-11-\d\d: (\d+) ok", text, re.MULTILINE)]
    before = [int(n) for n in re.findall(r"^- before that: (\d+) runs", text, re.MULTILINE)]
    left = re.search(r"^(\d+) more runs of (\d+) tasks are left out here", text, re.MULTILINE)
    assert left is not None
    assert sum(shown) + sum(before) + int(left[1]) == 600
    assert text.count("\n### ") + int(left[2]) == 40


def test_a_digest_says_whether_the_same_passed_or_only_another() -> None:
    march, april = (("month", "03"),), (("month", "04"),)
    failed = {"outcome": "failed", "error": "E: x", "failure": "E: x", "parameters": march}
    runs = [told(1, **failed), told(2, parameters=april)]
    text = digest(runs, str)
    assert "passed since with other parameters in [run-2](run-2)" in text
    text = digest([*runs, told(3, parameters=march)], str)
    assert "passed since in [run-3](run-3)" in text


def test_a_digest_says_which_results_differ_by_what_was_given() -> None:
    march, april = (("month", "03"),), (("month", "04"),)
    runs = [
        told(1, results=(("rows", 5),), parameters=march),
        told(2, results=(("rows", 6),), parameters=april),
    ]
    assert "- result rows: 5 → 6 with other parameters ([run-2](run-2))" in digest(runs, str)
    runs.append(told(3, results=(("rows", 7),), parameters=april))
    assert "- result rows: 6 → 7 ([run-3](run-3))" in digest(runs, str)


def test_a_digest_links_only_to_what_the_archive_has_and_to_no_stranger() -> None:
    text = digest([told(1, local=True, notes=("see www.evil.example",))], lambda _: "broken")
    assert "broken" not in text
    assert "last run-1\n" in text
    assert "www.evil" not in text
