"""What a description of a task would have as parameters: numbers, periods, places, names.

Each reader takes what it knows and leaves blanks in its place, so that nothing is read twice.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from keyword import iskeyword

from . import described_limits, number_words, place_words, time_words
from .described_lists import lists
from .description import Input, Role, Text, listed, made, named, string, strings
from .number_reading import measured, number

Reader = Callable[[Text], Iterator[Input]]

MOST = 12  # parameters; more than that, nobody gives


def inferred(description: str, taken: frozenset[str] = frozenset()) -> tuple[Input, ...]:
    """In the order in which the description says them. `taken` are names that mean other things."""
    text = Text(description)
    found = [item for reader in _READERS for item in reader(text)]
    found.sort(key=lambda item: item.at)
    found = described_limits.related(found, text)
    used: dict[str, tuple[str, str]] = {}
    kept: list[Input] = []
    for item in found[:MOST]:
        name = _free(item, used, taken)
        if name:
            used[name] = (item.type, item.source)
            kept.append(replace(item, name=name))
    return tuple(kept)


def _free(item: Input, used: dict[str, tuple[str, str]], taken: frozenset[str]) -> str:
    """A name that is nobody's; empty where the same was said before."""
    name = item.name
    if iskeyword(name) or name in taken or hasattr(builtins, name):
        name = f"{name}_{'value' if item.type != 'int' else 'count'}"
    stem, n = name, 1
    while name in used:
        if used[name] == (item.type, item.source):
            return ""
        n += 1
        name = f"{stem}_{n}"
    return name


# Places


def _urls(text: Text) -> Iterator[Input]:
    found = list(text.take(place_words.URL))
    for each in found:
        text.read(each)
    yield from listed(found, "url", "urls", "address")


def _emails(text: Text) -> Iterator[Input]:
    found = list(text.take(place_words.EMAIL))
    for each in found:
        text.read(each)
    yield from listed(found, "recipient", "recipients", "mail address")


def _paths(text: Text) -> Iterator[Input]:
    for found in text.take(place_words.PATH):
        path = found[0].rstrip(".,;:!?)")
        no_path = re.fullmatch(r"\w{1,3}/\w{1,3}|\d+(?:/\d+)+", path)  # 5/6/2026
        if path.strip("/~.*") and not no_path:
            text.read(found)
            before = text.before(found.start())
            folder = path.endswith("/") or before in ("folder", "directory", "ordner", "dossier")
            file = "." in path.rsplit("/", 1)[-1].lstrip(".")
            name = "pattern" if "*" in path else "folder" if folder else "path"
            kind = "which files" if name == "pattern" else "file" if file else "file or folder"
            role: Role = "file" if name == "path" and file else ""
            yield made(found, name, "str", string(path), kind, role)


def _hosts(text: Text) -> Iterator[Input]:
    found = list(text.take(place_words.HOST))
    for each in found:
        text.read(each)
    yield from listed(found, "host", "hosts", "machine")


# Time


def _date(found: re.Match[str], group: str) -> date | None:
    try:
        return date.fromisoformat(found[group])
    except ValueError:
        return None


def _dates(text: Text) -> Iterator[Input]:
    for found in text.take(time_words.DATES):
        day = _date(found, "day")
        if day is None:
            continue
        text.read(found)
        bound = (found["bound"] or "").strip().lower()
        last = bound in time_words.UNTIL
        first = bound in time_words.SINCE or (not last and bool(found["rest"]))
        name = "until" if last else "since" if first else "day"
        help_ = {"until": "last day", "since": "first day"}.get(name, "which day")
        if found["rest"] and (end := _date(found, "end")) is not None:
            yield made(found, "since", "date", repr(day).removeprefix("datetime."), "first day")
            source = repr(end).removeprefix("datetime.")
            yield replace(made(found, "until", "date", source, "last day"), at=found.start("rest"))
        else:
            yield made(found, name, "date", repr(day).removeprefix("datetime."), help_)


def _calendar(text: Text) -> Iterator[Input]:
    """Quarters, months with a year, times of day, years."""
    for pattern, name, help_ in time_words.CALENDAR:
        for found in text.take(pattern):
            text.read(found)
            value = found["value"]
            if name == "year":
                yield made(found, name, "int", value, help_)
            else:
                yield made(found, name, "str", string(" ".join(value.split())), help_)


def _periods(text: Text) -> Iterator[Input]:
    for pattern in time_words.PERIODS:
        for found in text.take(pattern):
            unit = time_words.unit_of_time(found["unit"])
            if unit is not None:
                text.read(found)
                value = str(int(found["number"] or 1))
                yield made(found, unit, "int", value, f"{unit} to look at")
    for pattern, name, help_ in time_words.SPANS:
        for found in text.take(pattern):
            unit = time_words.unit_of_time(found["unit"])
            if unit is not None:
                text.read(found)
                value = str(number(found["number"]))
                kind = "float" if "." in value else "int"
                role: Role = "above" if name == "older_than" else ""
                item = made(found, f"{name}_{unit}", kind, value, f"{help_} in {unit}")
                yield replace(item, role=role)
    for found in text.take(time_words.SINGLE):
        text.read(found)
        days = time_words.single_period(found[0])
        yield made(found, "days", "int", str(days), "days to look at")


