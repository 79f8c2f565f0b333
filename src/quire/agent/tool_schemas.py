"""The tools as function schemas, for agents without MCP."""

from __future__ import annotations

from typing import Any

from .tool_definitions import TOOLS, Tool


def schemas(shape: str) -> list[dict[str, Any]]:
    make = {"openai": _openai, "anthropic": _anthropic, "hermes": _hermes}[shape]
    return [make(tool) for tool in TOOLS]


def _openai(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.about,
            "parameters": tool.schema(),
        },
    }


def _anthropic(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.about, "input_schema": tool.schema()}


def _hermes(tool: Tool) -> dict[str, Any]:
    """As Hermes Agent registers tools: a schema without the wrapping."""
    return {"name": tool.name, "description": tool.about, "parameters": tool.schema()}
