from __future__ import annotations

from dataclasses import replace

import jupytext
import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupytext_oracle import theirs
from notebooks import HEADER, NOTEBOOKS, SCRIPTS, documents, kept, plain_cells

from quire.task import ipynb, percent
from quire.task.document import Cell, Document, identified
from quire.task.percent_writing import DROPPED

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def through_py(doc: Document) -> Document:
    text = percent.dumps(doc)
    text.encode()
    return percent.loads(text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_corpus_survives_the_way_through_a_py(path):
    doc = ipynb.loads(path.read_text())
    back = ipynb.loads(ipynb.dumps(through_py(doc)))
    assert kept(back) == kept(doc)


@settings(max_examples=250)
@given(documents())
def test_any_notebook_survives_the_way_through_a_py(doc):
    back = through_py(doc)
    assert kept(back) == kept(doc)
    assert kept(ipynb.loads(ipynb.dumps(back))) == kept(doc)
    assert percent.dumps(back) == percent.dumps(doc)


def _user_set(doc: Document) -> Document:
    return replace(
        doc,
        cells=tuple(
            replace(cell, metadata={k: v for k, v in cell.metadata.items() if k not in DROPPED})
            for cell in doc.cells
        ),
    )


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_survive_the_way_through_an_ipynb(path):
    doc = percent.loads(path.read_bytes().decode())
    back = percent.loads(percent.dumps(ipynb.loads(ipynb.dumps(doc))))
    if "kernelspec" in doc.metadata:  # an .ipynb must have a display name
        assert back.metadata["kernelspec"]["name"] == doc.metadata["kernelspec"]["name"]
        back = replace(back, metadata=doc.metadata)
    assert kept(_user_set(back)) == kept(_user_set(doc))


def test_what_a_run_left_behind_is_not_kept():
    metadata = {"papermill": {"duration": 1}, "execution": {}, "ExecuteTime": {}, "mine": 1}
    doc = Document(identified([Cell("code", "x", metadata=metadata)]), {"widgets": {}})
    back = through_py(doc)
    assert (back.cells[0].metadata, back.metadata) == ({"mine": 1}, {})


def test_ordinary_cells_are_written_as_jupytext_writes_them():
    cells = [
        Cell("markdown", "# Title\n\ntext"),
        Cell("code", "%matplotlib inline\nimport os", title="set up", tags=("parameters",)),
        Cell("code", "def f():\n    return 1"),
        Cell("code", "x = f()\n# %time is escaped", metadata={"name": "n", "k": {"a": [1]}}),
        Cell("code", "%%bash -e\nls\n\necho done"),
        Cell("raw", "raw", metadata={"format": "text/html"}),
        Cell("code", "class A:\n    pass\n\n\nprint(A)"),
    ]
    text = ipynb.dumps(Document(identified(cells), {"kernelspec": KERNEL}))
    doc = ipynb.loads(text)
    expected = jupytext.writes(nbformat.reads(text, as_version=4), fmt="py:percent")
    lines = [line for line in expected.split("\n") if "jupytext_version" not in line]
    assert percent.dumps(doc).split("\n") == lines


@settings(max_examples=150)
@given(st.lists(plain_cells(), max_size=4))
def test_jupytext_finds_the_same_kinds_of_cells_in_what_we_write(cells):
    text = percent.dumps(Document(identified(cells), {"kernelspec": KERNEL}))
    if len(text.splitlines()) != text.count("\n"):
        return  # it breaks lines at form feeds and the like, inside of strings too
    assert [cell["kind"] for cell in theirs(text)] == [cell.kind for cell in cells]


def test_quoted_markdown_stays_quoted():
    text = '# %% [markdown]\n"""\n# Title\n"""\n\n# %%\nx = 1\n'
    assert percent.dumps(ipynb.loads(ipynb.dumps(percent.loads(text)))) == text


def test_a_header_appears_only_when_something_needs_it():
    assert percent.dumps(percent.loads("# %%\nx = 1\n")) == "# %%\nx = 1\n"
    # `ls` alone: only a header tells a reader that `# ls` is a magic.
    assert percent.dumps(Document(identified([Cell("code", "ls")]))).startswith("# ---\n")
    assert percent.loads(HEADER + "# %%\n# ls\n").cells[0].source == "ls"


def test_a_title_is_never_taken_for_an_encoding_line():
    doc = Document(identified([Cell("code", "x", title="coding: latin-1")]))
    text = percent.dumps(doc)
    assert percent.loads(text).cells[0].title == "coding: latin-1"
    compile(text.encode(), "task.py", "exec")
