"""What a proposal says of the runs behind it: Markdown for a forge, from records alone.

Everything that a notebook or its author chose is a stranger's text to the forge. Values stand in
code spans, where forges look neither for markup nor for people, issues and addresses; prose is
written by `safe_markdown.py`.

A line that no reader sees names the commit and the runs that are told of. Whoever may edit the
body may edit it too: it is where to look first, and proves nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..proof import strict_json
from ..record import summary
from ..record.plan import jsonable
from ..record.record import CellRecord, Record
from ..render.markdown import code, fenced, table
from ..text import scrubbed
from .safe_markdown import blocks, prose

MARK = "<!-- quire: what follows is written by `quire propose`; words of your own go above -->"
DRAFTED = "**This is a draft. Cells wait to be written:**"
LIMIT = 60_000  # GitHub takes 65,536 characters
OWN_LIMIT = 20_000
TASKS = 20  # told in full
ROWS = 50
INTRO = 600
COMMAND = 2_000

_POINTER = re.compile(r"<!-- quire: (\{.*\}) -->")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_RUN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{6}-[a-z0-9-]{1,150}")


@dataclass(frozen=True, slots=True)
class Told:
    """A task of the change and what its run says; no record: no run of this version exists."""

    path: str  # from the top of the repository
    title: str = ""
    intro: str = ""  # its first Markdown
    record: Record | None = None
    verified: str = ""  # what `quire verify` says of the run, in one line
    notebook: str = ""  # the address of the executed notebook
    kept: str = ""  # where the run is archived, where there is no address
    gone: bool = False  # the change removes it
    waiting: tuple[str, ...] = ()  # the cells that nobody has written yet
    notes: tuple[str, ...] = ()  # what else there is to know of its runs


@dataclass(frozen=True, slots=True)
class Place:
    """Where the change is to be had."""

    branch: str
    remote: str = ""  # empty: the branch is in this repository
    folder: str = ""  # the workspace, from the top of the repository
    head: str = ""  # the commit that is told of


@dataclass(frozen=True, slots=True)
class Pointer:
    """What a body was made from, by its own account."""

    head: str
    runs: tuple[str, ...]


def render(own: str, tasks: Sequence[Told], place: Place) -> str:
    """`own` is what the author says; it is the only part that is taken as it is."""
    for cells, results in ((ROWS, ROWS), (0, ROWS), (0, 10), (0, 0)):
        parts = [MARK, _pointer(tasks, place), *_parts(tasks, place, cells, results)]
        text = scrubbed("\n\n".join(part for part in parts if part)) + "\n"
        if len(text) + OWN_LIMIT <= LIMIT:
            break
    else:
        text = text[: LIMIT - OWN_LIMIT].rpartition("\n\n")[0] + "\n"
    own = own.replace(MARK, "").strip()
    return f"{own}\n\n{text}" if own else text


def own_words(body: str) -> str:
    """What the author said, of a body that `render` made."""
    return body.partition(MARK)[0].strip()


def address_of(body: str, run_id: str) -> str:
    """The address of a run's executed notebook in a body that `render` made, or ''."""
    row = re.escape(f"| Run | {code(run_id)} |")
    link = r"\| Executed notebook \| \[`notebook\.ipynb`\]\(<([^>\n]+)>\) \|"
    found = re.search(rf"^{row}$(?:\n\|.*)*?\n{link}$", body, re.MULTILINE)
    return found[1] if found else ""


def pointer(body: str) -> Pointer | None:
    """The commit and the runs that a body says it was made from; None where it does not say."""
    line = body.partition(MARK)[2].lstrip().partition("\n")[0].rstrip()
    found = _POINTER.fullmatch(line)
    try:
        told = strict_json.loads(found[1].encode()) if found else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or set(told) != {"head", "runs"}:
        return None
    head, runs = told["head"], told["runs"]
    if not isinstance(head, str) or not _COMMIT.fullmatch(head) or not isinstance(runs, list):
        return None
    if not all(isinstance(run, str) and _RUN.fullmatch(run) for run in runs):
        return None
    return Pointer(head, tuple(runs))


def _pointer(tasks: Sequence[Told], place: Place) -> str:
    if not place.head:
        return ""
    runs = [told.record.run_id for told in tasks if told.record is not None]
    said = {"head": place.head, "runs": [run for run in runs if _RUN.fullmatch(run)][:ROWS]}
    return f"<!-- quire: {json.dumps(said)} -->"


def _parts(tasks: Sequence[Told], place: Place, cells: int, results: int) -> Iterator[str]:
    if not tasks:
        yield "This change touches no task."
    for told in tasks[:TASKS]:
        yield from _task(told, place, cells, results)
    if len(tasks) > TASKS:
        rest = ", ".join(code(told.path) for told in tasks[TASKS:][:ROWS])
        yield f"And {len(tasks) - TASKS} more: {rest}"


