"""What a query asks for, as values: words and fields, comparisons of values, times.

    word  wor*  "these words"  note:word  error:"these words"  -word  one OR other

A run must have all of the words. A word with punctuation inside it (`user_id`, `pandas.read_csv`,
`/etc/hosts`) and what stands in quotes is found as it is written.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ..errors import UsageError
from ..text import scrubbed
from .breadcrumbs import SECTIONS
from .schema import WEIGHTS, is_unspaced

LONGEST = 1_000  # characters
MOST = 32  # words
FIELD_HINT = f"fields: {', '.join((*WEIGHTS, *SECTIONS))}"
OPTIONS = ("since", "until", "who", "like")  # narrow too, and are no fields
_PIECE = re.compile(
    r"(?P<minus>-(?=[^\s\d-]))?(?:(?P<field>[a-z]+):(?=\S))?"
    r'(?:"(?P<quoted>[^"]*)"?|(?P<word>\S+))'
)
_NAMED = re.compile(r"-?([A-Za-z]{2,}):(?!//)\S")
_LANGUAGE = re.compile(r"[A-Za-z]{1,3}(?:\+\+|#)")  # C++, C#: what follows tells it from C
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_LETTERS = re.compile(r"[^\W_]+")
_INNER = re.compile(r"[^\W_][\W_]+[^\W_]")
# Words that tell no run from another. Left out where others remain.
_COMMON = """a an and are as at be been but by can could did do does every for from get got had has
have how i if in into is it its me my of off on or our out run runs ran so task that the their them
then there these they this those to up us was we were what when where which who whose why will with
would you your"""
COMMON = frozenset(_COMMON.split())


@dataclass(frozen=True, slots=True)
class Term:
    text: str
    field: str = ""
    prefix: bool = False
    exact: bool = False  # the characters count, not only the words
    quoted: bool = False
    of: str = ""  # in the result of this name only
    named: str = ""  # stands before a colon and is no field: searched as it is written

    @property
    def words(self) -> list[str]:
        return [word.casefold() for word in _LETTERS.findall(self.text)]


@dataclass(frozen=True, slots=True)
class Query:
    """Every group must be met, by one of its terms."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for group in self.groups for term in group)


def parse(text: str) -> Query:
    if len(text) > LONGEST:
        raise UsageError(
            f"the query has {len(text):,} characters; at most {LONGEST:,} are taken",
            hint="a few words that the run must have, such as an error's name",
        )
    groups: list[tuple[Term, ...]] = []
    excluded: list[Term] = []
    operator = ""
    for piece in _PIECE.finditer(scrubbed(text).replace("\0", " ")):
        if piece[0] in ("AND", "OR", "NOT"):
            operator = piece[0]
            continue
        term = _term(piece)
        if not term.words:
            continue  # only punctuation
        if piece["minus"] or operator == "NOT":
            excluded.append(_excluded(term))
        elif operator == "OR" and groups:
            groups[-1] = (*groups[-1], term)
        else:
            groups.append((term,))
        operator = ""
    if text.strip() and not groups:
        what = "only says what it must not have" if excluded else "has no words"
        raise UsageError(
            f"the query {_quoted(text)} {what}", hint='such as "load failed", wor* or note:word'
        )
    if len(groups) + len(excluded) > MOST:
        raise UsageError(
            f"the query has {len(groups) + len(excluded)} words; at most {MOST} are taken",
            hint="the few that matter most",
        )
    telling = tuple(group for group in groups if any(map(_tells, group)))
    return Query(telling or tuple(groups), tuple(excluded))


def _term(piece: re.Match[str]) -> Term:
    field, word, quoted = piece["field"] or "", piece["word"], piece["quoted"]
    of = SECTIONS.get(field, "")
    name = "result" if of else field
    if name and name not in WEIGHTS:
        if quoted is not None:
            raise UsageError(f"there is no field {field!r} to search", hint=FIELD_HINT)
        word, name = f"{field}:{word}", ""  # such as https://… or an error's name
    if quoted is not None:
        return Term(quoted.strip(), name, exact=True, quoted=True, of=of)
    term = _word(word, name)
    if of:  # the index has all results in one field: the text must be looked at
        return replace(term, exact=True, of=of)
    named = None if name else _NAMED.match(piece[0])
    return replace(term, named=named[1]) if named else term


