"""A task begun from its description: it runs as it is, and says which cells wait."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from . import formats, gathering
from .described import Input
from .inputs import inferred
from .model import Cell, Document

SECTIONS = ("gather", "decide", "report", "check")
TITLE = 120
_MARKS = re.compile(r"\A(?:#{1,6}\s+|[-*+>]\s+)+")  # of a heading, or a list, in Markdown
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")  # noqa: RUF001 - other scripts' signs
_REASON = re.compile(
    r"\b(?:so that|so we|so I|in order to|because|since otherwise|for use in|to decide|to know|"
    r"to find out|damit|weil|afin de|afin que|pour que|para que|porque)\b[^.!?。\n]{3,300}",
    re.IGNORECASE,
)
# What the cells call things: no parameter may have these names.
TAKEN = frozenset(
    {
        *("items", "item", "found", "shown", "ranked", "status", "source", "records", "record"),
        *(
            "measure",
            "called",
            "file",
            "lines",
            "limits",
            "counts",
            "glue",
            "asked",
            "rows",
            "n",
            "value",
        ),
        *("date", "csv", "json", "islice", "os"),
    }
)
_NO_INPUTS = Input("limit", "int", "10", "at most so many are reported", "", 0, "most")
_WHY = "**Why.** Say who needs the result, and what they do with it. A reviewer reads this first."


@dataclass(frozen=True, slots=True)
class Waiting:
    """A cell that somebody has to fill in, and with what. The text at the top has no title."""

    cell_id: str
    index: int
    title: str
    what: str


@dataclass(frozen=True, slots=True)
class Draft:
    document: Document
    title: str
    waiting: tuple[Waiting, ...]

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
    known = inputs or (_NO_INPUTS,)
    reason = _REASON.search("\n".join(lines))
    cells = (
        Cell("markdown", _about(title, more, known, reason)),
        Cell("code", _parameters(known), title="parameters", tags=("parameters",)),
        Cell("markdown", f"## Gather\n\n{gathering.intention(known)}"),
        Cell("code", gathering.gather(known), title="gather"),
        Cell("markdown", f"## Decide\n\n{_rule(known)}"),
        Cell("code", _decide(known), title="decide"),
        Cell("markdown", "## Report\n\nResults have names, so that people and programs can ask."),
        Cell("code", _report(known), title="report"),
        Cell("code", _check(known), title="check"),
    )
    # Read back, for the ids that the cells have in the file.
    document = formats.loads(formats.dumps(Document(cells), ".py"), ".py")
    return Draft(document, title, _waiting(document, inputs, reason is not None))


# What stands in the cells


def _about(title: str, more: str, inputs: Sequence[Input], reason: re.Match[str] | None) -> str:
    names = ", ".join(f"`{item.name}`" for item in inputs)
    does = f"It takes {names}, gathers what there is, decides by the rule below and reports."
    what = f"**What.** {more}\n\n{does}" if more else f"**What.** {does}"
    if reason is None:
        return f"# {title}\n\n{what}\n\n{_WHY}"
    said = " ".join(reason[0].split())
    return f"# {title}\n\n{what}\n\n**Why.** {said[:1].upper()}{said[1:]}."


def _parameters(inputs: Sequence[Input]) -> str:
    dates = any(item.type == "date" for item in inputs)
    lines = ["from datetime import date", ""] if dates else []
    return "\n".join([*lines, *(item.line for item in inputs)])


def _thresholds(inputs: Sequence[Input]) -> list[Input]:
    return [item for item in inputs if item.role in ("above", "below")]


def _ranges(inputs: Sequence[Input]) -> list[tuple[Input, Input]]:
    """Pairs between which the values are that count."""
    low, high = ([item for item in inputs if item.role == role] for role in ("from", "to"))
    return list(zip(low, high, strict=False))  # one may be beyond the most that are taken


def _decides(inputs: Sequence[Input]) -> bool:
    return bool(_thresholds(inputs) or _ranges(inputs))


def _limit(inputs: Sequence[Input]) -> Input | None:
    return next((item for item in inputs if item.role == "most"), None)


def _rule(inputs: Sequence[Input]) -> str:
    parts = [
        f"{'at or ' if item.edge else ''}{item.role} `{item.name}`" for item in _thresholds(inputs)
    ]
    parts += [f"between `{low.name}` and `{high.name}`" for low, high in _ranges(inputs)]
    limit = _limit(inputs)
    rule = f"What is {' or '.join(parts)} needs attention." if parts else "All of it counts."
    return f"{rule} At most `{limit.name}` are shown, the largest first." if limit else rule


def _compared(value: str, item: Input) -> str:
    return f"{value} {'>' if item.role == 'above' else '<'}{'=' if item.edge else ''} {item.name}"


def _within(value: str, low: Input, high: Input) -> str:
    signs = ("<=" if item.edge else "<" for item in (low, high))
    return f"{low.name} {next(signs)} {value} {next(signs)} {high.name}"


def _by_subject(subjects: Mapping[str, Input]) -> list[str]:
    """Each item has the limit of what it is called."""
    signs = {_compared("", item).removesuffix(item.name) for item in subjects.values()}
    if len(signs) == 1:
        pairs = ", ".join(f'"{name}": {item.name}' for name, item in subjects.items())
        (sign,) = signs
        test = f'item["value"]{sign}limits[item["name"]]'
        return [f"limits = {{{pairs}}}", f"found = [item for item in items if {test}]"]
    tests = [f'"{name}": lambda value: {_compared("value", i)}' for name, i in subjects.items()]
    found = 'found = [item for item in items if counts[item["name"]](item["value"])]'
    return ["counts = {", *(f"    {test}," for test in tests), "}", found]


def _decide(inputs: Sequence[Input]) -> str:
    limit = _limit(inputs)
    lines = []
    subjects = gathering.subjects(inputs)
    if subjects:
        lines += _by_subject(subjects)
    elif _decides(inputs):
        tests = [_compared('item["value"]', item) for item in _thresholds(inputs)]
        tests += [_within('item["value"]', low, high) for low, high in _ranges(inputs)]
        lines += [f"found = [item for item in items if {' or '.join(tests)}]"]
    else:
        lines += ["found = items"]
    shown = "found"
    if limit:
        lines += ['ranked = sorted(found, key=lambda item: item["value"], reverse=True)']
        shown = f"ranked[:{limit.name}]"
    lines += [f"shown = {shown}"]
    lines += ['status = "attention" if found else "ok"' if _decides(inputs) else 'status = "ok"']
    return "\n".join([*lines, 'print(f"{len(found)} of {len(items)} items: {status}")'])


def _report(inputs: Sequence[Input]) -> str:
    lines = ["from quire.runtime import glue", "", "for item in shown[:20]:"]
    lines += ["    print(f\"{item['name']}: {item['value']}\")"]
    dry = next((item for item in inputs if item.role == "dry"), None)
    if dry is not None:
        lines += [f"if {dry.name}:", '    print("dry run: nothing is changed")', "else:"]
        lines += ['    print("nothing is changed: what to do with each item is not said yet")']
    lines += ["", 'glue("status", status)', 'glue("source", source)', 'glue("items", len(items))']
    if _decides(inputs):
        lines += ['glue("found", len(found))']
    return "\n".join([*lines, 'glue("shown", shown[:100])'])


def _check(inputs: Sequence[Input]) -> str:
    limit = _limit(inputs)
    lines = [
        "# What must hold of the results, whatever the parameters are.",
        'assert items, "nothing was gathered"',
        'assert all({"name", "value"} <= item.keys() for item in items), "an item says too little"',
        'assert len(found) <= len(items), "more was found than there is"',
    ]
    if _decides(inputs):
        lines += ['assert (status == "attention") == bool(found), "the status says something else"']
    if limit:
        lines += [f'assert len(shown) <= {limit.name}, "more is shown than was asked for"']
    return "\n".join([*lines, 'print("checked")'])


# What is left to do


def _waiting(document: Document, inputs: Sequence[Input], says_why: bool) -> tuple[Waiting, ...]:
    wanted = {
        "gather": "get what the task is about: `items`, each with a name and a value, and set "
        "`source` to where they come from; until then they are examples",
        "decide": "the rule by which items count; it is a guess from the description",
        "check": "an assert for each promise of the task",
    }
    if any(item.role == "dry" for item in inputs):
        wanted["report"] = "what to do with each item when it is no dry run"
    if not inputs:
        wanted["parameters"] = "the inputs of the task; the description names none"
    found = []
    for at, cell in enumerate(document.cells):
        if at == 0 and not says_why:
            found.append(Waiting(cell.id, at, "", "who needs the result, and for what"))
        elif cell.kind == "code" and cell.title in wanted:
            found.append(Waiting(cell.id, at, cell.title, wanted[cell.title]))
    return tuple(found)


def without_ids(document: Document) -> Document:
    """Only what a reader sees of the cells, in the words of the format."""
    cells = (
        Cell(cell.kind, cell.source, title=cell.title, tags=cell.tags) for cell in document.cells
    )
    return replace(document, cells=tuple(cells), metadata={})
