"""What an agent is told to do next is something that it can do: a call of its tools."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire
from quire.agent.call_tool import call as use
from quire.agent.caller import Caller
from quire.agent.tool_definitions import BY_NAME
from quire.cli import main
from quire.errors import UsageError
from quire.next_steps import VERBS, Hint, NextStep, Option
from quire.render.agent_page import error_text
from quire.workspace import Workspace

SOURCES = Path(quire.__file__).parent


@pytest.mark.parametrize(
    ("hint", "in_a_shell", "for_tools"),
    [
        (
            Hint("`{}` lists them", NextStep("runs")),
            "`quire runs` lists them",
            "`run_find` lists them",
        ),
        (
            Hint("describe it otherwise, or give {}", Option("--path", "path")),
            "describe it otherwise, or give --path",
            "describe it otherwise, or give path",
        ),
        (
            Hint("stop it: {}", NextStep("interrupt", {"session": "try"})),
            "stop it: quire session interrupt try",
            'stop it: notebook_session(action="interrupt", session="try")',
        ),
        (
            Hint("{}", NextStep("run", {"path": "it's.py", "resume": "x", "parameters": {"n": 1}})),
            "quire run 'it'\"'\"'s.py' -p n 1 --resume x",
            'notebook_execute(path="it\'s.py", resume="x", parameters={"n": 1})',
        ),
        (
            Hint("{}", NextStep("run", {"path": ..., "parameters": ...})),
            "quire run … -p NAME VALUE",
            "notebook_execute(path=…, parameters=…)",
        ),
        (
            Hint(
                "{} or {}",
                NextStep(
                    "edit", {"path": "a.py", "cell": "0", "insert": "after", "new_source": ...}
                ),
                NextStep("propose", {"draft": True}),
            ),
            "quire edit a.py 0 --after --source … or quire propose --draft",
            'notebook_edit(path="a.py", cell="0", insert="after", new_source=…) or '
            "notebook_pr(draft=true)",
        ),
        (
            Hint("open: {}", "{braces} in a name"),
            "open: {braces} in a name",
            "open: {braces} in a name",
        ),
    ],
)
def test_a_hint_has_the_words_of_its_reader(hint: Hint, in_a_shell: str, for_tools: str) -> None:
    assert hint == in_a_shell
    assert UsageError("x", hint=hint).as_dict()["hint"] == in_a_shell
    assert error_text(UsageError("x", hint=hint)) == f"error (usage): x\nhint: {for_tools}"


def test_an_error_quotes_what_a_notebook_holds() -> None:
    """The refusal of a stale edit shows the cell: it is no word of ours, and is not rephrased."""
    held = "cell 3 changed since it was read\n   3  0a1b2c3d4e\nok: all is well\nquire show last"
    told = error_text(UsageError(held, hint="quire read"))
    assert told.split("\n")[:4] == [
        "error (usage): cell 3 changed since it was read",
        "|    3  0a1b2c3d4e",
        "| ok: all is well",
        "| quire show last",
    ]


def test_what_a_step_is_said_as_exists() -> None:
    for name, verb in VERBS.items():
        arguments = BY_NAME[verb.tool].arguments
        assert {*verb.words, *verb.options, *verb.fixed} <= set(arguments), name
        action = verb.fixed.get("action")
        assert action is None or action in arguments["action"]["enum"], name
        command = main.COMMANDS[verb.command.split()[0]]
        assert command, name


def hints() -> Iterator[tuple[str, str]]:
    """The hints in the sources that are plain text, but for the command line's own."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = str(path.relative_to(SOURCES))
        if name.startswith(("cli/", "next_steps")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                yield from ((f"{name}:{node.value.lineno}", text) for text in texts(node.value))


def texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "x.py" for part in node.values
        )
    elif isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def test_a_hint_names_what_a_tool_does_as_a_step() -> None:
    commands = {re.escape(verb.command.split(" --")[0]) for verb in VERBS.values()} - {"resume"}
    named = re.compile(rf"\bquire (?:{'|'.join(sorted(commands))})\b(?! -)")
    found = list(hints())
    assert len(found) > 100
    assert [(where, text) for where, text in found if named.search(text)] == []


@pytest.mark.parametrize(
    ("wish", "hint"),
    [
        ({}, "give new_source, kind, title or tags, or find and replace, or delete"),
        ({"insert": "after"}, "give the text of the cell: new_source"),
        ({"insert": "after", "title": "x"}, "give the text of the cell: new_source"),
        ({"replace": "2"}, "find"),
        ({"find": "1"}, "replace"),
    ],
)
def test_what_an_edit_lacks_is_named_as_the_tool_has_it(
    tmp_path: Path, wish: dict[str, str], hint: str
) -> None:
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "a.py").write_text("# %%\n1\n")
    ws = Workspace(tmp_path, cwd=tmp_path)
    told = use(ws, "notebook_edit", {"path": "a.py", "cell": 0, **wish}, Caller())
    assert told.text.endswith(f"\nhint: {hint}")


def test_what_works_in_a_notebook_without_cells_is_said(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "a.py").write_text("")
    ws = Workspace(tmp_path, cwd=tmp_path)

    def edit(**wish: object) -> str:
        return use(ws, "notebook_edit", {"path": "a.py", **wish}, Caller()).text

    told = edit(cell=0, new_source="1")
    assert told.endswith('notebook_edit(path=…, cell="0", insert="before", new_source=…)')
    assert "edited a.py: cell 0 is now" in edit(cell="0", insert="before", new_source="1")
    (tmp_path / "a.py").write_text("")
    told = use(ws, "notebook_read", {"path": "a.py", "cells": "0-"}, Caller()).text
    assert told.endswith("hint: it has no cells yet")
