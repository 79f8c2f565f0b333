"""The outputs of a cell in a logbook's record: text in fences, tables, pictures beside it.

`told` of each goes into the comment above them, so that they can be read again.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..render.blocks import OutputBlock, output_block
from ..render.markdown import escaped, fenced, quotation, stays, table
from ..text import one_line, plain, pretty, scrubbed, shortened

LINES = 200
_ROWS = 50
_SUFFIX = {
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_TABLE = re.compile(r"\| .*\|\n\|(?: --- \|)+(?:\n\| .*\|)*\Z")


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
    block = output_block(output, "logbook")
    if block is None:
        return []
    match block.kind:
        case "stdout" | "stderr":
            return _stream(block.kind, block.text)
        case "error":
            said = [plain(str(output.get(key, ""))) for key in ("ename", "evalue")]
            return [Shown("error", capped(block.text), ["error", *said])]
        case "image":
            return [_picture(block)]
        case "table":
            made = rows_as_table(block.rows[0], block.rows[1:])
            return [Shown("table", made, ["table"])] if made else []
        case "markdown":
            return [_markdown(scrubbed(capped(block.text)).strip("\n"))]
        case "json" | "latex":
            return [Shown(block.kind, capped(block.text), [block.kind])]
    if block.has_result or not block.text:
        return []  # a result: it stands below the outputs
    text = block.text
    if block.kind == "other":
        text = f"an output of type {text}: see the notebook"
    kind = "result" if block.is_value else "display"
    return [Shown(kind, capped(text), [kind])]


def _stream(name: str, text: str) -> list[Shown]:
    if not text:
        return []
    ends = text.endswith("\n")
    body = capped(text.removesuffix("\n"))
    return [Shown(name, body, [name] if ends else [name, "open"])]


def capped(text: str) -> str:
    text = plain(text)
    return text if text.count("\n") < LINES else plain(shortened(text, LINES - 8).text)


def _markdown(text: str) -> Shown:
    rows = "\n".join(line.rstrip() for line in text.split("\n"))
    kind = "source" if not stays(rows) else "table" if _TABLE.match(rows) else "markdown"
    return Shown(kind, rows, [kind])


def _picture(block: OutputBlock) -> Shown:
    raw = base64.b64decode(block.payload)
    alt = one_line(block.text)[:100] or "figure"
    alt = re.sub(r"[\[\]()\\`<>!*_|~]", "", alt).strip() or "figure"
    return Shown("picture", alt, ["picture", block.mime], raw, _SUFFIX[block.mime])


def rows_as_table(columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    body = [[cell_text(v) for v in row] for row in rows[:_ROWS]]
    if len(rows) > _ROWS:
        more = [f"… {len(rows) - _ROWS:,} more rows", *[""] * (len(columns) - 1)]
        body.append(more[: len(columns)])
    return table([cell_text(c) for c in columns], body) if columns else ""


def cell_text(value: Any) -> str:
    """A value in a cell of a table."""
    text = "" if value is None else value if isinstance(value, str) else pretty(value)
    return escaped(one_line(text)) or " "
