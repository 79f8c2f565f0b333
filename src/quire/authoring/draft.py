"""A task begun from its description. It invents nothing: what only its author knows, waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..task import formats
from ..task.document import Cell, Document
from ..task.waiting_cells import MARK, Waiting, waiting
from .described_inputs import inferred
from .description import Input

_WANTED = {
    "gather": "get what the task is about",
    "decide": "the rule by which items count, and a status",
    "report": "name the results: glue(name, value) of quire.runtime",
    "check": "an assert for each promise of the task",
}
SECTIONS = tuple(_WANTED)
TITLE = 120
_MARKS = re.compile(r"\A(?:#{1,6}\s+|[-*+>]\s+)+")  # of a heading, or a list, in Markdown
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")  # noqa: RUF001 - other scripts' signs
_REASON = re.compile(
    r"\b(?:so that|so we|so I|in order to|because|since otherwise|for use in|to decide|to know|"
    r"to find out|damit|weil|afin de|afin que|pour que|para que|porque)\b[^.!?。\n]{3,300}",
    re.IGNORECASE,
)
# What the cells call things: no parameter may have these names.
TAKEN = frozenset({"items", "found", "status", "glue", "date"})
_NO_INPUTS = "# One line for each input: name: type = default  # what it means"
_WHY = "**Why.** Say who needs the result, and what they do with it. A reviewer reads this first."


@dataclass(frozen=True, slots=True)
class Draft:
    document: Document
    title: str

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        return waiting(self.document)

    @property
    def text(self) -> str:
        return formats.dumps(self.document, ".py")


def titled(lines: Sequence[str]) -> tuple[str, str]:
    """The title of a description, and all that the title does not say."""
    first = _MARKS.sub("", lines[0]) or lines[0]
    rest = "\n".join(lines[1:]).strip()
    sentences = _SENTENCE.split(first)
    title = sentences[0]
    if len(title) > TITLE:
        cut = title[:TITLE]
        title = (cut.rsplit(" ", 1)[0] if " " in cut[20:] else cut) + " …"
    if title == first:
        return title.rstrip(".。") or title, rest
    return title.rstrip(".。") or title, f"{first}\n\n{rest}".strip()


def draft(lines: Sequence[str]) -> Draft:
    """From the lines of a description, of which the first has something in it."""
    title, more = titled(lines)
    inputs = inferred("\n".join(lines), TAKEN)
    reason = _REASON.search("\n".join(lines))
    cells = (
        Cell("markdown", _about(title, more, inputs, reason)),
        Cell("code", _parameters(inputs), title="parameters", tags=("parameters",)),
        *(Cell("code", _waits(what), title=name) for name, what in _WANTED.items()),
    )
    # Read back, for the ids that the cells have in the file.
    return Draft(formats.loads(formats.dumps(Document(cells), ".py"), ".py"), title)


# What stands in the cells


def _about(title: str, more: str, inputs: Sequence[Input], reason: re.Match[str] | None) -> str:
    names = ", ".join(f"`{item.name}`" for item in inputs)
    does = f"It takes {names}." if names else "Say what the task does."
    what = f"**What.** {more or does}"
    if reason is None:
        return f"# {title}\n\n{what}\n\n{_WHY}"
    said = " ".join(reason[0].split())
    return f"# {title}\n\n{what}\n\n**Why.** {said[:1].upper()}{said[1:]}."


def _parameters(inputs: Sequence[Input]) -> str:
    dates = any(item.type == "date" for item in inputs)
    lines = ["from datetime import date", ""] if dates else []
    return "\n".join([*lines, *(item.line for item in inputs)]) or _NO_INPUTS


def _waits(what: str) -> str:
    return f'raise {MARK}("{what}")'


def without_ids(document: Document) -> Document:
    """Only what a reader sees of the cells, in the words of the format."""
    cells = (
        Cell(cell.kind, cell.source, title=cell.title, tags=cell.tags) for cell in document.cells
    )
    return replace(document, cells=tuple(cells), metadata={})
