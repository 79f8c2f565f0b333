"""What people wrote: on a forge it can do nothing, on a terminal it reads well."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from quire.runs.printed import plain, visible
from quire.runs.prose import blocks, on_terminal


def written(text: str, limit: int = 600) -> str:
    return "\n\n".join(blocks(text, limit))


@pytest.mark.parametrize(
    "text",
    [
        "Adds **all** the *numbers* below `n`.",
        "- one\n- two\n  - deeper\n- three",
        "3. third\n4. fourth",
        "```\ncode | with @ada\n```",
        "One.\n\nTwo.",
    ],
)
def test_what_is_kept_reads_the_same(text: str) -> None:
    """Through a reader of Markdown, both are the same page."""
    page = MarkdownIt("commonmark")
    assert page.render(written(text)).split() == page.render(text).split()


def test_headings_are_left_out() -> None:
    assert written("# Title\n\nText.\n\nUnder\n=====\n\nMore.") == "Text.\n\nMore."


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=y>",
        "a <b>b</b> @ada fixes #1, see https://evil.example",
        "[click](https://evil.example) ![p](https://evil.example/p.png)",
        "> quoted @ada",
        "- @ada\n- [x](https://evil.example)",
        "**<script>** *[a](javascript:x)*",
        "---\n\n***\n\nx",
        "**** **",
        "a\u2028# heading\u2028- item",
    ],
)
def test_nothing_else_becomes_markup(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(written(text))
    kinds = {token.type for token in tokens}
    kinds |= {child.type for token in tokens for child in token.children or ()}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr", "heading_open"}
    assert "@ada" not in written(text)
    assert "://" not in written(text)


def test_it_is_cut_where_there_is_too_much() -> None:
    text = written("**" + "x" * 50 + "** and `y`\n\nlast", 20)
    assert text == "**" + "x" * 20 + "…**"


def test_on_a_terminal_escapes_are_gone_and_code_stays() -> None:
    source = "Adds *a* | b_c # 1, @ada: <b> `a_b`\n"
    text = written(source) + "\n\n```\n\\*kept\\*\n```\n<!-- quire: {} -->\nend"
    lines = on_terminal(text)
    assert lines[0] == "Adds *a* | b_c # 1, @ada: <b> `a_b`"
    assert "\\*kept\\*" in lines
    assert lines[-1] == "end"
    assert not any("quire:" in line for line in lines)


def test_a_return_ends_a_line_and_writes_over_nothing() -> None:
    assert on_terminal("good\rbad\r\nx\n\n\n\ny\n") == ["good", "bad", "x", "", "y"]


def test_what_turns_text_around_is_named() -> None:
    assert plain("a\u202eb\u2066c") == "a<U+202E>b<U+2066>c"
    assert visible("a\u202eb") == "a<U+202E>b"


def test_source_is_shown_with_nothing_left_out() -> None:
    assert visible("x = 1\r\ny\rz\x1b[2K\x9b\n") == "x = 1\ny^Mz^[[2K<U+009B>\n"
