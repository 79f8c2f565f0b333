"""What a person or a program typed to find runs, as values. Pure.

    word  wor*  "these words"  note:word  error:"these words"  -word  one OR other

Words stand for runs that have all of them. A word with punctuation inside it (`user_id`,
`pandas.read_csv`, `/etc/hosts`) and what stands in quotes is found as it is written.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ..errors import UsageError
from ..text import scrubbed
from .build_results import SECTIONS
from .normalise import is_unspaced
from .search_fields import ALIASES, NAMES

LONGEST = 1_000  # characters
MOST = 32  # words
FIELD_HINT = f"fields: {', '.join((*NAMES, *SECTIONS))}"
OPTIONS = ("task", "since", "until", "outcome", "who", "like")  # narrow too, and are no fields
_OPERATORS = frozenset({"AND", "OR", "NOT", "-", "&", "|", "&&", "||"})
_PIECE = re.compile(
    r"(?P<minus>-(?=[^\s\d-]))?(?:(?P<field>[a-z]+):(?=\S))?"
    r'(?:"(?P<quoted>[^"]*)"?|(?P<word>\S+))'
)
_NAMED = re.compile(r"-?([A-Za-z]{2,}):(?!//)\S")
_LANGUAGE = re.compile(r"[A-Za-z]{1,3}(?:\+\+|#)")  # C++, C#: what is behind tells it from C
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_LETTERS = re.compile(r"[^\W_]+")
_INNER = re.compile(r"[^\W_][\W_]+[^\W_]")
# Words that say nothing of a run. Left out where others remain.
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
    excluded: bool = False
    quoted: bool = False
    of: str = ""  # in the result of this name only
    named: str = ""  # stands before a colon, and is no field: it is looked for as it is written

    @property
    def words(self) -> list[str]:
        return [word.casefold() for word in _LETTERS.findall(self.text)]


@dataclass(frozen=True, slots=True)
class Query:
    """Every group must be met, by one of its terms."""

    groups: tuple[tuple[Term, ...], ...] = ()
    excluded: tuple[Term, ...] = ()
    whole: str = ""  # what was typed, where it may stand in a text as it is

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for group in self.groups for term in group)


def parse(text: str) -> Query:
    if len(text) > LONGEST:
        raise UsageError(
            f"the query has {len(text):,} characters; at most {LONGEST:,} are taken",
            hint="a few words that the run must have, such as an error's name",
        )
    text = scrubbed(text).replace("\0", " ")
    groups: list[tuple[Term, ...]] = []
    excluded: list[Term] = []
    joined, negated = False, False
    for piece in _PIECE.finditer(text):
        raw = piece[0]
        if raw in _OPERATORS:
            joined = joined or (raw in ("OR", "|", "||") and bool(groups))
            negated = negated or raw == "NOT"
            continue
        term = _term(piece)
        if not (term.field or term.quoted) and (named := _NAMED.match(raw)):
            term = replace(term, named=named[1])
        if not term.words:
            continue  # only punctuation
        if term.excluded or negated:
            excluded.append(_but(term, excluded=True))
        elif joined and groups:
            groups[-1] = (*groups[-1], term)
        else:
            groups.append((term,))
        joined = negated = False
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
    plain = not excluded and all(len(g) == 1 and not g[0].field for g in groups)
    whole = " ".join(text.split()).strip('"') if plain and len(groups) > 1 else ""
    return Query(_without_common(groups), tuple(excluded), whole)


def _term(piece: re.Match[str]) -> Term:
    field, minus = piece["field"] or "", bool(piece["minus"])
    name = ALIASES.get(field, field)
    if field in SECTIONS:
        return _in_section(piece, SECTIONS[field], minus)
    if field and name not in NAMES:
        if piece["quoted"] is None:  # such as https://…, or an error's name: it is no field
            return _word(f"{field}:{piece['word']}", "", minus)
        raise UsageError(f"there is no field {field!r} to search", hint=FIELD_HINT)
    if piece["quoted"] is not None:
        return Term(piece["quoted"].strip(), name, exact=True, excluded=minus, quoted=True)
    return _word(piece["word"], name, minus)


def _in_section(piece: re.Match[str], result: str, minus: bool) -> Term:
    if minus:
        raise UsageError(
            f"{_quoted(piece[0])}: runs cannot be left out by what one result holds",
            hint=f"-result:{piece['quoted'] or piece['word']} looks at all of them",
        )
    if piece["quoted"] is not None:
        return Term(piece["quoted"].strip(), "result", exact=True, quoted=True, of=result)
    found = _word(piece["word"], "result", False)
    # By the letter, so that the text is looked at and not only the index, which has all results
    # in one.
    return Term(found.text, "result", found.prefix, exact=not found.prefix, of=result)


def _word(text: str, field: str, minus: bool) -> Term:
    prefix = text.endswith("*")
    # What only surrounds a word belongs to the sentence; what stands before a path to the path.
    bare = text.strip("*,;:!?()[]{}<>\"'`").rstrip(".")
    if is_unspaced(bare):  # any piece of such a text is found, with or without an asterisk
        return Term(bare, field, exact=True, excluded=minus)
    exact = (
        bool(_INNER.search(bare))
        or (bare[:1] in "/._@$~" and bool(_LETTERS.search(bare)))
        or _LANGUAGE.fullmatch(bare) is not None
    )
    if prefix and len(bare) == 1:
        raise UsageError(f"{text!r} is too short a beginning", hint="two letters or more before *")
    bare = bare if exact else _EDGES.sub("", bare)
    return Term(bare, field, prefix=prefix, exact=exact and not prefix, excluded=minus)


def odd_fields(query: Query, missing: Callable[[str], bool]) -> list[str]:
    """What is said of words before a colon that are no field: of those that look like one, and of
    those that were not met as they are written. `missing` says that of a term's text."""
    known = (*NAMES, *SECTIONS, *ALIASES)
    said = []
    for term in (*query.terms, *query.excluded):
        if not term.named:
            continue
        meant = difflib.get_close_matches(term.named.casefold(), known, 1, 0.8)
        # With a capital it is an error's name, or the first word of a line.
        unmet = term.named.islower() and not term.excluded and missing(term.text)
        if meant:
            hint = f"did you mean {meant[0]}:?"
        elif term.named in OPTIONS:
            hint = f"--{term.named} narrows by that"
        elif unmet:
            hint = FIELD_HINT
        else:
            continue
        said.append(
            f"there is no field {term.named!r}: {term.text} was looked for as it is; {hint}"
        )
    return list(dict.fromkeys(said))


