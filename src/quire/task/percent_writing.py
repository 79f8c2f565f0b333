"""Write the percent format, so that reading it gives the same cells back.

Most cells have one natural text. Some have none: a comment that looks like a cell marker, metadata
keys with spaces, attachments, a lone newline at the end. What the format cannot say goes into the
key `quire={…}` of the marker line. Each text is read back before it is used; the first that gives
the cell back is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from . import magics, percent_header, percent_marker
from .document import Cell, Document, metadata_of
from .percent import CHANNEL, LANGUAGES, Style, is_active, loads, read_cells, style_of

# Marks of a converter, and traces of a run: neither is anything a user set, like outputs.
DROPPED = frozenset(
    {
        "cell_marker",
        "lines_to_next_cell",
        "lines_to_end_of_cell_marker",
        "skipline",
        "noskipline",
        "execution",
        "ExecuteTime",
        "papermill",
    }
)
_DROPPED_OF_NOTEBOOK = frozenset({"papermill", "widgets"})
_RESERVED = frozenset({"active", "cell_type", "language", "magic_args", "title", CHANNEL})
# Would be swallowed by a fence or a string that the cell leaves open.
_AFTER = ["# %%", "# " + "`" * 99, "# " + "~" * 99, "`" * 99, "~" * 99]

Body = tuple[list[str], dict[str, Any], dict[str, Any]]


def dumps(doc: Document) -> str:
    cells = [_clean(cell) for cell in doc.cells]
    metadata = {k: v for k, v in doc.metadata.items() if k not in _DROPPED_OF_NOTEBOOK}
    front = _front_matter(cells)
    codes = (cell.source.split("\n") for cell in cells if cell.kind == "code")
    if not metadata and not any(map(magics.has_any, codes)):
        text = _document(metadata, cells, front, converted=False)
        if not _differences(text, cells):
            return text
    # A header says that there are comments which are code: magics, cells in other languages.
    text = _document(metadata, cells, front, converted=True)
    wrong = _differences(text, cells)
    return _document(metadata, cells, None, converted=True, sealed=wrong) if wrong else text


def _document(
    metadata: Mapping[str, Any],
    cells: list[Cell],
    front: str | None,
    *,
    converted: bool,
    sealed: frozenset[int] = frozenset(),
) -> str:
    above = percent_header.write(metadata, front, converted=converted)
    style = style_of(percent_header.read(above))
    first = 0 if front is None else 1
    texts = [
        _sealed(cell) if at in sealed else _cell_lines(cell, style)
        for at, cell in enumerate(cells)
        if at >= first
    ]
    if not above and texts and percent_header.CODING.match(texts[0][0]):
        # Python would take the first marker for an encoding line.
        above = ["# ---", "# ---", ""]
    return "\n".join([*above, *_joined(texts)]) + "\n" if above or texts else ""


def _joined(texts: list[list[str]]) -> Iterator[str]:
    for at, lines in enumerate(texts):
        following = texts[at + 1] if at + 1 < len(texts) else None
        yield from lines
        ends_blank = not lines[-1].strip()
        if following is None:
            yield from [""] * ends_blank
        else:
            code = not lines[-1].startswith("#")
            roomy = code and (_ends_indented(lines) or _starts_block(following))
            yield from [""] * (2 if roomy and not ends_blank else 1)


def _ends_indented(lines: list[str]) -> bool:
    """Whether the cell ends in a function or class: formatters want two blank lines there."""
    if not lines[-1].startswith((" ", "\t")):
        return False
    opening = next((line for line in reversed(lines) if not line.startswith((" ", "\t", ")"))), "")
    return opening.startswith(("def ", "class ", "async def "))


def _starts_block(lines: list[str]) -> bool:
    return len(lines) > 1 and lines[1].startswith(("def ", "class ", "async def ", "@"))


def _clean(cell: Cell) -> Cell:
    """The cell as a `.py` can hold it: no outputs, Unix newlines."""
    return Cell(
        cell.kind,
        cell.source.replace("\r\n", "\n").replace("\r", "\n"),
        title=cell.title,
        tags=cell.tags,
        metadata=cell.metadata,
        attachments=cell.attachments,
    )


def _essence(cell: Cell) -> tuple[str, ...]:
    metadata = {k: v for k, v in metadata_of(cell).items() if k not in DROPPED}
    # As JSON, so that nan equals itself and 1 is not True.
    return cell.kind, cell.source, json.dumps([metadata, cell.attachments], sort_keys=True)


def _differences(text: str, cells: list[Cell]) -> frozenset[int]:
    found = loads(text).cells
    if len(found) != len(cells):
        return frozenset(range(len(cells)))
    pairs = enumerate(zip(found, cells, strict=True))
    return frozenset(at for at, (got, want) in pairs if _essence(got) != _essence(want))


def _front_matter(cells: list[Cell]) -> str | None:
    """The first cell, if it is one that a header reads as such."""
    if not cells or cells[0].kind != "raw" or metadata_of(cells[0]) or cells[0].attachments:
        return None
    source = cells[0].source
    lines = source.split("\n")
    if len(lines) < 3 or lines[0] != "---" or lines[-1] != "---":
        return None
    above = percent_header.write({}, source, converted=False)
    return source if percent_header.read(above).front == source else None


def _cell_lines(cell: Cell, style: Style) -> list[str]:
    want = _essence(cell)
    bodies, marks = list(_bodies(cell, style)), list(_marks(cell))
    for (title, metadata, beside, guard), (body, added, kept) in product(marks, bodies):
        lines = [_marker(cell.kind, title, metadata | added, beside | kept, guard=guard), *body]
        if _reads_back(lines, want, style):
            return lines
    return _sealed(cell)


def _sealed(cell: Cell) -> list[str]:
    *_, (title, metadata, beside, guard) = _marks(cell)
    return [_marker(cell.kind, title, metadata, beside | {"source": cell.source}, guard=guard)]


def _reads_back(lines: list[str], want: tuple[str, ...], style: Style) -> bool:
    # Other readers break lines at more characters than Python does.
    if not _writable("\n".join(lines)) or len(lines[0].splitlines()) != 1:
        return False
    found = [cell for cell, _, _ in read_cells([*lines, "", *_AFTER], 0, style)]
    return len(found) == 2 and _essence(found[0]) == want


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bodies(cell: Cell, style: Style) -> Iterator[Body]:
    """The lines below the marker, with what the marker must say for them and beside them."""
    lines = cell.source.split("\n")
    metadata = metadata_of(cell)
    if cell.kind != "code":
        mark = cell.metadata.get("cell_marker")
        if isinstance(mark, str):
            yield _quoted(cell.source, mark), {}, {}
        yield _commented(lines), {}, {}
        yield _quoted(cell.source, '""","""'), {}, {}
        yield _quoted(cell.source, "''','''"), {}, {}
    elif not is_active("py", metadata) and style.reading != "written":
        yield _commented(lines), {}, {}
    else:
        magic, _, arguments = lines[0].removeprefix("%%").partition(" ")
        if lines[0].startswith("%%") and magic in LANGUAGES and style.reading != "written":
            options = ({"magic_args": arguments} if arguments else {}) | {"language": magic}
            yield _commented(lines[1:]), options, {}
        yield _code(cell.source, style), {}, {}
        text = cell.source.rstrip()
        yield _code(text, style), {}, {"ending": cell.source[len(text) :]}
    yield [], {}, {"source": cell.source}


def _code(source: str, style: Style) -> list[str]:
    if not source:
        return []
    lines = source.split("\n")
    return lines if style.reading == "written" else magics.comment(lines, style.reading)


def _commented(lines: list[str]) -> list[str]:
    return [f"# {line}" if line else "#" for line in lines]


def _quoted(source: str, mark: str) -> list[str]:
    """The text as one triple-quoted string. A pair `left,right` stands close around it."""
    left, comma, right = mark.partition(",")
    if not comma:
        left, right = f"{mark}\n", f"\n{mark.lstrip('rR')}"
    return f"{left}{source}{right}".split("\n")


def _marks(cell: Cell) -> Iterator[tuple[str, dict[str, Any], dict[str, Any], bool]]:
    """Title, metadata, what goes into the channel, and whether JSON is guarded."""
    beside: dict[str, Any] = {"attachments": dict(cell.attachments)} if cell.attachments else {}
    tags = {"tags": list(cell.tags)} if cell.tags else {}
    rest = {key: value for key, value in cell.metadata.items() if key not in DROPPED}
    shown = {key: value for key, value in rest.items() if _is_natural(key, value, cell.kind)}
    hidden = {key: value for key, value in rest.items() if key not in shown}
    extra = beside | ({"metadata": hidden} if hidden else {})
    title = {"title": cell.title} if cell.title else {}
    yield cell.title, tags | shown, extra, False
    yield "", title | tags | shown, extra, False
    yield "", title | tags | shown, extra, True
    yield "", {}, beside | title | tags | ({"metadata": rest} if rest else {}), True


def _is_natural(key: str, value: Any, kind: str) -> bool:
    if key == "region_name":
        return kind == "markdown" and value == "md"
    if key == "cell_depth":
        return type(value) is int and 0 < value < 50
    if key == percent_marker.UNREADABLE:
        return isinstance(value, str)
    if key == "active":
        return isinstance(value, str)
    if key == "title":
        return not isinstance(value, str)
    return percent_marker.is_key(key) and key not in _RESERVED


def _marker(
    kind: str, title: str, metadata: Mapping[str, Any], beside: Mapping[str, Any], *, guard: bool
) -> str:
    rest = dict(metadata)
    depth, region = rest.pop("cell_depth", 0), rest.pop("region_name", kind)
    unreadable = rest.pop(percent_marker.UNREADABLE, "")
    words = [title] if title else []
    if kind != "code":
        words.append(f"[{region}]")
    if unreadable:
        words.append(unreadable)
    words += [
        f"{key}={percent_marker.json_text(value, guard=guard)}" for key, value in rest.items()
    ]
    if beside:
        words.append(f"{CHANNEL}={percent_marker.json_text(beside, guard=True)}")
    if depth and not words:
        words = [""]  # `# %%%` alone is no marker, with a space behind it it is
    return " ".join(["# %%" + "%" * depth, *words])
