"""What cells asked of the engine, in a record and in what is made of it."""

from __future__ import annotations

import json
from typing import Any

import nbformat

from made_records import made
from quire.proof.attestation import statement
from quire.record.cell_calls import (
    CALLS_MIME,
    brief,
    by_cell,
    called,
    digest,
    one_line,
    to_decide,
    too_long,
)
from quire.record.events import Asked, NoteAdded, ToolCalled
from quire.record.executed_notebook import notebook
from quire.record.record import Record
from quire.record.record_files import archive_files, read_record
from quire.render.html import render as html
from quire.render.markdown import render as markdown

HOSTILE = "</code><script>alert(1)</script> `](x) \x1b[31m\u202e"


def calls_of(cell: str) -> dict[str, Any]:
    return {
        "tool_calls": (
            ToolCalled(cell, "read_file", {"path": HOSTILE}, True, 0.1, {"size": 3}),
            ToolCalled(cell, "terminal", {"command": "x"}, True, 0.1, {"exit_code": 3}),
            ToolCalled(cell, "terminal", {}, False, 0.0, {}, "not allowed", True),
            ToolCalled(cell, "note", {}, False, 0.0, {}, "too many", True, 9_000),
            ToolCalled("gone", "run", {"path": "y"}, False, 0.2, {"outcome": "failed"}),
        ),
        "notes": (NoteAdded(cell, f"a note {HOSTILE}", "2026-01-02T00:00:00+00:00"),),
        "asked": (Asked(cell, "Which?", "eu", "ada", "question", ("eu", "us")),),
    }


def with_calls() -> Record:
    from dataclasses import replace

    record = made({"output_type": "stream", "name": "stdout", "text": "printed\n"})
    return replace(record, **calls_of(record.cells[0].id))


def test_a_call_on_a_line() -> None:
    record = with_calls()
    told = [called(call) for call in record.tool_calls]
    assert told[1] == 'terminal(command="x"): ok, 0.10 s, exit 3'
    assert told[2] == "terminal(): refused: not allowed"
    assert told[3] == "note() 9,000 times: refused: too many"
    assert told[4] == 'run(path="y"): failed, 0.20 s'
    assert "\x1b" not in told[0]
    assert "\u202e" not in told[0]


def test_they_stand_under_their_cell() -> None:
    record = with_calls()
    found = by_cell(record)
    assert [kind for kind, _ in found[record.cells[0].id]] == [
        "note",
        "ask",
        "call",
        "call",
        "bad",
        "bad",
    ]
    assert [kind for kind, _ in found[""]] == ["bad"], "a cell that is not there any more"


def test_of_many_the_first_and_the_last_are_shown() -> None:
    from dataclasses import replace

    record = with_calls()
    cell = record.cells[0].id
    many = tuple(ToolCalled(cell, "read_file", {"n": n}, True, 0.1) for n in range(5_000))
    record = replace(record, tool_calls=many, notes=(), asked=())
    lines = by_cell(record)[cell]
    assert len(lines) == 51
    assert "4,950 more" in lines[25][1]
    output = notebook(record)["cells"][0]["outputs"][-1]
    assert len(output["data"][CALLS_MIME]["tool_calls"]) == 50


def test_the_executed_notebook_shows_them() -> None:
    record = with_calls()
    nb = notebook(record)
    nbformat.validate(nbformat.from_dict(nb))
    printed, ours = nb["cells"][0]["outputs"]
    assert printed["text"] == ["printed\n"]
    assert ours["data"]["text/plain"].startswith("tool calls:\n  note: a note")
    assert "terminal(): refused: not allowed" in ours["data"]["text/plain"]
    told = ours["data"][CALLS_MIME]
    assert [call["tool"] for call in told["tool_calls"]] == [
        "read_file",
        "terminal",
        "terminal",
        "note",
    ]
    assert told["questions"] == [{"question": "Which?", "answer": "eu", "by": "ada"}]


def test_a_record_comes_back_from_the_archive_without_them_among_its_outputs() -> None:
    record = with_calls()
    kept: list[bytes] = []
    files = archive_files(record, b"x", ".py", version="1", large=10, keep=kept.append)
    again = read_record(files)
    assert again.tool_calls == record.tool_calls
    assert (again.notes, again.asked) == (record.notes, record.asked)
    assert len(again.cells[0].outputs) == 1
    assert CALLS_MIME not in json.dumps([dict(o) for o in again.cells[0].outputs])


def test_they_are_signed() -> None:
    from dataclasses import replace

    record = with_calls()
    call = record.tool_calls[2]
    other = replace(
        record, tool_calls=(*record.tool_calls[:2], replace(call, reason="it went well"))
    )

    def subjects(record: Record) -> dict[str, str]:
        told = statement(archive_files(record, b"x", ".py", version="1"))
        return {one["name"]: one["digest"]["sha256"] for one in told["subject"]}

    one, two = subjects(record), subjects(other)
    changed = {name for name in one if one[name] != two.get(name)}
    assert {"record.json", "notebook.ipynb"} <= changed
    assert any("/output/" in name for name in changed)


def test_web_page_and_markdown_show_them_as_text() -> None:
    record = with_calls()
    page = html(record)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "terminal(): refused: not allowed" in page
    assert "asked: &quot;Which?&quot; → &quot;eu&quot; (by ada)" in page
    text = markdown(record)
    assert "terminal(): refused: not allowed" in text
    assert "note: a note" in text
    assert "\x1b" not in text


def test_arguments_are_cut() -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = [deep]
    told = brief({"text": "x" * 1_000, "many": list(range(100)), "deep": deep, "n": 10**50})
    assert told["text"] == "x" * 300 + " … 700 more characters"
    assert told["many"][-1] == "… 80 more"
    assert told["n"] == "a number beyond 64 bits"
    assert len(json.dumps(told)) < 1_000
    assert len(brief({str(n): n for n in range(100)})) == 21
    assert len(one_line({"x": "y" * 10_000})) < 200


def test_all_arguments_together_are_bounded() -> None:
    big: Any = [[["y" * 300] * 20] * 20] * 20
    told = brief({"path": "a.txt", "content": "x" * 1_000, **{f"k{n}": big for n in range(5)}})
    assert told["path"] == "a.txt"
    assert told["content"].endswith("… 700 more characters")
    assert told["…"] == "4 more"
    assert len(json.dumps(told)) < 10_000
    assert len(json.dumps(brief({"z" * 9_000: [1] * 90}))) < 1_000
    assert brief({"a": "x" * 300, "b": ["y" * 300] * 18})["b"][-1] == "y" * 300


def test_a_name_looks_like_one_argument() -> None:
    spoofed = {'path="notes.txt", content': "x", "path": "start.sh"}
    assert one_line(spoofed) == '"path=\\"notes.txt\\", content"="x", path="start.sh"'
    assert "\x7f" not in one_line({"path": "a\x7fb"})
    assert one_line({"path": "a\x7fb\x9b"}) == 'path="a^?b<U+009B>"'


def test_what_a_person_decides_by_is_whole() -> None:
    given = {"path": "p" * 4_000, "old": "o" * 9_000, "new": "n" * 9_000}
    told = to_decide(given)
    assert f'path="{"p" * 4_000}"' in told
    assert told.count("characters are not shown here") == 2
    assert len(told) < 6_300
    assert too_long(given) == ""
    assert too_long({"command": "c" * 9_000, "cwd": "d" * 2_000}) == "command"


def test_a_digest_is_that_of_the_value() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert digest({"a": 1})["size"] == len('{"a":1}')
