from __future__ import annotations

import base64
import json
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quire.engine.output_sieve import Bounds, Sieve
from quire.masking.masker import Masker, Secret
from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    KernelDied,
    OutputAdded,
    OutputCut,
    OutputsCleared,
    OutputUpdated,
    ResultGlued,
    RunStarted,
    Warned,
)
from quire.record.record import fold

SECRET = "hunter2-hunter2-hunter2"
SMALL = Bounds(stream=100, tail=30, displays=3, display_bytes=1_000, error=400)


class Memory:
    """A spill that keeps everything in memory."""

    def __init__(self) -> None:
        self.files: dict[str, str] = defaultdict(str)

    def write(self, cell: str, what: str, text: str, path: str = "") -> str:
        path = f"/spill/{cell}.{what}"
        self.files[path] += text
        return path


def text(value: str, name: str = "stdout", cell: str = "a") -> OutputAdded:
    return OutputAdded(cell, {"output_type": "stream", "name": name, "text": value})


def display(value: Any, display_id: str | None = None, mime: str = "text/plain") -> OutputAdded:
    output = {"output_type": "display_data", "data": {mime: value}, "metadata": {}}
    return OutputAdded("a", output, display_id)


def sieved(*events: Event, bounds: Bounds = SMALL) -> tuple[list[Event], dict[str, str]]:
    spill = Memory()
    sieve = Sieve(Masker([Secret("PASSWORD", SECRET)]), spill, bounds)
    out = [out for event in events for out in sieve.take(event)]
    return out, dict(spill.files)


def streamed(events: list[Event], name: str = "stdout") -> str:
    return "".join(
        e.output["text"]
        for e in events
        if isinstance(e, OutputAdded) and e.output.get("name") == name
    )


def folded(events: list[Event]) -> Any:
    spec = {"id": "a", "kind": "code", "source": ""}
    return fold([RunStarted("r", "u", "", "", "", (spec,), {}), *events]).cells[0]


END = CellFinished("a", "ok")


@given(st.lists(st.text("ab\n", max_size=90), max_size=12))
@settings(deadline=None)
def test_head_marker_and_tail_add_up(chunks: list[str]) -> None:
    whole = "".join(chunks)
    events, files = sieved(*map(text, chunks), END)
    assert events[-1] == END
    cuts = [e for e in events if isinstance(e, OutputCut)]
    if len(whole) <= SMALL.stream - SMALL.tail:
        assert (streamed(events), cuts, files) == (whole, [], {})
        return
    (cut,) = cuts
    head = streamed(events)
    assert head == whole[: SMALL.stream - SMALL.tail]
    assert whole.endswith(cut.tail)
    assert len(cut.tail) == min(SMALL.tail, len(whole) - len(head))
    assert len(head) + cut.omitted + len(cut.tail) == len(whole)
    assert (cut.cell, cut.what) == ("a", "stdout")
    assert files == {cut.path: whole}


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.text("xy\n", max_size=60))))
@settings(deadline=None)
def test_each_stream_has_bounds_of_its_own(chunks: list[tuple[str, str]]) -> None:
    events, files = sieved(*(text(value, name) for name, value in chunks), END)
    for name in ("stdout", "stderr"):
        whole = "".join(value for other, value in chunks if other == name)
        assert streamed(events, name) == whole[: SMALL.stream - SMALL.tail]
        assert files.get(f"/spill/a.{name}", whole) == whole


def test_a_marker_without_anything_omitted_is_not_told_as_a_loss() -> None:
    """Just more than the head: the tail holds the rest, and nothing is missing."""
    events, _ = sieved(text("x" * 75), END)
    (cut,) = [e for e in events if isinstance(e, OutputCut)]
    assert (cut.omitted, cut.tail) == (0, "x" * 5)


def test_every_cell_starts_with_full_bounds() -> None:
    events, files = sieved(text("x" * 500), END, text("y" * 50, cell="b"), CellFinished("b", "ok"))
    assert streamed(events) == "x" * 70 + "y" * 50
    assert list(files) == ["/spill/a.stdout"]


def test_a_flood_is_not_kept_in_memory() -> None:
    spill = Memory()
    sieve = Sieve(Masker(), spill, SMALL)
    for _ in range(1_000):
        list(sieve.take(text("z" * 1_000)))
    stream = sieve._streams["stdout"]
    assert sum(map(len, stream.passed)) + sum(map(len, stream.tail)) <= SMALL.stream + 1_000
    assert len(spill.files["/spill/a.stdout"]) == 1_000_000


