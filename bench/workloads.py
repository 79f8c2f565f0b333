"""What is run: the same cells as a percent task (us), a notebook (peers) and a script (CPython)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

LINE = 100  # bytes of one line of the flood, newline included
BLOCK = 1000  # lines of one print of the flood


@dataclass(frozen=True, slots=True)
class Workload:
    """`shows` is a text or a MIME type that the executed notebook must contain: proof of work."""

    name: str
    what: str
    cells: tuple[str, ...]
    shows: str

    def percent(self) -> str:
        return "".join(f"# %%\n{source}\n\n" for source in self.cells)

    def script(self) -> str:
        return "".join(f"{source}\n" for source in self.cells)

    def notebook(self) -> str:
        cells: list[dict[str, object]] = [
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source.splitlines(keepends=True),
            }
            for number, source in enumerate(self.cells)
        ]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
        document = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(document, indent=1)

    def write(self, folder: Path) -> Files:
        files = Files(
            task=folder / f"{self.name}.py",
            notebook=folder / f"{self.name}.ipynb",
            script=folder / f"{self.name}_script.py",
        )
        files.task.write_text(self.percent())
        files.notebook.write_text(self.notebook())
        files.script.write_text(self.script())
        return files


@dataclass(frozen=True, slots=True)
class Files:
    task: Path
    notebook: Path
    script: Path


def trivial(count: int) -> Workload:
    """`x1 = 1`, `x2 = 2`, …; every tenth cell and the last one also print their number."""
    cells = [f"x{n} = {n}" for n in range(1, count + 1)]
    for n in {*range(10, count + 1, 10), count}:
        cells[n - 1] += f'\nprint("cell", x{n})'
    return Workload(f"trivial{count}", f"{count} trivial cells", tuple(cells), f"cell {count}")


def talkative(count: int = 100) -> Workload:
    """Each cell prints 250 lines of 80 bytes, one print a line: 20 KB."""
    cells = tuple(
        f'for line in range(250):\n    print(f"cell {n:03d} line {{line:03d}} ".ljust(79, "."))'
        for n in range(1, count + 1)
    )
    return Workload("talkative", f"{count} cells, 20 KB each", cells, f"cell {count:03d} line 249")


def plot() -> Workload:
    cells = (
        "import matplotlib.pyplot as plt\nimport pandas as pd",
        'frame = pd.DataFrame({"x": range(50), "y": [n * n % 17 for n in range(50)]})',
        'frame.plot(x="x", y="y", title="y over x")\nplt.show()',
    )
    return Workload("plot", "pandas, matplotlib, one plot", cells, "image/png")


def flood(megabytes: int) -> Workload:
    """Lines of 100 bytes, 1,000 lines a print, from one cell; a short cell on each side."""
    lines = megabytes * 1_000_000 // LINE
    source = (
        f"for start in range(0, {lines}, {BLOCK}):\n"
        f"    rows = [str(n).ljust({LINE - 1}, '.') for n in range(start, start + {BLOCK})]\n"
        "    print('\\n'.join(rows))"
    )
    cells = ('print("before")', source, 'print("after the flood")')
    return Workload("flood", f"{megabytes} MB of stdout", cells, "after the flood")
