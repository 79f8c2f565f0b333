"""Markdown as a task: front matter, prose, and fenced blocks that are the steps.

`loads` and `dumps` are inverse to each other, byte by byte, as long as all lines end alike. A cell
whose text cannot be told from its source, title and tags keeps the text in its metadata, under
`logbook`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from ..errors import DocumentError
from . import fences, frontmatter
from .document import Cell, Document, identified
from .fences import Block, Info

KEPT = "logbook"
# The language behind a fence: the magic that runs it in a Python kernel.
_MAGICS = {
    "python": "",
    "py": "",
    "python3": "",
    "ipython": "",
    "ipython3": "",
    "bash": "%%bash",
    "sh": "%%sh",
    "shell": "%%bash",
    "sql": "%%sql",
}
_LANGUAGES = {"%%bash": "bash", "%%sh": "sh", "%%sql": "sql"}
_NEAR_APPROVE = 0.75
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
APPROVE = "approve"


@dataclass(frozen=True, slots=True)
class Part:
    """A cell and the lines it stands on; `lead` is the first of the empty ones before it."""

    cell: Cell
    lead: int
    first: int
    last: int


def loads(text: str, kernels: frozenset[str] = frozenset()) -> Document:
    """`kernels` are the names of installed ones: a block in such a language is a step."""
    text = text.removeprefix("\ufeff")
    lines = split(text)
    parts = read(lines, kernels)
    metadata: dict[str, Any] = {}
    kept = _kept_of_text(text, lines, parts)
    used = sorted({str(p.cell.metadata["kernel"]) for p in parts if "kernel" in p.cell.metadata})
    if used:
        kept["kernels"] = used
    if kept:
        metadata[KEPT] = kept
    return Document(identified(part.cell for part in parts), metadata, "python", "logbook")


def split(text: str) -> list[str]:
    """Lines without their ends, however those are written."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _kept_of_text(text: str, lines: list[str], parts: list[Part]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    ends = set(re.findall(r"\r\n|\n|\r", text))
    if len(ends) == 1 and ends != {"\n"}:
        kept["newline"] = ends.pop()
    tail = lines[parts[-1].last + 1 :] if parts else lines
    if tail:
        kept["tail"] = list(tail)
    if text and not text.endswith(("\n", "\r")):
        kept["open"] = True  # no line end at the end
    return kept


def read(lines: list[str], kernels: frozenset[str] = frozenset()) -> list[Part]:
    """The cells of a text, in order, each with its lines."""
    spans = list(_spans(lines, kernels))
    parts: list[Part] = []
    before, heading = 0, ""
    for first, last, block in spans:
        if block is None:
            kind = "raw" if first == 0 and _front_end(lines) == last else "markdown"
            cell = Cell("raw" if kind == "raw" else "markdown", "\n".join(lines[first : last + 1]))
            if kind == "raw":
                frontmatter.parse(cell.source)
            heading = _last_heading(lines[first : last + 1]) or heading
        else:
            cell = _step(lines, block, heading, kernels)
            heading = ""
        default = [] if not parts else [""]
        lead = lines[before:first]
        if lead != default:
            kept = {**cell.metadata.get(KEPT, {}), "lead": lead}
            cell = replace(cell, metadata={**cell.metadata, KEPT: kept})
        parts.append(Part(cell, before, first, last))
        before = last + 1
    return parts


def _spans(lines: list[str], kernels: frozenset[str]) -> Iterator[tuple[int, int, Block | None]]:
    """Front matter, prose and steps: first line, last line, and the block of a step."""
    start = _front_end(lines) + 1
    if start:
        yield 0, start - 1, None
    for block in fences.blocks(lines, start):
        if not is_step(fences.parse(block.info), kernels):
            continue
        if not block.closed:
            raise DocumentError(
                f"line {block.first + 1}: the block that begins here is not closed",
                hint=f"write a line {block.fence} below its last line",
            )
        yield from _prose(lines, start, block.first)
        yield block.first, block.last, block
        start = block.last + 1
    yield from _prose(lines, start, len(lines))


