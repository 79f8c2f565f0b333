"""Every command, code block and claim of README.md and docs/ is true of the code as it is."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from doc_pages import PAGES, ROOT, SKILL, Block, Page, matches, read

import quire
import quire.runtime
import wheelhouse
from quire import config, errors
from quire.agent.tool_reference import reference
from quire.cli.main import cli
from quire.engine.saved_states import NO_SNAPSHOTS
from quire.record import events
from scratch import Scratch

# Commands of the pages that the tests do not run, each with the reason.
NOT_RUN = {
    "make demo": "installs first; tests/docs/test_demo.py runs its steps",
    "make test": "is what runs this",
    "make bench": "minutes, and only says something on a quiet machine",
    "python -m bench": "the same",
    "pip install": "installs packages",
    "uv tool install": "installs packages",
    "jupyter console": "waits for a person; the page's Python attaches the same way",
    "claude mcp add": "a client of its own; tests/endtoend/test_mcp_clients.py runs it where it is",
    "gemini mcp add": "the same",
    "codex mcp add": "the same",
    "quire mcp --http": "serves until it is stopped; tests/endtoend/test_mcp_http.py starts it",
    "jupyter lab": "a server for a person's browser",
    "python -m bash_kernel.install": "changes the environment; the page has its own kernel spec",
}
READ = [read(path) for path in PAGES]
RUN = [*READ, *(read(path) for path in SKILL)]
BLOCKS = [(page, block) for page in RUN for block in page.blocks]
RUNNING = next(page for page in READ if page.path.name == "running.md")


def commands(group: click.Group = cli, name: str = "quire") -> dict[str, click.Command]:
    """Every command by its full name."""
    found: dict[str, click.Command] = {name: group}
    ctx = click.Context(group)
    for sub in group.list_commands(ctx):
        command = group.get_command(ctx, sub)
        assert command is not None
        if isinstance(command, click.Group):
            found |= commands(command, f"{name} {sub}")
        else:
            found[f"{name} {sub}"] = command
    return found


COMMANDS = commands()


def options(command: click.Command) -> set[str]:
    with_help = command.get_params(click.Context(command, help_option_names=["-h", "--help"]))
    found = {opt for p in with_help if isinstance(p, click.Option) for opt in p.opts}
    return found


def is_not_run(line: str) -> bool:
    return any(line.startswith(start) for start in NOT_RUN)


# Running what a page shows.


def environment(scratch: Scratch) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "JUPYTER_PATH": str(scratch.root / "share" / "jupyter")}
    own["QUIRE_ACTOR"] = "ada"
    return scratch.environment(own)


def execute(scratch: Scratch, argv: list[str], given: str = "") -> tuple[int, str]:
    done = subprocess.run(
        argv,
        cwd=scratch.root,
        env=environment(scratch),
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def run_console(scratch: Scratch, block: Block, where: str) -> None:
    steps = list(block.commands())
    for at, step in enumerate(steps):
        if is_not_run(step.line):
            continue
        code, output = execute(scratch, ["bash", "-c", step.line])
        wanted = block.exit if at == len(steps) - 1 else 0
        assert code == wanted, f"{where}: {step.line}: exit {code}, not {wanted}\n{output}"
        if step.output and not block.varies:
            shown = f"--- the page\n{step.output}\n--- the command\n{output}"
            assert matches(step.output, output), f"{where}: $ {step.line}\n{shown}"


def run_python(scratch: Scratch, block: Block, after: Block | None, where: str) -> None:
    code, output = execute(scratch, [sys.executable, "-"], block.text)
    assert code == block.exit, f"{where}: exit {code}\n{output}"
    if after is not None and after.language == "text" and not after.varies:
        shown = f"--- the page\n{after.text}\n--- the block\n{output}"
        assert matches(after.text, output), f"{where}\n{shown}"


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.path.name)
def test_what_the_page_shows_happens(
    page: Page, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.path.name == "environments.md":
        for key, value in wheelhouse.environment(scratch.root / ".cache").items():
            monkeypatch.setenv(key, value)
    for source in (ROOT / "notebooks").glob("*.py"):
        scratch.write(f"notebooks/{source.name}", source.read_text())
    for at, block in enumerate(page.blocks):
        where = f"{page.path.name}:{block.number}"
        if block.file:
            scratch.write(block.file, block.text + "\n")
        elif block.language == "console":
            run_console(scratch, block, where)
        elif block.language == "python":
            after = page.blocks[at + 1] if at + 1 < len(page.blocks) else None
            run_python(scratch, block, after, where)
        elif block.language == "run":
            code, output = execute(scratch, ["bash", "-c", block.text])
            assert code == 0, f"{where}: {output}"


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    known = {"console", "python", "text", "toml", "json", "run"}
    for page, block in BLOCKS:
        assert block.file or block.language in known, f"{page.path.name}:{block.number}"
        if block.language == "toml":
            config.parse(tomllib.loads(block.text), f"{page.path.name}:{block.number}")
        elif block.language == "json":
            json.loads(block.text)


def test_commands_that_are_not_run_are_all_needed() -> None:
    lines = [step.line for _, b in BLOCKS if b.language == "console" for step in b.commands()]
    assert not [start for start in NOT_RUN if not any(line.startswith(start) for line in lines)]


# What the pages must not leave out.


def told_of(name: str) -> str:
    """What the pages say of a command: its own sections, and every call of it they show."""
    parts = [page.section(f"`{name}`") for page in READ]
    spans = [span for page in READ for span in page.spans()]
    lines = [step.line for _, b in BLOCKS if b.language == "console" for step in b.commands()]
    calls = re.compile(rf"{re.escape(name)}(?= |$)")
    parts += [call for call in spans + lines if calls.search(call)]
    return "\n".join(parts)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    told = told_of(name)
    missing = [
        option
        for option in sorted(options(COMMANDS[name]) - {"-h", "--help"})
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", told)
    ]
    assert not missing, f"no page tells of {name} {' '.join(missing)}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_work(name: str) -> None:
    text = COMMANDS[name].get_help(click.Context(COMMANDS[name], info_name=name))
    assert "Example" in text, f"{name} --help has no example"
    examples = COMMANDS[name].epilog or ""
    found = [part for part in re.split(r"\s·\s|\n", examples) if "quire" in part]
    assert found
    for example in found:
        check_call(example[example.index("quire") :].strip('")'), f"{name} --help")


def check_call(line: str, where: str) -> None:
    """Its command and its options exist."""
    words = line.split()
    name = max(
        (n for n in COMMANDS if words[: len(n.split())] == n.split()), key=len, default="quire"
    )
    rest = words[len(name.split()) :]
    if isinstance(COMMANDS[name], click.Group) and rest:
        assert rest[0].startswith(("-", "…")) or not rest[0].isalpha(), f"{where}: {line}"
    unknown = [
        word
        for word in rest
        if re.fullmatch(r"--?[a-z][a-z-]*", word) and word not in options(COMMANDS[name])
    ]
    assert not unknown, f"{where}: `{line}`: {name} has no {' '.join(unknown)}"


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.path.name)
def test_commands_in_the_text_exist(page: Page) -> None:
    for span in page.spans():
        if span.startswith("quire "):
            check_call(span, page.path.name)


@pytest.mark.parametrize("page", READ, ids=lambda page: page.path.name)
def test_make_targets_in_the_text_exist(page: Page) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"\bmake ([a-z]+)\b", "\n".join(page.spans())):
        assert target in targets


def settings(kind: Any, prefix: str = "") -> dict[str, Any]:
    """Every key and its default; those of a table as `table.key`."""
    out: dict[str, Any] = {}
    for key in fields(kind):
        out[prefix + key.name] = key.default
        if is_dataclass(key.default):
            out |= settings(key.default, f"{key.name}.")
    return out


@pytest.mark.parametrize(("key", "default"), settings(config.Config).items(), ids=str)
def test_every_configuration_key_is_documented(key: str, default: Any) -> None:
    table = RUNNING.section("Configuration")
    rows = re.findall(rf"^\| `{re.escape(key)}` \|([^|]*)\|", table, re.MULTILINE)
    assert len(rows) == 1, f"running.md has no row for {key}"
    shown = rows[0].strip().strip("`").replace(",", "")
    if is_dataclass(default):
        assert shown == "a table"
    elif isinstance(default, bool):
        assert shown == str(default).lower()
    elif not default:
        assert shown in ("none", "empty")
    elif isinstance(default, str):
        assert shown == default
    else:
        assert float(shown) == float(default)


NOT_OURS = ("results", "parameters", "kernel", "default", "arguments", "outputs", "environment")


def keys(value: Any, prefix: str = "") -> set[str]:
    """`error.cell`, `cells[].id`: every key of a JSON value. Names a task chose are not ours."""
    if isinstance(value, list):
        return set().union(*(keys(item, f"{prefix}[]") for item in value), set())
    if not isinstance(value, dict):
        return set()
    found: set[str] = set()
    for key, item in value.items():
        name = f"{prefix}.{key}" if prefix else key
        found.add(name)
        if key not in NOT_OURS:
            found |= keys(item, name)
    return found


def undocumented(value: Any, section: str) -> set[str]:
    text = "\n".join(page.section(section) for page in READ)
    assert text, f"no page has a section {section}"
    told = set(re.findall(r"`([^`\n]+)`", text))
    return {key for key in keys(value) if key.removeprefix("[].") not in told}


PARENT = """# %% tags=["parameters"]
path: str = ""  # what to run

