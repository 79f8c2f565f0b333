"""Untrusted HTML and Markdown, cleaned so that it can only be looked at.

Two policies. A Markdown cell is part of the task, which a person reviewed: its links stay. An
output is whatever the code produced: it loses every address, id and class, so that it can neither
call out nor dress up as a part of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

from ..text import scrubbed
from .images import checked, data_uri, picture

if TYPE_CHECKING:
    from markdown_it.token import Token

_TAGS = """
    a abbr b blockquote br caption cite code col colgroup dd del details dfn div dl dt em figcaption
    figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strong sub
    summary sup table tbody td tfoot th thead tr u ul var wbr
"""
# Their text is code or is meant for a browser, not for a reader.
_GONE = """
    script style iframe object embed template noscript svg math form select textarea button title
    head video audio canvas
"""
_TABLE = {"align", "valign", "colspan", "rowspan", "width", "height", "scope"}
_ATTRIBUTES: dict[str, set[str]] = {
    "*": {"style", "title", "dir"},
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "details": {"open"},
    "table": {"align", "width"},
    "td": _TABLE,
    "th": _TABLE,
    "col": {"span", "width"},
    "colgroup": {"span"},
}
# Only what stays inside its own box: no position, margin, transform, float or z-index.
_PROPERTIES = """
    color background-color font-weight font-style font-family text-align text-decoration
    vertical-align white-space border border-collapse border-color border-style border-width
    border-top border-bottom border-left border-right padding width min-width max-width
"""
_STYLES = frozenset(_PROPERTIES.split())
_DECLARATION = re.compile(r"[-\w\s#.,%'\"+]*(?:(?:rgb|rgba|hsl|hsla)\([\d\s.,%/]*\))?[\w\s]*$")
# The time both parsers take grows with the square of some nestings: past these, text will do.
_HTML_LIMIT, _DEPTH_LIMIT, MARKDOWN_LIMIT = 5_000_000, 2_000, 100_000
_TABLE_LIMIT = 1_000_000
# Tags that need no end tag: many of them are long, not deep.
_FLAT = frozenset(
    ["br", "hr", "img", "col", "wbr", "input", "p", "li", "dt", "dd", "tr", "td", "th"]
)
_NESTING = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_LINKS = ("https://", "http://", "mailto:", "#")
_VISIBLE = re.compile(r"<(?:img|hr)\b|>\s*[^<\s]|^\s*[^<\s]")
_COLOURS = re.compile(r"""style="[^"]*color\s*:""")


def output_html(text: str) -> str:
    """An HTML output, or '' if nothing to look at is left of it."""
    if _is_too_much(text):
        return ""
    return _visible(_clean(text, links=False))


def is_coloured(cleaned: str) -> bool:
    """Whether it brings its own colours, which were chosen for white paper."""
    return _COLOURS.search(cleaned) is not None


def markdown(
    text: str, attachments: Mapping[str, Any] | None = None, *, links: bool, without_title: str = ""
) -> str:
    """Markdown as HTML. `without_title`: leave out a first heading that says just this."""
    if len(text) > MARKDOWN_LIMIT:
        import html

        return f"<pre>{html.escape(scrubbed(text), quote=False)}</pre>"
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # Pictures are checked further down, more strictly than the parser does.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    tokens = parser.parse(scrubbed(text))
    if without_title and len(tokens) > 1 and tokens[0].type == "heading_open":
        tokens = tokens[3:] if tokens[1].content.strip() == without_title else tokens
    for token in tokens:
        for child in token.children or ():
            if child.type == "image":
                _show_or_name(child, attachments or {})
    return _clean(parser.renderer.render(tokens, parser.options, {}), links=links)


def text(html_text: str) -> str:
    """The words of an HTML output."""
    if _is_too_much(html_text):
        return ""
    import html

    import nh3

    # A row of a table is a line, however its cells are laid out in the source.
    spaced = re.sub(r"(?i)\s*<(?=/?(?:td|th)\b)", " <", scrubbed(html_text))
    spaced = re.sub(r"(?i)<(?=/?tr\b)", "\n<", spaced)
    spaced = re.sub(r"(?i)<(?=/?(?:br|p|div|li|h[1-6])\b)", " <", spaced)
    bare = nh3.clean(spaced, tags=set(), clean_content_tags=set(_GONE.split()))
    lines = (" ".join(line.split()) for line in html.unescape(bare).split("\n"))
    return "\n".join(line for line in lines if line)


def _is_too_much(html_text: str) -> bool:
    if len(html_text) > _HTML_LIMIT:
        return True
    depth = 0
    unclosed: Counter[str] = Counter()
    for end, name in _NESTING.findall(html_text):
        tag = name.lower()
        if not end and tag not in _FLAT:
            unclosed[tag] += 1
            depth += 1
        elif end and unclosed[tag]:
            unclosed[tag] -= 1
            depth -= 1
        if depth > _DEPTH_LIMIT:
            return True
    return False


def _show_or_name(image: Token, attachments: Mapping[str, Any]) -> None:
    """An attached or embedded picture is shown; one from elsewhere leaves its description."""
    src = str(image.attrGet("src") or "")
    if src.startswith("attachment:"):
        from urllib.parse import unquote

        bundle = attachments.get(unquote(src.removeprefix("attachment:")))
        found = picture(bundle) if isinstance(bundle, Mapping) else None
        src = data_uri(*found) if found else ""
    if checked(src):
        image.attrSet("src", src)
        return
    image.type, image.tag, image.children = "text", "", None
    image.content = f"[image: {image.content or image.attrGet('src') or 'no description'}]"


def _clean(html_text: str, *, links: bool) -> str:
    import nh3

    def keep(tag: str, name: str, value: str) -> str | None:
        if name == "style":
            return _style(value)
        if name == "src":
            return checked(value)
        if name == "href":
            return value if links and value.lower().startswith(_LINKS) else None
        return value

    return nh3.clean(
        scrubbed(html_text),
        tags=set(_TAGS.split()),
        clean_content_tags=set(_GONE.split()),
        attributes=_ATTRIBUTES,
        attribute_filter=keep,
        allowed_classes={"table": {"dataframe"}},
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer nofollow",
    )


def _style(value: str) -> str | None:
    kept = []
    for declaration in value.split(";"):
        name, _, said = declaration.partition(":")
        name, said = name.strip().lower(), said.strip()
        if name in _STYLES and said and len(said) < 200 and _DECLARATION.match(said):
            kept.append(f"{name}: {said}")
    return "; ".join(kept) or None


def _visible(cleaned: str) -> str:
    return cleaned if _VISIBLE.search(cleaned) else ""


class _TableReader(HTMLParser):
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


def table_rows(html_text: str) -> tuple[tuple[str, ...], ...]:
    """The rows of HTML that is one table, such as a data frame's; else nothing."""
    if "<table" not in html_text or len(html_text) > _TABLE_LIMIT:
        return ()
    reader = _TableReader()
    reader.feed(html_text)
    reader.close()
    rows = [row for row in reader.rows if row]
    width = max(map(len, rows), default=0)
    if reader.tables != 1 or reader.other or not width:
        return ()
    return tuple((*row, *[""] * (width - len(row))) for row in rows)
