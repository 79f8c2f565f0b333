"""The direction of imports, lazy heavy imports and the public names, so nobody has to remember."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import quire

SRC = Path(quire.__file__).parent
# Left never imports right. Packages on one line do not import each other.
LAYERS = [
    {"errors", "__init__"},
    {"config", "document"},
    {"runs"},
    {"kernel", "store"},
    {"executors", "forge", "runtime", "tools"},
    {"workspace"},
    {"verbs"},
    {"views"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
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
    "lxml",
    "trafilatura",
}
MODULES = sorted(SRC.rglob("*.py"))


def package(path: Path) -> str:
    return path.relative_to(SRC).with_suffix("").parts[0]


def imports(path: Path, *, top_level: bool = False) -> Iterator[tuple[str, int]]:
    """Absolute names of what a module imports, and where."""
    tree = ast.parse(path.read_text())
    parts = ("quire", *path.relative_to(SRC).with_suffix("").parts)
    nodes = tree.body if top_level else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level] if node.level else ()
            name = ".".join((*base, *(node.module or "").split("."))).strip(".")
            yield name, node.lineno
            yield from ((f"{name}.{alias.name}", node.lineno) for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_left_never_imports_right(path: Path) -> None:
    here = package(path)
    assert here in RANK, f"{here} has no place in the layers"
    if here == "__init__":
        return  # names its homes, loads none of them
    for name, line in imports(path):
        parts = name.split(".")
        if parts[0] != "quire" or len(parts) < 2 or parts[1] not in RANK:
            continue
        there = parts[1]
        allowed = there == here or RANK[there] < RANK[here]
        assert allowed, f"{path.name}:{line}: {here} imports {there}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_heavy_imports_are_lazy(path: Path) -> None:
    if "inside" in path.parts:
        return  # lives in the kernel, where IPython is loaded anyway
    if path.parent == SRC / "views" / "mcp":
        return  # loaded by `quire mcp` alone, which is nothing without it
    for name, line in imports(path, top_level=True):
        assert name.split(".")[0] not in HEAVY, f"{path.name}:{line} imports {name} at load"


def test_what_lives_inside_a_kernel_stands_alone() -> None:
    """Standard library, IPython and ipykernel; nothing of Quire outside its own folder."""
    allowed = set(sys.stdlib_module_names) | {
        "IPython",
        "comm",  # ipykernel's own
        "ipykernel",
        "quire",
        "traitlets",
    }
    for path in (SRC / "kernel" / "inside").glob("*.py"):
        for name, line in imports(path):
            assert name.split(".")[0] in allowed, f"{path.name}:{line} imports {name}"
            if name.startswith("quire."):
                assert name.startswith("quire.kernel.inside"), f"{path.name}:{line} imports {name}"


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_thin_client_stays_thin() -> None:
    loaded = loaded_by("import quire.views.thin, quire.kernel.hostline")
    heavy = {"click", "json", "socket", "typing", "re", "pathlib", "subprocess", "hashlib"}
    assert loaded & heavy == set()


def test_importing_quire_loads_nothing_of_it() -> None:
    loaded = loaded_by("import quire")
    assert {name for name in loaded if name.startswith("quire.")} == set()


def test_the_command_line_loads_no_engine_for_help() -> None:
    loaded = loaded_by("import quire.views.cli")
    assert loaded & HEAVY == set()
    assert "quire.verbs.run" not in loaded


def test_git_is_started_in_one_place() -> None:
    """Everything else goes through it: so no git obeys what it should not."""
    starts = {"run", "Popen", "call", "check_call", "check_output", "getoutput", "execvp", "execv",
              "execvpe", "execve", "posix_spawn", "posix_spawnp", "system", "popen", "which",
              "create_subprocess_exec", "create_subprocess_shell"}  # fmt: skip
    for path in MODULES:
        if path == SRC / "store" / "git.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = node.func.value
            if node.func.attr not in starts or not isinstance(owner, ast.Name):
                continue
            if owner.id not in ("subprocess", "os", "asyncio", "shutil"):
                continue
            words = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
            said = [w for w in words if isinstance(w, str) and re.match(r"(.*/)?git(\s|$)", w)]
            assert not said, f"{path.name}:{node.lineno} starts git: use store/git.py"


def test_who_starts_programs_is_known() -> None:
    """A new one is looked at: does it start git, or something that does?"""
    known = {
        "kernel/children.py", "kernel/forkserver.py", "kernel/inside/snapshot.py",
        "kernel/keeper.py", "kernel/packages.py", "store/environments.py", "store/git.py",
        "store/uv.py", "tools/command.py", "verbs/extracting.py", "verbs/nbdime_process.py",
    }  # fmt: skip
    found = {
        str(path.relative_to(SRC))
        for path in MODULES
        if any(name == "subprocess" for name, _ in imports(path))
    }
    assert found - {"store/gittalk.py"} == known


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


def test_no_module_is_called_nothing() -> None:
    empty = {"utils", "helpers", "manager", "base", "impl", "misc", "common"}
    assert [str(p) for p in MODULES if p.stem in empty] == []
