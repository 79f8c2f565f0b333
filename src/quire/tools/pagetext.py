"""An HTML page as simple Markdown: what a person reads, without what surrounds it.

Also run by path, standard library only:  python -I -S pagetext.py
The request is JSON on stdin: `html`, `url`, and `limit`, how many characters are wanted.
[title, text] on stdout. Some pages take html.parser for ever: a process can be ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import sys
from html.parser import HTMLParser
from urllib.parse import urljoin


def _names(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_SKIPPED = _names(
    "script style noscript template svg math iframe object nav footer aside form button select",
    "textarea canvas audio video head",
)
_BLOCKS = _names(
    "p div section article main header ul ol table tr blockquote pre figure figcaption dl dt dd hr",
    "h1 h2 h3 h4 h5 h6 li br address details summary",
)
_VOID = _names("area base br col embed hr img input link meta source track wbr")
_DEEPEST = 2_000  # open elements that are remembered


class PageText(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.url = url
        self.title = ""
        self.parts: list[str] = []
        self.skipped = 0  # how many elements deep we are in what is left out
        self.open: list[str] = []
        self.links: list[str] = []
        self.in_title = False
        self.pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_title = tag == "title"  # one that is never closed is closed by what follows
        if tag in _SKIPPED:
            self.skipped += 1
        if tag not in _VOID and len(self.open) < _DEEPEST:
            self.open.append(tag)
        if self.skipped:
            return
        if tag in _BLOCKS:
            self._block(tag)
        if tag == "a":
            target = dict(attrs).get("href") or ""
            self.links.append("" if target.startswith(("#", "javascript:")) else target)
            self.parts.append("[" if self.links[-1] else "")
        elif tag in ("strong", "b"):
            self.parts.append("**")
        elif tag == "code" and not self.pre:
            self.parts.append("`")
        elif tag in ("td", "th"):
            self.parts.append(" | ")

    def _block(self, tag: str) -> None:
        if tag == "br":
            self.parts.append("\n")
        elif tag == "li":
            depth = max(0, sum(one in ("ul", "ol") for one in self.open[-20:]) - 1)
            self.parts.append(f"\n{'  ' * depth}- ")
        elif tag in ("tr", "dt", "dd"):
            self.parts.append("\n")
        elif tag[0] == "h" and tag[1:].isdigit():
            self.parts.append(f"\n\n{'#' * int(tag[1:])} ")
        elif tag == "pre":
            self.pre += 1
            self.parts.append("\n\n```\n")
        else:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self.in_title = False
        if tag not in self.open:
            return
        while self.open:
            last = self.open.pop()
            self._close(last)
            if last == tag:
                break

    def _close(self, tag: str) -> None:
        if tag in _SKIPPED:
            self.skipped = max(0, self.skipped - 1)
            return
        if self.skipped:
            return
        if tag == "a" and self.links:
            target = self.links.pop()
            self.parts.append(f"]({_joined(self.url, target)})" if target else "")
        elif tag in ("strong", "b"):
            self.parts.append("**")
        elif tag == "code" and not self.pre:
            self.parts.append("`")
        elif tag == "pre":
            self.pre = max(0, self.pre - 1)
            self.parts.append("\n```\n\n")
        elif tag in _BLOCKS and tag not in ("li", "tr", "dt", "dd"):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title = f"{self.title}{data}"[:500]
        elif not self.skipped:
            self.parts.append(data if self.pre else re.sub(r"\s+", " ", data))

    def text(self) -> str:
        found = "".join(self.parts)
        found = re.sub(r"[ \t]+\n", "\n", found)
        found = re.sub(r"\n[ \t]+(?=[^\s-])", "\n", found) if "```" not in found else found
        return re.sub(r"\n{3,}", "\n\n", found).strip()


def _joined(url: str, target: str) -> str:
    try:
        return urljoin(url, target)
    except ValueError:
        return target


def page_text(html: str, url: str) -> tuple[str, str]:
    """The title, and the text."""
    page = PageText(url)
    page.feed(html)
    page.close()
    return " ".join(page.title.split()), page.text()


def cut(text: str, limit: int) -> str:
    """Head and tail, and how much is missing between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    end = len(text) - tail
    return f"{text[:head]}\n[quire: {end - head:,} characters were cut here]\n{text[end:]}"


def main() -> None:
    # Not longer than whoever wants to know.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    request = json.load(sys.stdin)
    if os.getppid() != request["parent"]:
        return
    title, text = page_text(request["html"], request["url"])
    sys.stdout.write(json.dumps([title, cut(text, request["limit"])]))


if __name__ == "__main__":
    main()
