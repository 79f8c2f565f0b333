"""What a Jupyter kernel's messages mean in events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..record.events import CellError, CellFinished, OutputAdded, OutputsCleared, OutputUpdated
from .protocol import KernelEvent


def event_of(message: Mapping[str, Any], cell: str, area: str = "") -> KernelEvent | None:
    """The event of one output message, or None for what is not an output."""
    kind, content = message["msg_type"], message["content"]
    display_id = (content.get("transient") or {}).get("display_id")
    match kind:
        case "stream":
            # The name becomes part of a file's name where there is too much: only these two.
            name = "stderr" if content["name"] == "stderr" else "stdout"
            output = {"output_type": kind, "name": name, "text": content["text"]}
            return OutputAdded(cell, output, area=area)
        case "display_data" | "execute_result":
            output = {"output_type": kind, "data": content["data"]}
            output["metadata"] = content.get("metadata", {})
            if kind == "execute_result":
                output["execution_count"] = content.get("execution_count")
            return OutputAdded(cell, output, display_id, area)
        case "update_display_data" if display_id:
            return OutputUpdated(cell, display_id, content["data"], content.get("metadata", {}))
        case "clear_output":
            return OutputsCleared(cell, bool(content.get("wait")), area)
        case "error" if not _asks_to_stop(content):
            keys = ("ename", "evalue", "traceback")
            return OutputAdded(cell, {"output_type": kind, **{key: content[key] for key in keys}})
    return None


def _asks_to_stop(content: Mapping[str, Any]) -> bool:
    """`sys.exit()` and `sys.exit(0)`: an ending, not an error."""
    return content.get("ename") == "SystemExit" and content.get("evalue") in ("", "0", "None")


def ending(cell: str, reply: Mapping[str, Any], shown: bool) -> Iterator[KernelEvent]:
    """What the reply alone tells: pages of help, an error that was not shown, the end."""
    for part in reply.get("payload") or ():
        if part.get("source") == "page" and part.get("data"):
            page = {"output_type": "display_data", "data": part["data"], "metadata": {}}
            yield OutputAdded(cell, page)
    end = _finished(cell, reply)
    if end.error is not None and not shown:
        told = {"ename": end.error.name, "evalue": end.error.value}
        traceback = list(end.error.traceback)
        yield OutputAdded(cell, {"output_type": "error", **told, "traceback": traceback})
    yield end


def _finished(cell: str, reply: Mapping[str, Any]) -> CellFinished:
    count = reply.get("execution_count")
    if reply.get("status", "ok") == "ok" or _asks_to_stop(reply):
        leaving = any(part.get("source") == "ask_exit" for part in reply.get("payload") or ())
        stop = leaving or _asks_to_stop(reply)
        return CellFinished(cell, "ok", execution_count=count, stop=stop)
    error = CellError(
        str(reply.get("ename", "Aborted")),
        str(reply.get("evalue", "the kernel did not run the cell")),
        tuple(reply.get("traceback") or ()),
    )
    return CellFinished(cell, "failed", execution_count=count, error=error)
