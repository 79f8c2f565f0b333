"""The outputs of a cell in a logbook's record: text in fences, tables, pictures beside it.

`told` of each goes into the comment above them, so that they can be read again.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..record.results import QUIRE_MIME, SCRAPBOOK_PREFIX
from ..record.summary import one_line
from ..render import sanitised_html
from ..render.html_tables import markdown_table
from ..render.images import picture
from ..render.markdown import fenced, quotation, stays, table
from ..text import plain, pretty, scrubbed, shortened, text_of

LINES = 200
_ROWS = 50
_SUFFIX = {
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_ACTIVE = re.compile(r"<script|<foreignObject|\son\w+\s*=|javascript:|<!ENTITY|<iframe", re.I)
_TABLE = re.compile(r"\| .*\|\n\|(?: --- \|)+(?:\n\| .*\|)*\Z")
_NO_TEXT = re.compile(r"<IPython\.core\.display\.\w+ object>$")


@dataclass(frozen=True, slots=True)
class Shown:
    """One output. `kind`: stdout, stderr, result, display, json, latex, error, markdown, source,
    table, picture. `source` is Markdown that would not stay in a quotation."""

    kind: str
    body: str
    told: Any
    data: bytes = b""
    suffix: str = ""

    def text(self, stem: str) -> str:
        match self.kind:
            case "picture":
                return f"![{self.body}]({stem}.{self.suffix})"
            case "table":
                return self.body
            case "markdown":
                return quotation(self.body)
            case "source":
                return fenced(self.body, "markdown")
            case "json" | "latex":
                return fenced(self.body, self.kind)
        return fenced(self.body, f"text {self.kind}")


def files_of(outputs: list[Shown], stem: str) -> dict[str, bytes]:
    return {
        f"{stem}-{at}.{one.suffix}": one.data
        for at, one in enumerate(outputs, 1)
        if one.kind == "picture"
    }


def shown(output: Mapping[str, Any]) -> list[Shown]:
    """How an output is shown; nothing where it only carries a result."""
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return _stream(name, text_of(output.get("text", "")))
    if kind == "error":
        traceback = output.get("traceback") or ()
        said = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        body = capped("\n".join(map(str, traceback)) or said)
        told = ["error", plain(str(output.get("ename", ""))), plain(str(output.get("evalue", "")))]
        return [Shown("error", body, told)]
    data = output.get("data")
    if not isinstance(data, Mapping):
        return []
    return _bundle(data, "result" if kind == "execute_result" else "display")


def _stream(name: str, text: str) -> list[Shown]:
    if not text:
        return []
    ends = text.endswith("\n")
    body = capped(text.removesuffix("\n"))
    return [Shown(name, body, [name] if ends else [name, "open"])]


def capped(text: str) -> str:
    text = plain(text)
    if text.count("\n") < LINES:
        return text
    short = shortened(text, LINES - 8)
    notes = [f"… {short.omitted:,} lines omitted …", *([short.note] if short.note else [])]
    return plain("\n".join([short.head, *notes, short.tail]))


def _bundle(data: Mapping[str, Any], kind: str) -> list[Shown]:
    """The form that says most to a reader of Markdown."""
    found = picture(data)
    if found is not None and (shown_as := _picture(data, *found)):
        return [shown_as]
    glued = data.get(QUIRE_MIME)
    if isinstance(glued, Mapping) and glued.get("kind") == "table":
        made = _glued_table(glued.get("value"))
        return [Shown("table", made, ["table"])] if made else []
    if "text/markdown" in data:
        text = scrubbed(capped(text_of(data["text/markdown"]))).strip("\n")
        return [_markdown(text)]
    if "text/html" in data and (made := markdown_table(text_of(data["text/html"]), _ROWS)):
        return [Shown("table", made, ["table"])]
    if "application/json" in data:
        return [Shown("json", capped(pretty(data["application/json"])), ["json"])]
    if "text/latex" in data:
        return [Shown("latex", capped(text_of(data["text/latex"])), ["latex"])]
    return _text(data, kind)


def _markdown(text: str) -> Shown:
    rows = "\n".join(line.rstrip() for line in text.split("\n"))
    kind = "source" if not stays(rows) else "table" if _TABLE.match(rows) else "markdown"
    return Shown(kind, rows, [kind])


def _text(data: Mapping[str, Any], kind: str) -> list[Shown]:
    text = text_of(data.get("text/plain", ""))
    if "text/html" in data and (not text or _NO_TEXT.match(text)):
        text = sanitised_html.text(text_of(data["text/html"])) or text
    carried = any(m == QUIRE_MIME or m.startswith(SCRAPBOOK_PREFIX) for m in data)
    if text and not carried:
        return [Shown(kind, capped(text), [kind])]
    if carried or not data:
        return []  # a result: it stands below the outputs
    said = f"an output of type {', '.join(map(str, data))}: see the notebook"
    return [Shown(kind, capped(said), [kind])]


def _picture(data: Mapping[str, Any], mime: str, payload: str) -> Shown | None:
    raw = base64.b64decode(payload)
    if mime == "image/svg+xml" and _ACTIVE.search(raw.decode("utf-8", "replace")):
        return None  # opened by itself it would run
    alt = one_line(text_of(data.get("text/plain", "")))[:100] or "figure"
    alt = re.sub(r"[\[\]()\\`<>!*_|~]", "", alt).strip() or "figure"
    return Shown("picture", alt, ["picture", mime], raw, _SUFFIX[mime])


def _glued_table(value: Any) -> str:
    if not isinstance(value, Mapping) or not isinstance(value.get("columns"), list):
        return ""
    rows = [row for row in value.get("rows", ()) if isinstance(row, list)]
    return rows_as_table([str(c) for c in value["columns"]], rows)


def rows_as_table(columns: list[str], rows: list[list[Any]]) -> str:
    body = [[cell_text(v) for v in row] for row in rows[:_ROWS]]
    if len(rows) > _ROWS:
        more = [f"… {len(rows) - _ROWS:,} more rows", *[""] * (len(columns) - 1)]
        body.append(more[: len(columns)])
    return table([cell_text(c) for c in columns], body) if columns else ""


def cell_text(value: Any) -> str:
    """A value in a cell of a table."""
    text = "" if value is None else value if isinstance(value, str) else pretty(value)
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", one_line(text)) or " "
