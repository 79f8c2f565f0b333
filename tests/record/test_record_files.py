"""A record goes into a few files and comes back as it was."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import nbformat
import pytest
from hypothesis import given, settings

from made_events import journals
from made_records import made
from quire.record.events import Event, OriginNoted
from quire.record.plan import jsonable
from quire.record.record import Record, fold
from quire.record.record_files import (
    NOTEBOOK,
    POINTER,
    RECORD,
    archive_files,
    canonical,
    pointer_of,
    read_record,
    source_name,
)

ORIGIN = OriginNoted(
    {"interpreter": {"version": "3.11"}, "platform": "Linux", "packages": {"numpy": "2.1"}},
    {"name": "quire", "version": "1"},
    {"commit": "ab" * 20, "branch": "main", "dirty": False},
    {"by": "ada", "behalf": None},
)


def plain(record: Record) -> object:
    """As data, without what JSON cannot tell apart."""
    told = jsonable(asdict(record))
    for cell in told["cells"]:
        if cell["title"]:
            cell["metadata"].setdefault("title", cell["title"])
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k != "tags"}
        cell["tags"] = list(dict.fromkeys(cell["tags"]))
        if cell["kind"] == "code":
            cell["attachments"] = {}
    return json.loads(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"))


@settings(max_examples=60, deadline=None)
@given(journals())
def test_any_record_comes_back(events: list[Event]) -> None:
    record = fold([*events, ORIGIN])
    files = archive_files(record, b"# %%\n", ".py", version="1")
    assert set(files) == {RECORD, NOTEBOOK, "source.py"}
    assert source_name(files) == "source.py"
    nbformat.validate(nbformat.reads(files[NOTEBOOK].decode(), as_version=4))
    assert plain(read_record(files)) == plain(record)


def test_a_large_output_becomes_a_pointer_and_comes_back() -> None:
    kept: dict[str, bytes] = {}

    def keep(data: bytes) -> None:
        kept[hashlib.sha256(data).hexdigest()] = data

    text = "line ü\n" * 5000
    record = made({"output_type": "stream", "name": "stdout", "text": text})
    files = archive_files(record, b"", ".py", version="1", large=10_000, keep=keep)
    assert len(files[NOTEBOOK]) < 10_000
    nbformat.validate(nbformat.reads(files[NOTEBOOK].decode(), as_version=4))
    (pointer,) = [
        found
        for cell in json.loads(files[NOTEBOOK])["cells"]
        for output in cell.get("outputs", ())
        if (found := pointer_of(output))
    ]
    (digest,) = kept
    assert pointer["sha256"] == digest
    assert pointer["size"] == len(kept[digest])

    def shown(record: Record) -> object:
        return next(cell.outputs for cell in record.cells if cell.outputs)

    assert shown(read_record(files, kept.get)) == shown(record)
    # Where it is not at hand, the pointer says so.
    (output,) = shown(read_record(files, lambda _: None))
    assert POINTER in output["data"]


def test_what_is_small_enough_stays() -> None:
    def keep(data: bytes) -> None:
        pytest.fail("nothing is large here")

    record = made({"output_type": "stream", "name": "stdout", "text": "x"})
    files = archive_files(record, b"", ".py", version="1", large=10_000, keep=keep)
    assert b"pointer" not in files[NOTEBOOK]


def test_equal_values_are_equal_bytes() -> None:
    assert canonical({"b": 1, "a": [1.0, "é"]}) == canonical({"a": [1.0, "é"], "b": 1})
    assert canonical({"a": "\ud800"}) == b'{"a":"\\ud800"}'


def test_another_format_is_refused() -> None:
    files = archive_files(fold([]), b"", ".py", version="1")
    later = files[RECORD].replace(b'"format": 1', b'"format": 2')
    with pytest.raises(ValueError, match="format 2"):
        read_record({**files, RECORD: later})
