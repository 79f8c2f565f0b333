"""Read the percent format: a `.py` whose cells start at `# %%`.

An own reader, because a task is read on every run and jupytext needs half a second to import. It
gives the cells jupytext gives, which the tests check against it, except where those would not be
what a person wrote; `tests/task/test_percent_differences.py` lists these cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DocumentError
from . import magics, percent_header, percent_marker
from .document import Cell, CellKind, Document, cell_from, identified
from .percent_header import uncommented

# What a cell's metadata says when the percent format alone cannot: see percent_writing.
CHANNEL = "quire"
# Names that `language="…"` turns into a cell magic of that name; those before the bar comment
# with a hash.
_LANGUAGES = """
    R bash coconut gnuplot julia powershell python robotframework sage sos tcl xonsh |
    c# c++ clojure cs csharp cython f# fs fsharp go groovy haskell html idl java javascript jenner
    js latex logtalk lua markdown matlab maxima ocaml octave perl pypy python2 python3 q ruby rust
    sas scala scheme script sh spark sql stata svg typescript
"""
_HASH_LANGUAGES = frozenset(_LANGUAGES.partition("|")[0].split())
LANGUAGES = frozenset(_LANGUAGES.replace("|", " ").split()) | {"wolfram language"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
# Header settings that change how cells are read; jupytext knows them all.
_SETTINGS = (
    "comment_magics",
    "custom_cell_magics",
    "custom_language_magics",
    "root_level_metadata_as_raw_cell",
    "cell_markers",
)


@dataclass(frozen=True, slots=True)
class Style:
    """What the header tells about the cells."""

    language: str
    reading: magics.Reading


def loads(text: str) -> Document:
    lines = split_lines(text)
    head = percent_header.read(lines)
    if _is_other_format(head):
        from .via_jupytext import loads as loads_other

        return loads_other(text)
    cells = [] if head.front is None else [Cell("raw", head.front)]
    cells += [cell for cell, _, _ in read_cells(lines, head.end, style_of(head))]
    return Document(
        cells=identified(cells),
        metadata=percent_header.without_representation(head.metadata),
        language=head.language,
        format="percent",
    )


def dumps(doc: Document) -> str:
    from .percent_writing import dumps as written

    return written(doc)


def spans(text: str) -> list[tuple[int, int]]:
    """The lines of each cell, as (first, one past the last) counted from 0, marker line included.

    Blank lines behind a cell belong to it, so the spans touch. A front matter cell spans the
    header. Lines are those of `split_lines`.
    """
    lines = split_lines(text)
    head = percent_header.read(lines)
    if _is_other_format(head):
        raise DocumentError(
            "the cells of this file have no line numbers: its header asks for another format",
            hint="convert it to the percent format: jupytext --to py:percent",
        )
    found = [] if head.front is None else [(head.start, head.end)]
    found += [(a, b) for _, a, b in read_cells(lines, head.end, style_of(head))]
    return found


def _is_other_format(head: percent_header.Header) -> bool:
    if not head.converted:
        return False
    return head.format_name not in ("", "percent") or any(key in head.section for key in _SETTINGS)


def style_of(head: percent_header.Header) -> Style:
    language = head.language
    if not head.converted:
        return Style(language, "written")
    if language == "python":
        plain = head.section.get("comment_magics") is False
        return Style(language, "verbatim" if plain else "converted")
    hashes = {name.lower() for name in _HASH_LANGUAGES}
    return Style(language, "foreign" if language in hashes else "verbatim")


def split_lines(text: str, *, keepends: bool = False) -> list[str]:
    r"""Lines as Python counts them: \n, \r\n or \r ends one; form feeds and U+2028 do not."""
    if keepends:
        return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def read_cells(lines: list[str], start: int, style: Style) -> Iterator[tuple[Cell, int, int]]:
    """The cells from a line on, each with its first line and the one after its last."""
    dead_fences: dict[str, int] = {}
    while start < len(lines):
        marked = percent_marker.MARKER.match(lines[start]) is not None
        options = percent_marker.parse(lines[start]) if marked else {}
        reader = _CellReader(options, style)
        end = reader.end(lines, start, dead_fences)
        stop = end
        if end - start >= 3 and not lines[end - 1].strip() and not lines[end - 2].strip():
            # Two blank lines are how formatters set off a function; three are content.
            stop = end - 2 if lines[end - 3].strip() else stop
        if stop == end and lines[end - 1] == "":
            stop = end - 1
        yield reader.cell(lines[start + marked : max(stop, start + marked)]), start, end
        start = end


class _CellReader:
    """One cell, from the options of its marker line."""

    __slots__ = ("as_it_stands", "commented", "kind", "language", "metadata", "style")

    def __init__(self, options: dict[str, Any], style: Style) -> None:
        self.metadata = options
        self.style = style
        self.kind: CellKind = "code"
        # Whether the lines of a cell that is not code carry a comment mark.
        self.commented = True
        # Whether what a kernel gets are the lines as they stand: nothing in a comment becomes code.
        self.as_it_stands = style.reading == "written"
        self.language = ""
        if not options:
            return
        if isinstance(options.get("language"), str) and not self.as_it_stands:
            self.language = options.pop("language")
        if "cell_type" in options:
            kind = options.pop("cell_type")
            self.kind = kind if kind in ("code", "markdown") else "raw"
        elif not is_active("ipynb", options):
            if options.get("active") == "":
                del options["active"]
            self.kind = "raw"
            self.commented = not is_active("py", options)

    def end(self, lines: list[str], start: int, dead_fences: dict[str, int]) -> int:
        """The line after the cell: the next marker that is not inside a string or a fence."""
        hashes = not self.language or self.language in _HASH_LANGUAGES
        is_marker = percent_marker.MARKER.match
        text_cell = self.kind != "code"
        triple = fence = ""
        for at in range(start, len(lines)):
            line = lines[at]
            if '"""' in line or "'''" in line:
                was, triple = triple, magics.quote_after(line, triple, hash_comments=hashes)
                if was:
                    continue
            elif triple:
                continue
            if text_cell and ("```" in line or "~~~" in line or fence):
                shown = uncommented(line) if self.commented else line
                if fence:
                    fence = "" if _closes(shown, fence) else fence
                    continue
                fence = self._opened(shown, lines, at, dead_fences)
                if fence:
                    continue
            if at > start and is_marker(line):
                return at
        return len(lines)

    def _opened(self, shown: str, lines: list[str], at: int, dead_fences: dict[str, int]) -> str:
        """The fence this line opens, if a line further down closes it."""
        match = _FENCE.match(shown)
        if not match or (match[1][0] == "`" and "`" in match[2]):
            return ""
        fence = match[1]
        if len(fence) >= dead_fences.get(fence[0], len(fence) + 1):
            return ""
        for later in range(at + 1, len(lines)):
            line = lines[later]
            if fence[0] in line and _closes(uncommented(line) if self.commented else line, fence):
                return fence
        # Nothing below closes one this long: remembered, so that many of them stay linear.
        dead_fences[fence[0]] = len(fence)
        return ""

    def cell(self, lines: list[str]) -> Cell:
        source = self._source(lines)
        metadata = self.metadata
        if not metadata and not self.language:
            return Cell(self.kind, source)
        main = self.style.language
        if self.language and self.language != main:
            if self.language.lower() == main or self.language not in LANGUAGES:
                metadata["language"] = self.language
            else:
                arguments = metadata.pop("magic_args", None)
                magic = f"%%{self.language}" + ("" if arguments is None else f" {arguments}")
                source = f"{magic}\n{source}"
        return restored(cell_from(self.kind, source, metadata), code=not self.as_it_stands)

    def _source(self, lines: list[str]) -> str:
        code = self.kind == "code"
        source = "\n".join(lines)
        if code and "#" not in source and not self.metadata:
            return source
        if self.as_it_stands and (code or not self.commented):
            return source
        if not is_active("py", self.metadata, default=code):
            quoted = _quoted(source.strip())
            if quoted is not None:
                text, mark = quoted
                if mark:
                    self.metadata["cell_marker"] = mark
                return text
        other = self.language not in ("", self.style.language) and "active" not in self.metadata
        if other or not is_active("py", self.metadata):
            lines = [uncommented(line) for line in lines] if self.commented else lines
        elif code or not self.commented:
            if "#" in source:
                lines = magics.uncomment(lines, self.style.reading)
                lines = magics.plus_unescaped(lines) if code else lines
        else:
            lines = [uncommented(line) for line in lines]
        return "\n".join(lines)


