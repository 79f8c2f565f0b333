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

from . import numberwords, timewords, words
from .described import Input, Role, Text, listed, made, named, string, strings
from .numbers import measured, number, unit_of

Reader = Callable[[Text], Iterator[Input]]

MOST = 12  # parameters; more than that, nobody gives


def inferred(description: str, taken: frozenset[str] = frozenset()) -> tuple[Input, ...]:
    """In the order in which the description says them. `taken` are names that mean other things."""
    text = Text(description)
    found = [item for reader in _READERS for item in reader(text)]
    found.sort(key=lambda item: item.at)
    found = _as_range(found, text)
    if sum(item.role in ("above", "below") for item in found) > 1:
        found = [_told_apart(item, text) for item in found]
    used: dict[str, tuple[str, str]] = {}
    kept: list[Input] = []
    for item in found[:MOST]:
        name = _free(item, used, taken)
        if name:
            used[name] = (item.type, item.source)
            kept.append(replace(item, name=name))
    return tuple(kept)


def _as_range(found: list[Input], text: Text) -> list[Input]:
    """Above 0.7 and below 0.9: not what is above or below, but what is between."""
    limits = [item for item in found if item.role in ("above", "below")]
    if [item.role for item in limits] != ["above", "below"]:
        return found
    low, high = limits
    if float(low.source) >= float(high.source):
        return found
    middle = text.whole[low.at : high.at]
    said = numberwords.COMPARED.match(text.whole, low.at)
    if said is None or not numberwords.JOINED.fullmatch(middle[said.end() - low.at :]):
        return found
    between = {
        low: replace(low, name="minimum", help=f'smallest value, from "{low.said}"', role="from"),
        high: replace(high, name="maximum", help=f'largest value, from "{high.said}"', role="to"),
    }
    return [between.get(item, item) for item in found]


def _told_apart(item: Input, text: Text) -> Input:
    """Several limits are named after what they limit: cpu_threshold, memory_threshold."""
    if item.role not in ("above", "below") or item.name != "threshold":
        return item
    at, subject = item.at, ""
    for _ in range(4):
        subject = text.before(at)
        if not subject or named(subject) not in words.SMALL:
            break
        at = text.whole.lower().rfind(subject, 0, at)
    stem = named(subject)
    if len(stem) > 1 and stem not in words.SMALL:
        return replace(item, name=f"{stem}_threshold")
    return replace(item, name="minimum" if item.role == "below" else "maximum")


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
    found = list(text.take(words.URL))
    for each in found:
        text.read(each)
    yield from listed(found, "url", "urls", "address")


def _emails(text: Text) -> Iterator[Input]:
    found = list(text.take(words.EMAIL))
    for each in found:
        text.read(each)
    yield from listed(found, "recipient", "recipients", "mail address")


def _paths(text: Text) -> Iterator[Input]:
    for found in text.take(words.PATH):
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
    found = list(text.take(words.HOST))
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
    for found in text.take(timewords.DATES):
        day = _date(found, "day")
        if day is None:
            continue
        text.read(found)
        bound = (found["bound"] or "").strip().lower()
        last = bound in timewords.UNTIL
        first = bound in timewords.SINCE or (not last and bool(found["rest"]))
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
    for pattern, name, help_ in timewords.CALENDAR:
        for found in text.take(pattern):
            text.read(found)
            value = found["value"]
            if name == "year":
                yield made(found, name, "int", value, help_)
            else:
                yield made(found, name, "str", string(" ".join(value.split())), help_)


def _periods(text: Text) -> Iterator[Input]:
    for pattern in timewords.PERIODS:
        for found in text.take(pattern):
            unit = timewords.unit_of_time(found["unit"])
            if unit is not None:
                text.read(found)
                value = str(int(found["number"] or 1))
                yield made(found, unit, "int", value, f"{unit} to look at")
    for pattern, name, help_ in timewords.SPANS:
        for found in text.take(pattern):
            unit = timewords.unit_of_time(found["unit"])
            if unit is not None:
                text.read(found)
                value = str(number(found["number"]))
                kind = "float" if "." in value else "int"
                role: Role = "above" if name == "older_than" else ""
                item = made(found, f"{name}_{unit}", kind, value, f"{help_} in {unit}")
                yield replace(item, role=role)
    for found in text.take(timewords.SINGLE):
        text.read(found)
        days = timewords.single_period(found[0])
        yield made(found, "days", "int", str(days), "days to look at")


