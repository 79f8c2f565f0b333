"""The table in a piece of HTML, such as a data frame shows itself, as Markdown."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from ..record.summary import one_line
from .markdown import table

LARGEST = 1_000_000  # characters of HTML that are looked at


class _Reader(HTMLParser):
    """Collects the rows of the first table. Whatever else there is makes it no plain table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.cell: list[str] | None = None
        self.depth = 0
        self.tables = 0
        self.other = False
        self.style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables += 1
            self.depth += 1
        elif tag == "tr" and self.depth:
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.cell = []
            spans = {name: value for name, value in attrs if name in ("colspan", "rowspan")}
            self.other |= any(value not in (None, "1") for value in spans.values())
        elif tag == "style":
            self.style = True
        elif tag in ("br", "p", "div", "li") and self.cell is not None:
            self.cell.append(" ")
        elif tag in ("img", "svg", "script", "iframe", "form", "input", "video"):
            self.other = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.depth -= 1
        elif tag in ("td", "th") and self.cell is not None and self.rows:
            self.rows[-1].append("".join(self.cell))
            self.cell = None
        elif tag == "style":
            self.style = False

    def handle_data(self, data: str) -> None:
        if self.cell is not None:
            self.cell.append(data)


def markdown_table(html: str, most: int) -> str:
    """The table as Markdown, or an empty text where the HTML is something else."""
    if "<table" not in html or len(html) > LARGEST:
        return ""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    rows = [row for row in reader.rows if row]
    width = max(map(len, rows), default=0)
    if reader.tables != 1 or reader.other or not width or len(rows) < 1:
        return ""
    shown = [[_cell(text) for text in row] + [" "] * (width - len(row)) for row in rows]
    if len(shown) > most + 1:
        left = f"… {len(shown) - most - 1:,} more rows"
        shown = [*shown[: most + 1], [left, *[" "] * (width - 1)]]
    return table(shown[0], shown[1:])


def _cell(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", one_line(text)) or " "
