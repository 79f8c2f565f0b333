"""What a description limits, and which side of a limit it looks for: the rule of a draft."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from . import number_words, place_words, time_words
from .description import Input, Role, Text, made, named
from .number_reading import measured, number, unit_of

_WORD = re.compile(r"\s*[^\W\d_][\w-]*")
_SAID_BEFORE = 200  # characters in which the words stand that a limit belongs to


def ranges(text: Text) -> Iterator[Input]:
    for found in text.take(number_words.YEARS):
        text.read(found)
        yield made(found, "first_year", "int", found["low"], "first year")
        last = made(found, "last_year", "int", found["high"], "last year")
        yield replace(last, at=found.start("high"))
    for found in text.take(number_words.RANGE):
        unit = unit_of(found["unit"] or found["first"], found["sign"])
        continental = unit in number_words.CURRENCIES or found[0][:3].lower() != "bet"
        low, high = (number(found[name], continental=continental) for name in ("low", "high"))
        if low > high:
            continue
        # What must be between two limits is looked for beyond them.
        roles: tuple[Role, Role] = ("below", "above") if _is_demanded(text, found) else _BETWEEN
        text.read(found)
        kind = "float" if unit or isinstance(low, float) or isinstance(high, float) else "int"
        as_kind = float if kind == "float" else int
        of = f" in {unit}" if unit else ""
        first = made(found, "minimum", kind, repr(as_kind(low)), f"smallest value{of}", roles[0])
        yield replace(first, unit=unit, edge=roles == _BETWEEN)
        last = made(found, "maximum", kind, repr(as_kind(high)), f"largest value{of}", roles[1])
        yield replace(last, at=found.start("high"), unit=unit, edge=roles == _BETWEEN)


_BETWEEN: tuple[Role, Role] = ("from", "to")


def thresholds(text: Text) -> Iterator[Input]:
    for pattern in (number_words.COMPARED, number_words.COMPARED_AFTER):
        for found in text.take(pattern):
            type_, source, unit = measured(found)
            role, edge = _looked_for(text, found)
            text.read(found)
            # Where the limit itself is looked for, it is not fine.
            extreme = "lowest" if (role == "above") == edge else "highest"
            of = f" in {unit}" if unit else ""
            help_ = f"{extreme} value that {'counts' if edge else 'is fine'}{of}"
            item = made(found, "threshold", type_, source, help_, role)
            yield replace(item, edge=edge, unit=unit)


def _looked_for(text: Text, found: re.Match[str]) -> tuple[Role, bool]:
    """Where the values are that the task is about, and whether the limit is one of them.

    What is asked to be under a limit is looked for from it on.
    """
    side, edge = number_words.side(found["word"])
    if not _is_demanded(text, found):
        return side, edge
    return ("below" if side == "above" else "above"), not edge


def _is_demanded(text: Text, found: re.Match[str]) -> bool:
    """Rather than looked for. The nearest word before it decides, and a `not` turns it round."""
    before = text.whole[max(0, found.start() - _SAID_BEFORE) : found.start()]
    wanted, sought = (
        max((each.end() for each in pattern.finditer(before)), default=0)
        for pattern in (number_words.WANTED, number_words.LOOKED_FOR)
    )
    groups = found.groupdict()
    demanded = wanted > 0 and wanted >= sought
    if not wanted and not sought:
        said = number_words.DEMANDS.fullmatch(groups.get("word") or "")
        demanded = said is not None and number_words.OF.search(before) is None
    nobody = demanded and number_words.NOBODY.search(before[wanted:]) is not None
    turned = nobody or number_words.NEGATED.search(before[-60:]) is not None
    return demanded != (turned or groups.get("not") is not None)


def most(text: Text) -> Iterator[Input]:
    """How many are shown."""
    for found in text.take(number_words.AT_MOST):
        if not _is_condition(text, found):
            yield _limit(text, found)
    for pattern in number_words.LIMITS:
        for found in text.take(pattern):
            yield _limit(text, found)


def _limit(text: Text, found: re.Match[str]) -> Input:
    text.read(found)
    return made(found, "limit", "int", str(number(found["number"])), "at most so many", "most")


def _is_condition(text: Text, found: re.Match[str]) -> bool:
    """Orders with at most 3 items, rather than at most 3 orders."""
    before = text.whole[max(0, found.start() - 60) : found.start()].rstrip()
    if number_words.ROWS.match(text.whole, found.end()) or before.lower().endswith("keep"):
        return False
    if number_words.CONDITION.search(before):
        return True
    return any(each.end() == len(before) for each in number_words.WANTED.finditer(before))


# Several limits


def related(found: list[Input], text: Text) -> list[Input]:
    """What several limits have to do with each other: pairs, further conditions, their names."""
    found = _as_range(_ages_aside(found), text)
    found = _aside(found, text)
    sides = ("above", "below", "aside") if _several(found) else ("aside",)
    told = [
        _told_apart(item, found, text) if item.name == "threshold" and item.role in sides else item
        for item in found
    ]
    names = [item.name for item in told]
    return [_extreme(item) if _is_one_of(item, names) else item for item in told]


def _several(found: list[Input]) -> bool:
    return sum(item.role in ("above", "below") for item in found) > 1


def _is_one_of(item: Input, names: list[str]) -> bool:
    """Below 10 or above 90 of the same thing."""
    return item.role in ("above", "below") and names.count(item.name) > 1


def _extreme(item: Input) -> Input:
    return replace(item, name="minimum" if item.role == "below" else "maximum")


def _is_age(item: Input) -> bool:
    return item.name.startswith("older_than_")


def _ages_aside(found: list[Input]) -> list[Input]:
    """An age is not compared with the value that another limit is about."""
    others = [item for item in found if item.role in ("above", "below", "from")]
    if all(_is_age(item) for item in others):
        return found
    return [replace(item, role="aside") if _is_age(item) else item for item in found]


def _as_range(found: list[Input], text: Text) -> list[Input]:
    """Above 0.7 and below 0.9: not what is above or below, but what is between."""
    limits = [item for item in found if item.role in ("above", "below")]
    if [item.role for item in limits] != ["above", "below"]:
        return found
    low, high = limits
    if float(low.source) >= float(high.source):
        return found
    middle = text.whole[low.end : high.at]
    subject = _subject(text, high.at, low.end)
    if subject and subject == _subject(text, low.at, max(0, low.at - 60)):
        middle = re.sub(rf"(?i)\b{subject}\b.*", "", middle)  # price > 5 and price < 30
    if not number_words.JOINED.fullmatch(middle):
        return found
    first = "smallest value" if low.edge else "values are above it"
    last = "largest value" if high.edge else "values are below it"
    between = {
        low: replace(low, name="minimum", help=f'{first}, from "{low.said}"', role="from"),
        high: replace(high, name="maximum", help=f'{last}, from "{high.said}"', role="to"),
    }
    return [between.get(item, item) for item in found]


def _aside(found: list[Input], text: Text) -> list[Input]:
    """Further conditions on other things than the value: orders over $100 with more than 5 items.

    A range is the rule, else the first limit that is no time.
    """
    rules = [item for item in found if item.role in ("above", "below", "from")]
    if len(rules) < 2:
        return found
    rank = {"from": 0, "above": 1, "below": 1}
    main = min(rules, key=lambda item: (rank[item.role], _is_time(item), item.at))
    kept = {main}
    for item in rules:
        first, second = (main, item) if main.at < item.at else (item, main)
        if item is not main and _alternative(first, second, text):
            kept.add(item)
    return [
        replace(item, role="aside") if item in rules and item not in kept else item
        for item in found
    ]


def _is_time(item: Input) -> bool:
    return time_words.unit_of_time(item.unit) is not None


def _alternative(first: Input, second: Input, text: Text) -> bool:
    """Whether a limit is one on another subject, or another one on the same measure."""
    if first.end > second.at:  # the two ends of a range
        return True
    between = text.whole[first.end : second.at]
    joint = number_words.JOINT.search(between)
    if joint is None:
        return False
    if _subject(text, second.at, first.end + joint.end()):
        return True
    measures = {item.unit or _counted(text, item) for item in (first, second)} - {""}
    return len(measures) < 2


def _counted(text: Text, item: Input) -> str:
    """More than 5 items: what is counted."""
    after = re.match(r"\s+([^\W\d_][\w-]{1,29})", text.whole[item.end : item.end + 40])
    stem = named(after[1]) if after else ""
    return "" if stem in place_words.SMALL or len(stem) < 2 else stem


def _subject(text: Text, at: int, start: int) -> str:
    """The last word before a limit that says what is limited."""
    for found in reversed(list(re.finditer(r"[^\W\d_][\w-]*", text.whole[start:at]))[-4:]):
        stem = named(found[0])
        if len(stem) > 1 and stem not in place_words.SMALL:
            return stem
    return ""


def _told_apart(item: Input, found: list[Input], text: Text) -> Input:
    """Several limits are named after what they limit: cpu_threshold, memory_threshold."""
    ends = [other.end for other in found if other.end <= item.at and other.role != ""]
    start = max(ends, default=0)
    joint = number_words.JOINT.search(text.whole[start : item.at]) if start else None
    # Over 5 items under $100: the items are what the limit before counts.
    counted = _WORD.match(text.whole, start) if start and joint is None else None
    start = max(item.at - 60, counted.end() if counted else start + (joint.end() if joint else 0))
    stem = _subject(text, item.at, max(0, start))
    if not stem and item.role == "aside":
        time = time_words.unit_of_time(item.unit)
        stem = _counted(text, item) or time or named(item.unit) or "other"
    if stem:
        return replace(item, name=f"{stem}_threshold")
    return _extreme(item)