def _prose(lines: list[str], start: int, stop: int) -> Iterator[tuple[int, int, None]]:
    while start < stop and not lines[start].strip():
        start += 1
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    if stop > start:
        yield start, stop - 1, None


def _front_end(lines: list[str]) -> int:
    """The line that closes the front matter, or -1 where there is none."""
    if not lines or lines[0].rstrip() != "---":
        return -1
    for at in range(1, len(lines)):
        if lines[at].rstrip() in ("---", "..."):
            return at
    raise DocumentError(
        "line 1: the front matter that begins here is not closed",
        hint="write a line --- below its last line",
    )


def is_step(info: Info, kernels: frozenset[str] = frozenset()) -> bool:
    """Whether a block is run: by its language, or because it says so."""
    if info.options.get("run") is False:
        return False
    language = info.language.lower()
    return language in _MAGICS or language in kernels or bool(info.options.get("kernel"))


def _step(lines: list[str], block: Block, heading: str, kernels: frozenset[str]) -> Cell:
    info = fences.parse(block.info)
    cell = _with_options(info, heading)
    source = "\n".join(fences.content(lines, block))
    magic = _magic(info)
    cell = replace(cell, source=f"{magic}\n{source}" if magic else source)
    raw = lines[block.first : block.last + 1]
    if _rendered(cell, heading) != raw:
        cell = replace(cell, metadata={**cell.metadata, KEPT: {"text": raw}})
    return cell


def _magic(info: Info) -> str:
    magic = "" if info.options.get("kernel") else _MAGICS.get(info.language.lower(), "")
    into = info.options.get("into")
    return f"{magic} {into}" if magic == "%%sql" and isinstance(into, str) else magic


def _with_options(info: Info, heading: str) -> Cell:
    """Title, tags and the rest of what stands behind the fence. What nobody knows is left alone:
    other programs write there too."""
    options = info.options
    metadata: dict[str, Any] = {}
    tags = options.get("tags", [])
    tags = [str(tag) for tag in tags] if isinstance(tags, list) else [str(tags)]
    tags += [word for word in info.words if re.fullmatch(r"[A-Za-z][\w-]*", word)]
    name = options.get("id", options.get("name"))
    if isinstance(name, str):
        metadata["name"] = name
    language = info.language.lower()
    kernel = options.get("kernel")
    if isinstance(kernel, str):
        metadata["kernel"] = kernel
    elif language not in _MAGICS:
        metadata["kernel"] = language
    _no_look_alike(options)
    approve = options.get(APPROVE)
    if isinstance(approve, str):
        raise DocumentError(
            f"`{APPROVE}: {approve}` behind a fence is neither true nor false",
            hint=f"write {APPROVE}: true",
        )
    if approve is True and APPROVE not in tags:
        tags.append(APPROVE)
    elif approve is False:
        tags = [tag for tag in tags if tag != APPROVE]
    title = options.get("title")
    return Cell(
        "code",
        "",
        title=title if isinstance(title, str) else heading,
        tags=tuple(dict.fromkeys(tags)),
        metadata=metadata,
    )


def _no_look_alike(options: Mapping[str, Any]) -> None:
    """What nobody knows is left alone, but not what is meant to hold a step back."""
    said = [name for name, value in options.items() if isinstance(value, bool) and name != APPROVE]
    for name in get_close_matches(APPROVE, said, 1, _NEAR_APPROVE):
        raise DocumentError(
            f"`{name}: {str(options[name]).lower()}` behind a fence means nothing; "
            f"is {APPROVE} meant?",
            hint=f"write {APPROVE}: true",
        )


def _last_heading(lines: list[str]) -> str:
    shown: set[int] = set()
    for block in fences.blocks(lines):
        shown.update(range(block.first, block.last + 1))
    found = ""
    for at, line in enumerate(lines):
        match = None if at in shown else _HEADING.match(line)
        found = match[1] if match else found
    return found


