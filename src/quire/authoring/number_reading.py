"""Numbers as people write them: with separators of their country, signs and units."""

from __future__ import annotations

import re

from . import number_words


def number(text: str, *, continental: bool = False) -> int | float:
    """As people write it: 1,200 and 1.5 and 3k. Where it is `continental`, 1.200 is the first."""
    text = re.sub(r"[\s']", "", text)
    factor = {"k": 1_000, "m": 1_000_000}.get(text[-1:].lower(), 1)
    text = text[:-1] if factor > 1 else text
    if "," in text and "." in text:  # the later of the two is the decimal one
        thousands = "," if text.rindex(",") < text.rindex(".") else "."
        text = text.replace(thousands, "")
    elif re.fullmatch(r"-?[1-9]\d{0,2}([.,]\d{3})+", text) and (
        continental or text.count(".") != 1
    ):
        text = re.sub(r"[.,]", "", text)
    text = text.replace(",", ".")
    if text.count(".") > 1:
        text = text.replace(".", "")
    if "." not in text:
        return int(text) * factor
    value = float(text) * factor
    return int(value) if factor > 1 and value.is_integer() else value


def unit_of(unit: str | None, sign: str | None) -> str:
    unit = (unit or "").strip()
    return number_words.UNITS.get(unit.lower(), unit) or number_words.SIGNS.get(sign or "", "")


def measured(found: re.Match[str]) -> tuple[str, str, str]:
    """Type, default and unit of a number with what stands around it."""
    unit = unit_of(found["unit"], found["sign"])
    word = found.groupdict().get("word") or ""
    continental = unit in number_words.CURRENCIES or bool(number_words.CONTINENTAL.fullmatch(word))
    value = number(found["number"], continental=continental)
    if unit or isinstance(value, float):
        return "float", repr(float(value)), unit
    return "int", str(value), ""
