"""A sentence that names a command, for a reader who has tools and no shell.

Messages and hints are written once, with the commands of a shell in them. What goes to an agent
says those as the calls of its tools; a command that no tool does is said to be one for a shell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import QuireError
from ..text import plain, quoted
from .next_steps import called

SHELL = "in a shell: "


@dataclass(frozen=True, slots=True)
class As:
    """The call that a command is: its words in their order and its options, as the tool has it."""

    tool: str
    words: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, Any]] = field(default_factory=dict)  # options without a value


def _session(action: str, *words: str, **options: str) -> As:
    return As("notebook_session", words, options, {"action": action})


# Of `commit` and `propose` the options that a hint may have; what else there is has no hint.
COMMANDS: Mapping[str, As] = {
    "new": As("notebook_create", ("task_description",), {"path": "path"}),
    "params": As("notebook_read", ("path",)),
    "edit": As(
        "notebook_edit",
        ("path", "cell"),
        {"source": "new_source", "find": "find", "replace": "replace", "expect": "expect"},
        flags={"before": ("insert", "before"), "after": ("insert", "after")},
    ),
    "run": As(
        "notebook_execute",
        ("path",),
        {"resume": "resume", "from": "from", "timeout": "timeout", "cell-timeout": "cell_timeout"},
    ),
    "commit": As("notebook_commit", ("path",), {"m": "message", "branch": "branch"}),
    "propose": As(
        "notebook_pr",
        (),
        {"branch": "branch", "title": "title", "body": "description", "base": "base", "run": "run"},
        flags={"draft": ("draft", True)},
    ),
    "exec": _session("exec", "session", "cells", code="code"),
    "rewind": _session("rewind", "session", "cell"),
    "session open": _session("open", "path", name="session"),
    "session list": _session("list"),
    "session vars": _session("vars", "session"),
    "session interrupt": _session("interrupt", "session"),
    "session restart": _session("restart", "session"),
    "session restore": _session("restore", "session"),
    "session promote": _session("promote", "session", "to"),
    "session close": _session("close", "session"),
    "runs": As("run_find"),
    "log": As("run_find"),
    "find": As("run_find", ("query",), {"like": "like", "since": "since"}),
    "digest": As("run_find", (), {"since": "since"}, {"digest": True}),
    "show": As("run_show", ("run",), {"cell": "cell"}),
    "results": As("run_show", ("run",)),
    "wait": As("run_wait", ("run",)),
    "cancel": As("run_cancel", ("run",)),
}

# What no tool does. "session" stands for those of its commands that are not above.
SHELL_ONLY = frozenset(
    (
        "ci", "close-proposal", "completion", "diff", "doctor", "env", "export", "git", "host",
        "index", "init", "key", "mcp", "merge", "merge-proposal", "proposals", "push", "replay",
        "resume", "review", "session", "skill", "sync", "token", "tools", "verify",
    )
)  # fmt: skip

# An option by itself, such as in "give --path": what the tools call it.
OPTIONS: Mapping[str, str] = {
    "base": "base",
    "body": "description",
    "branch": "branch",
    "cell": "cell",
    "cell-timeout": "cell_timeout",
    "code": "code",
    "delete": "delete",
    "expect": "expect",
    "find": "find",
    "force": "force",
    "from": "from",
    "kind": "kind",
    "like": "like",
    "lines": "lines",
    "path": "path",
    "replace": "replace",
    "resume": "resume",
    "run": "run",
    "since": "since",
    "source": "new_source",
    "stream": "stream",
    "tag": "tags",
    "timeout": "timeout",
    "title": "title",
}

_COMMAND = re.compile(r"`?(?<![.\w-])quire +((?:session +)?[a-z][a-z-]+)")
_OPTION = re.compile(r" +(?:--([a-z][a-z-]+)|-([a-z]))(?![\w-])")
_WORD = re.compile(r""" +((?:"[^"]*"|'[^']*')+|[^-\s`;,()"'](?:[^\s`;,()]*[^\s`;,().:])?)""")
# What is another program's is left as it is.
_ALONE = re.compile(r"\b(?:git|pip|uv|jupyter|jupytext) [^;,`]*|(?<![\w-])--([a-z][a-z-]+)")
# An order to git, and no word about it; what a package manager is to do.
_THEIRS = re.compile(
    r"`?\b(?:git (?:add|branch|check-ignore|clone|commit|fetch|init|log|ls-tree|merge|merge-file|"
    r"push|rebase|remote|rev-parse|show|stash|switch)\b|(?:pip|uv) [a-z]+ )"
)
_QUOTED = re.compile(r""""([^"]*)"|'([^']*)'""")  # as one word may be in several parts
_BREAKS = re.compile("[\x85\u2028\u2029]")  # which some readers take for the end of a line
_PLACEHOLDER = re.compile(r"[A-Z_]+|…")


def for_tools(text: str) -> str:
    """One line of ours, as it may stand in an answer to an agent."""
    if "quire " not in text and "--" not in text:
        return text
    said: list[str] = []
    at = 0
    for found in _COMMAND.finditer(text):
        name = " ".join(found[1].split())
        if name not in COMMANDS and name.split()[0] not in SHELL_ONLY:
            continue  # it is prose
        call, end = _call(text, found, COMMANDS.get(name))
        if found[0].startswith("`") and text.startswith("`", end):
            end += 1
        said += [_options_said(text[at : found.start()]), call or _in_a_shell(text, found, end)]
        at = end
    return "".join([*said, _options_said(text[at:])])


def hint_for_tools(hint: str) -> str:
    """A hint as a whole: one that only a shell can follow says so."""
    said = for_tools(hint)
    order = _THEIRS.search(said)
    if order is not None and SHELL not in said[: order.start()]:
        said = f"{said[: order.start()]}{SHELL}{said[order.start() :]}"
    theirs = [found[1] for found in _ALONE.finditer(said) if found[1]]
    return f"{SHELL}{said}" if theirs and SHELL not in said else said


def error_text(problem: QuireError) -> str:
    """What could not be done, as an agent is told."""
    hint = f"\nhint: {_hint(problem.hint, problem.calls)}" if problem.hint else ""
    again = "\nTrying again may help." if problem.retryable else ""
    return f"error ({problem.code}): {_held(problem.message, for_tools)}{hint}{again}"


def _hint(hint: str, calls: Mapping[str, str]) -> str:
    for command, call in calls.items():
        before, found, after = hint.partition(command)
        if found:
            said = _BREAKS.sub(" ", plain(call))
            return f"{hint_for_tools(plain(before))}{said}{hint_for_tools(plain(after))}"
    return _held(hint, hint_for_tools)


def _held(text: str, said: Callable[[str], str]) -> str:
    """Below its first line stands what a notebook holds: not ours to rephrase or to say as ours."""
    first, _, rest = text.partition("\n")
    first = _BREAKS.sub(" ", said(plain(first)))
    return f"{first}\n{quoted(rest)}" if rest else first


def _call(text: str, found: re.Match[str], known: As | None) -> tuple[str, int]:
    """The command that begins there as a call, and where it ends. '' where no tool does it."""
    end = found.end()
    if known is None:
        return "", end
    given: dict[str, Any] = dict(known.fixed)
    words = list(known.words)
    while True:
        if option := _OPTION.match(text, end):
            if option[1] in known.flags:
                name, given_value = known.flags[option[1]]
                given[name], end = given_value, option.end()
                continue
            argument = known.options.get(option[1] or option[2], "")
            if option[2] == "p":  # a parameter: its name, then its value
                argument, option = "parameters", _WORD.match(text, option.end()) or option
            value = _WORD.match(text, option.end())
            if not argument or value is None:
                return "", found.end()
            given[argument] = ... if argument == "parameters" else _value(value[1])
            end = value.end()
        elif words and (word := _WORD.match(text, end)):
            given[words.pop(0)] = _value(word[1])
            end = word.end()
        else:
            break
    if given == known.fixed and not given:
        return known.tool, end
    return called(known.tool, given), end


def _value(word: str) -> Any:
    parts = _QUOTED.findall(word)
    bare = "".join(double or single for double, single in parts) if parts else word
    return ... if _PLACEHOLDER.fullmatch(bare) else bare


def _in_a_shell(text: str, found: re.Match[str], end: int) -> str:
    said = text[found.start() : end]
    return said if text[: found.start()].endswith(SHELL) else f"{SHELL}{said}"


def _options_said(text: str) -> str:
    def said(found: re.Match[str]) -> str:
        return OPTIONS.get(found[1] or "", found[0])

    return _ALONE.sub(said, text)