def dumps(doc: Document) -> str:
    kept = doc.metadata.get(KEPT)
    kept = kept if isinstance(kept, Mapping) else {}
    lines: list[str] = []
    heading = ""
    for cell in doc.cells:
        lead = _kept(cell).get("lead")
        lines += lead if isinstance(lead, list) else ([""] if lines else [])
        lines += rendered(cell, heading)
        heading = "" if cell.kind == "code" else _last_heading(cell.source.split("\n")) or heading
    lines += kept.get("tail", [])
    newline = str(kept.get("newline", "\n"))
    return newline.join(lines) + ("" if kept.get("open") or not lines else newline)


def rendered(cell: Cell, heading: str = "") -> list[str]:
    """The lines of one cell, as they were written where that still fits."""
    raw = _kept(cell).get("text")
    if cell.kind != "code" or not isinstance(raw, list) or not raw:
        return _rendered(cell, heading)
    block = fences.alone(raw)
    if block is None:
        return _rendered(cell, heading)
    kernel = cell.metadata.get("kernel")
    try:
        was = _step(raw, block, heading, frozenset({str(kernel)} if kernel else ()))
    except DocumentError:
        return _rendered(cell, heading)
    plain = (was.title, was.tags, was.metadata.get("name"))
    if plain != (cell.title, cell.tags, cell.metadata.get("name")):
        return _rendered(cell, heading, block)
    return raw if was.source == cell.source else refilled(raw, block, cell)


def refilled(raw: list[str], block: Block, cell: Cell) -> list[str]:
    """Another source between the fences that were there."""
    python = not _magic(fences.parse(block.info))
    body = (cell.source if python else without_magic(cell.source)).split("\n")
    longest = max(
        (len(run) for run in re.findall(f"{block.fence[0]}{{3,}}", "\n".join(body))), default=0
    )
    top, bottom = raw[0], raw[-1]
    if longest >= len(block.fence):
        fence = block.fence[0] * (longest + 1)
        top, bottom = top.replace(block.fence, fence, 1), block.indent + fence
    return [top, *(block.indent + line if line else line for line in body), bottom]


def without_magic(source: str) -> str:
    """The source of a step as it stands between its fences."""
    first, newline, rest = source.partition("\n")
    return rest if newline and first.split(" ")[0] in _LANGUAGES else source


def language_of(cell: Cell) -> str:
    """What stands behind the fence of a step."""
    kernel = cell.metadata.get("kernel")
    if isinstance(kernel, str):
        return kernel
    first, newline, _ = cell.source.partition("\n")
    return _LANGUAGES.get(first.split(" ")[0], "python") if newline else "python"


def _rendered(cell: Cell, heading: str = "", block: Block | None = None) -> list[str]:
    if cell.kind != "code":
        return cell.source.split("\n")
    body = without_magic(cell.source)
    runs = [len(run) for run in re.findall(r"`{3,}", body)]
    fence = "`" * (max(runs) + 1 if runs else 3)
    indent = block.indent if block is not None else ""
    inner = [indent + line if line else line for line in body.split("\n")]
    return [indent + fence + info_of(cell, heading), *inner, indent + fence]


def info_of(cell: Cell, heading: str = "") -> str:
    words = [language_of(cell)]
    if cell.title and cell.title != heading:
        words.append(f"title={fences.quoted(cell.title)}")
    if cell.name:
        words.append(f"id={fences.quoted(cell.name)}")
    into = cell.source.partition("\n")[0].removeprefix("%%sql").strip()
    if words[0] == "sql" and into:
        words.append(f"into={into}")
    tags = [tag for tag in cell.tags if tag != APPROVE]
    if APPROVE in cell.tags:
        words.append(f"{APPROVE}: true")
    if tags:
        words.append(f"tags=[{', '.join(map(fences.quoted, tags))}]")
    return " ".join(words)


def _kept(cell: Cell) -> Mapping[str, Any]:
    kept = cell.metadata.get(KEPT)
    return kept if isinstance(kept, Mapping) else {}
