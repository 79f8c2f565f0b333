"""Where in a run a query is met: the pieces of text that say most, and a snippet of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .fields import WEIGHTS
from .indexed import Piece
from .query import Query, Term
from .summary import one_line

WIDTH = 160  # characters of a snippet
_ENDING = re.compile(r"(ations?|ings?|edly|ed|ies|es|s|e|ly|y)$")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a run that met the query."""

    field: str
    cell: str  # its id; empty where it belongs to the run as a whole
    snippet: str
    marks: tuple[tuple[int, int], ...] = ()  # what of the snippet met it


class Matcher:
    """One query, made ready for many runs."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self._whole = _flat(query.whole) if len(query.whole) > 3 else ""
        self._terms = [(term, _pattern(term)) for term in query.terms]

    def literal(self, pieces: Sequence[Piece]) -> bool:
        """Whether what counts to the letter is there to the letter."""
        exact = [group for group in self.query.groups if all(term.exact for term in group)]
        return all(any(_stands(term, pieces) for term in group) for group in exact)

    def weight(self, pieces: Sequence[Piece]) -> float:
        """How well it is met beyond the words: said as it was typed, and close together."""
        best, whole = 0.0, 0.0
        for piece in pieces:
            if self._whole and self._whole in _flat(piece.text):
                whole = max(whole, WEIGHTS[piece.field])
            found = sum(1 for term, p in self._terms if _fits(term, piece) and p.search(piece.text))
            if found > 1:
                best = max(best, found / len(self._terms) * WEIGHTS[piece.field])
        return whole * 0.1 + best * 0.05

    def missing(self, pieces: Sequence[Piece]) -> tuple[str, ...]:
        return tuple(
            term.text
            for term, pattern in self._terms
            if not any(_fits(term, p) and pattern.search(p.text) for p in pieces)
        )

    def covered(self, pieces: Sequence[Piece]) -> float:
        """The share of its terms that are there, those in strong fields counting more."""
        if not self._terms:
            return 0.0
        total = 0.0
        for term, pattern in self._terms:
            there = [WEIGHTS[p.field] for p in pieces if _fits(term, p) and pattern.search(p.text)]
            total += 0.6 + 0.04 * max(there) if there else 0.0
        return total / len(self._terms)

    def spots(self, pieces: Iterable[Piece], most: int = 3) -> tuple[Spot, ...]:
        scored = []
        for at, piece in enumerate(pieces):
            marks = self._marks(piece)
            if marks:
                terms = len({which for which, _, _ in marks})
                whole = 5.0 if self._whole and self._whole in _flat(piece.text) else 0.0
                scored.append((terms * 4 + whole + WEIGHTS[piece.field], -at, piece, marks))
        scored.sort(key=lambda one: one[:2], reverse=True)
        out: list[Spot] = []
        for _, _, piece, marks in scored:
            if any(spot.field == piece.field and spot.cell == piece.cell for spot in out):
                continue
            out.append(_spot(piece, [(start, end) for _, start, end in marks]))
            if len(out) == most:
                break
        return tuple(out)

    def _marks(self, piece: Piece) -> list[tuple[int, int, int]]:
        found = []
        for which, (term, pattern) in enumerate(self._terms):
            if _fits(term, piece):
                for at, match in enumerate(pattern.finditer(piece.text)):
                    found.append((which, match.start(), match.end()))
                    if at >= 4:
                        break
        return found


def _fits(term: Term, piece: Piece) -> bool:
    return not term.field or term.field == piece.field


def _stands(term: Term, pieces: Sequence[Piece]) -> bool:
    text = _flat(term.text)
    return any(_fits(term, piece) and text in _flat(piece.text) for piece in pieces)


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _pattern(term: Term) -> re.Pattern[str]:
    if term.exact:
        words = map(re.escape, term.text.split())
        return re.compile(r"\s+".join(words), re.IGNORECASE)
    parts = []
    for word in _WORD.findall(term.text):
        if term.prefix:
            parts.append(re.escape(word) + r"[^\W_]*")
            continue
        stem = _ENDING.sub("", word) if len(word) > 4 else word
        stem = stem if len(stem) >= 3 else word
        parts.append(re.escape(stem) + (r"[^\W_]{0,5}" if len(word) > 3 else "s?"))
    body = r"[\W_]+".join(parts) or r"(?!)"
    return re.compile(rf"(?<![^\W_]){body}(?![^\W_])", re.IGNORECASE)


def _spot(piece: Piece, marks: list[tuple[int, int]]) -> Spot:
    text = piece.text
    start, end = min(marks)
    # The line it stands in, as far as there is room for it.
    left = max(text.rfind("\n", 0, start) + 1, start - WIDTH // 3)
    right = text.find("\n", end)
    right = min(len(text) if right < 0 else right, left + WIDTH)
    if right - left < WIDTH // 3:
        left, right = max(0, left - WIDTH // 4), min(len(text), right + WIDTH // 2)
    before = one_line(text[left:start])
    shown = one_line(text[left:right])
    head = "…" if left > 0 and text[left - 1] != "\n" else ""
    tail = "…" if right < len(text) and text[right] != "\n" else ""
    shift = len(head)
    inside: list[tuple[int, int]] = []
    for one, two in sorted(set(marks)):
        if left <= one and two <= right:
            word = one_line(text[one:two])
            at = shown.find(word, inside[-1][1] - shift if inside else max(0, len(before) - 1))
            if at >= 0 and word:
                inside.append((at + shift, at + len(word) + shift))
    return Spot(piece.field, piece.cell, f"{head}{shown}{tail}", tuple(inside))
