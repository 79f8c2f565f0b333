"""The tools as a page of the documentation, made from their definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .tool_definitions import TOOLS, Tool

_HINTS = {
    "readOnlyHint": ("only reads", "changes something"),
    "destructiveHint": ("may overwrite or end something", "overwrites nothing"),
    "idempotentHint": ("saying it twice is the same as once", "saying it twice does it twice"),
    "openWorldHint": ("may reach what is outside", "stays in the workspace"),
}


def reference() -> str:
    return "\n".join(line for tool in TOOLS for line in _section(tool)).rstrip("\n") + "\n"


def _section(tool: Tool) -> Iterator[str]:
    yield f"### `{tool.name}`"
    yield ""
    yield tool.about
    yield ""
    yield "| argument | type | what it is |"
    yield "|---|---|---|"
    must = {*tool.required, *(names[0] for names in tool.needs_one_of)}
    for name, schema in tool.arguments.items():
        about = str(schema.get("description", ""))
        if name in must:
            about = f"required. {about}".rstrip()
        yield f"| `{name}` | {_kind(schema)} | {about} |"
    hints = [_HINTS[hint][not value] for hint, value in tool.hints().items()]
    said = "; ".join(hints)
    yield ""
    yield f"{said[0].upper()}{said[1:]}. Scope of a token: `{tool.scope}`."
    yield ""


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(kinds)
