"""A record as one HTML page: no network, no script, light and dark.

Output is not trusted: it is escaped here or cleaned by `sanitised_html`, and the page's own policy
forbids every connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from ..record import summary
from ..record.cell_calls import by_cell, labelled
from ..record.record import CellRecord, Record, Result
from ..text import last_drawn, one_line, plain, scrubbed, shortened
from . import sanitised_html
from .blocks import OutputBlock, cell_blocks, display_block
from .images import data_uri

OUTPUT_LINES = 2_000
_COLOUR = re.compile(r"\x1b\[([0-9;:]{0,64})m")
TABLE_ROWS = 100
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)


def render(record: Record) -> str:
    title = summary.heading(record)
    body = [_header(record, title), _results(record), _cells(record, title)]
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{escape(title)} · {escape(summary.worded(record.outcome))}</title>
<style>
{_stylesheet()}</style>
</head>
<body>
<main>
{"".join(body)}</main>
</body>
</html>
"""
    return scrubbed(text)


def _stylesheet() -> str:
    return Path(__file__).with_name("page.css").read_text("utf-8")


def _badge(status: str) -> str:
    return f'<span class="badge {_class(status)}">{escape(summary.worded(status))}</span>'


def _class(status: str) -> str:
    return "s-" + status.replace(" ", "-").replace("_", "-")


def _header(record: Record, title: str) -> str:
    facts = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(plain(value))}</dd></div>"
        for label, value in summary.facts(record)
        if value
    )
    return (
        f"<header>\n<h1>{escape(title)} {_badge(record.outcome)}</h1>\n"
        f"{_failure(record)}"
        f'<dl class="facts">{facts}</dl>\n'
        f"{_parameters(record)}"
        f"{_notes(record)}</header>\n"
    )


def _failure(record: Record) -> str:
    cell, said = summary.failure(record)
    if not said:
        return ""
    where = ""
    if cell is not None:
        name = one_line(cell.title) or f"cell {record.cells.index(cell)}"
        where = f' in <a href="#cell-{escape(cell.id)}">{escape(name)}</a>'
    return f'<p class="failure {_class(record.outcome)}"><code>{escape(said)}</code>{where}</p>\n'


def _parameters(record: Record) -> str:
    rows = [
        f"<tr><th scope=row>{escape(plain(name))}</th><td><code>{escape(value)}</code>"
        f"{' <small>default</small>' if is_default else ''}</td></tr>"
        for name, value, is_default in summary.parameters(record)
    ]
    if not rows:
        return ""
    return _boxed("Parameters", f'<table class="pairs">{"".join(rows)}</table>')


def _notes(record: Record) -> str:
    notes = [f"<li>{escape(one_line(text))}</li>" for text in record.warnings]
    listed = f'<ul class="notes">{"".join(notes)}</ul>\n' if notes else ""
    return listed + _calls(by_cell(record).get("", []))


def _calls(lines: Iterable[tuple[str, str]]) -> str:
    """What a cell asked of the engine."""
    items = "".join(
        f'<li class="c-{kind}"><code>{escape(labelled(kind, text))}</code></li>'
        for kind, text in lines
    )
    if not items:
        return ""
    return f'<div class="calls"><h4>Tool calls</h4><ul>{items}</ul></div>\n'


def _boxed(title: str, content: str) -> str:
    return f'<section class="box"><h2>{title}</h2><div class="scroll">{content}</div></section>\n'


def _results(record: Record) -> str:
    if not record.results:
        return ""
    rows = [
        f"<tr><th scope=row>{escape(plain(name))}</th><td>{_result(result)}</td></tr>"
        for name, result in record.results.items()
    ]
    return _boxed("Results", f'<table class="pairs results">{"".join(rows)}</table>')


def _result(result: Result) -> str:
    if summary.is_table(result):
        return _result_table(result.value)
    if result.kind == "display" and isinstance(result.value, Mapping):
        return _display(display_block(result.value, "page"))
    return f"<code>{escape(summary.brief_json(result.value))}</code>"


def _result_table(value: Mapping[str, Any]) -> str:
    shown = value["rows"][:TABLE_ROWS]
    head = "".join(f"<th>{escape(plain(str(column)))}</th>" for column in value["columns"])
    body = "".join(f"<tr>{''.join(map(_table_cell, row))}</tr>" for row in shown)
    count = escape(summary.row_count(value, len(shown)))
    return (
        f'<div class="scroll"><table class="dataframe"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div><small>{count}</small>"
    )


def _table_cell(value: Any) -> str:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    text = value if isinstance(value, str) else summary.brief_json(value)
    return f"<td{' class=n' if numeric else ''}>{escape(plain(text))}</td>"


def _cells(record: Record, title: str) -> str:
    highlight = _highlighter(str(record.plan.get("language", "python")))
    calls = by_cell(record)
    out = []
    for number, cell in enumerate(record.cells):
        if cell.kind == "markdown":
            # The page's own heading already says it.
            known = title if number == 0 else ""
            text = sanitised_html.markdown(
                cell.source, cell.attachments, links=True, without_title=known
            ).strip()
            out.append(f'<section class="text">\n{text}\n</section>\n' if text else "")
        elif cell.kind == "code":
            out.append(_code_cell(cell, highlight, _calls(calls.get(cell.id, []))))
        else:
            source = escape(plain(cell.source), quote=False)
            out.append(f'<section class="text"><pre class="raw">{source}</pre></section>\n')
    return "".join(out)


