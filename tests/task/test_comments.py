"""A comment is a comment, unless jupytext's header says that a converter wrote the file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupytext_oracle import theirs
from notebooks import CONTINUED, CONVERTED_LINES, HEADER, LINES, MARKERS, kept

from quire.task import formats, ipynb, percent
from quire.task.document import Cell, Document, identified

COMMENTS = [
    "# ! rm data/keep.csv", "# !rm data/keep.csv", "#!rm data/keep.csv", "# y = !rm data/keep.csv",
    "# ? text", "# ?text", "# text?", "# %time x", "#%time x", "# %%time", "# %%bash\n# rm keep",
    "# %time \\\n#     x", "    # !rm keep.csv", "# # !rm keep.csv", "# rm data/keep.csv", "# ls",
    "# %time x # escape", "# x = %sx rm keep.csv", "# + a", "# # + a",
]  # fmt: skip

SPEC = {"name": "python3", "display_name": "Python 3"}
SHEBANG = "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"
KERNEL = "# ---\n# jupyter:\n#   kernelspec:\n#     name: python3\n# ---\n\n"
OTHERS = "# ---\n# jupyter:\n#   jupytext:\n#     formats: ipynb,py:percent\n# ---\n\n"
MARKS = '# ---\n# jupyter:\n#   jupytext:\n#     cell_markers: \'"""\'\n# ---\n\n'
NEVER = "# ---\n# jupyter:\n#   jupytext:\n#     comment_magics: false\n# ---\n\n"
NEVER_WRITTEN = HEADER.replace("#   jupytext:\n", "#   jupytext:\n#     comment_magics: false\n")
EMPTY = "# ---\n# jupyter:\n#   jupytext: {}\n# ---\n\n"
FRONT = "# ---\n# jupytext: {text_representation: {format_name: percent}}\n# ---\n\n"
LATE = "x = 1\n\n" + HEADER
LATER = "# %% [markdown]\n# Text\n\n# %%\n" + HEADER
BASH = "# ---\n# jupyter:\n#   kernelspec:\n#     name: bash\n#     language: bash\n# ---\n\n"
WITHOUT = {
    "nothing": "", "shebang": SHEBANG, "kernelspec": KERNEL, "other settings": OTHERS,
    "cell markers": MARKS, "empty": EMPTY, "front matter": FRONT, "below code": LATE,
    "in a cell": LATER, "switched off": NEVER, "switched off by jupytext": NEVER_WRITTEN,
    "another language": BASH,
}  # fmt: skip


@pytest.mark.parametrize("head", WITHOUT.values(), ids=WITHOUT)
@pytest.mark.parametrize("comment", COMMENTS)
def test_without_the_header_a_comment_stays_a_comment(head, comment):
    if head == NEVER_WRITTEN and comment == "# # + a":
        return  # the mark that keeps it from starting a cell of the light format, as in jupytext
    cell = percent.loads(f"{head}# %% last\n{comment}\nx = 1\n").cells[-1]
    assert (cell.title, cell.source) == ("last", f"{comment}\nx = 1")


@pytest.mark.parametrize("option", [
    'language="bash"', 'language="bash" magic_args="-c rm"', 'language="unheard"',
    'tags=["active-ipynb"]', 'active="ipynb"', 'run_control={"frozen": true}',
    'quire={"source": "!rm keep.csv"}', 'quire={"ending": "\\n!rm keep.csv"}',
])  # fmt: skip
@pytest.mark.parametrize("head", ["", KERNEL, OTHERS, BASH])
def test_without_the_header_a_marker_makes_no_code_of_comments(head, option):
    doc = percent.loads(f"{head}# %% {option}\n# rm keep.csv\n")
    assert [(cell.kind, cell.source) for cell in doc.cells] == [("code", "# rm keep.csv")]
    # Nothing of it is lost, and nothing becomes code on the way through a notebook.
    back = percent.loads(percent.dumps(ipynb.loads(ipynb.dumps(doc))))
    assert kept(replace(back, metadata={})) == kept(replace(doc, metadata={}))


@settings(max_examples=500)
@given(st.lists(st.sampled_from([*MARKERS, *LINES, *CONVERTED_LINES, *CONTINUED]), max_size=9))
def test_without_the_header_only_lines_as_they_stand_are_run(lines):
    text = "\n".join(lines)
    at = 0
    for cell in percent.loads(text).cells:
        if cell.kind == "code":
            assert cell.source in text[at:]
            at = text.index(cell.source, at)


@pytest.mark.parametrize("where", ["", SHEBANG])
def test_under_the_header_they_are_read_as_jupytext_reads_them(where):
    for comment in COMMENTS:
        text = f"{where}{HEADER}# %%\n{comment}\nx = 1\n"
        assert [cell.source for cell in percent.loads(text).cells] == [theirs(text)[0]["source"]]
    asked = NEVER.replace("false", "true") + "# %%\n# !ls\n"
    assert percent.loads(asked).cells[0].source == "!ls" == theirs(asked)[0]["source"]


@pytest.mark.parametrize("name", ["light", "sphinx"])
def test_other_formats_of_jupytext_have_its_header_anyway(name):
    text = HEADER.replace("format_name: percent", f"format_name: {name}") + "# !ls\n"
    found = [cell.source for cell in percent.loads(text).cells]
    assert "!ls" in found
    assert found == [cell["source"] for cell in theirs(text)]


def test_hydrogen_does_not_comment_magics_out():
    text = HEADER.replace("format_name: percent", "format_name: hydrogen") + "# !ls\n"
    assert [cell.source for cell in percent.loads(text).cells] == ["# !ls"]


@pytest.mark.parametrize("metadata", [{}, {"kernelspec": SPEC}, {"a": 1}])
@pytest.mark.parametrize("comment", COMMENTS)
def test_a_notebook_with_a_comment_and_a_command_keeps_both(comment, metadata):
    mixed, bash = f"!ls\n{comment}\nx = 1", f"%%bash\n{comment}"
    for sources in ([comment], [comment, "!ls"], [mixed], [bash]):
        doc = Document(identified([Cell("code", source) for source in sources]), metadata)
        text = percent.dumps(doc)
        assert kept(percent.loads(text)) == kept(doc)
        # What jupytext makes of the file runs no comment either.
        assert [cell["source"] for cell in theirs(text)] == sources


def test_a_notebook_that_wants_no_commented_magics_gets_none():
    doc = Document(
        identified([Cell("code", "!ls\n# !rm x"), Cell("code", "%%bash\nls")]),
        {"jupytext": {"comment_magics": False}},
    )
    text = percent.dumps(doc)
    assert "# %%\n!ls\n# !rm x\n" in text
    assert kept(percent.loads(text)) == kept(doc)


@pytest.mark.parametrize("comment", ["# !rm x", "# %time x", "# %%bash"])
def test_a_comment_in_a_logbook_stays_one(comment):
    doc = formats.loads(f"# A book\n\n```python\n{comment}\nx = 1\n```\n", ".md")
    code = [cell.source for cell in doc.cells if cell.kind == "code"]
    assert code == [f"{comment}\nx = 1"]
    assert [c.source for c in percent.loads(percent.dumps(doc)).cells if c.kind == "code"] == code