# Numbers


def _amounts(text: Text) -> Iterator[Input]:
    """Numbers that are left and say what they count or measure."""
    for found in text.take(number_words.PERCENTILE):
        text.read(found)
        yield made(found, "percentile", "float", repr(float(found["number"])), "percentile")
    for found in text.take(number_words.LABELLED):
        if name := named(found["label"]):
            text.read(found)
            value = number(found["number"])
            kind = "float" if isinstance(value, float) else "int"
            yield made(found, name, kind, repr(value), found["label"].lower())
    for pattern in (number_words.MEASURE, number_words.MONEY):
        yield from _quantities(text, pattern)
    for found in text.take(number_words.NUMBERED):
        if (name := named(found["what"])) and name not in place_words.SMALL:
            text.read(found)
            values = re.findall(r"\d+", found["values"])
            source = f"[{', '.join(str(int(value)) for value in values)}]"
            yield made(found, name, "list[int]", source, f"which {found['what']}")
    for found in text.take(number_words.COUNTED):
        before = text.whole[: found.start()].rstrip()
        product = re.search(r"\w\W+([A-Z]\w*)$", before[-40:])
        if not product:  # Python 3, not 3 of anything
            yield from _counted(text, found)


def _quantities(text: Text, pattern: re.Pattern[str]) -> Iterator[Input]:
    for found in text.take(pattern):
        type_, source, unit = measured(found)
        text.read(found)
        if time := time_words.unit_of_time(unit):
            value = number(found["number"])
            kind = "float" if isinstance(value, float) else "int"
            yield made(found, time, kind, repr(value), f"how many {time}")
            continue
        name = "percent" if unit == "percent" else "amount"
        yield made(found, name, type_, source, f"amount in {unit}" if unit else "amount")


def _counted(text: Text, found: re.Match[str]) -> Iterator[Input]:
    name = time_words.unit_of_time(found["what"]) or named(found["what"])
    if name in number_words.NOT_COUNTED:
        return
    if name in number_words.REPEATED:
        name = "times"
    elif not name or name in place_words.SMALL:
        name = "number"
    text.read(found)
    help_ = f"how many {found['what']}" if name != "number" else "number"
    yield made(found, name, "int", repr(int(number(found["number"]))), help_)


# Words


def _quoted(text: Text) -> Iterator[Input]:
    for found in text.take(place_words.QUOTED):
        value = next(part for part in found.groups() if part is not None)
        if not value.strip():
            continue
        before = place_words.folded(text.before(found.start()))
        name = place_words.NAMED_BY.get(before) or (
            before if before in place_words.NOUNS else "text"
        )
        text.read(found)
        yield made(found, named(name) or "text", "str", string(value), place_words.help_of(name))


def _nouns(text: Text) -> Iterator[Input]:
    for found in text.take(place_words.CHANNEL):
        text.read(found)
        yield made(found, "channel", "str", string(found["value"]), "channel")
    for found in text.take(place_words.NOUN):
        value = found["value"].rstrip(".,;:!?)")
        if not value or place_words.folded(value) in place_words.SMALL:
            continue
        name = named(place_words.NOUNS_TO.get(place_words.folded(found["noun"]), found["noun"]))
        if name:
            text.read(found)
            yield made(found, name, "str", string(value), place_words.help_of(name))


def _for_whom(text: Text) -> Iterator[Input]:
    for found in text.take(place_words.PLACES):
        values = place_words.listed(found["values"])
        if not any(place_words.folded(value) in place_words.NOT_NAMES for value in values):
            text.read(found)
            yield made(found, "places", "list[str]", strings(values), "where")
    for found in text.take(place_words.PLACE):
        if place_words.folded(found["value"].split()[0]) not in place_words.NOT_NAMES:
            text.read(found)
            yield made(found, "place", "str", string(found["value"]), "where")
    for found in text.take(place_words.FOR):
        value = found["value"].rstrip(".,;:!?)")
        if place_words.folded(value.split()[0]) in place_words.NOT_NAMES:
            continue
        text.read(found)
        yield made(found, "name", "str", string(value), "for whom or what")


def _switches(text: Text) -> Iterator[Input]:
    for pattern, name, help_ in place_words.SWITCHES:
        found = pattern.search(text.left)
        if found is not None:
            text.read(found)
            yield made(found, name, "bool", "True", help_, "dry" if name == "dry_run" else "")


_READERS: tuple[Reader, ...] = (
    _urls,
    _emails,
    lists,
    _quoted,
    _nouns,
    _paths,
    _hosts,
    _dates,
    described_limits.ranges,
    _calendar,
    _periods,  # before limits: les 30 derniers jours are no 30 of anything
    described_limits.most,
    described_limits.thresholds,
    _for_whom,
    _switches,
    _amounts,
)
