"""The corpus, and random documents for the property tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from quire.task.document import Cell, Document, identified, language_of, metadata_of

CORPUS = Path(__file__).parent.parent / "corpus" / "documents"
SCRIPTS = sorted(CORPUS.glob("*.py"))
NOTEBOOKS = sorted(CORPUS.glob("*.ipynb"))

HEADER = """\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

"""

MARKERS = [
    "# %%", "# %%", "#%%", "# %% title", "# %% [markdown]", "# %% [md] x", "# %% [raw] a=1",
    "# %%%", "# %%% sub", "  # %% indented", "# In[3]:", "# <codecell>", "# %% a  b   c",
    '# %% tags=["a", "b"]', '# %% t k={"a": [1]} z="q r"', '# %% t {"a": 1}', "# %% {bad",
    "# %% a b=c", "# %% a.b .c", "# %% .c", "# %% flag x=1 flag2", "# %% x=(1,2)", "# %% k=None",
    '# %% title="t" q=1', '# %% [markdown] {"a": 1}', "# %% [markdown] [raw] x",
    '# %% language="bash"', '# %% language="bash" magic_args="-e"', '# %% language="unheard"',
    '# %% language="python"', '# %% tags=["active-py"]', '# %% tags=["active-ipynb"]',
    '# %% active="py"', '# %% active="ipynb,py"', '# %% cell_type="markdown"', "#\t%% tab",
]  # fmt: skip
LINES = [
    "", "", "", " ", "x = 1", "# text", "# more text", "# # heading", "def f():", "    return 1",
    '"""', "'''", '"""doc"""', "s = '''a", 'r"""', 'x = "\\""" + "', "x = 'a\"\"\"' # b", "# it's",
    "# %matplotlib inline", "%time", "!ls", "# !ls", "# %%bash", "%%bash", "# x = !ls", "# ?foo",
     "# continued", "# ```", "# ```python", "# ~~~", "```", "\tx", "x  ", "# + foo",
    "# # + foo", "## + a", "#", "# a = b", "x # %%", '# grep "hi"', "# $x = 'é'",
]  # fmt: skip
# What jupytext takes for code in any file, and we only under its header.
_CODE_IN_COMMENTS = {
    "# %matplotlib inline", "# !ls", "# %%bash", "# x = !ls", "# ?foo", "# # + foo", "## + a",
}  # fmt: skip
PLAIN_LINES = [line for line in LINES if line not in _CODE_IN_COMMENTS]
PLAIN_MARKERS = [line for line in MARKERS if "language=" not in line and "active" not in line]
# In text cells jupytext takes such a line for a magic and the next one for its continuation.
CONTINUED = ["%time \\", "# %time \\", "# !ls \\  ", "x = 1 + \\"]
# Where our reading differs on purpose when no converter wrote the file.
CONVERTED_LINES = ["# ls", "# why?", "# cat x", "ls", "x?", "# rm x", "echo a", "# cd .."]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)
anything = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | anything
    | st.sampled_from(["a = b", "x y=1 #", "{", "[raw]", "é\u2028", "2024-01-01", "null"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_keys = anything | st.sampled_from(
    ["name", "a.b", "x-y", "a key", "é", "language", "cell_type", "active", "quire", "collapsed",
     "format", "region_name", "cell_depth", "magic_args", "run_control", "slideshow",
     "incorrectly_encoded_metadata"]
)  # fmt: skip
_sources = st.lists(
    st.sampled_from([*LINES, *CONTINUED, *CONVERTED_LINES, *MARKERS, "---", "\f"]) | texts,
    max_size=6,
).map("\n".join)
_titles = st.sampled_from(["", "", "load data", "a=b", "{x}", "[raw]", "% x", " pad ", "x .c"])
_tags = st.lists(
    st.sampled_from(["parameters", "a b", "é", "x=1 #", "active-py", "active-ipynb"]) | anything,
    max_size=2,
    unique=True,
)


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    kind = draw(st.sampled_from(["code", "code", "markdown", "raw"]))
    metadata = draw(st.dictionaries(_keys, json_values, max_size=2))
    metadata = {key: value for key, value in metadata.items() if key not in ("title", "tags")}
    attachments: dict[str, Any] = {}
    if kind != "code" and draw(st.booleans()):
        attachments = {"a.png": {"image/png": "QQ=="}}
    return Cell(
        kind,
        draw(_sources),
        title=draw(_titles | anything),
        tags=tuple(draw(_tags)),
        metadata=metadata,
        attachments=attachments,
    )


@st.composite
def plain_cells(draw: st.DrawFn) -> Cell:
    return Cell(draw(st.sampled_from(["code", "markdown", "raw"])), draw(_sources))


notebook_metadata = st.sampled_from(
    [
        {},
        {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}},
        {"kernelspec": {"name": "bash", "display_name": "Bash", "language": "bash"}},
        {"authors": [{"name": "é\u2028"}], "language_info": {"name": "python"}, "a key": None},
        {"jupytext": {"executable": "/usr/bin/env python", "encoding": "# coding: utf-8"}},
    ]
) | st.dictionaries(anything.filter(lambda k: k not in ("jupytext", "kernelspec", "language_info",
                                                        "papermill", "widgets")), json_values,
                    max_size=2)  # fmt: skip


@st.composite
def documents(draw: st.DrawFn) -> Document:
    metadata = draw(notebook_metadata)
    found = identified(draw(st.lists(cells(), max_size=4)))
    return Document(found, metadata, language_of(metadata), "ipynb")


def kept(doc: Document) -> list[Any]:
    """Everything of a document that a `.py` must keep, in a form where nan equals itself."""
    return [
        json.dumps([doc.metadata, doc.language], sort_keys=True),
        *(
            (
                cell.kind,
                cell.source,
                json.dumps([metadata_of(cell), cell.attachments], sort_keys=True),
            )
            for cell in doc.cells
        ),
    ]
