"""Where in a piece of code a place is, and how a value has to look to stay inside it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from .code_regions import Language, Place
from .shell_regions import shell_places


class Unfit(ValueError):
    """A value that no writing keeps in its place; says what the place is."""


_PREFIX = re.compile(r"(?:[rbuf]|rb|br|rf|fr)\Z", re.IGNORECASE)
_WORD_BEFORE = re.compile(r"\w*\Z")
# As IPython has it: a line for a shell, in the middle of Python.
_SHELL_LINE = re.compile(r"[ \t]*(?:[\w., ]+=[ \t]*)?!!?[^=\n][^\n]*")
_FIELD = "a field of an f-string, where nothing can be escaped"
_BREAKS_OUT = re.compile(r"[\"'\\`$#{}\r\n]")


def language_of(source: str, metadata: Mapping[str, Any]) -> Language:
    if "kernel" in metadata:
        return "other"
    first = source.partition("\n")[0].split(" ")[0]
    if first in ("%%bash", "%%sh"):
        return "shell"
    return "sql" if first == "%%sql" else "python"


def places(source: str, language: Language) -> list[Place]:
    """The place of every character, by a scan that never fails: code may be broken."""
    if language == "python":
        return _python(source)
    if language == "shell":
        return shell_places(source)
    if language == "sql":
        return _sql(source)
    return [Place("other")] * (len(source) + 1)


def fitted(text: str, place: Place) -> str:
    """The text so that it stays in its place."""
    if place.comment:
        return " ".join(text.split())
    if place.fixed and _BREAKS_OUT.search(text):
        raise Unfit(place.fixed)
    if place.language == "python":
        return _in_python(text, place) if place.quote else text
    if place.language == "sql":
        return text.replace(place.quote, place.quote * 2) if place.quote else text
    if place.language == "shell":
        return _in_shell(text, place)
    return text


def _in_python(text: str, place: Place) -> str:
    if place.braces:
        text = text.replace("{", "{{").replace("}", "}}")
    if place.raw:
        # Nothing can be escaped there.
        ends = text.endswith(("\\", place.quote[0])) or place.quote in text
        if ends or (len(place.quote) == 1 and re.search(r"[\r\n]", text)):
            raise Unfit("a raw string, where nothing can be escaped")
        return text
    text = text.replace("\\", "\\\\").replace(place.quote[0], "\\" + place.quote[0])
    if len(place.quote) == 1:
        text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text


def _in_shell(text: str, place: Place) -> str:
    if place.quote == "$'":
        return text.replace("\\", "\\\\").replace("'", "\\'")
    if place.quote == "'":
        return text.replace("'", "'\\''")
    if place.quote == '"' or place.expands:
        escaped = re.sub(r"([\\$`])", r"\\\1", text)
        return escaped if place.expands and not place.quote else escaped.replace('"', '\\"')
    return text if place.raw else shlex.quote(text)


def _python(source: str) -> list[Place]:
    outside = Place("python")
    out: list[Place] = []
    at, here = 0, outside
    fields = 0  # how deep in the fields of an f-string
    while at < len(source):
        char = source[at]
        if here == outside and (at == 0 or source[at - 1] == "\n"):
            line = _SHELL_LINE.match(source, at)
            if line:
                out += shell_places(line[0])[:-1]
                at = line.end()
                continue
        if here.comment:
            here = outside if char == "\n" else here
        elif here.quote:
            if here.braces and char in "{}":
                if not fields and source[at + 1 : at + 2] == char:
                    out += [here, here]
                    at += 2
                    continue
                out.append(here._replace(fixed=_FIELD) if fields else here)
                fields = fields + 1 if char == "{" else max(0, fields - 1)
                at += 1
                continue
            if char == "\\" and at + 1 < len(source):
                out += [here, here]
                at += 2
                continue
            if source.startswith(here.quote, at) or (char == "\n" and len(here.quote) == 1):
                size = 1 if char == "\n" else len(here.quote)
                out += [here] * size
                at += size
                here = outside
                continue
        elif char == "#":
            here = Place("python", comment=True)
        elif char in "\"'":
            quote = char * 3 if source.startswith(char * 3, at) else char
            word = _WORD_BEFORE.search(source, max(0, at - 3), at)
            prefix = word[0].lower() if word and _PREFIX.match(word[0]) else ""
            here = Place("python", quote, raw="r" in prefix, braces="f" in prefix)
            fields = 0
            out += [here] * len(quote)
            at += len(quote)
            continue
        out.append(here)
        at += 1
    return [*out, here]


def _sql(source: str) -> list[Place]:
    outside = Place("sql")
    out: list[Place] = []
    here = outside
    for at, char in enumerate(source):
        if here.comment:
            here = outside if char == "\n" else here
            out.append(here)
        elif here.quote:
            out.append(here)
            here = outside if char == here.quote else here
        else:
            if source.startswith("--", at):
                here = Place("sql", comment=True)
            elif char in "\"'":
                here = Place("sql", char)
            out.append(here)
    return [*out, here]
