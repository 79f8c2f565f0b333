"""Runs that failed alike, and what mended them."""

from __future__ import annotations

from typing import Any

import pytest
from kept_runs import FAILS, MENDED, keep, run_id

from quire.errors import AmbiguousRun, RunNotFound, UsageError
from quire.search.similar import from_text, similar
from quire.workspace import Workspace


def failing(ws: Workspace, number: int, name: str, value: str, source: str = FAILS) -> str:
    return keep(ws, number, source, fails_at=2, error=(name, value))


def alike(ws: Workspace, what: str, **how: Any) -> list[tuple[str, str]]:
    return [(one.hit.run_id, one.why) for one in similar(ws, what, **how).runs]


def test_what_failed_alike_and_what_mended_it(filled: Workspace) -> None:
    found = similar(filled, run_id(2))
    assert found.error == "ValueError: no"
    assert found.runs == ()
    again = keep(filled, 6, FAILS, fails_at=2)
    (one,) = similar(filled, again[:-2]).runs
    assert (one.hit.run_id, one.why) == (run_id(2), "the same error")
    assert one.fix is not None
    assert one.fix.run_id == run_id(3)
    assert dict(one.fix.parameters) == {"n": (4, 9)}
    assert '-print(frame["user_id"])\n+print(frame["customer"])\n' in one.fix.diff
    newest, first = similar(filled, "ValueError: no").runs
    assert (newest.hit.run_id, newest.fix) == (again, None)
    assert first.hit.run_id == run_id(2)


def test_what_said_the_same_to_the_word_comes_before_newer_ones(ws: Workspace) -> None:
    mine = failing(ws, 1, "KeyError", "'user_id'")
    for n in range(2, 8):
        failing(ws, n, "KeyError", f"'column {n}'")
    assert alike(ws, "KeyError: 'user_id'", limit=1) == [(mine, "the same error")]
    assert alike(ws, "KeyError: 'nobody'", limit=1) == [(run_id(7), "the same error")]


def test_an_error_is_found_with_its_module_without_its_name_and_with_what_follows(
    ws: Workspace,
) -> None:
    one = failing(ws, 1, "OperationalError", "no such column: currency")
    failing(ws, 2, "OperationalError", "database is locked")
    failing(ws, 3, "TypeError", "type NoneType has no method round")
    for pasted in (
        "sqlite3.OperationalError: no such column: currency",
        "OperationalError: no such column: currency\n12:00:01 the job ended with status 1",
    ):
        assert alike(ws, pasted) == [(one, "the same error")], pasted
    for pasted in ("no such column: currency", "error: no such column: total, currency"):
        assert alike(ws, pasted) == [(one, "an error like it")], pasted
    assert alike(ws, "TypeError: unsupported operand type(s) for *: 'a' and 'b'") == []
    assert alike(ws, "TypeError") == [(run_id(3), "an error like it")]


def test_what_passed_with_other_parameters_has_mended_nothing(ws: Workspace) -> None:
    failing(ws, 1, "ValueError", "no")
    keep(ws, 2, FAILS, parameters={"n": 5})
    (one,) = similar(ws, "ValueError: no").runs
    assert one.fix is not None
    assert one.fix.run_id == run_id(2)
    keep(ws, 3, MENDED)
    (one,) = similar(ws, "ValueError: no").runs
    assert one.fix is not None
    assert (one.fix.run_id, one.fix.diff != "", dict(one.fix.parameters)) == (run_id(3), True, {})


def test_only_failures_have_the_like(filled: Workspace) -> None:
    with pytest.raises(UsageError, match="did not fail"):
        similar(filled, run_id(1))
    with pytest.raises(RunNotFound):
        similar(filled, "2020-01-01")
    with pytest.raises(AmbiguousRun, match="fits 4 runs"):
        similar(filled, "2026-11-16")


def test_an_error_is_told_without_what_differs_or_as_it_was_given(filled: Workspace) -> None:
    assert similar(filled, "division by zero").error == "division by zero"
    assert similar(filled, "ZeroDivisionError").error == "ZeroDivisionError"


@pytest.mark.parametrize(
    ("pasted", "name", "message"),
    [
        ("Traceback:\n  File \"x\"\nKeyError: 'a'\n", "KeyError", "'a'"),
        ("it is all broken now", "", "it is all broken now"),
        ("", "", ""),
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
