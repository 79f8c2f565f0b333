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
from quire.agent.tool_definitions import BY_NAME, TOOLS
from quire.cli import main
from quire.errors import UsageError
from quire.render.agent_hints import (
    COMMANDS,
    OPTIONS,
    SHELL_ONLY,
    error_text,
    for_tools,
    hint_for_tools,
)
from quire.workspace import Workspace

SOURCES = Path(quire.__file__).parent


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("`quire runs` lists them", "run_find lists them"),
        ("describe it otherwise, or give --path", "describe it otherwise, or give path"),
        (
            "stop it: quire session interrupt try",
            'stop it: notebook_session(action="interrupt", session="try")',
        ),
        (
            "after a failure: quire run 'my task.py' --resume 2026-11-18",
            'after a failure: notebook_execute(path="my task.py", resume="2026-11-18")',
        ),
        (
            "quire run 'it'\"'\"'s.py' --resume x",
            'notebook_execute(path="it\'s.py", resume="x")',
        ),
        (
            "quire session restore try runs again what it had run",
            'notebook_session(action="restore", session="try") runs again what it had run',
        ),
        (
            'quire commit notebooks/x.py -m "…" makes a branch',
            'notebook_commit(path="notebooks/x.py", message=…) makes a branch',
        ),
        (
            "with the secret: quire run TASK -p NAME VALUE",
            "with the secret: notebook_execute(path=…, parameters=…)",
        ),
        ("quire exec NAME 3-7", 'notebook_session(action="exec", session=…, cells="3-7")'),
        (
            "git switch -c NAME, or name one: --branch",
            "in a shell: git switch -c NAME, or name one: branch",
        ),
        (
            "quire edit a.py 0 --before --source …",
            'notebook_edit(path="a.py", cell="0", insert="before", new_source=…)',
        ),
        # What no tool does is for a shell, and says so.
        ("quire verify 2026 says more", "in a shell: quire verify 2026 says more"),
        ("and `quire resume` takes it up", "and in a shell: `quire resume` takes it up"),
        ("in a shell: quire init", "in a shell: quire init"),
        ("quire commit a.py --no-verify", "in a shell: quire commit a.py --no-verify"),
        ("give --python a path", "in a shell: give --python a path"),
        # What is another program's is for a shell too.
        ("git branch lists them", "in a shell: git branch lists them"),
        ("git fetch --all, then look again", "in a shell: git fetch --all, then look again"),
        (
            "finish it first: git rebase --continue",
            "finish it first: in a shell: git rebase --continue",
        ),
        ("git fetch; git branch lists them", "in a shell: git fetch; git branch lists them"),
        ("pip install 'quire[pictures]'", "in a shell: pip install 'quire[pictures]'"),
        ("name one that git does not know", "name one that git does not know"),
        ("install git 2.38 or newer", "install git 2.38 or newer"),
    ],
)
def test_a_hint_in_the_words_of_tools(hint: str, said: str) -> None:
    assert hint_for_tools(hint) == said
    assert hint_for_tools(said) == said


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


def test_what_a_command_is_said_as_exists() -> None:
    for command, call in COMMANDS.items():
        arguments = BY_NAME[call.tool].arguments
        named = {*call.words, *call.options.values(), *call.fixed}
        assert named <= set(arguments), command
        action = call.fixed.get("action")
        assert action is None or action in arguments["action"]["enum"], command
    known = {name for tool in TOOLS for name in tool.arguments}
    assert set(OPTIONS.values()) <= known


def test_every_command_is_said_or_is_for_a_shell() -> None:
    said = {name for name in COMMANDS if not name.startswith("session ")}
    assert said | SHELL_ONLY == set(main.COMMANDS)
    assert not said & SHELL_ONLY


def literals() -> Iterator[tuple[str, str]]:
    """The texts in the sources that name a command or an option, but for the command line's own.

    What is put into a text stands there as `x.py`.
    """
    for path in sorted(SOURCES.rglob("*.py")):
        name = str(path.relative_to(SOURCES))
        if name.startswith(("cli/", "cli/main", "render/next_steps", "render/agent_hints")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "hint":
                yield from ((f"{name}:{node.value.lineno}", text) for text in texts(node.value))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
                for given in node.args[:1]:
                    yield from ((f"{name}:{given.lineno}", text) for text in texts(given))


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


def test_no_hint_in_the_sources_sends_an_agent_to_a_shell_for_what_a_tool_does() -> None:
    seen = 0
    for where, text in literals():
        said = hint_for_tools(text)
        for found in re.finditer(r"(?<!\.)\bquire ((?:session )?[a-z][a-z-]+)", said):
            if found[1] in COMMANDS:  # only with an option that no tool has
                given = re.findall(r" --?([a-z][a-z-]*)", said[found.end() :])
                assert set(given) - set(COMMANDS[found[1]].options), f"{where}: {said}"
            if found[1].split()[0] not in main.COMMANDS:
                continue  # prose
            assert "in a shell: " in said[: found.start()], f"{where}: {said}"
            seen += 1
        own = re.sub(r"\b(git|pip|jupyter|jupytext) [^;,`]*", "", said)
        for option in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", own):
            assert "in a shell: " in said, f"{where}: {said}"
            if said.startswith("in a shell: ") and "quire " not in said:
                assert option not in OPTIONS, f"{where}: {said}"
    assert seen > 20  # it has found them


def test_prose_is_not_taken_for_a_command() -> None:
    assert for_tools("the folder of quire is in the way -- look") == (
        "the folder of quire is in the way -- look"
    )
    assert for_tools("it runs quire's own tests, and quire.toml") == (
        "it runs quire's own tests, and quire.toml"
    )


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
