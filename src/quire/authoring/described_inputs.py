"""Parameters that a description states outright, in English.

Read are quoted text, URLs, paths, ISO dates, `last N days` and `above/below/at least N`. Everything
else is for the caller to declare, or for the configured model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date

from ..task.parameter_cell import Parameter
from .declared_inputs import text_source

MOST = 12  # parameters
_READ = 4_000  # characters of a description
_HELP = 60

_URL = re.compile(r"\b[a-z][a-z0-9+]{1,14}://[^\s\"'<>()`]{1,500}", re.IGNORECASE)
_SUFFIX = (
    "csv|tsv|jsonl?|ya?ml|toml|ini|log|txt|md|xlsx?|parquet|db|sqlite|sql|py|ipynb|html?|xml|pdf|"
    "png|jpe?g|gz|zip"
)
# A path that begins at a root, or ends in a well-known suffix. Bounded: linear on any text.
_PATH = re.compile(
    r"(?<![\w/.:@~*-])(?:(?:~|\.{1,2})?/[\w.*~-][\w.*+@%~/-]{0,200}"
    rf"|[\w*][\w.*+/-]{{0,200}}\.(?:{_SUFFIX})(?![\w/-]|\.\w))",
    re.IGNORECASE,
)
_QUOTED = re.compile(
    r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|`([^`\n]{1,200})`|(?<!\w)'([^'\n]{1,200})'(?!\w)"
)
_DATE = re.compile(
    r"(?:\b(since|from|after|between|until|before|to|by|and)\s+)?(?<![\w-])(\d{4}-\d\d-\d\d)(?![\w-])",
    re.IGNORECASE,
)
_LAST = ("until", "before", "to", "by", "and")
_PERIOD = re.compile(
    r"\b(?:last|past|previous)\s+(\d{1,4})\s+(minute|hour|day|week|month|year)s?\b", re.IGNORECASE
)
# A number with a letter or a second separator behind it (3k, 1.000,5) is not obvious.
_LIMIT = re.compile(
    r"\b(?:above|below|at\s+least|at\s+most|more\s+than|less\s+than|fewer\s+than)\s+"
    r"([$€£]?)(-?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?)(\s?%)?(?![.,]?\w)",
    re.IGNORECASE,
)


def described(description: str, taken: frozenset[str] = frozenset()) -> tuple[Parameter, ...]:
    """In the order in which the description states them. `taken` names are not used."""
    text = description[:_READ]
    found: list[tuple[int, Parameter]] = []
    for pattern, read in _READERS:

        def blank(match: re.Match[str], read: _Reader = read) -> str:
            parameter = read(match)
            if parameter is None:
                return match[0]
            found.append((match.start(), replace(parameter, help=_help(parameter, match[0]))))
            return " " * len(match[0])  # nothing is read twice

        text = pattern.sub(blank, text)
    kept: dict[str, Parameter] = {}
    for _, one in sorted(found, key=lambda item: item[0])[:MOST]:
        name, n = one.name, 1
        while name in taken or (name in kept and kept[name].default_source != one.default_source):
            n += 1
            name = f"{one.name}_{n}"
        kept.setdefault(name, replace(one, name=name))
    return tuple(kept.values())


def _help(parameter: Parameter, said: str) -> str:
    said = " ".join(said.split()).strip("\"'“”`")
    return f'{parameter.help}, from "{said if len(said) <= _HELP else said[: _HELP - 1] + "…"}"'


def _made(name: str, type_: str, source: str, help_: str) -> Parameter:
    return Parameter(name, type_, has_default=True, default_source=source, help=help_)


def _quoted(match: re.Match[str]) -> Parameter | None:
    value = next(part for part in match.groups() if part is not None)
    if not value.strip():
        return None
    for pattern, read in ((_URL, _url), (_PATH, _path)):
        if whole := pattern.fullmatch(value):
            return read(whole)
    return _made("text", "str", text_source(value), "text")


def _url(match: re.Match[str]) -> Parameter:
    return _made("url", "str", text_source(match[0].rstrip(".,;:!?")), "address")


def _path(match: re.Match[str]) -> Parameter | None:
    path = match[0].rstrip(".,;:!?")
    if not any(c.isalpha() for c in path):
        return None
    name = "pattern" if "*" in path else "path"
    return _made(name, "str", text_source(path), "which files" if "*" in path else "which file")


def _date(match: re.Match[str]) -> Parameter | None:
    try:
        day = date.fromisoformat(match[2])
    except ValueError:
        return None
    bound = (match[1] or "").lower()
    name = "day" if not bound else "until" if bound in _LAST else "since"
    help_ = {"day": "which day", "until": "last day", "since": "first day"}[name]
    return _made(name, "date", f"date({day.year}, {day.month}, {day.day})", help_)


def _period(match: re.Match[str]) -> Parameter:
    unit = f"{match[2].lower()}s"
    return _made(unit, "int", str(int(match[1])), f"{unit} to look at")


def _limit(match: re.Match[str]) -> Parameter:
    currency, number, percent = match.groups()
    number = number.replace(",", "")
    if currency or percent or "." in number:
        return _made("threshold", "float", repr(float(number)), "limit")
    return _made("threshold", "int", str(int(number)), "limit")


_Reader = Callable[[re.Match[str]], Parameter | None]
_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (_QUOTED, _quoted),
    (_URL, _url),
    (_PATH, _path),
    (_DATE, _date),
    (_PERIOD, _period),
    (_LIMIT, _limit),
)
