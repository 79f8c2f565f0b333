"""What a native kernel says, and what that means in the words of the protocol.

A cell can reach the socket that its kernel speaks over, so a message may be anything: what is none
of ours is refused as it comes in, and nothing behind this has to look again.
"""

from __future__ import annotations

import json
from typing import Any

from ..record.events import CellError, CellFinished, OutputAdded, OutputsCleared, OutputUpdated
from .inside.message_limits import DEEPEST, brackets, is_deep_or_many, is_large
from .protocol import KernelEvent

Message = dict[str, Any]
NO_MESSAGE = "the kernel sent what is no message"
_STREAMS = ("stdout", "stderr")
_DISPLAYS = ("display_data", "execute_result", "update_display_data")


class NoMessage(Exception):
    """What came is nothing that a kernel says."""


def read(line: bytes) -> Message:
    opened = brackets(line)
    if is_large(line, opened):
        raise NoMessage("the kernel sent a message that is too large")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise NoMessage(NO_MESSAGE) from None
    if type(message) is not dict or not _is_one(message):
        raise NoMessage(NO_MESSAGE)
    if opened > DEEPEST and message["m"] != "stream" and is_deep_or_many(message):
        raise NoMessage("the kernel sent a message that is too deep")
    return message


def _is_one(message: Message) -> bool:
    """Whether it is one of those we know, with all that is taken from it. Of others, which any
    library may send, nothing is."""
    kind = message.get("m")
    # The first is asked for each line that is printed.
    if kind == "stream":
        return (
            message.get("name") in _STREAMS
            and type(message.get("text")) is str
            and "parts" not in message
            and type(message.get("area", "")) is str
        )
    if type(kind) is not str or type(message.get("area", "")) is not str:
        return False
    if kind == "done":
        return _is_end(message)
    if kind in ("snapshot", "awake"):
        return _is_number(message.get("pid", None if kind == "awake" else 0))
    if kind == "variables":
        found = message.get("found")
        return _are_described(found) and all("value" in one for one in found or ())
    content = message.get("content", {})
    if type(content) is not dict:
        return False
    if kind in _DISPLAYS:
        return type(content.get("data")) is dict and type(content.get("metadata", {})) is dict
    return kind != "error" or _is_error(content)


def _is_number(value: object) -> bool:
    """A count, or a pid."""
    return type(value) is int and 0 <= value < 1 << 31


def _is_end(message: Message) -> bool:
    status = message.get("status")
    return (
        _is_number(message.get("count"))
        and type(message.get("stop")) is bool
        and (status == "ok" or (status == "failed" and _is_error(message)))
        and _are_described(message.get("variables", []))
        and _are_frames(message.get("frames", []))
    )


def _is_error(content: Message) -> bool:
    lines = content.get("traceback")
    return (
        type(content.get("ename")) is str
        and type(content.get("evalue")) is str
        and type(lines) is list
        and all(type(line) is str for line in lines)
    )


def _are_frames(found: Any) -> bool:
    return type(found) is list and all(
        type(one) is dict
        and all(type(value) is str or value is None or _is_number(value) for value in one.values())
        for one in found
    )


def _are_described(found: Any) -> bool:
    """Variables, by name and type; of the rest there may be less."""
    return type(found) is list and all(
        type(one) is dict
        and {"name", "type"} <= one.keys()
        and all(type(text) is str or (text is None and key == "size") for key, text in one.items())
        for one in found
    )


def event(message: Message, cell: str) -> KernelEvent | None:
    """A message in the words of the protocol, or None where it is of no concern."""
    kind, area = message["m"], message.get("area", "")
    if kind == "stream":
        text = "".join(message["parts"]) if "parts" in message else message["text"]
        output = {"output_type": "stream", "name": message["name"], "text": text}
        return OutputAdded(cell, output, area=area)
    content = message.get("content", {})
    if kind in ("display_data", "execute_result"):
        output = {
            "output_type": kind,
            "data": content["data"],
            "metadata": content.get("metadata", {}),
        }
        if kind == "execute_result":
            count = content.get("execution_count")
            output["execution_count"] = count if _is_number(count) else None
        return OutputAdded(cell, output, _display_id(content), area)
    if kind == "update_display_data":
        display_id = _display_id(content) or ""
        return OutputUpdated(cell, display_id, content["data"], content.get("metadata", {}))
    if kind == "clear_output":
        return OutputsCleared(cell, bool(content.get("wait")), area)
    if kind == "error":
        said = {key: content[key] for key in ("ename", "evalue", "traceback")}
        return OutputAdded(cell, {"output_type": "error", **said})
    return None


def _display_id(content: Message) -> str | None:
    """Whatever a cell gave as one."""
    transient = content.get("transient")
    found = transient.get("display_id") if type(transient) is dict else None
    return found if found is None or type(found) is str else str(found)


def finished(message: Message, cell: str) -> CellFinished:
    error = None
    if message["status"] == "failed":
        error = CellError(
            message["ename"],
            message["evalue"],
            tuple(message["traceback"]),
            tuple(message.get("frames", ())),
        )
    return CellFinished(
        cell,
        message["status"],
        execution_count=message["count"],
        error=error,
        stop=message["stop"],
        variables=tuple(message.get("variables", ())),
    )