def _code_cell(cell: CellRecord, highlight: Callable[[str], str], calls: str) -> str:
    count = f"[{cell.execution_count}]" if cell.execution_count is not None else "[ ]"
    ran = cell.status not in ("not run", "skipped")
    duration = escape(summary.took(cell.duration)) if ran else ""
    title = escape(one_line(cell.title))
    outputs = "".join(map(_output, cell_blocks(cell, "page")))
    return (
        f'<section class="cell {_class(cell.status)}" id="cell-{escape(cell.id)}">\n'
        f'<details open><summary><span class="count">{count}</span>'
        f'<span class="title">{title}</span>'
        f'<span class="time">{duration}</span>{_badge(cell.status)}</summary>\n'
        f'<pre class="source"><code>{highlight(plain(cell.source))}</code></pre></details>\n'
        f"{outputs}{calls}</section>\n"
    )


def _highlighter(language: str) -> Callable[[str], str]:
    """Pygments comes with IPython, but a page without colours is a page too."""
    try:
        from pygments import highlight  # type: ignore[import-untyped]
        from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
        from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
        from pygments.util import ClassNotFound  # type: ignore[import-untyped]
    except ImportError:
        return lambda code: escape(code, quote=False)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return lambda code: escape(code, quote=False)
    formatter = HtmlFormatter(nowrap=True, classprefix="h-")
    return lambda code: str(highlight(code, lexer, formatter)).rstrip("\n")


def _output(block: OutputBlock) -> str:
    if block.kind in ("stdout", "stderr", "error"):
        return _capped(block.text, block.kind)
    return f'<div class="output">{_display(block)}</div>\n'


def _display(block: OutputBlock) -> str:
    match block.kind:
        case "html":
            paper = " paper" if sanitised_html.is_coloured(block.text) else ""
            return f'<div class="rich{paper}">{block.text}</div>'
        case "image":
            return _image(block)
        case "markdown":
            shown = sanitised_html.markdown(block.text, links=False)
            return f'<div class="rich text">{shown}</div>'
        case "result":
            return f'<p class="note">result <code>{escape(plain(block.text))}</code></p>'
        case "other":
            kinds = escape(plain(block.text))
            return f'<p class="note">An output of type {kinds}: open the notebook to see it.</p>'
    return _capped(block.text, "plain")


def _capped(text: str, look: str) -> str:
    short = shortened(text, OUTPUT_LINES)
    if not plain(short.head).strip() and not short.omitted:
        return ""
    shown = coloured(short.head)
    if short.omitted:
        omitted = escape(" ".join(short.notes))
        shown += f'\n<span class="omitted">{omitted}</span>\n{coloured(short.tail)}'
    return f'<pre class="output {look}">{shown}</pre>\n'


def _image(block: OutputBlock) -> str:
    alt = escape(one_line(block.text)[:200] or "figure")
    sizes = "".join(f' {name}="{size}"' for name, size in block.size)
    return f'<img src="{data_uri(block.mime, block.payload)}" alt="{alt}"{sizes}>'


_NAMES = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
_MARKED = "marked"
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: _MARKED}
_OFF = {
    22: {"bold", "dim"}, 23: {"italic"}, 24: {"underline"}, 27: {_MARKED}, 39: {*_NAMES},
    49: {_MARKED},
}  # fmt: skip
_ORDER = (*_NAMES[1:7], "bold", "italic", "underline", "dim", _MARKED)


def coloured(text: str) -> str:
    """HTML, escaped, with spans for the colours. Each maps to one of six names that a light and a
    dark page can both show; a background of any colour is a mark."""
    look: set[str] = set()
    out = []
    for at, piece in enumerate(_COLOUR.split(last_drawn(scrubbed(text)))):
        if at % 2:
            look = _after(look, piece)
        elif shown := escape(plain(piece), quote=False):
            classes = " ".join(f"a-{name}" for name in _ORDER if name in look)
            out.append(f'<span class="{classes}">{shown}</span>' if classes else shown)
    return "".join(out)


def _after(look: set[str], codes: str) -> set[str]:
    numbers = iter([int(part or 0) for part in re.split("[;:]", codes)])
    for code in numbers:
        if code == 0:
            look = set()
        elif code in _ON:
            look = look | {_ON[code]}
        elif code in _OFF:
            look = look - _OFF[code]
        elif 30 <= code <= 37 or 90 <= code <= 97:
            look = look - {*_NAMES} | {_NAMES[code % 10]}
        elif 40 <= code <= 47 or 100 <= code <= 107:
            look = look | {_MARKED}
        elif code in (38, 48):
            name = _extended(numbers)
            look = look - {*_NAMES} | {name} if code == 38 else look | {_MARKED}
    return look


def _extended(numbers: Iterator[int]) -> str:
    """The name nearest to a colour of the 256 or of all."""
    kind = next(numbers, 0)
    if kind == 2:
        red, green, blue = (min(next(numbers, 0), 255) for _ in range(3))
        return _nearest(red, green, blue)
    number = next(numbers, 0) if kind == 5 else 0
    if number < 16:
        return _NAMES[number % 8]
    if number >= 232:
        return ""
    number = (number - 16) % 216
    return _nearest(*(51 * part for part in (number // 36, number // 6 % 6, number % 6)))


def _nearest(red: int, green: int, blue: int) -> str:
    top, bottom = max(red, green, blue), min(red, green, blue)
    if top - bottom < 40:
        return ""
    middle = (top + bottom) / 2
    bright = (red > middle) + 2 * (green > middle) + 4 * (blue > middle)
    return _NAMES[bright]
