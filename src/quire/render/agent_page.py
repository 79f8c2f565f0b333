"""A page for an agent: our own lines and quotations, within a bounded length.

Short quotations are told whole; the long ones get equal parts of the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ..errors import Hint, QuireError, UsageError
from ..text import (
    EXPLAINED,
    MARK,
    clean_line,
    cleaned,
    inline,
    left_out,
    plain,
    quoted,
    scrubbed,
    shortened_line,
)

SHORTEST = 80  # characters of a line that are shown at least
EACH = 200  # lines that are read at once, when more is wanted


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines without their marks. `lines` and `characters` are what lies between head and tail."""

    head: tuple[str, ...]
    tail: tuple[str, ...] = ()
    lines: int | None = 0  # None: unknown, or only middles of lines are missing
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
        """A line of ours. The caller escapes foreign text in it with `inline`."""
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


_RANGE = re.compile(r"(\d{1,12})?(-)?(\d{1,12})?")
_WITHIN = re.compile(r"(\d{1,12}):(\d{1,12})")
FIRST = 200  # lines, by default


@dataclass(frozen=True, slots=True)
class Lines:
    """Which lines, counted from 1. `last` is None for all that follow. `start` is the character
    from which a single line is read."""

    first: int = 1
    last: int | None = None
    start: int = 1


def asked_lines(text: str) -> Lines:
    """`7`, `3-7`, `300-`, `-20`, which are the first twenty, or `7:2001`, within a line."""
    within = _WITHIN.fullmatch(text.replace(" ", ""))
    if within is not None and int(within[1]) and int(within[2]):
        return Lines(int(within[1]), int(within[1]), int(within[2]))
    found = _RANGE.fullmatch(text.replace(" ", ""))
    if found is None or not (found[1] or found[3]):
        raise UsageError(f"{inline(text)} is no range of lines", hint="such as 101-300, or 101-")
    first = int(found[1] or 1)
    last = int(found[3]) if found[3] else None if found[2] else first
    if first < 1 or (last is not None and last < first):
        raise UsageError(
            f"{inline(text)} is no range of lines", hint="lines are counted from 1 upwards"
        )
    return Lines(first, last)


def tell_lines(
    rows: Iterable[str],
    total: int,
    wanted: Lines,
    *,
    what: str,
    limit: int,
    more: Callable[[str], str] = lambda lines: lines,
) -> str:
    """`rows` are all lines from the first, `total` is how many. `more` says how to read on.

    Never longer than `limit`; where the range does not fit it ends earlier, and says so.
    """
    last = total if wanted.last is None else min(wanted.last, total)
    if wanted.first > total:
        return f"{what} has only {total:,} line{'' if total == 1 else 's'}"[:limit]
    if last == wanted.first:
        row = clean_line(scrubbed(next(islice(rows, wanted.first - 1, None), "")))
        return _tell_line(row, total, wanted, what, limit, more)
    head = f"{what}, lines {wanted.first:,} to {{last:,}} of {total:,}\n{EXPLAINED}"
    room = limit - len(head) - 40
    at, out = wanted.first, []
    tail = ""
    for row in islice(rows, wanted.first - 1, last):
        short = shortened_line(clean_line(scrubbed(row)))
        tail = f"… lines {at:,} to {last:,} did not fit; read on: {more(f'{at}-{last}')}"
        room -= len(MARK) + len(short) + 1
        if room < len(tail) + 1:
            break
        out.append(MARK + short)
        at += 1
    else:
        tail = ""
    parts = [head.format(last=at - 1), *out, *([tail] if tail else [])]
    return "\n".join(parts)[: max(0, limit)]


def _tell_line(
    line: str, total: int, wanted: Lines, what: str, limit: int, more: Callable[[str], str]
) -> str:
    """One line from a character on, as much of it as there is room for."""
    number, size = wanted.first, len(line)
    if wanted.start > max(1, size):
        return f"line {number:,} of {what} has only {size:,} characters"[: max(0, limit)]
    begin = wanted.start - 1
    room = limit - len(what) - len(EXPLAINED) - len(more(f"{number}:{size}")) - 200
    end = min(size, begin + max(80, room))
    part = "" if end - begin == size else f", characters {begin + 1:,} to {end:,} of {size:,}"
    parts = [f"{what}, line {number:,} of {total:,}{part}", EXPLAINED, MARK + line[begin:end]]
    if end < size:
        parts.append(f"… {size - end:,} characters follow; read on: {more(f'{number}:{end + 1}')}")
    return "\n".join(parts)[: max(0, limit)]