@given(st.data())
@settings(deadline=None)
def test_a_secret_is_masked_wherever_the_chunks_break(data: st.DataObject) -> None:
    coded = base64.b64encode(f"user:{SECRET}".encode()).decode()
    whole = f"first {SECRET}\nthen {coded} and {SECRET[:10]} alone\n{SECRET}"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    wide = Bounds(stream=10_000, tail=100)
    events, _ = sieved(*map(text, parts), END, bounds=wide)
    shown = streamed(events)
    assert SECRET not in shown
    assert coded[8:-4] not in shown
    assert f"and {SECRET[:10]} alone\n" in shown
    assert shown.startswith("first [masked:PASSWORD]\nthen ")
    assert shown.endswith("alone\n[masked:PASSWORD]")


def test_what_is_spilled_is_masked_too() -> None:
    events, files = sieved(text("x" * 95 + SECRET[:9]), text(SECRET[9:] + "y" * 100), END)
    assert files["/spill/a.stdout"] == "x" * 95 + "[masked:PASSWORD]" + "y" * 100
    assert SECRET[:9] not in streamed(events)


def test_held_back_text_comes_before_a_display_and_before_the_end() -> None:
    events, _ = sieved(text(SECRET[:8]), display("shown"), text(SECRET[:5]), END)
    told = folded(events).outputs
    assert [o.get("text") or o["data"]["text/plain"] for o in told] == [
        SECRET[:8],
        "shown",
        SECRET[:5],
    ]


def test_held_back_text_is_cleared_with_what_came_before_it() -> None:
    events, _ = sieved(text(f"old {SECRET[:8]}"), OutputsCleared("a"), text("new"), END)
    assert [o["text"] for o in folded(events).outputs] == ["new"]


def test_displays_are_bounded_in_number() -> None:
    events, files = sieved(*(display(str(n)) for n in range(10)), END)
    kept = [e.output["data"]["text/plain"] for e in events if isinstance(e, OutputAdded)]
    assert kept == ["0", "1", "2"]
    (cut,) = [e for e in events if isinstance(e, OutputCut)]
    assert (cut.what, cut.omitted) == ("display", 7)
    spilled = [json.loads(line) for line in files[cut.path].splitlines()]
    assert [o["data"]["text/plain"] for o in spilled] == [str(n) for n in range(3, 10)]


def test_displays_are_bounded_in_size() -> None:
    events, files = sieved(display("x" * 5_000), display("small"), END)
    assert "x" * 5_000 not in repr(events)
    assert "x" * 5_000 in files["/spill/a.display"]


def test_the_last_look_of_an_updated_display_is_kept() -> None:
    """A progress bar that is redrawn more often than a record counts must not stop half way."""
    updates = [OutputUpdated("a", "bar", {"text/plain": f"{n}%"}, {}) for n in range(101)]
    events, _ = sieved(display("begun", "bar"), *updates, END)
    assert len([e for e in events if isinstance(e, OutputUpdated)]) <= SMALL.displays
    (output,) = folded(events).outputs
    assert output["data"]["text/plain"] == "100%"


def test_updates_of_displays_that_were_cut_are_not_kept() -> None:
    events, _ = sieved(
        *(display(str(n), str(n)) for n in range(50)),
        *(OutputUpdated("a", str(n), {"text/plain": "new"}, {}) for n in range(50)),
        END,
    )
    assert len([e for e in events if isinstance(e, OutputUpdated)]) == SMALL.displays


def test_an_update_that_is_too_large_is_cut_and_told() -> None:
    big = OutputUpdated("a", "bar", {"text/plain": "x" * 5_000}, {})
    events, files = sieved(display("begun", "bar"), big, END)
    assert "x" * 5_000 not in repr(events)
    assert "x" * 5_000 in files["/spill/a.display"]
    assert any(isinstance(e, OutputCut) for e in events)


def error_output(value: str, *lines: str) -> OutputAdded:
    output = {"output_type": "error", "ename": "E", "evalue": value, "traceback": list(lines)}
    return OutputAdded("a", output)


def test_an_error_is_shown_however_much_came_before_it() -> None:
    events, _ = sieved(*(display(str(n)) for n in range(10)), error_output("no", "line"), END)
    assert any(isinstance(e, OutputAdded) and e.output.get("ename") == "E" for e in events)