def _word(text: str, field: str) -> Term:
    prefix = text.endswith("*")
    # Punctuation around a word belongs to the sentence; what stands before a path to the path.
    bare = text.strip("*,;:!?()[]{}<>\"'`").rstrip(".")
    if is_unspaced(bare):  # any piece of such a text is found, with or without an asterisk
        return Term(bare, field, exact=True)
    exact = (
        bool(_INNER.search(bare))
        or (bare[:1] in "/._@$~" and bool(_LETTERS.search(bare)))
        or _LANGUAGE.fullmatch(bare) is not None
    )
    if prefix and len(bare) == 1:
        raise UsageError(f"{text!r} is too short a beginning", hint="two letters or more before *")
    return Term(bare if exact else _EDGES.sub("", bare), field, prefix=prefix, exact=exact)


def _excluded(term: Term) -> Term:
    if term.of:
        raise UsageError(
            f"{_quoted(term.text)}: runs cannot be left out by what one result holds",
            hint=f"-result:{term.text} looks at all of them",
        )
    return term


def _tells(term: Term) -> bool:
    meant = bool(term.field) or term.quoted or term.prefix
    return meant or term.text.casefold() not in COMMON


def odd_fields(query: Query, missing: Callable[[str], bool]) -> list[str]:
    """Warnings about words before a colon that are no field: those that nearly are one, and those
    that were found nowhere as they are written. `missing` says that of a term's text."""
    said = []
    for term in (*query.terms, *query.excluded):
        if not term.named:
            continue
        meant = difflib.get_close_matches(term.named.casefold(), (*WEIGHTS, *SECTIONS), 1, 0.8)
        if meant:
            hint = f"did you mean {meant[0]}:?"
        elif term.named in OPTIONS:
            hint = f"--{term.named} narrows by that"
        # With a capital it is an error's name, or the first word of a line.
        elif term.named.islower() and term not in query.excluded and missing(term.text):
            hint = FIELD_HINT
        else:
            continue
        said.append(
            f"there is no field {term.named!r}: {term.text} was looked for as it is; {hint}"
        )
    return list(dict.fromkeys(said))


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


# Comparisons.

Sign = Literal["=", "!=", "<", "<=", ">", ">="]
_COMPARISON = re.compile(r"\s*([^=!<>]+?)\s*(==|!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Comparison:
    kind: str  # param or result
    name: str
    sign: Sign
    value: str | int | float | bool | None
    text: str = ""  # as it was written: a text may look like a number


def comparison(kind: str, text: str) -> Comparison:
    found = _COMPARISON.fullmatch(text)
    if found is None or not found[3]:
        example = "score>0.8" if kind == "result" else "region=eu"
        raise UsageError(
            f"{_quoted(text)} is no comparison",
            hint=f'a name, one of = != < <= > >= and a value, such as "{example}"',
        )
    sign: Any = found[2].replace("==", "=")
    value = literal(found[3])
    if sign not in ("=", "!=") and (value is None or isinstance(value, bool)):
        raise UsageError(
            f"{_quoted(text)} compares {found[3]} by size", hint=f"--{kind} {found[1]}={found[3]}"
        )
    return Comparison(kind, found[1], sign, value, found[3])


def literal(text: str) -> str | int | float | bool | None:
    """As JSON would read it, else the text itself; quotes make a text of anything."""
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    named = {"True": "true", "False": "false", "None": "null", "nan": "NaN", "inf": "Infinity"}
    try:
        found = json.loads(named.get(text, text))
    except (ValueError, RecursionError):
        return text
    if isinstance(found, float) and (found != found or abs(found) == float("inf")):
        return str(found)  # as results hold it, which have no number for it
    return found if found is None or isinstance(found, str | int | float | bool) else text


# Times.

_AGO = re.compile(r"(\d{1,6})\s*(m|min|h|d|w|y)")
_SPANS = {"m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31557600.0}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def since(text: str, now: datetime) -> float:
    """Seconds since 1970: of a date, a time, or so long ago."""
    return _time(text, now).timestamp()


def until(text: str, now: datetime) -> float:
    """A date means to its end."""
    found = _time(text, now).timestamp()
    whole_day = _DAY.fullmatch(text.strip()) or text.strip() in ("today", "yesterday")
    return found + _SPANS["d"] if whole_day else found


def _time(text: str, now: datetime) -> datetime:
    text = text.strip()
    if text in ("today", "yesterday"):
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=text == "yesterday")
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(seconds=int(ago[1]) * _SPANS[ago[2]])
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        found.timestamp()
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{_quoted(text)} is no time", hint="2026-01-31, 2026-01-31T12:00, 7d, 24h or today"
        ) from error
    return found