# Numbers


def _ranges(text: Text) -> Iterator[Input]:
    for found in text.take(numberwords.YEARS):
        text.read(found)
        yield made(found, "first_year", "int", found["low"], "first year")
        last = made(found, "last_year", "int", found["high"], "last year")
        yield replace(last, at=found.start("high"))
    for found in text.take(numberwords.RANGE):
        unit = unit_of(found["unit"] or found["first"], found["sign"])
        continental = unit in numberwords.CURRENCIES or found[0][:3].lower() != "bet"
        low, high = (number(found[name], continental=continental) for name in ("low", "high"))
        if low > high:
            continue
        text.read(found)
        kind = "float" if unit or isinstance(low, float) or isinstance(high, float) else "int"
        as_kind = float if kind == "float" else int
        of = f" in {unit}" if unit else ""
        yield made(found, "minimum", kind, repr(as_kind(low)), f"smallest value{of}", "from")
        last = made(found, "maximum", kind, repr(as_kind(high)), f"largest value{of}", "to")
        yield replace(last, at=found.start("high"))


def _thresholds(text: Text) -> Iterator[Input]:
    for pattern in (numberwords.COMPARED, numberwords.COMPARED_AFTER):
        for found in text.take(pattern):
            type_, source, unit = measured(found)
            text.read(found)
            role = _bad_side(text, found)
            side = "lowest" if role == "below" else "highest"
            of = f" in {unit}" if unit else ""
            yield made(found, "threshold", type_, source, f"{side} value that is fine{of}", role)


def _bad_side(text: Text, found: re.Match[str]) -> Role:
    """Above or below: where the values are that the task is about.

    What is asked to be under a limit is looked for above it. The nearest word before it decides.
    """
    said = found["word"].lower()
    above = text.whole[max(0, found.start() - 200) : found.start()]
    wanted, sought = (
        max((each.end() for each in pattern.finditer(above)), default=0)
        for pattern in (numberwords.WANTED, numberwords.LOOKED_FOR)
    )
    demanded = wanted > sought or (wanted == sought and said in numberwords.DEMANDS)
    return "below" if numberwords.is_below(said) != demanded else "above"


def _limits(text: Text) -> Iterator[Input]:
    for pattern in numberwords.LIMITS:
        for found in text.take(pattern):
            text.read(found)
            value = str(number(found["number"]))
            yield made(found, "limit", "int", value, "at most so many", "most")


def _amounts(text: Text) -> Iterator[Input]:
    """Numbers that are left and say what they count or measure."""
    for found in text.take(numberwords.PERCENTILE):
        text.read(found)
        yield made(found, "percentile", "float", repr(float(found["number"])), "percentile")
    for found in text.take(numberwords.LABELLED):
        if name := named(found["label"]):
            text.read(found)
            value = number(found["number"])
            kind = "float" if isinstance(value, float) else "int"
            yield made(found, name, kind, repr(value), found["label"].lower())
    for pattern in (numberwords.MEASURE, numberwords.MONEY):
        yield from _quantities(text, pattern)
    for found in text.take(numberwords.NUMBERED):
        if (name := named(found["what"])) and name not in words.SMALL:
            text.read(found)
            values = re.findall(r"\d+", found["values"])
            source = f"[{', '.join(str(int(value)) for value in values)}]"
            yield made(found, name, "list[int]", source, f"which {found['what']}")
    for found in text.take(numberwords.COUNTED):
        before = text.whole[: found.start()].rstrip()
        product = re.search(r"\w\W+([A-Z]\w*)$", before[-40:])
        if not product:  # Python 3, not 3 of anything
            yield from _counted(text, found)


