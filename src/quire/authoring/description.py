"""The description of a task while it is read: what is left of it, and what was found in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from . import place_words

# From and to: the values that the task is about lie between them. Aside: it limits something else
# than the value, so the rule does not use it.
Role = Literal["above", "below", "from", "to", "aside", "most", "file", "dry", ""]

_READ = 4_000  # characters of a description that are looked at
_HELP = 60


@dataclass(frozen=True, slots=True)
class Input:
    """`source` is the default as Python; `said` is what in the description it comes from, which
    stands there from `at` to `end`. `edge`: the limit itself is looked for, too."""

    name: str
    type: str
    source: str
    help: str
    said: str
    at: int
    role: Role = ""
    end: int = 0
    unit: str = ""
    edge: bool = False

    @property
    def line(self) -> str:
        return f"{self.name}: {self.type} = {self.source}  # {self.help}"


class Text:
    """The description, of which what was read is blanked out."""

    def __init__(self, text: str) -> None:
        self.whole = text[:_READ]
        self.left = self.whole

    def take(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches one after the other. Only what `read` is told of is gone afterwards."""
        at = 0
        while (found := pattern.search(self.left, at)) is not None:
            at = max(found.end(), found.start() + 1)
            yield found

    def read(self, found: re.Match[str], group: int | str = 0) -> None:
        start, end = found.span(group)
        self.left = self.left[:start] + " " * (end - start) + self.left[end:]

    def before(self, at: int) -> str:
        """The word before a place, in lower case."""
        part = self.whole[max(0, at - 60) : at].rstrip(" \t\"'“„«:=(-#$€£")
        found = re.search(r"[^\W\d_][\w-]*$", part)
        return found[0].lower() if found else ""


def named(word: str) -> str:
    """An identifier in ASCII, or nothing."""
    name = re.sub(r"[^a-z0-9]+", "_", place_words.folded(word)).strip("_")
    return name if re.match(r"[a-z]", name) and len(name) <= 30 else ""


def string(value: str) -> str:
    """With double quotes where that needs no backslash."""
    plain = repr(value)
    return f'"{value}"' if plain == f"'{value}'" and '"' not in value else plain


def strings(values: list[str]) -> str:
    return f"[{', '.join(string(value) for value in values)}]"


def _said(phrase: str) -> str:
    phrase = " ".join(phrase.split())
    phrase = phrase.strip('"')
    return phrase if len(phrase) <= _HELP else phrase[: _HELP - 1] + "…"


def made(
    found: re.Match[str], name: str, type_: str, source: str, help_: str, role: Role = ""
) -> Input:
    said = _said(found[0])
    help_ = f'{help_}, from "{said}"'
    return Input(name, type_, source, help_, said, found.start(), role, found.end())


def listed(matches: list[re.Match[str]], one: str, many: str, help_: str) -> Iterator[Input]:
    """One value as a string, several as a list of them."""
    values = list(dict.fromkeys(found[0].rstrip(".,;:!?)") for found in matches))
    if len(values) == 1:
        yield made(matches[0], one, "str", string(values[0]), help_)
    elif values:
        yield made(matches[0], many, "list[str]", strings(values), help_)
