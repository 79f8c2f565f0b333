from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupytext_oracle import ours, theirs
from notebooks import (
    CONTINUED,
    CONVERTED_LINES,
    HEADER,
    LINES,
    MARKERS,
    PLAIN_LINES,
    PLAIN_MARKERS,
    SCRIPTS,
)

from growth import lines_run
from quire.errors import DocumentError
from quire.task import percent


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_corpus_reads_as_jupytext_reads_it(path):
    text = path.read_bytes().decode()
    assert ours(text) == theirs(text)


def test_corpus_is_there():
    assert len(SCRIPTS) >= 25


@settings(max_examples=700)
@given(st.lists(st.sampled_from([*PLAIN_MARKERS, *PLAIN_LINES]), max_size=9), st.booleans())
def test_any_document_reads_as_jupytext_reads_it(lines, newline):
    text = "\n".join(lines) + "\n" * newline
    assert ours(text) == theirs(text)


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["# %%", *LINES, *CONTINUED, *CONTINUED]), max_size=9))
def test_continued_magics_read_as_jupytext_reads_them(lines):
    text = HEADER + "\n".join(lines)
    assert ours(text) == theirs(text)


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*MARKERS, *LINES, *CONVERTED_LINES]), max_size=8))
def test_a_converted_document_reads_as_jupytext_reads_it(lines):
    # Headings that look like an escaped magic are the known difference.
    text = HEADER + "\n".join(lines)
    assert ours(text) == theirs(text)


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab =[]{}\"'.,:1#%-\\"), max_size=25))
def test_any_marker_line_reads_as_jupytext_reads_it(options):
    text = f"# %% {options}\nx = 1\n"
    try:
        expected = theirs(text)
    except Exception:  # noqa: BLE001  jupytext's errors have no common base
        percent.loads(text)  # jupytext fails on some literals; we must not
        return
    assert ours(text) == expected


@settings(max_examples=300)
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_read_or_refused(a, b):
    with suppress(DocumentError):
        percent.loads(f"{a}\n# %% {b}\n{a}")


def test_magics_a_person_did_not_comment_arrive_unchanged():
    doc = percent.loads("# %%\n%matplotlib inline\n!ls\n\n# %%\n%%bash\nls\n# %time\n")
    assert [cell.source for cell in doc.cells] == ["%matplotlib inline\n!ls", "%%bash\nls\n# %time"]


def test_title_tags_and_metadata():
    cell = percent.loads('# %% load data tags=["parameters"] name="p" a={"b": null}\nx=1').cells[0]
    assert (cell.title, cell.tags, cell.name) == ("load data", ("parameters",), "p")
    assert cell.metadata == {"name": "p", "a": {"b": None}}


def test_header_gives_kernel_and_language():
    doc = percent.loads(
        "# ---\n# jupyter:\n#   kernelspec:\n#     name: bash\n#     language: bash\n# ---\n\nls\n"
    )
    assert (doc.kernel_name, doc.language) == ("bash", "bash")
    assert doc.cells[0].source == "ls"
    named_only = percent.loads("# ---\n# jupyter:\n#   kernelspec:\n#     name: julia-1.9\n# ---\n")
    assert named_only.language == "julia"


def test_header_values_are_json():
    doc = percent.loads("# ---\n# jupyter:\n#   day: 2024-01-31\n#   1: {2: x}\n# ---\n")
    assert doc.metadata == {"day": "2024-01-31", "1": {"2": "x"}}


@pytest.mark.parametrize("body", ["jupyter:\n  {", "jupyter:\n  - 1", "jupyter:\n  a: !!x y"])
def test_a_broken_header_is_refused(body):
    text = "# ---\n" + "\n".join(f"# {line}" for line in body.split("\n")) + "\n# ---\n# %%\nx\n"
    with pytest.raises(DocumentError, match="line 4") as caught:
        percent.loads(text)
    assert caught.value.hint


@pytest.mark.parametrize("body", ["a: [", "jupyter: : :", "- x"])
def test_front_matter_is_only_text(body):
    doc = percent.loads(f"# ---\n# {body}\n# ---\n# %%\nx\n")
    assert doc.cells[0].source == f"---\n{body}\n---"


def test_byte_order_mark_and_crlf():
    doc = percent.loads("\ufeff# %% a\r\nx = 1\r\ny = 2\r\n")
    assert [(cell.title, cell.source) for cell in doc.cells] == [("a", "x = 1\ny = 2")]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_spans_cover_the_cells(path):
    text = path.read_bytes().decode()
    if "light" in path.stem and "header" in path.stem:
        with pytest.raises(DocumentError):
            percent.spans(text)
        return
    doc = percent.loads(text)
    spans = percent.spans(text)
    lines = percent.split_lines(text, keepends=True)
    assert len(spans) == len(doc.cells)
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert not spans or spans[-1][1] == len(lines)
    assert "".join(lines) == text
    head = "".join(lines[: spans[0][0]]) if spans else text
    for (start, end), cell in zip(spans, doc.cells, strict=True):
        if cell.source.startswith("---"):
            continue
        # The lines of one cell, under the same header, are that cell.
        alone = percent.loads(head + "".join(lines[start:end])).cells
        assert (alone[-1].source, alone[-1].kind) == (cell.source, cell.kind)


def test_ids_are_stable_and_follow_the_content():
    text = "# %%\nx = 1\n\n# %%\nx = 1\n\n# %% [markdown]\n# x = 1\n"
    first, again = percent.loads(text), percent.loads(text)
    ids = [cell.id for cell in first.cells]
    assert ids == [cell.id for cell in again.cells]
    assert len(set(ids)) == 3
    assert ids[1] == f"{ids[0]}-2"
    changed = percent.loads(text.replace("x = 1\n\n# %%\nx", "x = 2\n\n# %%\nx"))
    assert changed.cells[0].id != ids[0]
    # The other copy is now the only one: its id says what it holds, not where it stood.
    assert changed.cells[1].id == ids[0]


def test_reading_imports_nothing_heavy():
    code = (
        "import sys; from quire.task import formats\n"
        "formats.loads('# %% a\\nx = 1', '.py')\n"
        "print([m for m in ('jupytext', 'nbformat', 'yaml', 'IPython') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_cost_is_linear():
    def cost(cells: int) -> int:
        text = "".join(f"# %% step {n}\n# why\nx{n} = {n}\n\n" for n in range(cells))
        return lines_run(lambda: percent.loads(text))

    cost(10)  # what is done once is done now
    assert cost(1600) < 8 * 1.2 * cost(200)


def test_many_unclosed_fences_stay_linear():
    def cost(fences: int) -> int:
        opened = "# %% [markdown]\n" + "# ```a\n" * (2 * fences)
        text = opened + "# %%\n" + "# %% [markdown]\n# ~~~\n" * fences
        return lines_run(lambda: percent.loads(text))

    cost(10)
    assert cost(1600) < 8 * 1.2 * cost(200)
