"""A record as one HTML page: no network, no script, light and dark.

Whatever the notebook printed or displayed is data from a stranger. It is escaped here or cleaned by
`sanitise`, and the page forbids itself every connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from ..record import summary
from ..record.cell_calls import by_cell, labelled
from ..record.record import CellRecord, Record, Result
from ..record.results import QUIRE_MIME, SCRAPBOOK_PREFIX
from ..text import coloured, plain, pretty, scrubbed, shortened, text_of
from . import sanitised_html
from .images import data_uri, picture

OUTPUT_LINES = 2_000
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
        name = summary.one_line(cell.title) or f"cell {record.cells.index(cell)}"
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
    notes = [f"<li>{escape(summary.one_line(text))}</li>" for text in record.warnings]
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
        return _bundle(result.value, {})
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
    title = escape(summary.one_line(cell.title))
    return (
        f'<section class="cell {_class(cell.status)}" id="cell-{escape(cell.id)}">\n'
        f'<details open><summary><span class="count">{count}</span>'
        f'<span class="title">{title}</span>'
        f'<span class="time">{duration}</span>{_badge(cell.status)}</summary>\n'
        f'<pre class="source"><code>{highlight(plain(cell.source))}</code></pre></details>\n'
        f"{''.join(_outputs(cell))}{calls}</section>\n"
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


def _outputs(cell: CellRecord) -> Iterator[str]:
    seen_error = False
    for output in cell.outputs:
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            yield _capped(text_of(output.get("text", "")), name)
        elif kind == "error":
            seen_error = True
            traceback = output.get("traceback")
            lines = traceback if isinstance(traceback, list | tuple) else ()
            yield _error(str(output.get("ename", "")), str(output.get("evalue", "")), lines)
        elif isinstance(output.get("data"), Mapping):
            metadata = output.get("metadata")
            known = metadata if isinstance(metadata, Mapping) else {}
            yield f'<div class="output">{_bundle(output["data"], known)}</div>\n'
    if cell.error is not None and not seen_error:
        yield _error(cell.error.name, cell.error.value, cell.error.traceback)


def _error(name: str, value: str, traceback: Iterable[Any]) -> str:
    return _capped("\n".join(map(str, traceback)) or f"{name}: {value}", "error")


def _capped(text: str, look: str) -> str:
    short = shortened(text, OUTPUT_LINES)
    if not plain(short.head).strip() and not short.omitted:
        return ""
    shown = coloured(short.head)
    if short.omitted:
        note = escape(f" {short.note}" if short.note else "")
        omitted = f"… {short.omitted:,} lines omitted …{note}"
        shown += f'\n<span class="omitted">{omitted}</span>\n{coloured(short.tail)}'
    return f'<pre class="output {look}">{shown}</pre>\n'


def _bundle(data: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """One output, in the richest form that is safe and has something to look at."""
    if "text/html" in data:
        cleaned = sanitised_html.output_html(text_of(data["text/html"]))
        if cleaned:
            paper = " paper" if sanitised_html.is_coloured(cleaned) else ""
            return f'<div class="rich{paper}">{cleaned}</div>'
    found = picture(data)
    if found is not None:
        return _image(*found, text_of(data.get("text/plain", "")), metadata)
    if "text/markdown" in data:
        shown = sanitised_html.markdown(text_of(data["text/markdown"]), links=False)
        return f'<div class="rich text">{shown}</div>'
    if "application/json" in data:
        return _capped(pretty(data["application/json"]), "plain")
    for mime in ("text/latex", "text/plain"):
        if mime in data:
            return _capped(text_of(data[mime]), "plain")
    names = [
        str(payload["name"])
        for mime, payload in data.items()
        if (mime == QUIRE_MIME or mime.startswith(SCRAPBOOK_PREFIX))
        and isinstance(payload, Mapping)
        and "name" in payload
    ]
    if names:
        shown = ", ".join(f"<code>{escape(plain(name))}</code>" for name in names)
        return f'<p class="note">result {shown}</p>'
    kinds = escape(plain(", ".join(map(str, data))))
    return f'<p class="note">An output of type {kinds}: open the notebook to see it.</p>'


def _image(mime: str, payload: str, text: str, metadata: Mapping[str, Any]) -> str:
    alt = escape(summary.one_line(text)[:200] or "figure")
    said = metadata.get(mime)
    sizes = "".join(
        f' {name}="{said[name]}"'
        for name in ("width", "height")
        if isinstance(said, Mapping) and type(said.get(name)) is int and 0 < said[name] < 10_000
    )
    return f'<img src="{data_uri(mime, payload)}" alt="{alt}"{sizes}>'
