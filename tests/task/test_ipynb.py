from __future__ import annotations

import json
import random
from contextlib import suppress

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from notebooks import NOTEBOOKS, documents, kept

from quire.errors import DocumentError
from quire.task import ipynb
from quire.task.document import Cell, Document

MODERN = [path for path in NOTEBOOKS if path.stem != "version_3"]


@pytest.mark.parametrize("path", MODERN, ids=lambda path: path.stem)
def test_writes_what_nbformat_writes(path):
    doc = ipynb.loads(path.read_text())
    notebook = nbformat.reads(path.read_text(), as_version=4)
    notebook.nbformat_minor = 5
    for cell, mine in zip(notebook.cells, doc.cells, strict=True):
        cell["id"] = mine.id
    expected = nbformat.writes(notebook)
    # nbformat leaves lone surrogates bare, which cannot be written to a file.
    expected = expected.replace("\ud800", "\\ud800")
    assert ipynb.dumps(doc) == expected + "\n"


@settings(max_examples=150)
@given(documents())
def test_any_document_is_a_valid_notebook(doc):
    text = ipynb.dumps(doc)
    text.encode()
    assert text == ipynb.dumps(doc)
    assert text.endswith("}\n")
    assert kept(ipynb.loads(text)) == kept(doc)
    data = json.loads(text)
    for cell in data["cells"]:
        cell["metadata"] = {}  # what users put there may be anything
    data["metadata"] = {}
    nbformat.validate(data)


def test_version_3_is_upgraded():
    path = next(path for path in NOTEBOOKS if path.stem == "version_3")
    doc = ipynb.loads(path.read_text())
    assert [(cell.kind, cell.source) for cell in doc.cells] == [
        ("markdown", "## Old"),
        ("code", "x = 1\nx"),
        ("markdown", "text"),
    ]


def test_invalid_or_equal_ids_are_repaired():
    cells = tuple(Cell("code", "x", id=id_) for id_ in ("a b", "a-b", "", "é" * 90, "ok", "ok"))
    data = json.loads(ipynb.dumps(Document(cells)))
    nbformat.validate(data)
    assert len({cell["id"] for cell in data["cells"]}) == 6


def test_a_kernelspec_gets_the_display_name_it_needs():
    data = json.loads(ipynb.dumps(Document((), {"kernelspec": {"name": "python3"}})))
    nbformat.validate(data)
    assert data["metadata"]["kernelspec"]["display_name"] == "python3"


def test_broken_json_says_where():
    with pytest.raises(DocumentError, match=r"line 2, column \d+") as caught:
        ipynb.loads('{"cells": [],\n "metadata": {,}')
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "[]", "1", '"x"', "null", "{}", '{"nbformat": "4"}', '{"nbformat": 4}', '{"nbformat": 5}',
     '{"nbformat": true, "cells": []}', '{"nbformat": 4, "cells": {}}',
     '{"nbformat": 3}', '{"nbformat": 3, "worksheets": [{"cells": [{}]}]}', '{"nbformat": -1}',
     '{"nbformat": 4, "cells": [1]}', '{"nbformat": 4, "cells": [{"cell_type": "heading"}]}',
     '{"nbformat": 4, "cells": [{"cell_type": []}]}',
     '{"nbformat": 4, "cells": [{"cell_type": "code", "source": 1}]}', "[" * 100_000,
     '{"nbformat": 4, "cells": [], "x": ' + "1" * 5000 + "}"],
)  # fmt: skip
def test_what_is_no_notebook_is_refused(text):
    with pytest.raises(DocumentError) as caught:
        ipynb.loads(text)
    assert caught.value.message
    assert caught.value.hint


@settings(max_examples=400)
@given(
    st.sampled_from(NOTEBOOKS),
    st.integers(0, 10**9),
    st.sampled_from(["drop", None, 1, 1.5, True, "x", [], {}, [1], {"a": 1}, [[]], ["x", None]]),
)
def test_a_damaged_notebook_is_read_or_refused(path, seed, junk):
    data = json.loads(path.read_text())
    places = [place for place in _paths_of(data) if place]
    *parents, last = random.Random(seed).choice(places)
    node = data
    for key in parents:
        node = node[key]
    if junk == "drop":
        del node[last]
    else:
        node[last] = junk
    with suppress(DocumentError):
        doc = ipynb.loads(json.dumps(data))
        # What was read can be written, and the result read again.
        assert len(ipynb.loads(ipynb.dumps(doc)).cells) == len(doc.cells)


def _paths_of(node, path=()):
    yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _paths_of(value, (*path, key))
    elif isinstance(node, list):
        for key, value in enumerate(node):
            yield from _paths_of(value, (*path, key))


@settings(max_examples=200)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["cells", "nbformat", "metadata", "source", "cell_type", "outputs"]),
        inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_any_json_is_read_or_refused(data):
    if isinstance(data, dict):
        data["nbformat"] = 4
    with suppress(DocumentError):
        ipynb.loads(json.dumps(data))
