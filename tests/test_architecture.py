"""What holds the house up: ranks of rooms, sizes, one place for each thing, lazy heavy imports.

The numbers between the two lines `measured` may only fall. `python tests/test_architecture.py`
prints them as they are now.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import quire

SRC = Path(quire.__file__).parent
# Left never imports right, lazily or for types neither. Rooms on one line do not know each other.
RANKS: list[set[str]] = [
    {"next_steps"},
    {"errors"},
    {"config", "files", "text"},
    {"workspace"},
    {"task", "masking"},
    {"record"},
    {"render", "kernel", "git", "environments"},
    {"archive", "proof", "search", "host"},
    {"engine", "cell_tools", "runtime"},
    {"sessions", "logbooks", "authoring", "review", "ci"},
    {"agent"},
    {"cli", "mcp"},
    {"__main__"},
]
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}
STRANGERS = {("archive", "kernel"), ("search", "kernel")}  # as git and kernel, which share a rank
MODULE_LINES = 450
FUNCTION_LINES = 60
PARAMETERS = 7
FAN_OUT = 15
FOLDER = 14
# What may stand twice: a protocol in each room that has one.
SAME_STEM = {"__init__", "protocol"}
HEAVY = {
    "jupytext",
    "nbformat",
    "yaml",
    "IPython",
    "ipykernel",
    "jupyter_client",
    "zmq",
    "rich",
    "cryptography",
    "httpx2",
    "fsspec",
    "nbdime",
    "mcp",
    "mcp_types",
    "pydantic",
    "starlette",
    "uvicorn",
    "PIL",
}
ONE_PLACE = ("subprocess", "flock", "mkstemp", "text/plain")

# --- measured
# Lines of a room, in all its files. More takes a decision record.
BUDGET: dict[str, int] = {
    "agent": 2815,
    "archive": 2295,
    "authoring": 1168,
    "cell_tools": 2230,
    "ci": 1645,
    "cli": 4614,
    "engine": 3559,
    "environments": 1027,
    "git": 4187,
    "host": 707,
    "kernel": 5812,
    "logbooks": 1021,
    "masking": 1008,
    "mcp": 697,
    "proof": 2442,
    "record": 3358,
    "render": 3091,
    "review": 5214,
    "search": 2837,
    "sessions": 1633,
    "shipped": 890,
    "task": 6585,
    "top": 1247,
}
# How often a room imports another against the ranks.
ALLOWED: dict[tuple[str, str], int] = {
    ("archive", "logbooks"): 1,
    ("archive", "proof"): 2,
    ("cell_tools", "engine"): 2,
    ("ci", "review"): 2,
    ("cli", "mcp"): 2,
    ("engine", "cell_tools"): 1,
    ("environments", "engine"): 1,
    ("git", "engine"): 1,
    ("git", "host"): 2,
    ("git", "kernel"): 1,
    ("git", "proof"): 3,
    ("kernel", "host"): 1,
    ("mcp", "cli"): 1,
    ("proof", "archive"): 2,
    ("proof", "ci"): 1,
    ("proof", "host"): 1,
    ("proof", "review"): 1,
    ("task", "kernel"): 1,
    ("workspace", "archive"): 4,
    ("workspace", "engine"): 5,
    ("workspace", "environments"): 1,
    ("workspace", "git"): 1,
    ("workspace", "host"): 1,
    ("workspace", "kernel"): 3,
    ("workspace", "masking"): 1,
    ("workspace", "proof"): 2,
    ("workspace", "record"): 3,
    ("workspace", "review"): 2,
    ("workspace", "sessions"): 4,
}
# What is longer, wider or fuller than it should be, and how much.
LONG_FUNCTIONS: dict[str, int] = {
    "cli.record_commands:show": 61,
    "engine.planning:planned": 73,
    "engine.resume:prepare": 65,
    "kernel.inside.shell:make_shell": 63,
    "render.agent_run:tell_cells": 66,
    "render.agent_run:tell_run": 64,
}
MANY_PARAMETERS: dict[str, int] = {
    "agent.find_tool:search": 11,
    "agent.proposal_tools:pr": 8,
    "authoring.edit_file:edit": 15,
    "ci.gate:Gate:__init__": 11,
    "cli.resume_commands:resume": 11,
    "cli.search_commands:find": 12,
    "engine.nested:run_called": 9,
    "engine.planning:planned": 11,
    "engine.replay:prepare": 8,
    "engine.resume:prepare": 9,
    "engine.run:NotebookExecutor:__init__": 22,
    "engine.run:run": 10,
    "kernel.inside.cell_runtime:search_files": 8,
    "render.agent_run:tell_cells": 10,
    "render.agent_run:tell_run": 9,
    "search.find:find": 12,
    "search.similar:similar": 8,
    "sessions.session:_started": 8,
    "task.edit:insert": 8,
    "workspace:Workspace:__init__": 9,
}
WIDE_MODULES: dict[str, int] = {
    "agent.describe_run": 19,
    "agent.notebook_tools": 17,
    "agent.run_tools": 17,
    "agent.session_tools": 19,
    "cli.run_commands": 16,
    "engine.planning": 19,
    "engine.run": 27,
    "review.look": 24,
    "review.merge_proposal": 19,
    "review.propose": 19,
    "sessions.session": 25,
    "workspace": 29,
}
FULL_FOLDERS: dict[str, int] = {
    "agent": 19,
    "cli": 30,
    "engine": 23,
    "git": 19,
    "kernel": 18,
    "kernel/inside": 19,
    "record": 21,
    "review": 28,
    "task": 35,
}
# Where it is used, until it has one place.
PLACES: dict[str, list[str]] = {
    "subprocess": [
        "cell_tools.deadline_process",
        "environments.environment_cache",
        "environments.uv",
        "git.nbdime_process",
        "git.repository",
        "kernel.fork_server",
        "kernel.inside.snapshot",
        "kernel.installed_packages",
        "kernel.kept_process",
        "kernel.processes",
        "search.fill",
    ],
    "flock": [
        "authoring.edit_file",
        "ci.gate_folder",
        "environments.environment_cache",
        "files",
        "git.housekeeping",
        "git.ref_log",
        "host.host_server",
        "record.journal",
        "search.index_file",
    ],
    "mkstemp": ["files"],
    "text/plain": [
        "cell_tools.fetch",
        "kernel.inside.glue",
        "kernel.inside.message_limits",
        "kernel.jupyter_used_values",
        "logbooks.read_back",
        "record.cell_calls",
        "record.comparable_outputs",
        "record.compare_large_outputs",
        "record.output_digests",
        "record.record",
        "record.record_files",
        "render.blocks",
        "render.comparison",
    ],
}
DOUBLED_CLASSES: list[str] = [
    "Answer",
    "Archive",
    "Asked",
    "Change",
    "Comparison",
    "Draft",
    "Finding",
    "Forge",
    "Found",
    "Given",
    "Held",
    "Import",
    "Info",
    "Keeper",
    "Kept",
    "Key",
    "Known",
    "Limits",
    "Line",
    "Merged",
    "Objects",
    "Page",
    "Place",
    "Places",
    "Planned",
    "Progress",
    "Ran",
    "Refused",
    "Reply",
    "Rules",
    "Said",
    "Seen",
    "Shown",
    "Spot",
    "Step",
    "Token",
    "Told",
    "Tools",
    "Verdict",
    "Waiting",
    "Wire",
    "Zygote",
]
# --- measured


class Import(NamedTuple):
    module: str  # which imports
    line: int
    name: str  # what, absolute
    at_load: bool


@functools.cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__")] = path
    return found


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text("utf-8"))


def room(module: str) -> str:
    return module.split(".")[0]


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _nodes(body: Iterable[ast.AST], at_load: bool) -> Iterator[tuple[ast.AST, bool]]:
    for node in body:
        yield node, at_load
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        later = inner or _for_types(node)
        yield from _nodes(ast.iter_child_nodes(node), at_load and not later)


@functools.cache
def imports(module: str) -> tuple[Import, ...]:
    """All that a module imports; `a.b` for the name b of a, and for a module b in a."""
    found = []
    package = ["quire", *module.split(".")] if module else ["quire"]
    if modules()[module].name != "__init__.py":
        package = package[:-1]
    for node, at_load in _nodes(tree(module).body, True):
        if isinstance(node, ast.Import):
            found += [Import(module, node.lineno, a.name, at_load) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                found.append(Import(module, node.lineno, f"{home}.{alias.name}", at_load))
    return tuple(found)


def edges() -> Iterator[tuple[str, str, Import]]:
    """Which module needs which of Quire's others."""
    for module in modules():
        for one in imports(module):
            if not one.name.startswith("quire."):
                continue
            name = one.name.removeprefix("quire.")
            while name and name not in modules():
                name = name.rpartition(".")[0]
            if name and name != module:
                yield module, name, one


