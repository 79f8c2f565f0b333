"""Notebooks on their way into git: without outputs, counts and the traces of runs.

Nothing is parsed and written again: what goes is cut out of the text, and every other byte stays.
So a notebook that has nothing to lose passes as it is, however it was laid out.

Git starts this for every `git add` and every checkout, hence the few imports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

ALL: frozenset[str] = frozenset()
# What engines and front ends leave in the metadata; under `quire` only these keys.
_OF_NOTEBOOK = {
    "papermill": ALL,
    "widgets": ALL,
    "quire": frozenset({"run_id", "uuid", "outcome", "parent"}),
}
_OF_CELL = {
    "papermill": ALL,
    "execution": ALL,
    "ExecuteTime": ALL,
    "quire": frozenset({"status"}),
}
_BLANK = re.compile(r"[ \t\r\n]*")
_EMPTY = re.compile(r"\[[ \t\r\n]*\]|null")
_COUNTS = ("execution_count", "prompt_number")
_decode = json.JSONDecoder().raw_decode


class Stripped(NamedTuple):
    data: bytes
    warning: str = ""  # why the data is as it came


class _Member(NamedTuple):
    key: str
    start: int  # of the key
    value: int
    end: int


Edit = tuple[int, int, str]
# Reads one value; says where it ends and, through `edits`, what is to be cut.
Reader = Callable[[str, int, list[Edit]], int]


def strip(data: bytes) -> Stripped:
    """The notebook without outputs. What is no notebook comes back as it is, with a warning."""
    if not data.strip():
        return Stripped(data)
    try:
        text = data.decode("utf-8")
        edits: list[Edit] = []
        _notebook(text, edits)
    except (ValueError, IndexError, RecursionError) as error:
        return Stripped(data, f"not a notebook, left as it is: {_why(error)}")
    if not edits:
        return Stripped(data)
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(edits):
        parts += (text[at:start], new)
        at = end
    return Stripped("".join([*parts, text[at:]]).encode("utf-8"))


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} on line {error.lineno}"
    if isinstance(error, IndexError):
        return "it ends too early"
    return str(error) if isinstance(error, ValueError) else "it is nested too deeply"


def _notebook(text: str, edits: list[Edit]) -> None:
    at = _skip(text, 1 if text.startswith("\ufeff") else 0)
    known = {"cells": _cells, "worksheets": _worksheets, "metadata": _metadata(_OF_NOTEBOOK)}
    members, at = _object(text, at, edits, known)
    if _skip(text, at) != len(text):
        raise ValueError("something follows its end")
    kinds = {member.key: text[member.value] for member in members}
    if not kinds.get("nbformat", "").isdigit():
        raise ValueError("the key `nbformat` is missing or not a number")
    if "[" not in (kinds.get("cells"), kinds.get("worksheets")):
        raise ValueError("the key `cells` is missing or not a list")


def _cells(text: str, at: int, edits: list[Edit]) -> int:
    known = {"outputs": _outputs, "metadata": _metadata(_OF_CELL)} | dict.fromkeys(_COUNTS, _count)
    return _list_of_objects(text, at, edits, known)


def _worksheets(text: str, at: int, edits: list[Edit]) -> int:
    """Notebooks of version 3 have their cells there."""
    return _list_of_objects(text, at, edits, {"cells": _cells})


def _outputs(text: str, at: int, edits: list[Edit]) -> int:
    return _replaced(text, at, edits, "[]")


def _count(text: str, at: int, edits: list[Edit]) -> int:
    return _replaced(text, at, edits, "null")


def _replaced(text: str, at: int, edits: list[Edit], new: str) -> int:
    empty = _EMPTY.match(text, at)
    if empty:
        return empty.end()
    end = _decode(text, at)[1]
    edits.append((at, end, new))
    return end


def _metadata(traces: dict[str, frozenset[str]]) -> Reader:
    def read(text: str, at: int, edits: list[Edit]) -> int:
        if text[at] != "{":
            return _decode(text, at)[1]
        members, end = _object(text, at, [], {})
        kept: list[tuple[int, str]] = []
        for place, member in enumerate(members):
            piece = text[member.start : member.end]
            inner = traces.get(member.key)
            if inner is None:
                kept.append((place, piece))
            elif inner and text[member.value] == "{":
                within, _ = _object(text, member.value, [], {})
                rest = [
                    (n, text[m.start : m.end]) for n, m in enumerate(within) if m.key not in inner
                ]
                if len(rest) == len(within):
                    kept.append((place, piece))
                elif rest:
                    section = _laid_out(text, member.value, member.end, within, rest)
                    kept.append((place, text[member.start : member.value] + section))
        if [piece for _, piece in kept] != [text[m.start : m.end] for m in members]:
            edits.append((at, end, _laid_out(text, at, end, members, kept)))
        return end

    return read


def _laid_out(
    text: str, start: int, end: int, members: list[_Member], kept: list[tuple[int, str]]
) -> str:
    """An object with these members left, each with the gap that stood before it."""
    if not kept:
        return "{}"
    out = [text[start : members[0].start]]
    for n, (place, piece) in enumerate(kept):
        if n:
            out.append(text[members[place - 1].end : members[place].start])
        out.append(piece)
    return "".join([*out, text[members[-1].end : end]])


def _list_of_objects(text: str, at: int, edits: list[Edit], known: dict[str, Reader]) -> int:
    if text[at] != "[":
        return _decode(text, at)[1]
    at = _skip(text, at + 1)
    if text[at] == "]":
        return at + 1
    while True:
        at = _object(text, at, edits, known)[1] if text[at] == "{" else _decode(text, at)[1]
        at = _skip(text, at)
        if text[at] == "]":
            return at + 1
        at = _skip(text, _after(text, at, ","))


def _object(
    text: str, at: int, edits: list[Edit], known: dict[str, Reader]
) -> tuple[list[_Member], int]:
    """The members of an object and where it ends. Known keys have readers for their values."""
    at = _skip(text, _after(text, at, "{"))
    members: list[_Member] = []
    if text[at] == "}":
        return members, at + 1
    while True:
        start = at
        _after(text, at, '"')
        key, at = _decode(text, at)
        value = at = _skip(text, _after(text, _skip(text, at), ":"))
        read = known.get(key)
        at = read(text, at, edits) if read else _decode(text, at)[1]
        members.append(_Member(key, start, value, at))
        at = _skip(text, at)
        if text[at] == "}":
            return members, at + 1
        at = _skip(text, _after(text, at, ","))


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None
    return match.end()


def _after(text: str, at: int, wanted: str) -> int:
    if text[at] != wanted:
        raise json.JSONDecodeError(f"Expecting {wanted!r}", text, at)
    return at + 1


# Git's protocol for filters that stay (gitattributes, "Long Running Filter Process"): one process
# for all files of a command.

_PACKET = 65516


def serve(
    lines: BinaryIO,
    out: BinaryIO,
    warn: Callable[[str], None],
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer git until it hangs up. Calls `ready` before the first word: until then another may."""
    hello = list(_packets(lines))
    if b"git-filter-client" not in hello or b"version=2" not in hello:
        raise ValueError("whoever called is not git, or speaks another version")
    ready()
    _send(out, b"git-filter-server", b"version=2")
    asked = list(_packets(lines))
    # What is in git is what is in the folder. Clones set up earlier insist on being told.
    able = (b"capability=clean", b"capability=smudge")
    _send(out, *(word for word in able if word in asked))
    while True:
        try:
            said = dict(packet.rstrip(b"\n").split(b"=", 1) for packet in _packets(lines))
        except EOFError:
            return
        data = b"".join(_packets(lines, raw=True))
        if said.get(b"command") == b"clean":
            data, warning = strip(data)
            if warning:
                warn(f"{said.get(b'pathname', b'').decode('utf-8', 'replace')}: {warning}")
        elif said.get(b"command") != b"smudge":
            _send(out, b"status=error")
            continue
        _send(out, b"status=success")
        _write(out, data)
        _send(out)  # the status stays


def _packets(lines: BinaryIO, *, raw: bool = False) -> Iterator[bytes]:
    """The packets up to the next flush. EOFError when git is gone."""
    while True:
        head = lines.read(4)
        if len(head) < 4:
            raise EOFError
        size = int(head, 16)
        if size == 0:
            return
        body = lines.read(size - 4)
        if len(body) < size - 4:
            raise EOFError
        yield body if raw else body.rstrip(b"\n")


def _send(out: BinaryIO, *words: bytes) -> None:
    for word in words:
        out.write(b"%04x%s\n" % (len(word) + 5, word))
    out.write(b"0000")
    out.flush()


def _write(out: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    for at in range(0, len(view), _PACKET):
        part = view[at : at + _PACKET]
        out.write(b"%04x" % (len(part) + 4))
        out.write(part)
    out.write(b"0000")
    out.flush()
