"""Runs whose outputs are partly elsewhere: compared by their digests, and no more is claimed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from test_compare import OTHER, error, glued, tagged, text_of, value

from made_events import journals
from made_records import PNG, made, shown, stream
from quire.record.compare import compare
from quire.record.events import CellError
from quire.record.output_digests import pointer
from quire.record.record import Record, fold
from quire.record.record_files import archive_files, read_record
from quire.render.comparison import lines

LONG = "x\n" * 40
OTHERS = "y\n" * 40


def far(record: Record, large: int = 100) -> Record:
    """As a clone has it: of large outputs only the pointers."""
    kept: list[bytes] = []
    files = archive_files(record, b"", ".py", version="1", large=large, keep=kept.append)
    return read_record(files, lambda digest: None)


def again(record: Record, count: int) -> Record:
    cells = [replace(cell, execution_count=count) for cell in record.cells]
    return replace(record, cells=tuple(cells))


EQUAL: dict[str, tuple[Record, Record]] = {
    "a stream": (made(stream(LONG)), made(stream(LONG))),
    "lone surrogates": (made(stream(LONG + "\udc80")), made(stream(LONG + "\udc80"))),
    "a picture": (made(shown(image__png=PNG * 9)), made(shown(image__png=PNG * 9))),
    "numbers that are no JSON": (
        made(shown(application__json={"n": float("nan"), "x": LONG})),
        made(shown(application__json={"x": LONG, "n": float("nan")})),
    ),
    "another count": (again(made(value(LONG, 4)), 4), again(made(value(LONG, 7)), 7)),
    "a stream in pieces": (
        made(stream(LONG), stream("warn", "stderr")),
        made(stream("x\n"), stream("warn", "stderr"), stream(LONG[2:])),
    ),
    "an error with another traceback": (
        made(error(LONG, "/a/x.py"), error=CellError("E", LONG, ())),
        made(error(LONG, "/b/x.py"), error=CellError("E", LONG, ())),
    ),
    "several": (
        made(stream(LONG), stream(OTHERS, "stderr"), shown(text__plain=LONG)),
        made(stream(OTHERS, "stderr"), stream(LONG), shown(text__plain=LONG)),
    ),
}
DIFFERENT: dict[str, tuple[Record, Record]] = {
    "a stream": (made(stream(LONG)), made(stream(OTHERS))),
    "the name of a stream": (made(stream(LONG)), made(stream(LONG, "stderr"))),
    "one of two streams": (
        made(stream("fine"), stream(LONG, "stderr")),
        made(stream("fine"), stream(OTHERS, "stderr")),
    ),
    "a display": (made(shown(text__plain=LONG)), made(shown(text__plain=OTHERS))),
    "one display less": (made(shown(text__plain=LONG)), made()),
    "no stream any more": (made(stream(LONG)), made(shown(text__plain="a"))),
    "a value": (again(made(value(LONG, 4)), 4), again(made(value(OTHERS, 7)), 7)),
    "what an error says": (
        made(error(LONG, "t"), error=CellError("E", LONG, ())),
        made(error(OTHERS, "t"), error=CellError("E", OTHERS, ())),
    ),
}


@pytest.mark.parametrize("case", EQUAL)
def test_an_output_is_known_again_by_its_digest(case: str) -> None:
    old, new = EQUAL[case]
    assert compare(old, new).verdict == "equal"
    assert any(pointer(output) for output in far(old).cells[0].outputs)
    for found in (compare(far(old), new), compare(new, far(old))):
        assert found.verdict == "equal", found.as_dict()
        assert not list(lines(found))


@pytest.mark.parametrize("case", DIFFERENT)
def test_another_digest_is_a_difference(case: str) -> None:
    old, new = DIFFERENT[case]
    for found in (compare(far(old), new), compare(new, far(old))):
        assert found.verdict == "different", found.as_dict()
        assert "cell 0" in text_of(found)


def test_two_pointers_are_compared_by_their_digests() -> None:
    one, other = far(made(stream(LONG))), far(made(stream(OTHERS)))
    assert compare(one, far(made(stream(LONG)))).verdict == "equal"
    found = compare(one, other)
    assert found.verdict == "different"
    assert "stream, which is not at hand:" in text_of(found)
    assert text_of(found).count("sha256 ") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            made(stream(LONG), stream("warn", "stderr"), stream("rest")),
            made(stream(f"{LONG}rest"), stream("warn", "stderr")),
        ),
        (again(made(value(LONG, 4)), 4), far(again(made(value(LONG, 7)), 7))),
        (made(error(LONG, "here")), made(error(LONG, "there"))),
    ],
    ids=["streams in other pieces", "values with other counts", "tracebacks"],
)
def test_what_a_digest_cannot_tell_is_not_compared(old: Record, new: Record) -> None:
    found = compare(far(old), new)
    assert found.verdict == compare(new, far(old)).verdict == "not_compared"
    assert "not compared, since not all of it is at hand" in text_of(found)
    assert [c.as_dict()["compared"] for c in found.cells[0].outputs] == [False]
    volatile = compare(tagged(far(old), 0, "volatile"), tagged(new, 0, "volatile"))
    assert volatile.verdict == "volatile"


def test_a_doubt_hides_no_difference() -> None:
    old = far(made(stream(LONG), stream("warn", "stderr"), stream("rest"), results=glued(1)))
    new = made(stream(f"{LONG}rest"), stream("warn", "stderr"), results=glued(2))
    assert compare(old, new).verdict == "different"
    old = far(made(stream(LONG), stream("w", "stderr"), stream("rest"), shown(text__plain="a")))
    new = made(stream(f"{LONG}rest"), stream("w", "stderr"), shown(text__plain="b"))
    assert compare(old, new).verdict == "different"


@pytest.mark.parametrize("case", OTHER)
def test_what_differs_is_never_equal_however_much_is_elsewhere(case: str) -> None:
    old, new = (made(*outputs) for outputs in OTHER[case])
    for large in (0, 60, 75):
        for one, other in ((far(old, large), new), (old, far(new, large))):
            assert compare(one, other).verdict in ("different", "not_compared")
        assert compare(far(old, large), far(new, large)).verdict in ("different", "not_compared")


@given(journals())
def test_a_run_equals_what_a_clone_has_of_it(events: list[Any]) -> None:
    record = fold(events)
    found = compare(record, far(record, 0))
    assert found.verdict == "equal", found.as_dict()
