"""What to do next, once as a value and then in the words of whoever reads it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..record.summary import VALUE_LIMIT, brief_json

Doing = Literal[
    "show",
    "output",
    "edit",
    "run",
    "resume",
    "exec",
    "rewind",
    "vars",
    "restart",
    "restore",
    "promote",
    "wait",
    "read",
]


@dataclass(frozen=True, slots=True)
class Step:
    """`arguments` have the names of the tools' own; a value of `...` is for the reader to fill."""

    do: Doing
    arguments: Mapping[str, Any] = field(default_factory=dict)


Say = Callable[[Step], str]


def sayable(parameters: Mapping[str, Any]) -> Any:
    """To be given again as they were, unless that is not known or long."""
    text = brief_json(dict(parameters))
    unknown = "[masked:" in text or len(text) > VALUE_LIMIT
    return ... if unknown else dict(parameters)


_TOOLS: dict[Doing, tuple[str, dict[str, str]]] = {
    "show": ("run_show", {}),
    "output": ("notebook_session", {"action": "output"}),
    "wait": ("run_wait", {}),
    "edit": ("notebook_edit", {}),
    "read": ("notebook_read", {}),
    "run": ("notebook_execute", {}),
    "resume": ("notebook_execute", {}),
    "exec": ("notebook_session", {"action": "exec"}),
    "rewind": ("notebook_session", {"action": "rewind"}),
    "vars": ("notebook_session", {"action": "vars"}),
    "restart": ("notebook_session", {"action": "restart"}),
    "restore": ("notebook_session", {"action": "restore"}),
    "promote": ("notebook_session", {"action": "promote"}),
}


def as_tool(step: Step) -> str:
    """As the call of one of our tools."""
    name, fixed = _TOOLS[step.do]
    return called(name, {**fixed, **step.arguments})


def called(name: str, arguments: Mapping[str, Any]) -> str:
    said = ", ".join(f"{key}={_literal(value)}" for key, value in arguments.items())
    return f"{name}({said})"


def _literal(value: Any) -> str:
    if value is ...:
        return "…"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        rows = (f"{json.dumps(key, ensure_ascii=False)}: {_literal(v)}" for key, v in value.items())
        return f"{{{', '.join(rows)}}}"
    return json.dumps(value, ensure_ascii=False)


def as_command(step: Step) -> str:
    """As a command for a shell."""
    given = dict(step.arguments)

    def word(name: str) -> str:
        value = given.pop(name, "")
        return "…" if value is ... else shlex.quote(str(value))

    match step.do:
        case "show":
            return f"quire show {word('run')} --all"
        case "output":
            return f"quire session show {word('session')}"
        case "wait":
            return f"quire show {word('run')}"
        case "edit":
            return f"quire edit {word('path')} {word('cell')} --source …"
        case "read":
            return f"quire read {word('path')}"
        case "run":
            parts = ["quire run", word("path")]
            parameters = given.pop("parameters", {})
            if parameters is ...:
                parameters, parts = {}, [*parts, "-p NAME VALUE"]
            for name, value in parameters.items():
                text = value if isinstance(value, str) else json.dumps(value)
                parts.append(f"-p {shlex.quote(name)} {shlex.quote(text)}")
            for one in given.pop("changes", ()):
                parts.append(f"--change {shlex.quote(str(one['step']))} …")
            if "resume" in given:
                parts.append(f"--resume {word('resume')}")
            return " ".join(parts)
        case "resume":
            return f"quire resume {word('resume')} --approve"
        case "exec":
            return f"quire exec {word('session')} {word('cells')}"
        case "rewind":
            return f"quire rewind {word('session')} {word('cell')}"
        case "vars":
            return f"quire session vars {word('session')}"
        case "restart":
            return f"quire session restart {word('session')}"
        case "restore":
            return f"quire session restore {word('session')}"
        case "promote":
            force = " --force" if given.get("force") else ""
            return f"quire session promote {word('session')} {word('to')}{force}"
