"""Every notebook of the corpus gives the same outputs on both kernels."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jupytext
import pytest
from kernel_cells import Sheet, run

from quire.kernel.protocol import Kernel
from quire.record.events import CellFinished

Start = Callable[..., Kernel]
Outputs = list[tuple[str, list[dict[str, Any]]]]

CORPUS = Path(__file__).parent.parent / "corpus" / "kernels"
NOTEBOOKS = sorted(CORPUS.glob("*.py"))

# What may differ from run to run, and what it is replaced by.
VARYING = [
    # A compiled cell's file: /tmp/ipykernel_123/456789.py
    (re.compile(r"/[\w./-]{0,200}?ipykernel_\d+/\d+\.py"), "<cell file>"),
    (re.compile(r"\(\d+\.py, line"), "(<cell file>, line"),
    (re.compile(r"0x[0-9a-fA-F]{6,}"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<uuid>"),
    (re.compile(r"\b\d\d:\d\d<\S+ *\S+(it/s|s/it)"), "<rate>"),
    # How deep the stack already was when the cell began.
    (re.compile(r"\(\d+ times\)"), "(<n> times)"),
]


def normalise(outputs: list[dict[str, Any]], cwd: Path) -> list[dict[str, Any]]:
    """Outputs up to times, addresses, uuids, the working directory and names of cell files.

    stdout and stderr each keep their order, and so do streams and displays; only how the two
    streams interleave between displays is left open, since ipykernel buffers each for a while.
    A frame that recurses is kept once: how often it is shown depends on how deep the stack was.
    """
    joined: list[dict[str, Any]] = []
    for output in outputs:
        if output["output_type"] != "stream":
            if "traceback" in output:
                output = {
                    **output,
                    "traceback": [t for t, _ in itertools.groupby(output["traceback"])],
                }
            joined.append(output)
            continue
        # Streams since the last display: at most one of each name, stdout first.
        recent = [o for o in joined[-2:] if o["output_type"] == "stream"]
        if joined and joined[-1]["output_type"] != "stream":
            recent = []
        same = next((o for o in recent if o["name"] == output["name"]), None)
        if same is not None:
            same["text"] += output["text"]
        elif recent and output["name"] == "stdout":
            joined.insert(len(joined) - 1, dict(output))
        else:
            joined.append(dict(output))
    text = json.dumps(joined, sort_keys=True).replace(json.dumps(str(cwd))[1:-1], "<cwd>")
    for pattern, word in VARYING:
        text = pattern.sub(word, text)
    return list(json.loads(text))


def outputs_of(notebook: Path, kernel: Kernel, cwd: Path) -> Outputs:
    """How each cell ended and what it showed; a failure ends the notebook unless it is allowed."""
    document = jupytext.reads(notebook.read_text(), "py:percent")
    sheet, ends = Sheet(), {}
    for index, cell in enumerate(c for c in document.cells if c.cell_type == "code"):
        end = run(kernel, cell.source, str(index), sheet).end
        assert isinstance(end, CellFinished), end
        ends[str(index)] = "stop" if end.stop else end.status
        allowed = "raises-exception" in cell.metadata.get("tags", ())
        if end.stop or (end.status == "failed" and not allowed):
            break
    return [(ends[key], normalise(sheet.cells[key], cwd)) for key in ends]


def played(notebook: Path, start: Start, cwd: Path) -> Outputs:
    kernel = start(cwd=cwd)
    try:
        return outputs_of(notebook, kernel, cwd)
    finally:
        kernel.close()


def test_the_corpus_is_there() -> None:
    assert len(NOTEBOOKS) >= 44


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_equal_outputs(
    notebook: Path, starters: dict[str, Start], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A kernel of its own for each, in a directory of its own."""
    results = [
        played(notebook, starters[kind], tmp_path_factory.mktemp(kind))
        for kind in ("jupyter", "native")
    ]
    for index, (jupyter, native) in enumerate(zip(*results, strict=True)):
        assert native == jupyter, f"code cell {index} of {notebook.name}"


def test_normalise_orders_streams_between_displays() -> None:
    def stream(name: str, text: str) -> dict[str, Any]:
        return {"output_type": "stream", "name": name, "text": text}

    shown = {"output_type": "display_data", "data": {}, "metadata": {}}
    mixed = [stream("stderr", "e1"), stream("stdout", "o1"), stream("stderr", "e2"), shown]
    mixed += [stream("stdout", "o2")]
    assert normalise(mixed, Path("/nowhere")) == [
        stream("stdout", "o1"),
        stream("stderr", "e1e2"),
        shown,
        stream("stdout", "o2"),
    ]
    assert normalise([stream("stdout", "a\n")], Path("/x")) != normalise(
        [stream("stdout", "b\n")], Path("/x")
    )
