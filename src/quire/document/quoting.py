"""Where in a piece of code a place is, and how a value has to look to stay inside it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Language = Literal["python", "shell", "sql", "other"]


class Place(NamedTuple):
    """`quote` is what would end the string the place is in; empty outside of one."""

    language: Language
    quote: str = ""
    raw: bool = False
    braces: bool = False  # an f-string: braces are doubled
    comment: bool = False
    expands: bool = False  # a shell would expand `$` and backticks here


_PREFIX = re.compile(r"(?:[rbuf]|rb|br|rf|fr)\Z", re.IGNORECASE)
_WORD_BEFORE = re.compile(r"\w*\Z")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")


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
        return _shell(source)
    if language == "sql":
        return _sql(source)
    return [Place("other")] * (len(source) + 1)


def fitted(text: str, place: Place) -> str:
    """The text so that it stays in its place."""
    if place.comment:
        return " ".join(text.split())
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
        return text  # nothing can be escaped there; what ends the string is a broken step
    text = text.replace("\\", "\\\\").replace(place.quote[0], "\\" + place.quote[0])
    if len(place.quote) == 1:
        text = text.replace("\n", "\\n").replace("\r", "\\r")
    return text


def _in_shell(text: str, place: Place) -> str:
    if place.quote == "'":
        return text.replace("'", "'\\''")
    if place.quote == '"' or place.expands:
        escaped = re.sub(r"([\\$`])", r"\\\1", text)
        return escaped if place.expands and not place.quote else escaped.replace('"', '\\"')
    return text if place.raw else shlex.quote(text) if text else text


def _python(source: str) -> list[Place]:
    outside = Place("python")
    out: list[Place] = []
    at, here = 0, outside
    while at < len(source):
        char = source[at]
        if here.comment:
            here = outside if char == "\n" else here
        elif here.quote:
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
            out += [here] * len(quote)
            at += len(quote)
            continue
        out.append(here)
        at += 1
    return [*out, here]


def _shell(source: str) -> list[Place]:
    outside = Place("shell")
    out: list[Place] = []
    at, here = 0, outside
    heredocs: list[re.Match[str]] = []
    while at < len(source):
        char = source[at]
        if here.comment:
            here = outside if char == "\n" else here
        elif here.quote:
            if char == "\\" and here.quote == '"' and at + 1 < len(source):
                out += [here, here]
                at += 2
                continue
            if char == here.quote:
                out.append(here)
                at, here = at + 1, outside
                continue
        elif char == "\\" and at + 1 < len(source):
            out += [here, here]
            at += 2
            continue
        elif char == "#" and (at == 0 or source[at - 1].isspace()):
            here = Place("shell", comment=True)
        elif char in "\"'":
            here = Place("shell", char)
        elif char == "<" and (found := _HEREDOC.match(source, at)):
            heredocs.append(found)
            out += [here] * (found.end() - at)
            at = found.end()
            continue
        out.append(here)
        at += 1
        if char == "\n" and heredocs and not here.quote:
            for found in heredocs:
                end = re.compile(rf"^\t*{found[2]}$", re.MULTILINE).search(source, at)
                stop = end.end() if end else len(source)
                inside = Place("shell", raw=bool(found[1]), expands=not found[1])
                out += [inside] * (stop - at)
                at = stop
            heredocs = []
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
