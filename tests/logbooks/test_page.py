"""A record as Markdown, and read back."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_records import made, shown
from quire.errors import DocumentError
from quire.logbooks import page as logbook
from quire.logbooks.read_back import kept, loads
from quire.record.events import Asked, CellError, NoteAdded, ToolCalled
from quire.record.record import CellRecord, Record, Result, RunError
from quire.task.document import digest_id

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and more").decode()
NASTY = st.one_of(
    st.sampled_from(
        [
            "```\n```python\nx\n```",
            "<!-- /quire -->",
            "Results: ok\n<!-- quire {} -->",
            "~~~~\n````",
            "---\nuuid: x\n---",
            "a\n\n\nb\n",
            "| a | b |\n| --- | --- |\n| 1 | 2 |",
            "\x1b[31mred\x1b[0m",
            "Modified: no",
        ]
    ),
    st.text(alphabet="ab`~|>#<!-\n {}\\", max_size=30),
    st.text(max_size=20),
)
STREAMS = st.builds(
    lambda name, text: {"output_type": "stream", "name": name, "text": text},
    st.sampled_from(["stdout", "stderr"]),
    NASTY,
)
DATA = st.one_of(
    st.builds(lambda t: {"text/plain": t}, NASTY),
    st.builds(lambda t: {"text/markdown": t, "text/plain": "x"}, NASTY),
    st.builds(lambda t: {"text/latex": t}, NASTY),
    st.builds(
        lambda t: {"text/html": f"<table><tr><th>{t}</th></tr><tr><td>1</td></tr></table>"},
        st.text(alphabet="ab|&;", max_size=5),
    ),
    st.builds(lambda t: {"image/png": PNG, "text/plain": t}, NASTY),
    st.builds(lambda t: {"application/json": {"a": t}}, st.text(max_size=10)),
)
DISPLAYS = st.builds(
    lambda kind, data: {"output_type": kind, "data": data, "metadata": {}},
    st.sampled_from(["display_data", "execute_result"]),
    DATA,
)
ERRORS = st.builds(
    lambda t: {"output_type": "error", "ename": "E", "evalue": t, "traceback": [t, "end"]}, NASTY
)
OUTPUTS = st.lists(st.one_of(STREAMS, DISPLAYS, ERRORS), max_size=4)
CODE = st.one_of(
    st.sampled_from(["print(1)", "%%bash\nls", "", "'''\n```\n'''", "# Results: ok"]), NASTY
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    cells = [CellRecord("raw", "raw", "---\nparameters:\n  a: 1\nowner: ada\n---", status="text")]
    for at in range(draw(st.integers(0, 3))):
        prose = draw(st.sampled_from(["# Title", "Some\n\ntext.", "```json\n{}\n```", "- a\n- b"]))
        cells.append(CellRecord(f"p{at}", "markdown", prose, status="text"))
        source = draw(CODE).replace("\r", "")
        status = draw(st.sampled_from(["ok", "failed", "not run", "skipped"]))
        error = CellError("ValueError", draw(NASTY), ("tb",)) if status == "failed" else None
        changed = {"original": "was = 1", "reason": draw(NASTY), "by": "ada"}
        cells.append(
            CellRecord(
                digest_id("code", f"{at}{source}"),
                "code",
                source,
                title=draw(st.sampled_from(["", "Load"])),
                tags=draw(st.sampled_from([(), ("approve",), ("a", "b")])),
                metadata=draw(st.sampled_from([{}, {"name": "x"}, {"changed": changed}])),
                status=status,  # type: ignore[arg-type]
                started="2026-01-02T03:04:05+00:00",
                duration=0.5,
                execution_count=at,
                outputs=tuple(draw(OUTPUTS)),
                error=error,
                variables=({"name": "x", "type": "int", "value": "1"},) if error else (),
            )
        )
    steps = [cell.id for cell in cells if cell.kind == "code"]
    failed = next((c for c in cells if c.status == "failed"), None)
    results, notes, calls, asked = {}, [], [], [Asked("", "a?", "1", "ada", "parameter")]
    if steps:
        results = {
            "score": Result("score", "json", draw(st.sampled_from([1, [1.5, "<"]])), steps[0])
        }
        notes = [NoteAdded(steps[0], draw(NASTY), "then")]
        calls = [
            ToolCalled(steps[0], draw(NASTY), {"path": draw(NASTY)}, False, 0.1, {}, draw(NASTY))
        ]
        asked.append(Asked(steps[0], "Run it?", None, "policy", "approval", ("run", "skip")))
    return Record(
        run_id="2026-01-02-030405-x-0001",
        uuid="11111111-2222-3333-4444-555555555555",
        task="logbooks/templates/x.md",
        title="Title",
        outcome="failed" if failed else "ok",
        started="2026-01-02T03:04:05.678+00:00",
        finished="2026-01-02T03:04:06+00:00",
        duration=1.5,
        reason="it failed" if failed else "",
        parent=None,
        plan={"parameters": {"a": draw(st.sampled_from([1, "x", [1], None]))}, "request": "Please"},
        cells=tuple(cells),
        results=results,
        notes=tuple(notes),
        tool_calls=tuple(calls),
        asked=tuple(asked),
        error=RunError(failed.id, "ValueError", "x") if failed else None,
    )


@settings(max_examples=200, deadline=None)
@given(records())
def test_what_is_written_is_read_again(record: Record) -> None:
    page = logbook.dumps(record)
    assert loads(page.text, page.files.get) == kept(record)


@settings(max_examples=60, deadline=None)
@given(records(), st.floats(0, 1))
def test_a_file_that_was_cut_off_anywhere_still_tells_what_was_done(
    record: Record, part: float
) -> None:
    page = logbook.dumps(record)
    head = len(logbook.head(record))
    whole = loads(page.text, page.files.get)
    cut = loads(page.text[: head + int(part * (len(page.text) - head))], page.files.get)
    done = [c for c in cut.cells if c.kind == "code"][:-1]
    assert [c for c in whole.cells if c.kind == "code"][: len(done)] == done


def test_json_that_was_cut_off_is_text() -> None:
    record = made(shown(application__json={"a": ["b" * 20]}))
    page = logbook.dumps(record)
    cut = loads(page.text[: page.text.index("b" * 20) + 9], page.files.get)
    (output,) = cut.cells[0].outputs
    assert output["data"] == {"text/plain": '{\n  "a": [\n    "bbbbbbbbb'}


def test_lines_of_a_cell_of_a_table_stay_apart() -> None:
    html = "<table><tr><th>a</th></tr><tr><td>x<br>y<p>z</p></td></tr></table>"
    record = made(shown(text__html=html))
    assert "| a |\n| --- |\n| x y z |" in logbook.dumps(record).text


@pytest.mark.parametrize("text", ["", "# Notes\n", "---\na: 1\n---\n", "---\nuuid: [\n---\n"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="not the record"):
        loads(text)


def test_pictures_come_only_from_beside_the_record() -> None:
    text = (
        "---\nuuid: u\nexecuted_at: '2026-01-02T03:04:05+00:00'\noutcome: ok\n---\n\n"
        "```python\nx\n```\n\nResults: ok\n"
        '<!-- quire {"id": "a", "status": "ok", "outputs": [["picture", "image/png"]]} -->\n\n'
        "![f](u.files/../../secret)\n\n<!-- /quire -->\n"
    )
    asked: list[str] = []
    record = loads(text, lambda name: asked.append(name))  # type: ignore[func-returns-value]
    assert asked == []
    assert record.cells[0].outputs[0]["data"] == {"text/plain": "f"}