def _task(told: Told, place: Place, cells: int, results: int) -> Iterator[str]:
    yield f"## {prose(_cut(told.title, 200)) or code(told.path)}"
    if told.title:
        yield code(told.path)
    if told.gone:
        yield "This task is removed."
        return
    yield from blocks(told.intro, INTRO)
    if told.waiting:
        names = ", ".join(code(_cut(name, 100)) for name in told.waiting[:ROWS])
        yield f"{DRAFTED} {names}"
    record = told.record
    if record is None:
        yield "**No archived run of this version exists.** To make one:"
        again = f"quire propose --branch {_word(place.branch)}"
        yield _commands([*_there(place), f"quire run {_file(told, place)}", again])
        return
    yield _facts(told, record)
    yield from (f"Note: {prose(note)}" for note in told.notes)
    _, why = summary.failure(record)
    if why:
        yield f"**{summary.worded(record.outcome)}**: {code(why)}"
    yield from _results(record, results)
    yield from _cells(record, cells)
    yield "### To reproduce"
    yield _commands(
        [
            *_there(place),
            f"quire run {_file(told, place)}{_given(record)}",
            f"quire verify {_word(record.run_id)}",
            f"quire replay {_word(record.run_id)}",
        ]
    )


def _facts(told: Told, record: Record) -> str:
    rows = [("Outcome", f"**{summary.worded(record.outcome)}**")]
    rows += [(label, code(_cut(value, 300))) for label, value in summary.facts(record) if value]
    rows.append(("Verify", prose(told.verified) or "not archived: there is nothing to verify"))
    if told.notebook:
        rows.append(
            ("Executed notebook", f"[{code('notebook.ipynb')}](<{_address(told.notebook)}>)")
        )
    elif told.kept:
        rows.append(("Executed notebook", code(told.kept)))
    given = list(summary.parameters(record))
    for name, value, is_default in given[:ROWS]:
        note = " (default)" if is_default else ""
        rows.append((f"Parameter {code(_cut(name, 100))}", f"{code(value)}{note}"))
    if len(given) > ROWS:
        rows.append(("Parameters", f"{len(given) - ROWS} more"))
    return table(("", ""), rows)


def _results(record: Record, limit: int) -> Iterator[str]:
    if not record.results:
        return
    yield "### Results"
    rows = []
    for name, result in list(record.results.items())[:limit]:
        if summary.is_table(result):
            shown = f"table of {summary.row_count(result.value, len(result.value['rows']))}"
        elif result.kind == "display":
            shown = "a display: see the notebook"
        else:
            shown = code(summary.brief_json(result.value))
        rows.append((code(_cut(name, 100)), shown))
    if rows:
        yield table(("Name", "Value"), rows)
    if len(record.results) > limit:
        yield f"{len(record.results) - limit} more are in the record."


def _cells(record: Record, limit: int) -> Iterator[str]:
    ran = [cell for cell in record.cells if cell.kind == "code"]
    if not ran or not limit:
        return
    yield "### Cells"
    rows = [
        (str(record.cells.index(cell)), _name(cell), summary.worded(cell.status), _took(cell))
        for cell in ran[:limit]
    ]
    yield table(("Cell", "", "Status", "Took"), rows)
    if len(ran) > limit:
        yield f"{len(ran) - limit} more are in the record."


def _name(cell: CellRecord) -> str:
    first = cell.title.strip() or next((s for s in cell.source.split("\n") if s.strip()), "")
    return code(_cut(first, 60)) if first else ""


def _took(cell: CellRecord) -> str:
    return "" if cell.status in ("not run", "skipped") else summary.took(cell.duration)


def _there(place: Place) -> Iterator[str]:
    if place.remote:
        yield f"git fetch {_word(place.remote)} {_word(place.branch)}"
    yield f"git switch {_word(place.branch)}"
    if place.folder not in ("", "."):
        yield f"cd {_word(place.folder)}"


def _file(told: Told, place: Place) -> str:
    prefix = "" if place.folder in ("", ".") else f"{place.folder}/"
    path = told.path.removeprefix(prefix)
    return _word(f"./{path}" if path.startswith("-") else path)


def _given(record: Record) -> str:
    """The parameters as they were given; as YAML, which says their types."""
    defaults = record.plan.get("defaults")
    known = defaults if isinstance(defaults, dict) else {}
    values = {k: v for k, v in record.parameters.items() if k not in known or known[k] != v}
    if not values:
        return ""
    text = json.dumps(jsonable(values))
    words = f" -y {_word(text)}" if len(text) <= COMMAND else ""
    return words if words and len(words) <= COMMAND else "  # the parameters are in the record"


def _word(text: str) -> str:
    """One word of a command line, whatever is in it."""
    if text.isprintable():
        return shlex.quote(text)
    safe = text.encode("unicode_escape").decode("ascii").replace("'", "\\'")
    return f"$'{safe}'"


def _commands(lines: Sequence[str]) -> str:
    return fenced("\n".join(f"$ {line}" for line in lines), "console")


def _address(url: str) -> str:
    return re.sub(r"[<>\s|\\`]", lambda found: f"%{ord(found[0]):02X}", url)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(0, limit)]}…"