def breaks() -> dict[tuple[str, str], list[str]]:
    """Imports against the ranks, by the two rooms."""
    found = defaultdict(set)
    for module, other, _ in edges():
        here, there = room(module), room(other)
        if not module or here == there:
            continue  # quire itself names the homes of its public names, and loads none of them
        strangers = (here, there) in STRANGERS or (there, here) in STRANGERS
        if RANK[there] >= RANK[here] or strangers:
            found[here, there].add(f"{module} imports {other}")
    return {pair: sorted(lines) for pair, lines in sorted(found.items())}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for module in modules():
        stack: list[tuple[str, ast.AST]] = [(module, tree(module))]
        while stack:
            name, node = stack.pop()
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{name}:{child.name}", child
                    stack.append((f"{name}:{child.name}", child))
                elif isinstance(child, ast.ClassDef):
                    stack.append((f"{name}:{child.name}", child))
                else:
                    stack.append((name, child))


def lines(module: str) -> int:
    return modules()[module].read_text("utf-8").count("\n")


def budget() -> dict[str, int]:
    """Lines of each room, what it ships and its style sheets too; the modules at the top as one."""
    found: Counter[str] = Counter()
    for path in SRC.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            parts = path.relative_to(SRC).parts
            found[parts[0] if len(parts) > 1 else "top"] += path.read_text("utf-8").count("\n")
    return dict(sorted(found.items()))


