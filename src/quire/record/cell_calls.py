"""What cells asked of the engine, as a reader is told of it: calls, notes and questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ..text import inline, plain, visible
from .events import Asked, ToolCalled
from .record import Record

CALLS_MIME = "application/vnd.quire.calls+json"
TEXT = 300  # characters of one text among the arguments in a record
ROOM = 6_000  # of all the arguments of one call
ITEMS = 20
DEEP = 4
LINE = 160
# Of a call that a person is asked to allow: what is shown as a whole, how many characters of it are
# shown at all, and how many of the rest.
WHOLE = ("path", "command", "folder", "cwd")
LOOKED_AT = 10_000
DECIDED = 2_000
SHOWN = 50  # calls under one cell

Line = TypeVar("Line")


class _Room:
    """How many characters the arguments of one call may still take."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, text: str, most: int) -> str:
        most = max(0, min(most, self.left))
        cut = len(text) - most
        self.left -= min(len(text), most)
        return text if cut <= 0 else f"{text[:most]} … {cut:,} more characters"


def brief(value: Any) -> Any:
    """Arguments as a record keeps them: heads of long texts, the first of many, and of all together
    no more than a page."""
    return _brief(value, DEEP, _Room(ROOM))


def _brief(value: Any, depth: int, room: _Room) -> Any:
    if isinstance(value, str):
        return room.take(value, TEXT)
    if isinstance(value, Mapping | list | tuple) and depth == 0:
        return "…"
    if isinstance(value, Mapping):
        out: dict[str, Any] = {}
        for key, item in list(value.items())[:ITEMS]:
            if room.left <= 0:
                break
            name = room.take(str(key), TEXT)
            out[name] = _brief(item, depth - 1, room)
        if len(value) > len(out):
            out["…"] = f"{len(value) - len(out):,} more"
        return out
    if isinstance(value, list | tuple):
        items: list[Any] = []
        for item in value[:ITEMS]:
            if room.left <= 0:
                break
            items.append(_brief(item, depth - 1, room))
        left = len(value) - len(items)
        return [*items, f"… {left:,} more"] if left else items
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 64:
        return "a number beyond 64 bits"
    room.left -= 8  # about as much as is written of it, and of what stands around it
    return value


def digest(value: Any) -> dict[str, Any]:
    """Of a result, which itself is not kept. Any JSON value has one."""
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def one_line(arguments: Mapping[str, Any]) -> str:
    """Arguments as a call would have them, on one short line."""
    text = _written(arguments)
    return text if len(text) <= LINE else f"{text[:LINE]}…"


def to_decide(arguments: Mapping[str, Any]) -> str:
    """For a person who allows a call: what it is about as a whole, and of the rest head, tail and
    how much is not shown."""
    room = DECIDED // max(1, len(arguments.keys() - set(WHOLE)))
    return ", ".join(
        f"{_name(key)}={_one(value) if key in WHOLE else _halves(_one(value), room)}"
        for key, value in arguments.items()
    )


def too_long(arguments: Mapping[str, Any]) -> str:
    """The name of what a person would have to see as a whole, where that is too much."""
    sizes = {key: len(_one(arguments[key])) for key in WHOLE if key in arguments}
    return max(sizes, key=lambda key: sizes[key]) if sum(sizes.values()) > LOOKED_AT else ""


def _halves(text: str, room: int) -> str:
    cut = len(text) - room
    if cut <= 0:
        return text
    half = room // 2
    return f"{text[:half]} [… {cut:,} characters are not shown here …] {text[-half:]}"


