"""A text of a bounded length, made of our own lines and of quotations that share what room is left.

Short quotations are told whole; the long ones get equal parts of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import QuireError
from ..next_steps import Hint
from ..text import MARK, cleaned, plain, quoted, shortened_line
from .excerpt import Excerpt, Whole, excerpt_around, excerpt_of, lines_of

NOTICE = 300  # characters kept free for saying what is missing
LEAST = 160  # characters that a quotation gets at least
OWN_LINE = 1_000
LAST_WORD = "… the rest is omitted: ask for less at once"


@dataclass(frozen=True, slots=True)
class Quotation:
    """`after` and `whole`: of a text whose middle is not at hand."""

    text: str
    most: int
    notice: Callable[[Excerpt], str]
    after: str | None = None
    whole: Whole | None = None

    def excerpt(self, room: int) -> Excerpt:
        if self.after is not None and self.whole is not None:
            return excerpt_around(self.text, self.after, self.whole, room)
        return excerpt_of(lines_of(self.text), room)

    def wants(self) -> int:
        rows = self.text.count("\n") + 1
        size = len(self.text) + rows * (len(MARK) + 1)
        # Escapes made visible are longer than they were.
        size += 0 if self.text.isascii() and self.text.isprintable() else len(self.text) // 8
        return min(self.most, size)


class Page:
    def __init__(self) -> None:
        self._parts: list[str | Quotation] = []

    def say(self, line: str) -> None:
        """A line of ours. What of it is a stranger's was made `inline` by whoever says it."""
        self._parts.append(shortened_line(cleaned(line).replace("\n", " "), OWN_LINE))

    def quote(
        self,
        text: str,
        most: int,
        notice: Callable[[Excerpt], str] = lambda cut: f"… {cut.omitted} omitted",
        *,
        after: str | None = None,
        whole: Whole | None = None,
    ) -> None:
        self._parts.append(Quotation(text, most, notice, after, whole))

    def text(self, limit: int) -> str:
        """Never longer than that."""
        own = sum(len(part) + 1 for part in self._parts if isinstance(part, str))
        asked = [part for part in self._parts if isinstance(part, Quotation)]
        room = limit - own
        for _ in range(4):
            rooms = iter(shared([one.wants() for one in asked], room))
            text = "\n".join(
                part if isinstance(part, str) else _rendered(part, next(rooms))
                for part in self._parts
            )
            if len(text) <= limit:
                return text
            room -= len(text) - limit
        return _cut(text, limit)


def _rendered(part: Quotation, room: int) -> str:
    found = part.excerpt(min(part.most, max(room, LEAST)))
    if found.omitted and room >= 2 * LEAST:
        found = part.excerpt(min(part.most, max(room - NOTICE, LEAST)))
    return found.quoted(part.notice(found)) if found.omitted else found.quoted("")


def shared(wants: list[int], room: int) -> list[int]:
    """What each gets: the small ones all they want, the others equal parts of the rest."""
    gets = [0] * len(wants)
    left = len(wants)
    for at in sorted(range(len(wants)), key=wants.__getitem__):
        # Who wants a little more than the fair share will need a notice, and may have it all.
        gets[at] = min(wants[at], max(0, room) // left)
        room -= gets[at]
        left -= 1
    return gets


def _cut(text: str, limit: int) -> str:
    """The beginning, by whole lines: half a line could lose its mark's meaning."""
    if limit <= len(LAST_WORD):
        return LAST_WORD[: max(0, limit)]
    head = text[: limit - len(LAST_WORD) - 1].rpartition("\n")[0]
    return f"{head}\n{LAST_WORD}" if head else LAST_WORD


def error_text(problem: QuireError) -> str:
    """What could not be done, as an agent is told."""
    hint = problem.hint.for_tools() if isinstance(problem.hint, Hint) else problem.hint
    said = f"\nhint: {_first_line_ours(hint)}" if hint else ""
    again = "\nTrying again may help." if problem.retryable else ""
    return f"error ({problem.code}): {_first_line_ours(problem.message)}{said}{again}"


def _first_line_ours(text: str) -> str:
    """Below the first line of a message stands what a notebook holds."""
    first, _, rest = text.partition("\n")
    first = " ".join(plain(first).splitlines())
    return f"{first}\n{quoted(rest)}" if rest else first
