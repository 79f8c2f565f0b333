"""The record of a logbook's run as Markdown: the template as it ran, with results under each step.

    Results: ok, 0.01 s
    <!-- quire {"id": "…", "status": "ok", …} -->
    …the outputs…
    <!-- /quire -->

The comments hold what a program needs to read the record again; `logbook_reading` does that. What
a cell gave out stands in fences, quotations, tables and pictures, and nothing in it can end them.
What Quire says of a step (results, notes, answers, calls) never stands in one of these: no output
can pass for an answer that a person gave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from ..errors import DocumentError
from ..record.cell_calls import called, few
from ..record.events import Asked, NoteAdded, ToolCalled
from ..record.plan import jsonable
from ..record.record import CHANGED, CellRecord, Record, Result
from ..record.summary import one_line, took, worded
from ..render.markdown import code, fenced
from ..task import fences, frontmatter, logbook
from ..task.document import Cell
from ..task.fences import quoted
from ..task.params import INJECTED_TAG
from ..text import plain, scrubbed
from .page_outputs import Shown, files_of, shown

OPEN, CLOSE = "<!-- quire ", "<!-- /quire -->"
RESULTS, MODIFIED = "Results:", "Modified:"
_FRONT_RESULT = 500  # characters of a value in the front matter
LARGEST_RESULT = 10_000  # characters of a value in a comment
_OURS = (
    "uuid",
    "run_id",
    "task",
    "user_request",
    "executed_at",
    "outcome",
    "reason",
    "duration",
    "parent",
    "replays",
    "resumed_from",
    "parameters",
    "sources",
    "results",
    "warnings",
    "questions",
    "kernels",
)


@dataclass(slots=True)
class Page:
    """The text, and the pictures that lie beside it by their names."""

    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Around:
    """What belongs to one cell and is not in it."""

    results: tuple[Result, ...] = ()
    notes: tuple[NoteAdded, ...] = ()
    asked: tuple[Asked, ...] = ()
    calls: tuple[ToolCalled, ...] = ()


def dumps(record: Record) -> Page:
    """The whole record."""
    page = Page(head(record))
    around = _around(record)
    parts = []
    for cell in record.cells:
        text, files = cell_text(record.uuid, cell, around.get(cell.id, Around()))
        parts.append(text)
        page.files |= files
    page.text += "".join(parts)
    return page


def _around(record: Record) -> dict[str, Around]:
    found: dict[str, tuple[list[Any], ...]] = {}
    of_cells: list[Iterable[Any]]
    of_cells = [record.results.values(), record.notes, record.asked, record.tool_calls]
    for place, several in enumerate(of_cells):
        for one in several:
            found.setdefault(one.cell, ([], [], [], []))[place].append(one)
    return {cell: Around(*map(tuple, lists)) for cell, lists in found.items()}


def local(at: str) -> datetime:
    """A time of a record on the clock of this place."""
    return datetime.fromisoformat(at).astimezone()


def head(record: Record) -> str:
    """The front matter: what is known of the run, then what the template says besides."""
    import yaml

    told: dict[str, Any] = {"uuid": record.uuid, "run_id": record.run_id, "task": record.task}
    told["user_request"] = record.request or None
    told["executed_at"] = local(record.started).isoformat(timespec="seconds")
    told["outcome"] = record.outcome
    if record.reason:
        told["reason"] = plain(record.reason)
    if record.duration is not None:
        told["duration"] = record.duration
    for key, value in (
        ("parent", record.parent),
        ("replays", record.replays),
        ("resumed_from", record.resumed_from),
    ):
        if value:
            told[key] = value
    told["parameters"] = parameters(record)
    if record.plan.get("sources"):
        told["sources"] = dict(record.plan["sources"])
    values = {r.name: r.value for r in record.results.values() if r.kind == "json"}
    short = {n: v for n, v in values.items() if len(json.dumps(v, default=str)) <= _FRONT_RESULT}
    if short:
        told["results"] = short
    if record.warnings:
        told["warnings"] = list(record.warnings)
    before = [asdict(asked) for asked in record.asked if not asked.cell]
    if before:
        told["questions"] = [{k: v for k, v in asked.items() if v} for asked in before]
    kernels = sorted({str(c.metadata["kernel"]) for c in record.cells if "kernel" in c.metadata})
    if kernels:
        told["kernels"] = kernels
    told |= {key: value for key, value in _of_template(record).items() if key not in _OURS}
    clean = json.loads(json.dumps(jsonable(told), default=str))
    text = yaml.safe_dump(_scrubbed(clean), allow_unicode=True, sort_keys=False, width=2**31)
    return f"---\n{text}---\n"


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, dict):
        return {scrubbed(key): _scrubbed(item) for key, item in value.items()}
    return [_scrubbed(item) for item in value] if isinstance(value, list) else value


def parameters(record: Record) -> dict[str, Any]:
    """Every declared parameter with the value it had."""
    defaults = record.plan.get("defaults")
    return {**(defaults if isinstance(defaults, Mapping) else {}), **record.parameters}


def _of_template(record: Record) -> Mapping[str, Any]:
    first = record.cells[0] if record.cells else None
    if first is None or first.kind != "raw" or not first.source.startswith("---"):
        return {}
    try:
        return frontmatter.parse(first.source).values
    except DocumentError:
        return {}  # masking may have broken it


def cell_text(uuid: str, cell: CellRecord, around: Around) -> tuple[str, dict[str, bytes]]:
    """One cell as it stands in the record, with an empty line before it."""
    if cell.kind == "raw" or INJECTED_TAG in cell.tags:
        return "", {}  # both are in the front matter
    if cell.kind == "markdown":
        return f"\n{prose(cell.source)}\n", {}
    parts = list(_blocks(cell))
    outputs = outputs_of(cell)
    parts.append(f"{RESULTS} {_said(cell)}\n{OPEN}{_told(cell, outputs, around)} -->")
    stem = f"{uuid}.files/{re.sub(r'[^A-Za-z0-9-]', '', cell.id)}"
    parts += [one.text(f"{stem}-{at}") for at, one in enumerate(outputs, 1)]
    parts += _asides(around)
    parts.append(CLOSE)
    return "\n" + "\n\n".join(parts) + "\n", files_of(outputs, stem)


def outputs_of(cell: CellRecord) -> list[Shown]:
    """What a cell shows, its error always among it."""
    outputs = [one for output in cell.outputs for one in shown(output)]
    error = cell.error
    if error is not None and not any(one.kind == "error" for one in outputs):
        told = {"ename": error.name, "evalue": error.value, "traceback": error.traceback}
        outputs += shown({"output_type": "error", **told})
    return outputs


def prose(source: str) -> str:
    """Markdown as it is, unless it would swallow what follows, as a value put into it may."""
    text = plain(source)
    lines = text.split("\n")
    try:
        parts = logbook.read(["---", "---", *lines, "", "end", "", "```python", "```"])
    except DocumentError:
        return fenced(text, "text")
    whole = [part.cell.source for part in parts[1:-1]]
    return text if whole == [f"{text}\n\nend"] else fenced(text, "text")


def _blocks(cell: CellRecord) -> Iterator[str]:
    """The step as the template has it; below it what ran in its place, if that was changed."""
    changed = cell.metadata.get(CHANGED)
    if not isinstance(changed, Mapping):
        yield _block(cell, cell.source)
        return
    yield _block(cell, str(changed.get("original", "")))
    yield f"{MODIFIED} {_escaped(str(changed.get('reason') or '')) or 'for this run'}"
    yield _block(cell, cell.source)


def _block(cell: CellRecord, source: str) -> str:
    metadata = {key: value for key, value in cell.metadata.items() if key != CHANGED}
    shown_as = Cell("code", source, title="", tags=cell.tags, metadata=metadata)
    raw = (metadata.get(logbook.KEPT) or {}).get("text")
    if isinstance(raw, list) and raw and all(isinstance(line, str) for line in raw):
        block = fences.alone(raw)
        if block is not None and not block.indent and block.closed:
            lines = logbook.refilled(raw, block, shown_as)
            return "\n".join([lines[0].rstrip(), *map(_visible, lines[1:])])
    lines = logbook.rendered(shown_as)
    return "\n".join([lines[0], *map(_visible, lines[1:])])


def _visible(line: str) -> str:
    return plain(line)


def _said(cell: CellRecord) -> str:
    status = worded(cell.status)
    status = status if cell.status in ("ok", "not run", "skipped", "carried") else f"**{status}**"
    ran = cell.status not in ("not run", "skipped")
    duration = f", {took(cell.duration)}" if ran and cell.duration is not None else ""
    why = ""
    if cell.error is not None:
        why = f": {_escaped(one_line(f'{cell.error.name}: {cell.error.value}')[:300])}"
    return f"{status}{duration}{why}"


def _told(cell: CellRecord, outputs: list[Shown], around: Around) -> str:
    """What the text does not say, or not exactly, for a program that reads it again."""
    changed = cell.metadata.get(CHANGED)
    kept = {k: v for k, v in cell.metadata.items() if k not in (logbook.KEPT, CHANGED)}
    told: dict[str, Any] = {
        "id": cell.id,
        "status": cell.status,
        "title": cell.title,
        "tags": list(cell.tags),
        "metadata": kept,
        "started": cell.started,
        "finished": cell.finished,
        "duration": cell.duration,
        "count": cell.execution_count,
        "error": [cell.error.name, cell.error.value] if cell.error else None,
        "changed": dict(changed) if isinstance(changed, Mapping) else None,
        "source": cell.source if plain(cell.source) != cell.source or not cell.source else None,
        "outputs": [one.told for one in outputs],
        "results": {r.name: r.value for r in around.results if fits(r)},
        "notes": [[note.text, note.at] for note in around.notes],
        "asked": [{k: v for k, v in asdict(a).items() if k != "cell"} for a in around.asked],
    }
    clean = {key: value for key, value in told.items() if value not in (None, "", [], {})}
    text = json.dumps(jsonable(clean), ensure_ascii=True, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def fits(result: Result) -> bool:
    """Whether a result is kept whole."""
    return result.kind == "json" and len(json.dumps(result.value, default=str)) <= LARGEST_RESULT


def _asides(around: Around) -> Iterator[str]:
    if around.results:
        rows = [f"- {code(result.name)} = {code(_brief(result))}" for result in around.results]
        yield "\n".join(rows)
    for note in around.notes:
        yield from _note(plain(note.text).strip())
    for asked in around.asked:
        answer = "no answer" if asked.answer is None else code(one_line(asked.answer))
        yield f"Asked: {code(one_line(asked.question))} → {answer} (by {_escaped(asked.by)})"
    if around.calls:
        rows = [_escaped(line) for line in few([*map(called, around.calls)], str)]
        yield "\n".join(["Tool calls:", "", *(f"- {row}" for row in rows)])


def _note(text: str) -> Iterator[str]:
    """One of several lines stands in a fence: none of them could be another note, or an answer."""
    if "\n" not in text:
        yield f"Note: {_escaped(text)}"
        return
    yield "Note:"
    yield fenced(text, "text note")


def _brief(result: Result) -> str:
    if result.kind != "json":
        return f"a {result.kind}, shown above"
    text = json.dumps(jsonable(result.value), ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", one_line(text))


__all__ = ["Around", "Page", "cell_text", "dumps", "head", "quoted"]