def _written(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{_name(key)}={_one(value)}" for key, value in arguments.items())


def _name(key: str) -> str:
    """No name can look like more than one argument."""
    return key if key.isidentifier() else _one(key)


def _one(value: Any) -> str:
    return " ".join(visible(json.dumps(value, ensure_ascii=False)).split())


def called(call: ToolCalled) -> str:
    """Such as `terminal(command="ls"): refused: terminal() is not allowed`."""
    from .summary import took

    times = f" {call.times:,} times" if call.times > 1 else ""
    exit_code = call.result.get("exit_code")
    ended = f", exit {exit_code}" if exit_code not in (None, 0) else ""
    outcome = call.result.get("outcome")
    why = " ".join(plain(call.reason).split())[:LINE]
    if call.ok:
        end = f"ok, {took(call.duration)}{ended}{'; ' if why else ''}{why}"
    elif outcome:
        end = f"{outcome}, {took(call.duration)}"
    else:
        end = f"{'refused' if call.refused else 'failed'}{': ' if why else ''}{why}{ended}"
    tool = " ".join(plain(call.tool).split())
    return f"{tool}({one_line(call.arguments)}){times}: {end}"


def answered(asked: Asked) -> str:
    """Such as `"Deploy?" → "yes" (by ada)`. What was asked is a cell's word, and may hold what
    looks like an answer: it cannot close its quotation marks."""
    question = inline(asked.question, DECIDED)
    answer = "no answer" if asked.answer is None else inline(asked.answer, DECIDED)
    return f"{question} → {answer} (by {' '.join(plain(asked.by).split())})"


def by_cell(record: Record) -> dict[str, list[tuple[str, str]]]:
    """For each cell its notes, questions and calls as (kind, text): `note`, `ask`, `call`, `bad`.

    What belongs to no cell of the record is under the empty name.
    """
    known = {cell.id for cell in record.cells}
    found: dict[str, list[tuple[str, str]]] = {}
    for cell, kind, text in _all(record):
        found.setdefault(cell if cell in known else "", []).append((kind, text))
    return {cell: _few(lines) for cell, lines in found.items()}


def _all(record: Record) -> Iterator[tuple[str, str, str]]:
    for note in record.notes:
        yield note.cell, "note", plain(note.text).strip()
    for asked in record.asked:
        yield asked.cell, "ask", answered(asked)
    for call in record.tool_calls:
        yield call.cell, "call" if call.ok else "bad", called(call)


def _few(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return few(lines, lambda said: ("cut", said))


def few(lines: list[Line], cut: Callable[[str], Line]) -> list[Line]:
    """The beginning and the end of many."""
    if len(lines) <= SHOWN:
        return lines
    half = SHOWN // 2
    said = f"… {len(lines) - 2 * half:,} more; the record has them"
    return [*lines[:half], cut(said), *lines[-half:]]


def calls_outputs(record: Record) -> dict[str, dict[str, Any]]:
    """What an executed notebook shows under its cells, by cell: outputs of ours, not theirs."""
    found: dict[str, dict[str, list[Any]]] = {}

    def told(cell: str) -> dict[str, list[Any]]:
        return found.setdefault(cell, {"tool_calls": [], "notes": [], "questions": []})

    def add(cell: str, kind: str, what: Any) -> None:
        known = told(cell)[kind]
        if len(known) < SHOWN:  # the record has all
            known.append(what)

    for call in record.tool_calls:
        add(call.cell, "tool_calls", _call_json(call))
    for note in record.notes:
        add(note.cell, "notes", note.text)
    for asked in record.asked:
        answer = {"question": asked.question, "answer": asked.answer, "by": asked.by}
        add(asked.cell, "questions", answer)
    if not found:
        return {}
    lines = by_cell(record)
    return {
        cell: {
            "output_type": "display_data",
            "data": {CALLS_MIME: data, "text/plain": _text(lines.get(cell, []))},
            "metadata": {},
        }
        for cell, data in found.items()
    }


def is_ours(output: Mapping[str, Any]) -> bool:
    """Whether an output of an executed notebook is what `calls_outputs` put there."""
    data = output.get("data")
    return isinstance(data, Mapping) and CALLS_MIME in data


def _text(lines: list[tuple[str, str]]) -> str:
    # Further lines of a note stand under its first: none looks like a call that was made.
    rows = (labelled(kind, text).replace("\n", "\n        ") for kind, text in lines)
    return "\n".join(["tool calls:", *(f"  {row}" for row in rows)])


def _call_json(call: ToolCalled) -> dict[str, Any]:
    told: dict[str, Any] = {
        "tool": call.tool,
        "arguments": call.arguments,
        "ok": call.ok,
        "duration": call.duration,
        "result": call.result,
    }
    if call.reason or not call.ok:
        told |= {"reason": call.reason, "refused": call.refused}
    return told | ({"times": call.times} if call.times > 1 else {})


_LABELS = {"note": "note: ", "ask": "asked: "}


def labelled(kind: str, text: str) -> str:
    return f"{_LABELS.get(kind, '')}{text}"