def _but(term: Term, *, excluded: bool) -> Term:
    return replace(term, excluded=excluded)


def _without_common(groups: Sequence[tuple[Term, ...]]) -> tuple[tuple[Term, ...], ...]:
    def says(term: Term) -> bool:
        meant = bool(term.field) or term.quoted or term.prefix
        return meant or term.text.casefold() not in COMMON

    return tuple(group for group in groups if any(map(says, group))) or tuple(groups)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


# Comparisons.

_HUGE = re.compile(r"-?\d{19,300}")
# As results keep them, which have no number for them.
_NO_NUMBERS = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
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
    example = "score>0.8" if kind == "result" else "region=eu"
    if found is None or not found[3]:
        raise UsageError(
            f"{_quoted(text)} is no comparison",
            hint=f'a name, one of = != < <= > >= and a value, such as "{example}"',
        )
    sign: Any = found[2].replace("==", "=")
    value = _literal(found[3])
    if sign not in ("=", "!=") and (value is None or isinstance(value, bool)):
        raise UsageError(
            f"{_quoted(text)} compares {found[3]} by size", hint=f"--{kind} {found[1]}={found[3]}"
        )
    if sign not in ("=", "!=") and isinstance(value, str) and _HUGE.fullmatch(value):
        value = float(value)
    return Comparison(kind, found[1], sign, value, found[3])


def _literal(text: str) -> str | int | float | bool | None:
    """As JSON would read it, else the text itself; quotes make a text of anything."""
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        found = json.loads({"True": "true", "False": "false", "None": "null"}.get(text, text))
    except (ValueError, RecursionError):
        return text
    if isinstance(found, float) and (found != found or abs(found) == float("inf")):
        return _NO_NUMBERS.get(text.casefold(), text)
    if isinstance(found, int) and not isinstance(found, bool) and abs(found) >= 2**63:
        return text
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
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if text in ("today", "yesterday"):
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