def _quantities(text: Text, pattern: re.Pattern[str]) -> Iterator[Input]:
    for found in text.take(pattern):
        type_, source, unit = measured(found)
        text.read(found)
        if time := timewords.unit_of_time(unit):
            value = number(found["number"])
            kind = "float" if isinstance(value, float) else "int"
            yield made(found, time, kind, repr(value), f"how many {time}")
            continue
        name = "percent" if unit == "percent" else "amount"
        yield made(found, name, type_, source, f"amount in {unit}" if unit else "amount")


def _counted(text: Text, found: re.Match[str]) -> Iterator[Input]:
    name = timewords.unit_of_time(found["what"]) or named(found["what"])
    if name in numberwords.NOT_COUNTED:
        return
    if name in numberwords.REPEATED:
        name = "times"
    elif not name or name in words.SMALL:
        name = "number"
    text.read(found)
    help_ = f"how many {found['what']}" if name != "number" else "number"
    yield made(found, name, "int", repr(int(number(found["number"]))), help_)


# Words


def _quoted(text: Text) -> Iterator[Input]:
    for found in text.take(words.QUOTED):
        value = next(part for part in found.groups() if part is not None)
        if not value.strip():
            continue
        before = words.folded(text.before(found.start()))
        name = words.NAMED_BY.get(before) or (before if before in words.NOUNS else "text")
        text.read(found)
        yield made(found, named(name) or "text", "str", string(value), words.help_of(name))


def _nouns(text: Text) -> Iterator[Input]:
    for found in text.take(words.REGION):
        text.read(found)
        yield made(found, "region", "str", string(found[0]), "region")
    for found in text.take(words.CHANNEL):
        text.read(found)
        yield made(found, "channel", "str", string(found["value"]), "channel")
    for found in text.take(words.LISTED):
        values = words.listed(found["values"])
        if all(_is_name(value, short=len(values) > 2) for value in values):
            text.read(found)
            name = found["what"].lower()
            yield made(found, name, "list[str]", strings(values), f"which {name}")
    for found in text.take(words.NOUN):
        value = found["value"].rstrip(".,;:!?)")
        if not value or words.folded(value) in words.SMALL:
            continue
        name = named(words.NOUNS_TO.get(words.folded(found["noun"]), found["noun"]))
        if name:
            text.read(found)
            yield made(found, name, "str", string(value), words.help_of(name))


def _is_name(word: str, *, short: bool) -> bool:
    """Rather than a word of the sentence: `web01`, `ACME`, and of several `eu`; not `complain`."""
    return re.search(r"[A-Z\d_.-]", word) is not None or (short and len(word) <= 4)


def _for_whom(text: Text) -> Iterator[Input]:
    for found in text.take(words.PLACES):
        values = words.listed(found["values"])
        if not any(words.folded(value) in words.NOT_NAMES for value in values):
            text.read(found)
            yield made(found, "places", "list[str]", strings(values), "where")
    for found in text.take(words.PLACE):
        if words.folded(found["value"].split()[0]) not in words.NOT_NAMES:
            text.read(found)
            yield made(found, "place", "str", string(found["value"]), "where")
    for found in text.take(words.FOR):
        value = found["value"].rstrip(".,;:!?)")
        if words.folded(value.split()[0]) in words.NOT_NAMES:
            continue
        text.read(found)
        yield made(found, "name", "str", string(value), "for whom or what")


def _switches(text: Text) -> Iterator[Input]:
    for pattern, name, help_ in words.SWITCHES:
        found = pattern.search(text.left)
        if found is not None:
            text.read(found)
            yield made(found, name, "bool", "True", help_, "dry" if name == "dry_run" else "")


_READERS: tuple[Reader, ...] = (
    _urls,
    _emails,
    _quoted,
    _nouns,
    _paths,
    _hosts,
    _dates,
    _ranges,
    _calendar,
    _periods,  # before limits: les 30 derniers jours are no 30 of anything
    _limits,
    _thresholds,
    _for_whom,
    _switches,
    _amounts,
)
