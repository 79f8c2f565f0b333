"""Where in a run a query is met: the pieces of text that say most, and a snippet of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ..record.summary import one_line
from .indexed_texts import Piece
from .normalise import bare, bare_with_places
from .query import Query, Term
from .search_fields import WEIGHTS

WIDTH = 160  # characters of a snippet
MARKS = 5  # of one word in one piece
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

    def __init__(self, query: Query, stem: Callable[[str], str] = str.casefold) -> None:
        """`stem` is what the index takes a word for."""
        self.query = query
        self._stem = stem
        self._whole = _flat(query.whole) if len(query.whole) > 3 else ""
        self._terms = query.terms
        self._needles = [_needle(term) for term in self._terms]
        self._patterns = [_pattern(term) for term in self._terms]
        # Runs of one source share its pieces: each is looked through once.
        self._looked: dict[int, tuple[Piece, str, tuple[int, ...]]] = {}

    def literal(self, pieces: Sequence[Piece], *, strict: bool = True) -> bool:
        """Whether what counts to the letter is there to the letter. Where some of the words are
        enough, only what stands in quotes must be."""
        groups = self.query.groups
        if strict:
            must = [group for group in groups if all(term.exact or term.of for term in group)]
        else:
            must = [group for group in groups if any(term.quoted for term in group)]
        return all(any(self._stands(term, pieces) for term in group) for group in must)

    def _stands(self, term: Term, pieces: Sequence[Piece]) -> bool:
        text = _flat(term.text)
        return any(_fits(term, piece) and text in self._look(piece)[1] for piece in pieces)

    def _look(self, piece: Piece) -> tuple[Piece, str, tuple[int, ...]]:
        """Its text without case and line ends, and the numbers of the terms that are in it."""
        found = self._looked.get(id(piece))
        if found is None:
            text = _flat(piece.text)
            plain = bare(text)
            terms = enumerate(zip(self._terms, self._needles, strict=True))
            inside = tuple(
                at
                for at, (term, needle) in terms
                if _fits(term, piece) and needle in (text if term.exact else plain)
            )
            found = self._looked[id(piece)] = (piece, text, inside)
        return found

    def weight(self, pieces: Sequence[Piece]) -> float:
        """How well it is met beyond the words: said as it was typed, and close together."""
        best, whole = 0.0, 0.0
        for piece in pieces:
            _, text, inside = self._look(piece)
            if self._whole and self._whole in text:
                whole = max(whole, WEIGHTS[piece.field])
            if len(inside) > 1:
                best = max(best, len(inside) / len(self._terms) * WEIGHTS[piece.field])
        return whole * 0.1 + best * 0.05

    def _best(self, pieces: Sequence[Piece]) -> dict[int, float]:
        """The terms that are there, each with the weight of the strongest field it is in."""
        best: dict[int, float] = {}
        for piece in pieces:
            for at in self._look(piece)[2]:
                best[at] = max(best.get(at, 0.0), WEIGHTS[piece.field])
        return best

    def missing(self, pieces: Sequence[Piece]) -> tuple[str, ...]:
        best = self._best(pieces)
        lacking = [(at, term) for at, term in enumerate(self._terms) if at not in best]
        return tuple(
            term.text for at, term in lacking if not any(self._kin(at, piece) for piece in pieces)
        )

    def _kin(self, at: int, piece: Piece) -> list[tuple[int, int]]:
        """Where words stand that the index takes for the same, such as `happy` for `happiness`."""
        term = self._terms[at]
        word = bare(term.text)
        if term.exact or term.prefix or not _fits(term, piece) or not _WORD.fullmatch(word):
            return []
        text, places = bare_with_places(piece.text)
        wanted = self._stem(word)
        begins = re.compile(rf"(?<![^\W_]){re.escape(word[:2])}[^\W_]*", re.IGNORECASE)
        found = (m for m in begins.finditer(text) if self._stem(m[0]) == wanted)
        return [(places[m.start()], places[m.end()]) for m in islice(found, MARKS)]

    def covered(self, pieces: Sequence[Piece]) -> float:
        """The share of its terms that are there, those in strong fields counting more."""
        best = self._best(pieces)
        return sum(0.6 + 0.04 * weight for weight in best.values()) / max(1, len(self._terms))

    def spots(self, pieces: Iterable[Piece], most: int = 3) -> tuple[Spot, ...]:
        scored = []
        marked = [(p, self._marks(p) if self._look(p)[2] else []) for p in pieces]
        seen = {which for _, marks in marked for which, _, _ in marks}
        unseen = [at for at in range(len(self._terms)) if at not in seen]
        for at, (piece, marks) in enumerate(marked):
            marks += [(which, *place) for which in unseen for place in self._kin(which, piece)]
            if marks:
                terms = len({which for which, _, _ in marks})
                whole = 5.0 if self._whole and self._whole in self._look(piece)[1] else 0.0
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
        plain, places = bare_with_places(piece.text)
        for which in self._look(piece)[2]:
            exact = self._terms[which].exact
            text = piece.text if exact else plain
            for match in islice(self._patterns[which].finditer(text), MARKS):
                start, end = match.span()
                found.append((which, start, end) if exact else (which, places[start], places[end]))
        return found


def _fits(term: Term, piece: Piece) -> bool:
    if term.of and not piece.text.startswith(f"{term.of} = "):
        return False
    return not term.field or term.field == piece.field


def _flat(text: str) -> str:
    """Spaces around `=` say nothing: `depth=4` is found where a result says `depth = 4`."""
    text = " ".join(text.casefold().split())
    return text.replace(" =", "=").replace("= ", "=") if "=" in text else text


def _needle(term: Term) -> str:
    """What a text that has it holds; a text that holds it may still have another word."""
    text = _flat(term.text)
    if term.exact:
        return text
    text = bare(text)
    return text if term.prefix or not _WORD.fullmatch(text) else _stem(text)


def _stem(word: str) -> str:
    stem = _ENDING.sub("", word) if len(word) > 4 else word
    return stem if len(stem) >= 3 else word


def _pattern(term: Term) -> re.Pattern[str]:
    if term.exact:
        sides = (r"\s+".join(map(re.escape, side.split())) for side in term.text.split("="))
        return re.compile(r"\s*=\s*".join(sides), re.IGNORECASE)
    parts = []
    for word in _WORD.findall(bare(term.text)):
        if term.prefix:
            parts.append(re.escape(word) + r"[^\W_]*")
            continue
        parts.append(re.escape(_stem(word)) + (r"[^\W_]{0,5}" if len(word) > 3 else "s?"))
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