def folders() -> dict[str, int]:
    found = Counter(
        path.parent.relative_to(SRC).as_posix()
        for path in modules().values()
        if path.name != "__init__.py" and path.parent != SRC
    )
    return {name: count for name, count in sorted(found.items()) if count > FOLDER}


def long_functions() -> dict[str, int]:
    sizes = ((name, (f.end_lineno or f.lineno) - f.lineno + 1) for name, f in functions())
    return {name: size for name, size in sorted(sizes) if size > FUNCTION_LINES}


def many_parameters() -> dict[str, int]:
    found = {}
    for name, node in functions():
        given = node.args
        names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        names += [a.arg for a in (given.vararg, given.kwarg) if a is not None]
        count = len([n for n in names if n not in ("self", "cls")])
        if count > PARAMETERS:
            found[name] = count
    return dict(sorted(found.items()))


def fan_out() -> dict[str, int]:
    found = defaultdict(set)
    for module, other, _ in edges():
        found[module].add(other)
    counts = {module: len(others) for module, others in sorted(found.items()) if module}
    return {module: count for module, count in counts.items() if count > FAN_OUT}


def places() -> dict[str, list[str]]:
    """The modules that use what should have one place."""
    found: dict[str, set[str]] = {what: set() for what in ONE_PLACE}
    for module in modules():
        for one in imports(module):
            for part in one.name.split("."):
                if part in found:
                    found[part].add(module)
        for node in ast.walk(tree(module)):
            said = node.attr if isinstance(node, ast.Attribute) else None
            said = node.value if isinstance(node, ast.Constant) else said
            if isinstance(said, str) and said in found and not said.startswith("subprocess"):
                found[said].add(module)
    return {what: sorted(names) for what, names in found.items()}