def test_a_huge_error_is_bounded() -> None:
    lines = [f"frame {n} " + "x" * 50 for n in range(100)]
    value = "head" + "v" * 100_000 + "tail"
    failed = CellFinished("a", "failed", error=CellError("E", value, tuple(lines)))
    events, _ = sieved(error_output(value, *lines), failed)
    assert len(repr(events)) < 10 * SMALL.error
    done = events[-1]
    assert isinstance(done, CellFinished)
    assert done.error is not None
    assert done.error.value.startswith("head")
    assert done.error.value.endswith("tail")
    assert "99,608 characters were cut here" in done.error.value
    assert done.error.traceback[0] == lines[0]
    assert done.error.traceback[-1] == lines[-1]
    assert any("parts of the traceback were cut" in line for line in done.error.traceback)


@given(st.lists(st.text("x", max_size=300), max_size=20))
@settings(deadline=None)
def test_a_traceback_is_whole_or_says_what_is_missing(lines: list[str]) -> None:
    failed = CellFinished("a", "failed", error=CellError("E", "v", tuple(lines)))
    ((done,), _) = sieved(failed)
    assert isinstance(done, CellFinished)
    assert done.error is not None
    kept = done.error.traceback
    if sum(map(len, lines)) <= SMALL.error and max(map(len, lines), default=0) <= 100:
        assert kept == tuple(lines)
    else:
        assert any("cut here" in line for line in kept)
    # The note itself, and what says that a line was shortened, come on top.
    assert sum(map(len, kept)) <= SMALL.error + 80 * 8


def test_nothing_that_carries_text_passes_unmasked() -> None:
    events, files = sieved(
        CellStarted("a", "now"),
        text(f"{SECRET}\n"),
        display({"deep": [{SECRET: SECRET}]}, SECRET, "application/json"),
        OutputUpdated("a", SECRET, {"text/html": f"<b>{SECRET}</b>"}, {"k": SECRET}),
        error_output(SECRET, f"line {SECRET}"),
        Warned("a", f"beware of {SECRET}"),
        KernelDied("a", f"it said {SECRET}"),
        CellFinished("a", "failed", error=CellError(SECRET, SECRET, (SECRET,))),
        bounds=Bounds(),
    )
    assert SECRET not in repr(events) + repr(files)
    assert repr(events).count("[masked:PASSWORD]") >= 12


def test_an_update_still_finds_a_display_whose_id_was_masked() -> None:
    events, _ = sieved(
        display("old", SECRET), OutputUpdated("a", SECRET, {"text/plain": "new"}, {}), END
    )
    (output,) = folded(events).outputs
    assert output["data"]["text/plain"] == "new"


def test_ending_a_cell_twice_tells_nothing_twice() -> None:
    spill = Memory()
    sieve = Sieve(Masker(), spill, SMALL)
    list(sieve.take(text("x" * 500)))
    assert [type(e) for e in sieve.end_cell("a")] == [OutputCut]
    assert list(sieve.end_cell("a")) == []


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "cut"])
def test_a_result_is_noticed_even_if_its_display_is_cut(kept: bool) -> None:
    before = [] if kept else [display(str(n)) for n in range(5)]
    payload = {"name": "score", "data": SECRET, "encoder": "json", "version": 1}
    scrap = display(payload, mime="application/scrapbook.scrap.json+json")
    events, _ = sieved(*before, scrap, END)
    found = [e for e in events if isinstance(e, ResultGlued)]
    assert found == [ResultGlued("a", "score", "json", "[masked:PASSWORD]")]
    assert (len([e for e in events if isinstance(e, OutputAdded)]) == 1) is kept


DISGUISES = ["\x1b[31m"]
DISGUISES += ["\x1b[3|1m", "\x1b|[31m", "\x1b]8;;x|\x07", "\u200b", "\ufe0f", "\x01|\x02"]


@pytest.mark.parametrize("between", DISGUISES)
@pytest.mark.parametrize("at", [1, 5, len(SECRET) - 1])
def test_a_disguise_that_comes_in_pieces_hides_no_secret(between: str, at: int) -> None:
    first, _, second = between.partition("|")
    middle = (at + len(SECRET)) // 2
    pieces = ["row\n", f"key {SECRET[:at]}{first}", f"{second}{SECRET[at:middle]}"]
    pieces.append(f"{SECRET[middle:]} end")
    events, _ = sieved(*map(text, pieces), CellFinished("a", "ok"), bounds=Bounds())
    assert streamed(events) == "row\nkey [masked:PASSWORD] end"


def test_what_is_coloured_and_no_secret_is_given_out_at_once() -> None:
    events, _ = sieved(text("\x1b[31mred\x1b[0m, and more."), bounds=Bounds())
    assert streamed(events) == "\x1b[31mred\x1b[0m, and more."
