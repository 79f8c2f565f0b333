"""Head and tail of a long text, and exactly how much is missing between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..text import MARK, cleaned, left_out, shortened_line

SHORTEST = 80  # characters of a line that are shown at least
EACH = 200  # lines that are read at once, when more is wanted


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines without their marks. `lines` and `characters` are what lies between head and tail."""

    head: tuple[str, ...]
    tail: tuple[str, ...] = ()
    lines: int | None = 0  # None: nobody knows, or only middles of lines are missing
    characters: int = 0  # newlines included
    long: int = 0  # the first line of which only the middle is missing, from 1

    @property
    def omitted(self) -> str:
        """Such as `19,200 lines (680,000 characters)`; empty where nothing is missing."""
        if self.lines == 0:
            return ""
        characters = f"{self.characters:,} characters"
        return characters if self.lines is None else f"{self.lines:,} lines ({characters})"

    def following(self, above: int = 0) -> str:
        """The lines to be asked for, to read on where the head ends; `above` it stand others."""
        if not self.lines:  # what is missing is in the middle of a line
            return f"{above + (self.long or len(self.head))}:1"
        first = above + len(self.head) + 1
        return f"{first}-{first + min(EACH, self.lines) - 1}"

    def quoted(self, notice: str) -> str:
        """Marked as the notebook's; `notice` is our own line where something is missing."""
        rows = [MARK + row for row in self.head]
        if self.lines != 0:
            rows.append(notice)
        return "\n".join([*rows, *(MARK + row for row in self.tail)])


@dataclass(frozen=True, slots=True)
class Whole:
    """What is known of a text of which only the beginning and the end are at hand."""

    characters: int
    lines: int | None = None


def excerpt(text: str, room: int) -> Excerpt:
    """At most `room` characters of it with the marks, a notice not counted."""
    return excerpt_of(lines_of(text), room)


def lines_of(text: str) -> list[str]:
    """A newline at the end begins no further line."""
    return cleaned(text).removesuffix("\n").split("\n")


def excerpt_of(rows: Sequence[str], room: int) -> Excerpt:
    if _cost(rows, room) <= room:
        return Excerpt(tuple(rows))
    limit = _longest(room)
    head, tail = _ends(rows, rows, room)
    if len(rows) == 1:
        limit = max(SHORTEST, room - len(MARK) - 1)
        head, tail = tuple(shortened_line(row, limit) for row in rows), ()
    middle = rows[len(head) : len(rows) - len(tail)]
    if middle:
        return Excerpt(head, tail, len(middle), sum(len(row) + 1 for row in middle))
    long = [number for number, row in enumerate(rows, 1) if len(row) > limit]
    if not long:
        return Excerpt(head, tail)
    missing = sum(left_out(rows[number - 1], limit) for number in long)
    return Excerpt(head, tail, None, missing, long[0])


def excerpt_around(before: str, after: str, whole: Whole, room: int) -> Excerpt:
    """The same where something between the two is not at hand."""
    first, last = lines_of(before), lines_of(after)
    if len(first) > 1:
        del first[-1]  # cut in the middle of a line
    if len(last) > 1:
        del last[0]
    head, tail = _ends(first, last, room)
    taken = (*first[: len(head)], *last[len(last) - len(tail) :])
    shown = sum(len(row) + 1 - left_out(row, _longest(room)) for row in taken)
    # Nothing but the middle of a line may be missing: that is no line.
    lines = None if whole.lines is None else whole.lines - len(head) - len(tail)
    if lines is not None and lines <= 0:
        lines, shown = None, shown - 1  # the head has no newline at its end
    return Excerpt(head, tail, lines, max(0, whole.characters - shown))


def _ends(
    first: Sequence[str], last: Sequence[str], room: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What fits of the beginning of one and the end of the other, which may be the same."""
    limit = _longest(room)
    head = _taken(first, room // 2, limit)
    rest = last[len(head) :] if last is first else last
    tail = _taken(reversed(rest), room - sum(map(_width, head)), limit)
    return tuple(head), tuple(reversed(tail))


def _longest(room: int) -> int:
    """The characters of one line among others."""
    return max(SHORTEST, room // 4)


def _width(row: str) -> int:
    return len(MARK) + len(row) + 1


def _cost(rows: Sequence[str], enough: int) -> int:
    """What they take, marks and newlines included; some number above `enough` if more than that."""
    total = 0
    for row in rows:
        total += _width(row)
        if total > enough:
            break
    return total


def _taken(rows: Iterable[str], room: int, limit: int) -> list[str]:
    """As many from the beginning as fit, very long ones without their middle."""
    out: list[str] = []
    for row in rows:
        short = shortened_line(row, limit)
        room -= _width(short)
        if room < 0:
            break
        out.append(short)
    return out