def _closes(text: str, fence: str) -> bool:
    match = _FENCE.match(text)
    return bool(match and match[1].startswith(fence) and not match[2].strip())


def _quoted(content: str) -> tuple[str, str] | None:
    """The text of a cell that is one triple-quoted string, and how its quotes were written."""
    prefix = content[:1] if content[:1] in ("r", "R") else ""
    quotes = content[len(prefix) :][:3]
    if quotes not in ('"""', "'''") or not content.endswith(quotes):
        return None
    if len(content) < len(prefix) + 6:
        return None
    text = content[len(prefix) + 3 : -3]
    left, right = prefix + quotes, quotes
    if text.startswith("\n"):
        text, left = text[1:], left + "\n"
    if text.endswith("\n"):
        text, right = text[:-1], "\n" + right
    whole = left.endswith("\n") and right.startswith("\n")
    mark = prefix + quotes if whole else (f"{left},{right}" if prefix else "")
    return text.removesuffix("\n"), mark


def is_active(where: str, metadata: Mapping[str, Any], *, default: bool = True) -> bool:
    """Whether a cell is code in this kind of file: `active-…` tags, `active`, frozen cells."""
    if not metadata:
        return default
    control = metadata.get("run_control")
    if isinstance(control, Mapping) and control.get("frozen") is True:
        return where == "ipynb"
    tags = metadata.get("tags")
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, str) and tag.startswith("active-"):
            return where in tag.split("-")
    active = metadata.get("active")
    if not isinstance(active, str):
        return default
    return where in re.split(r"[.,]", active)


def restored(cell: Cell, *, code: bool = True) -> Cell:
    """Put back what the writer had to keep beside the cell. See percent_writing.

    `code`: whether code may be among it. Blank lines at the end of a cell always may.
    """
    if CHANNEL not in cell.metadata or not isinstance(cell.metadata[CHANNEL], dict):
        return cell
    kept = cell.metadata[CHANNEL]
    has_code = "source" in kept or bool(str(kept.get("ending", "")).strip())
    if cell.kind == "code" and has_code and not code:
        return cell
    rest = {key: value for key, value in cell.metadata.items() if key != CHANNEL}
    source, title, tags = kept.get("source"), kept.get("title"), kept.get("tags")
    metadata, attachments = kept.get("metadata"), kept.get("attachments")
    ending = kept.get("ending")
    return Cell(
        cell.kind,
        (source if isinstance(source, str) else cell.source)
        + (ending if isinstance(ending, str) else ""),
        title=title if isinstance(title, str) else cell.title,
        tags=tuple(map(str, tags)) if isinstance(tags, list) else cell.tags,
        metadata=rest | metadata if isinstance(metadata, dict) else rest,
        attachments=attachments if isinstance(attachments, dict) else {},
    )
