"""The short cut around IPython's input transformation never changes what a cell means."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from quire.task import percent

CORPUS = Path(__file__).parents[1] / "corpus"

ODD = [
    "x = 1",
    "x",
    "  indented",
    "\n\nx = 1",
    "%time x",
    "a = !ls",
    "a = %pwd",
    "print?",
    "?print",
    "/f 1",
    ",f a b",
    ";f a b",
    ">>> x = 1",
    "In [1]: x = 1",
    "x = 5 %3",
    "x = a /b",
    "s = '''\n%not magic\n'''",
    "x = 1;",
    "f(a)\n%matplotlib inline",
    "if 1:\n    !ls\n",
    "y = 'what?'",
    "y = 1 # really?",
    "\tx",
    "lambda: 0",
    "await f()",
]


def test_same_as_ipython() -> None:
    """In a process of its own: a shell is one for each process."""
    sources = list(ODD)
    for path in sorted(CORPUS.rglob("*.py")):
        try:
            document = percent.loads(path.read_bytes().decode())
        except (UnicodeDecodeError, ValueError):
            continue
        sources += [cell.source for cell in document.cells if cell.kind == "code"]
    script = f"""
from quire.kernel.inside import shell as shells
shell = shells.make_shell()
for source in {sources!r}:
    try:
        wanted = shell.transform_cell(source)
    except SyntaxError:
        continue
    got = shells.transform(shell, source)
    if got.split() != wanted.split():
        print(repr(source), repr(got), repr(wanted))
    assert type(got) is str
print(len({sources!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [str(len(sources))]
    assert len(sources) > 300


@pytest.mark.parametrize("source", ["x = 1", "def f():\n    return 1\n", "print('a')"])
def test_plain_python_takes_the_short_cut(source: str) -> None:
    from quire.kernel.inside.shell import _SPECIAL

    ast.parse(source)
    assert _SPECIAL.search(source) is None
