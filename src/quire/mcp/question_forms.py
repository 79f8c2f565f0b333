"""Questions as forms, which the client shows to the person behind it, and forms as answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..agent.call_client import Questions, Reply


def can_ask(capabilities: Any) -> bool:
    """Whether the client shows forms. One that says no more than `elicitation` shows them."""
    offered = getattr(capabilities, "elicitation", None)
    if offered is None:
        return False
    return offered.form is not None or offered.url is None


def fits_a_form(questions: Questions) -> bool:
    """What must not be seen does not belong into a form: the client, and its model, see it."""
    return bool(questions) and not any(question.get("secret") for question in questions)


def message(questions: Questions) -> str:
    if all(question.get("kind") == "parameter" for question in questions):
        return "The notebook needs: " + ", ".join(str(q["text"]) for q in questions)
    return "\n".join(str(question["text"]) for question in questions)


def form(questions: Questions) -> dict[str, Any]:
    properties = {_key(at, q): _field(q) for at, q in enumerate(questions)}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _key(at: int, question: Mapping[str, Any]) -> str:
    return str(question.get("name") or f"answer{at + 1}")


def _field(question: Mapping[str, Any]) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", "title": str(question["text"])}
    if question.get("help"):
        field["description"] = str(question["help"])
    if question.get("choices"):
        field["enum"] = [str(choice) for choice in question["choices"]]
    if question.get("default") is not None:
        field["default"] = str(question["default"])
    return field


def reply(questions: Questions, result: Any, who: str) -> Reply:
    """What the person did with the form."""
    by = f"the person at {who}"
    if result is None or result.action != "accept":
        return Reply(None, by, declined=True)
    content = result.content or {}
    keys = [_key(at, question) for at, question in enumerate(questions)]
    values = [
        content.get(key, question.get("default"))
        for key, question in zip(keys, questions, strict=True)
    ]
    missing = tuple(key for key, value in zip(keys, values, strict=True) if value is None)
    if missing:
        return Reply(None, by, declined=True, missing=missing)
    return Reply([_text(value) for value in values], by)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
