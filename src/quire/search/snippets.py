"""Where in a run a query is met: how well, in which pieces of text, and a snippet of each."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from ..record.summary import one_line
from .pieces import Piece
from .query import Query, Term
from .schema import TOKENIZER, WEIGHTS, folded

WIDTH = 160  # characters of a snippet
SPOTS = 3  # of one run
MARKS = 5  # of one word in one snippet
_WORD = re.compile(r"(?:[^\W_]|[\u0300-\u036f])+")  # with the accents that stand behind a letter
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a run that met the query."""

    field: str
    cell: str  # its id; empty where it belongs to the run as a whole
    snippet: str
    marks: tuple[Span, ...] = ()  # what of the snippet met it


@dataclass(frozen=True, slots=True)
class _Looked:
    piece: Piece
    text: str  # flat
    inside: tuple[int, ...]  # which terms of the query are there


class Matcher:
    """One query, made ready for many runs."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self._terms = [_Sought(term) for term in query.terms]
        # Runs of one source share its pieces: each is looked through once.
        self._looked: dict[int, _Looked] = {}

    def _look(self, piece: Piece) -> _Looked:
        found = self._looked.get(id(piece))
        if found is None:
            text = _flat(piece.text)
            plain = folded(text)
            inside = (at for at, one in enumerate(self._terms) if one.is_in(piece, text, plain))
            found = self._looked[id(piece)] = _Looked(piece, text, tuple(inside))
        return found

    def literal(self, pieces: Sequence[Piece], *, strict: bool = True) -> bool:
        """Whether what counts to the letter is there to the letter. Where some of the words are
        enough, only what stands in quotes must be."""
        for group in self.query.groups:
            must = all(t.exact for t in group) if strict else any(t.quoted for t in group)
            if must and not any(
                fits(term, piece) and _flat(term.text) in self._look(piece).text
                for term in group
                for piece in pieces
            ):
                return False
        return True

    def covered(self, pieces: Sequence[Piece]) -> float:
        """The share of its terms that are there, those in strong fields counting more."""
        best: dict[int, float] = {}
        for looked in map(self._look, pieces):
            for at in looked.inside:
                best[at] = max(best.get(at, 0.0), WEIGHTS[looked.piece.field])
        return sum(0.6 + 0.04 * weight for weight in best.values()) / max(1, len(self._terms))

    def missing(self, pieces: Sequence[Piece]) -> tuple[str, ...]:
        there = {at for piece in pieces for at in self._look(piece).inside}
        return tuple(one.term.text for at, one in enumerate(self._terms) if at not in there)

    def spots(self, pieces: Iterable[Piece]) -> tuple[Spot, ...]:
        """The pieces that say most, one of each field in each cell."""
        scored = []
        for at, looked in enumerate(map(self._look, pieces)):
            if looked.inside:
                score = len(looked.inside) * 4 + WEIGHTS[looked.piece.field]
                scored.append((-score, at, looked))
        out: dict[tuple[str, str], Spot] = {}
        for _, _, looked in sorted(scored, key=lambda one: one[:2]):
            terms = [self._terms[at] for at in looked.inside]
            out.setdefault((looked.piece.field, looked.piece.cell), _spot(looked.piece, terms))
            if len(out) == SPOTS:
                break
        return tuple(out.values())


class _Sought:
    """A term, ready to be found in texts."""

    def __init__(self, term: Term) -> None:
        self.term = term
        if term.exact:
            self._needle = _flat(term.text)
            sides = (r"\s+".join(map(re.escape, side.split())) for side in term.text.split("="))
            self._pattern = re.compile(r"\s*=\s*".join(sides), re.IGNORECASE)
            return
        self._word = folded(term.text).casefold()
        # A stem has its last letter from a rule (happiness: happi), the others from the word.
        self._stem = _stem(self._word)
        self._needle = self._word if term.prefix else self._stem[: max(3, len(self._stem) - 1)]
        begin = re.escape(self._needle)
        self._pattern = re.compile(rf"(?<![^\W_]){begin}[^\W_]*", re.IGNORECASE)

    def is_in(self, piece: Piece, text: str, plain: str) -> bool:
        if not fits(self.term, piece):
            return False
        if self.term.exact:
            return self._needle in text
        return self._needle in plain and any(True for _ in self.spans(piece.text))

    def spans(self, text: str) -> Iterator[Span]:
        if self.term.exact:
            yield from (found.span() for found in self._pattern.finditer(text))
            return
        for found in (self._pattern if text.isascii() else _WORD).finditer(text):
            word = folded(found[0]).casefold()
            if word.startswith(self._word) if self.term.prefix else _stem(word) == self._stem:
                yield found.span()


def fits(term: Term, piece: Piece) -> bool:
    """Whether it may stand in this piece at all."""
    if term.of and not piece.text.startswith(f"{term.of} = "):
        return False
    return not term.field or term.field == piece.field


def _flat(text: str) -> str:
    """Spaces around `=` do not count: `depth=4` is found where a result says `depth = 4`."""
    text = " ".join(text.casefold().split())
    return text.replace(" =", "=").replace("= ", "=") if "=" in text else text


@lru_cache(1)
def _stemmer() -> tuple[sqlite3.Connection, threading.Lock]:
    con = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    con.execute(f"CREATE VIRTUAL TABLE one USING fts5(word, {TOKENIZER})")
    con.execute("CREATE VIRTUAL TABLE seen USING fts5vocab(one, 'row')")
    return con, threading.Lock()


@lru_cache(20_000)
def _stem(word: str) -> str:
    """As the index has it, asked of SQLite itself."""
    con, lock = _stemmer()
    with lock:
        con.execute("DELETE FROM one")
        con.execute("INSERT INTO one VALUES(?)", (word,))
        return " ".join(term for (term,) in con.execute("SELECT term FROM seen"))


def _spot(piece: Piece, terms: Sequence[_Sought]) -> Spot:
    """The line that the first of them stands in, as far as there is room for it."""
    text = piece.text
    start, end = min(
        (span for term in terms for span in islice(term.spans(text), 1)), default=(0, 0)
    )
    left = max(text.rfind("\n", 0, start) + 1, start - WIDTH // 3)
    right = text.find("\n", end)
    right = min(len(text) if right < 0 else right, left + WIDTH)
    if right - left < WIDTH // 3:
        left, right = max(0, left - WIDTH // 4), min(len(text), right + WIDTH // 2)
    head = "…" if left > 0 and text[left - 1] != "\n" else ""
    tail = "…" if right < len(text) and text[right] != "\n" else ""
    shown = f"{head}{one_line(text[left:right])}{tail}"
    marks = {span for term in terms for span in islice(term.spans(shown), MARKS)}
    return Spot(piece.field, piece.cell, shown, tuple(sorted(marks)))