# %%
from quire.runtime import run
run(path)
"""


def test_every_json_key_is_documented(scratch: Scratch) -> None:
    """A run that fails because one that it ran failed shows all of them."""
    scratch.write("child.py", "# %%\n1 / 0\n")
    scratch.write("parent.py", PARENT)
    code, told = scratch.run("parent.py", "-p", "path", "child.py")
    assert code == 1
    assert not undocumented(told, "`--json` object")

    def answer(*args: str) -> Any:
        return json.loads(scratch.quire(*args, "--json").stdout)

    shown = answer("show", told["run_id"])
    assert shown["tool_calls"]
    told_above = keys(told)
    assert not undocumented(shown, "`quire show`") - told_above
    assert not undocumented(answer("runs"), "`quire runs`")
    assert not undocumented(answer("params", "parent.py"), "`quire params`")
    assert not undocumented(answer("sync", "parent.py"), "`quire sync`")
    assert not undocumented(answer("host", "status"), "`quire host`")
    assert not undocumented(answer("run", "nowhere.py"), "`--json` object")


def test_every_json_key_of_sessions_is_documented(scratch: Scratch) -> None:
    scratch.write("a.py", "# %% one\nx = 1\n\n# %% two\nprint(x)\n\n# %% three\n1 / 0\n")

    def answer(*args: str) -> Any:
        return json.loads(scratch.quire(*args, "--json").stdout)

    assert not undocumented([answer("session", "open", "a.py")], "`quire session list`")
    answer("exec", "a", "--code", "import os; os._exit(3)")
    told = answer("exec", "a", "all")
    assert told["replaced"]
    assert told["cells"][-1]["error"]
    assert not undocumented(told, "`quire exec`")
    edited = answer("edit", "a.py", "one", "--source", "x = y")
    assert edited["findings"]
    assert edited["stale"]["a"]
    edited["stale"]["NAME"] = edited["stale"].pop("a")
    assert not undocumented(edited, "`quire edit`") - {"stale.NAME"}
    told = answer("exec", "a", "--code", "x")
    assert told["stale"]
    assert not undocumented(told, "`quire exec`")
    assert not undocumented(answer("session", "list"), "`quire session list`")
    assert not undocumented(answer("session", "show", "a"), "`quire session show`")
    assert not undocumented(answer("session", "vars", "a"), "`quire session vars`")
    assert not undocumented(answer("session", "tree", "a"), "`quire session tree`")
    assert not undocumented(answer("session", "promote", "a", "b.py"), "`quire session promote`")
    rewound = answer("rewind", "a", "two")
    assert rewound["stale"]
    stale = {key for key in keys(rewound) if key.startswith("stale[].")}
    assert not undocumented(rewound, "`quire rewind`") - stale
    assert not undocumented(answer("session", "restore", "a"), "`quire exec`")


def test_every_json_key_of_proposals_is_documented(repo: Scratch) -> None:
    def answer(*args: str) -> Any:
        return json.loads(repo.quire(*args, "--json").stdout)

    repo.run("notebooks/sum.py")
    task = (repo.root / "notebooks" / "sum.py").read_text()
    repo.write("notebooks/sum.py", task.replace("range(n)", "range(n + more)"))
    made = answer("commit", "notebooks/sum.py", "-m", "Add more")
    assert made["findings"]
    assert not undocumented(made, "`quire commit`")
    repo.run("notebooks/sum.py")
    repo.write("shown.ipynb", json.dumps(UNCOVERED))
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "Show it")
    assert not undocumented(answer("propose"), "`quire propose`")
    listed = answer("proposals")
    assert not undocumented(listed, "`quire proposals`")
    told = answer("review", "1", "--comment", "Hm.")
    above = {key.removeprefix("[].") for key in keys(listed)}
    assert not undocumented(told, "`quire review`") - above
    shown = answer("review", "1")
    assert shown["comments"]
    assert shown["checks"]
    assert shown["notebooks"]
    assert shown["tasks"][0]["comparison"]
    elsewhere = {k for k in keys(shown) if re.match(r"tasks\[\]\.(proof|comparison)\.", k)}
    assert not undocumented(shown, "`quire review`") - above - elsewhere
    assert not undocumented(answer("merge-proposal", "1", "--force"), "`quire merge-proposal`")
    repo.write("notes.txt", "More.")
    repo.git("add", ".")
    repo.git("commit", "--quiet", "-m", "More")
    assert answer("propose")["number"] == 2
    told = answer("close-proposal", "2")
    assert not undocumented(told, "`quire close-proposal`") - above


def test_every_json_key_of_finding_is_documented(scratch: Scratch) -> None:
    task = scratch.write("a.py", "# %% one\nword = 1 / 0\n")

    def answer(*args: str) -> Any:
        return json.loads(scratch.quire(*args, "--json").stdout)

    answer("run", "a.py")
    task.write_text("# %% one\nword = 1\n")
    answer("run", "a.py")
    told = answer("find", "word")
    assert told["runs"][0]["hits"]
    assert not undocumented(told, "`quire find`")
    alike = answer("find", "--like", "ZeroDivisionError: division by zero")
    assert alike["runs"][0]["fix"]["diff"]
    above = keys(told)
    assert not undocumented(alike, "Failures that were met before") - above
    assert not undocumented(answer("digest"), "`quire digest`")
    assert not undocumented(answer("index", "status"), "`quire index status`")
    assert not undocumented(answer("index", "rebuild"), "`quire index rebuild`")


UNCOVERED = {
    "cells": [
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "a",
            "metadata": {},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": ["42"]}],
            "source": ["print(42)"],
        }
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_every_json_key_of_proof_is_documented(scratch: Scratch) -> None:
    scratch.write("a.py", "# %%\nprint(1)\n")

    def answer(*args: str) -> Any:
        return json.loads(scratch.quire(*args, "--json").stdout)

    answer("run", "a.py")
    assert not undocumented(answer("key", "show"), "Keys")
    assert not undocumented(answer("key", "trust", "--name", "ada"), "Keys")
    assert not undocumented(answer("key", "rotate"), "Keys")
    listed = {key.replace("keys[].", "") for key in keys(answer("key", "list"))}
    assert not undocumented(dict.fromkeys(listed), "Keys")
    (chain,) = scratch.root.glob(".quire/archive/*.jsonl")
    (notebook,) = scratch.root.glob(".quire/archive/runs/*/*/*/*/notebook.ipynb")
    chain.write_bytes(chain.read_bytes() * 2)
    notebook.write_bytes(notebook.read_bytes() + b" ")
    told = answer("verify")
    assert told["findings"]
    assert not undocumented(told, "`quire verify`")
    summary = answer("verify", "--all")
    assert summary["history"]
    runs = {key.replace("runs[].", "") for key in keys(summary)}
    assert not undocumented(dict.fromkeys(runs), "`quire verify`")


def test_every_json_key_of_agents_is_documented(scratch: Scratch) -> None:
    def answer(*args: str) -> Any:
        return json.loads(scratch.quire(*args, "--json").stdout)

    made = answer("token", "create", "--agent", "nightly", "--scope", "run")
    assert not undocumented(made, "`quire token`")
    assert not undocumented(answer("token", "list"), "`quire token`")
    scratch.write("a.py", f"# %%\nfrom IPython.display import Image, display\n{PICTURE}")
    told = answer("tools", "call", "notebook_execute", '{"path": "a.py"}')
    assert told["images"], told["text"]
    assert not undocumented(told, "`quire tools call`")


PICTURE = """import base64
display(Image(base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)))
"""


def test_the_reference_of_tools_is_made_from_their_definitions() -> None:
    page = next(page for page in READ if page.path.name == "tools.md")
    assert page.text.split("## Reference\n\n")[1] == reference()


def test_every_json_key_of_creating_is_documented(scratch: Scratch) -> None:
    told = json.loads(scratch.quire("new", "Alert above 5", "--json").stdout)
    assert told["parameters"]
    assert told["waiting"]
    assert not undocumented(told, "`quire new`")
    installed = json.loads(scratch.quire("skill", "install", "--json").stdout)
    assert not undocumented(installed, "`quire skill install`")


def test_reasons_why_there_is_no_way_back_are_documented() -> None:
    page = next(page for page in READ if page.path.name == "rewind.md")
    table = page.section("When there is no way back")
    source = (ROOT / "src" / "quire" / "kernel" / "inside" / "snapshot.py").read_text()
    given = [
        part.value
        for function in ast.walk(ast.parse(source))
        if isinstance(function, ast.FunctionDef)
        and isinstance(function.returns, ast.Name)
        and function.returns.id == "str"
        for end in ast.walk(function)
        if isinstance(end, ast.Return) and isinstance(end.value, ast.Constant | ast.JoinedStr)
        for part in ast.walk(end.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    words = {text.strip(" ()") for text in given} - {""}
    assert len(words) >= 6
    assert not [text for text in words if text not in table]
    assert NO_SNAPSHOTS in table


def subclasses(cls: type[Any]) -> set[type[Any]]:
    return {cls}.union(*(subclasses(sub) for sub in cls.__subclasses__()), set())


def test_outcomes_statuses_events_and_errors_are_documented() -> None:
    told = set(RUNNING.spans())
    outcomes = set(events.Outcome.__args__)  # type: ignore[attr-defined]
    statuses = set(events.CellStatus.__args__)  # type: ignore[attr-defined]
    names = {cls.__name__ for cls in events.Event.__args__}
    codes = {cls.code for cls in subclasses(errors.QuireError)} - {"quire"}
    assert not (outcomes | statuses | names | codes) - told


def test_public_names_are_documented() -> None:
    text = "\n".join(page.text for page in READ)
    for name in {*quire.__all__, *quire.runtime.__all__} - {"__version__"}:
        assert re.search(rf"\b{name}\b", text), name


@pytest.mark.parametrize(
    "path", [*PAGES, *SKILL, ROOT / "AGENTS.md", ROOT / "CHANGELOG.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if target.startswith(("http:", "https:")):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.*)$", there.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles}
            assert anchor in slugs, target