def doubled_classes() -> list[str]:
    found = Counter(
        node.name
        for module in modules()
        for node in tree(module).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return sorted(name for name, count in found.items() if count > 1)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected modules, more than one at a time."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in graph.get(name, ()):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return found


def only_fall(found: dict[str, int], allowed: dict[str, int], most: int, what: str) -> None:
    over = {name: n for name, n in found.items() if n > allowed.get(name, most)}
    assert not over, f"more {what} than allowed: {over}"
    fallen = {name: found.get(name) for name, n in allowed.items() if found.get(name, 0) < n}
    assert not fallen, f"fewer {what} than the table says: lower it, or take the line out: {fallen}"


def test_left_never_imports_right() -> None:
    unranked = {room(module) for module in modules() if module} - set(RANK) - {"shipped"}
    assert not unranked, f"no place in the ranks: {unranked}"
    found = breaks()
    for pair, lines in found.items():
        assert len(lines) <= ALLOWED.get(pair, 0), f"{pair}, {len(lines)}: {lines}"
    fallen = {p: len(found.get(p, ())) for p, n in ALLOWED.items() if len(found.get(p, ())) < n}
    assert not fallen, f"fewer than ALLOWED says: lower it: {fallen}"


def test_no_cycles_at_load() -> None:
    graph = defaultdict(set)
    for module, other, one in edges():
        if one.at_load:
            graph[module].add(other)
    assert cycles(dict(graph)) == []


def test_heavy_imports_are_lazy() -> None:
    for module in modules():
        if module.startswith("kernel.inside") or room(module) == "mcp":
            continue  # where IPython is loaded anyway; what `quire mcp` alone loads
        heavy = [one for one in imports(module) if one.at_load and one.name.split(".")[0] in HEAVY]
        assert heavy == []


def test_what_lives_inside_a_kernel_stands_alone() -> None:
    """Standard library, IPython and ipykernel; nothing of Quire outside its own folder."""
    allowed = set(sys.stdlib_module_names) | {
        "IPython",
        "comm",  # ipykernel's own
        "ipykernel",
        "traitlets",
    }
    for module in modules():
        if not module.startswith("kernel.inside"):
            continue
        for one in imports(module):
            own = one.name.startswith("quire.kernel.inside")
            assert own or one.name.split(".")[0] in allowed, f"{module}:{one.line} {one.name}"


def test_a_stem_exists_once() -> None:
    stems = Counter(path.stem for path in modules().values())
    assert [s for s, count in stems.items() if count > 1 and s not in SAME_STEM] == []


def test_public_classes_have_names_of_their_own() -> None:
    assert set(doubled_classes()) <= set(DOUBLED_CLASSES)


def test_no_module_is_called_nothing() -> None:
    empty = {"utils", "helpers", "manager", "base", "impl", "misc", "common"}
    assert [str(p) for p in modules().values() if p.stem in empty] == []


def test_rooms_keep_to_their_lines() -> None:
    over = {name: n for name, n in budget().items() if n > BUDGET.get(name, 0)}
    assert not over, f"more lines than the budget has: {over}"


def test_modules_functions_and_folders_stay_small() -> None:
    assert {m: lines(m) for m in modules() if lines(m) > MODULE_LINES} == {}
    only_fall(long_functions(), LONG_FUNCTIONS, FUNCTION_LINES, "lines of a function")
    only_fall(many_parameters(), MANY_PARAMETERS, PARAMETERS, "parameters")
    only_fall(fan_out(), WIDE_MODULES, FAN_OUT, "imports of Quire's own")
    only_fall(folders(), FULL_FOLDERS, FOLDER, "modules in a folder")


def test_each_thing_has_its_place() -> None:
    for what, found in places().items():
        new = set(found) - set(PLACES[what])
        assert not new, f"{what} in a new place: {new}"


def test_rooms_have_empty_init_files() -> None:
    full = [m for m, p in modules().items() if m and p.name == "__init__.py" and tree(m).body]
    assert full in ([], ["kernel.inside"])


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_client_stays_thin() -> None:
    loaded = loaded_by("import quire.cli.client, quire.host.host_socket")
    heavy = {"click", "json", "socket", "typing", "re", "pathlib", "subprocess", "hashlib"}
    assert loaded & heavy == set()


def test_importing_quire_loads_nothing_of_it() -> None:
    loaded = loaded_by("import quire")
    assert {name for name in loaded if name.startswith("quire.")} == set()


def test_the_command_line_loads_no_engine_for_help() -> None:
    loaded = loaded_by("import quire.cli.main")
    assert loaded & HEAVY == set()
    assert "quire.engine.run" not in loaded


def test_public_names() -> None:
    assert quire.__all__ == [
        "NotebookExecutor",
        "QuireError",
        "Record",
        "Result",
        "Workspace",
        "__version__",
        "run",
    ]
    for name in quire.__all__:
        assert getattr(quire, name) is not None


def measured() -> str:
    """The tables, as Python."""
    allowed = {pair: len(lines) for pair, lines in breaks().items()}
    tables = [
        ("# Lines of a room, in all its files. More takes a decision record.", "BUDGET", budget()),
        ("# How often a room imports another against the ranks.", "ALLOWED", allowed),
        ("# What is longer, wider or fuller than it should be, and how much.", "", None),
        ("", "LONG_FUNCTIONS", long_functions()),
        ("", "MANY_PARAMETERS", many_parameters()),
        ("", "WIDE_MODULES", fan_out()),
        ("", "FULL_FOLDERS", folders()),
        ("# Where it is used, until it has one place.", "PLACES", places()),
        ("", "DOUBLED_CLASSES", doubled_classes()),
    ]
    types = {
        "ALLOWED": "dict[tuple[str, str], int]",
        "PLACES": "dict[str, list[str]]",
        "DOUBLED_CLASSES": "list[str]",
    }
    said = []
    for comment, name, value in tables:
        said += [comment] if comment else []
        said += [f"{name}: {types.get(name, 'dict[str, int]')} = {value!r}"] if name else []
    return "\n".join(said)


if __name__ == "__main__":
    print(measured())
