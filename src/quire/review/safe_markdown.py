"""What people wrote, as Markdown that can do nothing on a forge, and for a terminal.

To a forge the words of a notebook are a stranger's: they may neither become markup nor name people,
issues or addresses. They are escaped, and what a forge would find in them is broken by a space
without width. Bold, italic, code and lists are kept: written anew, from what they were read as.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..record.summary import one_line
from ..render.markdown import code, fenced
from ..text import plain

if TYPE_CHECKING:
    from markdown_it.token import Token

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~$&^{}])")
_OPENING = re.compile(r"^([-+=:]|\d{1,9}(?=[.)]))")
_FOUND = re.compile(r"@(?=\w)|#(?=\w)|!(?=\d)|\bGH-(?=\d)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_BREAK = "\u200b"
_SPACES = re.compile(r"[\x1c-\x1f\x85\u2028\u2029]")  # to Python, not to Markdown
_MARKS = {"strong_open": "**", "em_open": "*"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!-- quire: .* -->\s*")
_ESCAPED = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)|\\([!-/:-@\[-`{-~])|\u200b")


def prose(text: str) -> str:
    """One line of text that stays text."""
    return _begun(_words(one_line(text)))


def blocks(text: str, limit: int) -> Iterator[str]:
    """The paragraphs and lists of a Markdown text, without its headings; `limit` in characters."""
    from markdown_it import MarkdownIt

    text = _SPACES.sub(" ", plain(text))[: 10 * limit]
    writer = _Writer(limit)
    for token in MarkdownIt("commonmark").parse(text):
        yield from writer.take(token)
        if writer.left <= 0:
            break
    yield from writer.flush()


class _Writer:
    """Blocks from the tokens of a parser. The lines of a list are one block."""

    def __init__(self, limit: int) -> None:
        self.left = limit
        self.lists: list[str] = []  # the marks of the lists we are in: `-`, `1.`
        self.rows: list[str] = []
        self.mark = ""  # of an item that has not said anything yet
        self.in_heading = False

    def take(self, token: Token) -> Iterator[str]:
        kind = token.type
        if kind in ("heading_open", "heading_close"):
            self.in_heading = kind == "heading_open"
        elif kind in ("bullet_list_open", "ordered_list_open"):
            self.lists.append("-" if kind.startswith("bullet") else "1.")
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self.lists.pop()
            if not self.lists:
                yield from self.flush()
        elif kind == "list_item_open":
            # A number is kept: the writer of a list may begin where they like.
            self.mark = f"{token.info}." if token.info.isascii() and token.info else self.lists[-1]
        elif kind in ("fence", "code_block"):
            yield from self.flush()
            yield fenced(self._cut(token.content.rstrip("\n")))
        elif kind == "html_block":
            yield from self._line(_begun(_words(self._cut(one_line(token.content)))))
        elif kind == "inline" and not self.in_heading:
            yield from self._line(_begun(self._inline(token.children or ()).strip()))

    def flush(self) -> Iterator[str]:
        rows, self.rows = self.rows, []
        if rows:
            yield "\n".join(rows)

    def _line(self, words: str) -> Iterator[str]:
        if not words:
            return
        if not self.lists:
            yield words
            return
        indent = "".join(" " * (len(mark) + 1) for mark in self.lists[:-1])
        mark, self.mark = self.mark or " " * len(self.lists[-1]), ""
        self.rows.append(f"{indent}{mark} {words}")

    def _inline(self, tokens: Sequence[Token]) -> str:
        out: list[str] = []
        marks: list[str] = []  # that are open
        for token in tokens:
            if self.left <= 0:
                break
            if token.type in _MARKS:
                marks.append(_MARKS[token.type])
                out.append(marks[-1])
            elif token.type in ("strong_close", "em_close"):
                _closed(out, marks.pop())
            elif token.type in ("softbreak", "hardbreak"):
                out.append(" ")
            elif token.type == "code_inline":
                # Only in a table a pipe is escaped.
                out.append(code(self._cut(token.content)).replace("\\|", "|"))
            elif token.content:
                out.append(_words(self._cut(token.content)))
        while marks:
            _closed(out, marks.pop())
        return "".join(out)

    def _cut(self, text: str) -> str:
        room, self.left = self.left, self.left - len(text)
        return text if self.left >= 0 else f"{text[: max(0, room)]}…"


def _closed(out: list[str], mark: str) -> None:
    if out[-1] == mark:
        out.pop()  # marks around nothing would be a line across the page
    else:
        out.append(mark)


def _words(text: str) -> str:
    text = _FOUND.sub(lambda found: found[0] + _BREAK, re.sub(r"\s+", " ", text))
    return _SPECIAL.sub(r"\\\1", text)


def _begun(line: str) -> str:
    """A line that begins neither a list nor anything else."""
    return _OPENING.sub(lambda f: f"{f[1]}\\" if f[1].isdigit() else f"\\{f[1]}", line)


def on_terminal(text: str) -> list[str]:
    """Lines of a proposal's Markdown, without the escapes and marks that are for forges only.

    A return ends a line, as it does in Markdown: nothing is written over.
    """
    out: list[str] = []
    fence = ""
    for line in plain(text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n").split("\n"):
        opening = _FENCE.match(line)
        if fence:
            if opening and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opening:
            fence = opening[1]
        elif _COMMENT.fullmatch(line):
            continue
        else:
            line = _ESCAPED.sub(_unescaped, line)
        if line.strip() or (out and out[-1]):
            out.append(line.rstrip())
    while out and not out[-1]:
        out.pop()
    return out


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return found[0].replace("\\|", "|").replace(_BREAK, "")
    return found[2] or ""
