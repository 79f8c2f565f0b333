"""Next steps as values, in the words of each reader: a call of a tool, or a command for a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class NextStep:
    """`do` is a key of `VERBS`. `arguments` have the names of the tools' own; a value of `...` is
    for the reader to fill in."""

    do: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Option:
    """An argument by itself, such as in "give --source": by its name in a shell and in the tool."""

    shell: str
    tool: str


class Verb(NamedTuple):
    """`words` are the arguments that a command has by position, `options` those with a name; of a
    flag, by its value."""

    tool: str
    command: str
    words: tuple[str, ...] = ()
    options: Mapping[str, str | Mapping[Any, str]] = {}
    fixed: Mapping[str, Any] = {}


def _session(action: str, command: str, *words: str, **options: Any) -> Verb:
    return Verb("notebook_session", command, words, options, {"action": action})


VERBS: Mapping[str, Verb] = {
    "edit": Verb(
        "notebook_edit",
        "edit",
        ("path", "cell"),
        {"insert": {"before": "--before", "after": "--after"}, "new_source": "--source"},
    ),
    "read": Verb("notebook_read", "params", ("path",)),
    "run": Verb("notebook_execute", "run", ("path",), {"resume": "--resume"}),
    "resume": Verb("notebook_execute", "resume --approve", ("resume",)),
    "commit": Verb("notebook_commit", "commit", ("path",), {"message": "-m"}),
    "propose": Verb(
        "notebook_pr", "propose", (), {"branch": "--branch", "draft": {True: "--draft"}}
    ),
    "runs": Verb("run_find", "runs"),
    "log": Verb("run_find", "log"),
    "digest": Verb("run_find", "digest", fixed={"digest": True}),
    "show": Verb("run_show", "show", ("run",), {"cell": "--cell"}),
    "wait": Verb("run_wait", "wait", ("run",)),
    "cancel": Verb("run_cancel", "cancel", ("run",)),
    "open": _session("open", "session open", "path"),
    "list": _session("list", "session list"),
    "output": _session("output", "session show", "session"),
    "exec": _session("exec", "exec", "session", "cells"),
    "rewind": _session("rewind", "rewind", "session", "cell"),
    "vars": _session("vars", "session vars", "session"),
    "interrupt": _session("interrupt", "session interrupt", "session"),
    "restart": _session("restart", "session restart", "session"),
    "restore": _session("restore", "session restore", "session"),
    "promote": _session("promote", "session promote", "session", "to", force={True: "--force"}),
}


def as_tool(step: NextStep) -> str:
    verb = VERBS[step.do]
    given = {**verb.fixed, **step.arguments}
    return called(verb.tool, given) if given else verb.tool


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


def as_command(step: NextStep) -> str:
    verb, given = VERBS[step.do], step.arguments
    command, *flags = verb.command.split(" --")
    parts = ["quire", command]
    parts += [_word(given[name]) for name in verb.words if name in given]
    parts += [f"--{flag}" for flag in flags]
    parameters = given.get("parameters") or {}
    if parameters is ...:
        parts.append("-p NAME VALUE")
    else:
        for name, value in parameters.items():
            text = value if isinstance(value, str) else json.dumps(value)
            parts.append(f"-p {shlex.quote(name)} {shlex.quote(text)}")
    parts += [f"--change {_word(one['step'])} …" for one in given.get("changes", ())]
    for name, option in verb.options.items():
        if name in given:
            value = given[name]
            parts.append(f"{option} {_word(value)}" if isinstance(option, str) else option[value])
    return " ".join(parts)


def _word(value: Any) -> str:
    return "…" if value is ... else shlex.quote(str(value))


class Hint(str):
    """A hint that names steps: `Hint("after a failure: {}", NextStep(…))`. As a string it has them
    as commands for a shell."""

    _template: str
    _values: tuple[NextStep | Option | str, ...]

    def __new__(cls, template: str, *values: NextStep | Option | str) -> Hint:
        self = super().__new__(cls, _filled(template, values, as_command, lambda one: one.shell))
        self._template = template
        self._values = values
        return self

    def for_tools(self) -> str:
        return _filled(self._template, self._values, as_tool, lambda one: one.tool)


def _filled(
    template: str,
    values: tuple[NextStep | Option | str, ...],
    step: Callable[[NextStep], str],
    option: Callable[[Option], str],
) -> str:
    def said(value: NextStep | Option | str) -> str:
        if isinstance(value, str):
            return value
        return step(value) if isinstance(value, NextStep) else option(value)

    return template.format(*map(said, values))
