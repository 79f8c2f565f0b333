"""Where our reader gives other cells than jupytext, on purpose: what a person wrote stays."""

from __future__ import annotations

import pytest
from jupytext_oracle import ours, theirs
from notebooks import HEADER

from quire.task import percent


@pytest.mark.parametrize(
    "comment", ["# copy the data", "# rm old results", "# cat both frames", "# really?", "# ls"]
)
def test_a_comment_in_a_hand_written_file_never_becomes_code(comment):
    text = f"# %%\n{comment}\nx = 1\n"
    assert theirs(text)[0]["source"] == f"{comment[2:]}\nx = 1"
    assert ours(text)[0]["source"] == f"{comment}\nx = 1"
    # A converter escapes such comments, so what it left bare was a magic.
    assert ours(HEADER + text) == theirs(HEADER + text)


@pytest.mark.parametrize("heading", ["# Why?", "# ls and friends", "# %time is a magic"])
def test_markdown_headings_keep_their_mark(heading):
    text = f"{HEADER}# %% [markdown]\n# {heading}\n"
    assert theirs(text)[0]["source"] == heading[2:]
    assert ours(text)[0]["source"] == heading


@pytest.mark.parametrize("char", ["\u2028", "\x0c", "\x85", "\x1c"])
def test_only_newlines_end_a_line(char):
    text = f"# %%\nx = 'a{char}b'\n"
    assert theirs(text)[0]["source"] == "x = 'a\nb'"
    assert ours(text)[0]["source"] == f"x = 'a{char}b'"


def test_form_feeds_do_not_hide_a_marker():
    assert [cell.title for cell in percent.loads("x = 1\n\f# %% a\ny\n\f\n# %% b\n").cells] == [
        "",
        "a",
        "b",
    ]


def test_a_byte_order_mark_is_not_code():
    assert theirs("\ufeff# %%\nx\n")[0]["source"] == "\ufeff# %%\nx"
    assert ours("\ufeff# %%\nx\n")[0]["source"] == "x"


def test_a_marker_is_no_encoding_line():
    assert ours("# %% encoding=1\nx\n") == [
        {"kind": "code", "source": "x", "metadata": {"encoding": 1}}
    ]
