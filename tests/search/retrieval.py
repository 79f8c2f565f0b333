"""The runs of tests/corpus/retrieval/questions.txt, with many others around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    NoteAdded,
    OriginNoted,
    OutputAdded,
    ResultGlued,
    RunFinished,
    RunStarted,
)
from quire.record.record import Record, fold
from quire.search.query import literal

FILE = Path(__file__).parent.parent / "corpus" / "retrieval" / "questions.txt"
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
SIBLINGS = 4


@dataclass(slots=True)
class Told:
    """What a run is to hold, as the file says it."""

    task: str
    title: str
    outcome: str
    error: str = ""
    lines: dict[str, list[str]] = field(default_factory=dict)

    def all(self, name: str) -> list[str]:
        return self.lines.get(name, [])


def told() -> list[Told]:
    found = []
    for block in re.split(r"\n\s*\n", FILE.read_text()):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        head = [part.strip() for part in lines[0].removeprefix("task: ").split("|")]
        one = Told(head[0], head[1], head[2], head[3] if len(head) > 3 else "")
        for line in lines[1:]:
            name, _, text = line.partition(": ")
            one.lines.setdefault(name, []).append(text)
        found.append(one)
    return found


def record(one: Told, number: int) -> Record:
    at = START + timedelta(minutes=37 * number)
    slug = one.task.rpartition("/")[2].replace("_", "-")
    run_id = f"{at:%Y-%m-%d-%H%M%S}-{slug}-{number:04x}"
    heads = "".join(f"## {text}\n" for text in one.all("heading"))
    prose = f"# {one.title}\n\n" + "\n".join(one.all("prose")) + "\n" + heads
    code = "\n".join(one.all("code")) or "work(frame)"
    cells = [("markdown", "about", prose), ("code", "work", code), ("code", "report", "tell()")]
    specs = tuple(
        {"id": f"c{n}", "kind": kind, "source": text, "title": title, "tags": [], "metadata": {}}
        for n, (kind, title, text) in enumerate(cells)
    )
    pairs = [text.partition(" = ") for text in one.all("param")]
    plan = {"parameters": {name: literal(value) for name, _, value in pairs}}
    time = at.isoformat()
    path = f"notebooks/{one.task}.py"
    events: list[Event] = [
        RunStarted(run_id, "u", time, path, one.title, specs, plan),
        OriginNoted({}, {}, None, {"by": ("ada", "grace", "agent-7")[number % 3]}),
        CellStarted("c1", time),
    ]
    for text in one.all("output"):
        stream = {"output_type": "stream", "name": "stdout", "text": f"{text}\n"}
        events.append(OutputAdded("c1", stream))
    for text in one.all("result"):
        name, _, value = text.partition(" = ")
        events.append(ResultGlued("c1", name, "json", literal(value)))
    events += [NoteAdded("c1", text, time) for text in one.all("note")]
    error = None
    if one.error:
        name, _, value = one.error.partition(": ")
        error = CellError(name, value, ("Traceback", f"----> 1 {code}", one.error))
    events.append(CellFinished("c1", "failed" if error else "ok", time, 0.5, 1, error))
    events.append(RunFinished("failed" if error else "ok", time, 3.25))
    return fold(events)


def runs() -> Iterator[tuple[Record, str]]:
    """Each with the question that it answers, or none."""
    number = count()
    asked = told()
    for at, one in enumerate(asked):
        yield from ((record(s, next(number)), "") for s in _siblings(one, at, asked, SIBLINGS // 2))
        yield record(one, next(number)), one.all("ask")[0]
        yield from ((record(s, next(number)), "") for s in _siblings(one, at + 31, asked, 2))


def _siblings(one: Told, at: int, asked: list[Told], many: int) -> Iterator[Told]:
    """Other runs of the same task, which passed with other values; some print other runs' words."""
    for n in range(many):
        other = asked[(at * 7 + n * 13 + 5) % len(asked)]
        lines = {name: one.all(name) for name in ("prose", "heading", "code")}
        lines["param"] = [_other(text, at + n) for text in one.all("param")]
        lines["result"] = [_other(text, at + n) for text in one.all("result")]
        words = " ".join(other.all("note") + other.all("prose")).lower().split()
        lines["output"] = [" ".join(words[1::2]) or "done", f"{one.title}: {at * 13 + n} rows"]
        yield Told(one.task, one.title, "ok", "", lines)


def _other(text: str, n: int) -> str:
    name, _, value = text.partition(" = ")
    if re.fullmatch(r"-?[\d.]+", value):
        return f"{name} = {float(value) * (1.1 + n / 50):.3f}"
    return f"{name} = {value[:2]}-{n}"
