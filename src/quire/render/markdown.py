"""A record as plain Markdown, for a pull request, an issue or a pager."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..record import summary
from ..record.cell_calls import by_cell, labelled
from ..record.record import CellRecord, Record, Result
from ..text import one_line, plain, scrubbed, shortened
from . import sanitised_html
from .blocks import OutputBlock, cell_blocks, display_block
from .images import data_uri, picture

OUTPUT_LINES = 200
TABLE_ROWS = 20
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
_SENTINEL = "end-of-cell"
_TAG = re.compile(r"<[a-zA-Z/!?]")
_FOOTNOTE = re.compile(r"\[\^[^\]\n]+\]:")
# Tags that end nothing and hide nothing: they change how letters look.
_HARMLESS = re.compile(r"<(?:br|/?(?:b|del|em|i|ins|s|strong|sub|sup|u))\s*/?>", re.IGNORECASE)


def render(record: Record) -> str:
    parts = [f"# {escaped(summary.heading(record))}", _facts(record)]
    cell, said = summary.failure(record)
    if said:
        where = f" in {_name(record, cell)}" if cell else ""
        parts.append(f"**{summary.worded(record.outcome)}**{where}: {escaped(said)}")
    parts += [f"Warning: {escaped(one_line(text))}" for text in record.warnings]
    calls = by_cell(record)
    parts.append(_calls(calls.get("", [])))
    parts += _results(record)
    parts.append("---")
    language = str(record.plan.get("language", "python"))
    for cell in record.cells:
        parts += _cell(cell, language)
        parts.append(_calls(calls.get(cell.id, [])))
    return scrubbed("\n\n".join(part for part in parts if part)) + "\n"


def _facts(record: Record) -> str:
    rows = [("Outcome", f"**{summary.worded(record.outcome)}**")]
    rows += [(label, escaped(value)) for label, value in summary.facts(record)]
    for name, value, is_default in summary.parameters(record):
        note = " (default)" if is_default else ""
        rows.append((f"Parameter {code(name)}", f"{code(value)}{note}"))
    return table(("", ""), rows)


def _results(record: Record) -> Iterator[str]:
    if not record.results:
        return
    yield "## Results"
    rows = [(code(name), _result_brief(result)) for name, result in record.results.items()]
    yield table(("Name", "Value"), rows)
    for name, result in record.results.items():
        if summary.is_table(result):
            columns, found = result.value["columns"], result.value["rows"][:TABLE_ROWS]
            yield f"{code(name)}, {summary.row_count(result.value, len(found))}:"
            yield table(
                [escaped(one_line(str(column))) for column in columns],
                [[escaped(one_line(_shown(v))) for v in row] for row in found],
            )
        elif result.kind == "display" and isinstance(result.value, Mapping):
            yield f"{code(name)}:"
            yield _output(display_block(result.value, "markdown"))


def _result_brief(result: Result) -> str:
    if summary.is_table(result):
        return f"table of {summary.row_count(result.value, len(result.value['rows']))}"
    if result.kind == "display" and isinstance(result.value, Mapping):
        return "shown below"
    return code(summary.brief_json(result.value))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else summary.brief_json(value)


def _cell(cell: CellRecord, language: str) -> Iterator[str]:
    if cell.kind == "markdown":
        yield _contained(_with_attachments(cell))
        return
    if cell.kind != "code":
        yield fenced(plain(cell.source))
        return
    count = f"**In [{cell.execution_count}]** " if cell.execution_count is not None else ""
    title = f"**{escaped(one_line(cell.title))}** " if cell.title.strip() else ""
    duration = summary.took(cell.duration) if cell.status not in ("not run", "skipped") else ""
    status = summary.worded(cell.status) + (f", {duration}" if duration else "")
    yield f"{count}{title}*{status}*"
    yield fenced(plain(cell.source), re.sub(r"[^\w+#.-]", "", language))
    yield from map(_output, cell_blocks(cell, "markdown"))


def _calls(lines: Iterable[tuple[str, str]]) -> str:
    """What a cell asked of the engine."""
    rows = [f"- {code(labelled(kind, text))}" for kind, text in lines]
    return "\n".join(["Tool calls:", "", *rows]) if rows else ""


def _name(record: Record, cell: CellRecord) -> str:
    if cell.title.strip():
        return f"the cell {code(one_line(cell.title))}"
    return f"cell {record.cells.index(cell)}"


def _output(block: OutputBlock) -> str:
    """One output: a picture if it has one, else the text that says most."""
    match block.kind:
        case "image":
            alt = escaped(one_line(block.text or "figure")[:100])
            return f"![{alt}]({data_uri(block.mime, block.payload)})"
        case "markdown":
            return _set_apart(block.text)
        case "json" | "latex":
            return _capped(block.text, block.kind)
        case "result":
            return f"*result {code(block.text)}*"
        case "other":
            return f"*an output of type {code(block.text)}: see the notebook*"
    return _capped(block.text)


def _capped(text: str, language: str = "") -> str:
    short = shortened(text, OUTPUT_LINES)
    if not short.omitted and not short.head.strip():
        return ""
    return fenced(plain(short.text), language)


def fenced(text: str, language: str = "") -> str:
    runs = re.findall(r"`{3,}", text)
    fence = "`" * (max(map(len, runs)) + 1 if runs else 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _contained(text: str) -> str:
    """Markdown as it is, unless it would swallow what follows: an open fence or comment."""
    text = text.strip("\n")
    if len(text) > sanitised_html.MARKDOWN_LIMIT:
        return fenced(text, "markdown")
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(f"{scrubbed(text)}\n\n{_SENTINEL}")
    closed = len(tokens) >= 3 and tokens[-2].content == _SENTINEL and tokens[-2].level == 1
    return text if closed else fenced(text, "markdown")


def _set_apart(text: str) -> str:
    """What a cell displayed, in a quotation: our own lines never stand in one, so none of its
    lines can pass for a call or an answer."""
    text = plain(text).strip("\n")
    return quotation(text) if stays(text) else fenced(text, "markdown")


def quotation(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def stays(text: str) -> bool:
    """Whether Markdown stays where it is put. HTML in it could end a quotation or a table, or hide
    what follows, wherever it is shown as HTML; a footnote goes to the end of the page."""
    if _FOOTNOTE.search(text):
        return False
    if not _TAG.search(text):
        return True
    if len(text) > sanitised_html.MARKDOWN_LIMIT:
        return False
    from markdown_it import MarkdownIt

    quoted = quotation(text)
    # A bar ends a span of code in a table, and nowhere else; not all who read Markdown know tables.
    for parser in (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table")):
        for token in parser.parse(quoted):
            tags = [one for one in token.children or () if one.type == "html_inline"]
            if token.type == "html_block" or not all(_HARMLESS.fullmatch(t.content) for t in tags):
                return False
    return True


def _with_attachments(cell: CellRecord) -> str:
    text = cell.source
    for name, bundle in cell.attachments.items():
        found = picture(bundle) if isinstance(bundle, Mapping) else None
        if found is not None:
            text = text.replace(f"(attachment:{name})", f"({data_uri(*found)})")
    return text


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def escaped(text: str) -> str:
    """One line of text in which nothing is Markdown, also in a cell of a table."""
    return _SPECIAL.sub(r"\\\1", plain(text).replace("\n", " "))


def code(text: str) -> str:
    """Inline code that also stands in a table cell."""
    text = plain(text).replace("\n", " ")
    # A pipe is escaped in a table, also in code; forges disagree on one behind a backslash.
    text = text.replace("\\|", "\\\u200b|").replace("|", "\\|")
    runs = re.findall(r"`+", text)
    ticks = "`" * (max(map(len, runs)) + 1 if runs else 1)
    space = " " if runs or not text.strip() else ""
    return f"{ticks}{space}{text}{space}{ticks}"
