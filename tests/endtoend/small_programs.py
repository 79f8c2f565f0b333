"""Small notebooks to generate, and a plain Python that runs the same cells for comparison."""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from quire.kernel.inside.variables import listing

FOLDERS = ("north", "south")
VARIABLE = "QUIRE_TEST_COLOUR"
# In the standard library, and loaded neither by a kernel nor by the tests.
MODULES = ("wave", "colorsys", "zipapp")
FIRST = f"""import os, random, sys
random.seed(42)
home = os.getcwd()
a, b, c = 1, 2, 3
xs = [3]
steps, squares = iter(range(100)), (n * n for n in range(100))
def twice(n): return 2 * n
def told():
    here = os.path.basename(os.getcwd())
    loaded = [name for name in {MODULES!r} if name in sys.modules]
    print(here in {FOLDERS!r} and here, os.environ.get({VARIABLE!r}), loaded, random.random())"""

_names = st.sampled_from(("a", "b", "c"))
_small = st.integers(0, 9)
_lines = st.one_of(
    st.builds("{} = {}".format, _names, _small),
    st.builds("{0} = {1} + {2}".format, _names, _names, _small),
    st.builds("xs.append({})".format, _names),
    st.builds("xs = [{}, {}]".format, _small, _names),
    st.sampled_from(
        (
            "ys = xs",
            "ys = list(xs)",
            "xs.pop() if xs else 0;",
            "a = random.random()",
            "xs.append(random.randrange(10))",
            "random.shuffle(xs)",
            "random.seed(5)",
            "steps = iter(range(100))",
            "b = next(steps)",
            "squares = (n * n for n in range(100))",
            "c = next(squares)",
            "def twice(n): return 2 * n + a",
            "b = twice(b) % 1000",
            "print(a, b)",
            "print(xs)",
            "told()",
            "del c; c = 4",
            "for n in range(3): a = a + n",
            "os.environ.pop('QUIRE_TEST_COLOUR', None)",
        )
    ),
    st.builds("os.chdir(os.path.join(home, {!r}))".format, st.sampled_from((*FOLDERS, "."))),
    st.builds(f"os.environ[{VARIABLE!r}] = {{!r}}".format, st.sampled_from(("red", "blue"))),
    st.builds("import {}".format, st.sampled_from(MODULES)),
)
# An error ends a cell in the middle, after some of its effects. Showing one takes time: not many.
_failing = st.builds("{}\n1 / 0".format, _lines)
_working = st.lists(_lines, min_size=1, max_size=3).map("\n".join)
cells = st.integers(0, 15).flatmap(lambda n: _failing if n == 15 else _working)


@dataclass(frozen=True)
class Told:
    """What a cell showed."""

    status: str
    text: str
    error: str | None


@dataclass
class PlainPython:
    """Cells in a dictionary. What belongs to a process is lent to it while a cell runs."""

    home: Path
    names: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    randomness: Any = field(default_factory=lambda: random.Random(0).getstate())
    folder: str = ""
    modules: dict[str, Any] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names["__builtins__"] = {**vars(builtins), "print": self._print}

    def _print(self, *values: object) -> None:
        self.printed.append(" ".join(map(str, values)) + "\n")

    def run(self, source: str) -> Told:
        self.printed.clear()
        error = None
        with self._process():
            try:
                exec(compile(source, "cell", "exec"), self.names)
            except Exception as raised:  # noqa: BLE001 - whatever the cell raises is its result
                error = type(raised).__name__
        return Told("failed" if error else "ok", "".join(self.printed), error)

    @contextlib.contextmanager
    def _process(self) -> Iterator[None]:
        before = (os.getcwd(), dict(os.environ), random.getstate())
        os.chdir(self.folder or self.home)
        _become(self.environment)
        random.setstate(self.randomness)
        sys.modules.update(self.modules)
        try:
            yield
        finally:
            self.folder, self.environment = os.getcwd(), dict(os.environ)
            self.randomness = random.getstate()
            self.modules = {name: sys.modules.pop(name) for name in MODULES if name in sys.modules}
            os.chdir(before[0])
            _become(before[1])
            random.setstate(before[2])

    def variables(self) -> list[dict[str, Any]]:
        return comparable(listing(self.names))


def _become(environment: dict[str, str]) -> None:
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)


def comparable(found: Any) -> list[dict[str, Any]]:
    """Without the addresses that the text of functions and iterators holds."""
    return sorted(
        ({**one, "value": one["value"].split(" at 0x")[0].split(" object")[0]} for one in found),
        key=lambda one: str(one["name"]),
    )
