"""What people wrote: on a forge it can do nothing, on a terminal it reads well."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from quire.review.safe_markdown import blocks, on_terminal
from quire.text import cleaned, plain, visible

# One of each kind of what cannot be seen.
UNSEEN = "\u00ad\u034f\u180b\u180d\u200b\u200c\u200d\u2028\u2029\u202e\u2060\u2800\ufe00\ufe0e"
UNSEEN += "\ufe0f\ufeff\U0001d173\U000e0041\U000e0100\U000e01ef"


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


def test_what_ends_a_line_for_some_readers_is_named() -> None:
    assert plain("a\u2028b\u2029c") == "a<U+2028>b<U+2029>c"


@pytest.mark.parametrize("char", [*UNSEEN])
def test_what_cannot_be_seen_is_named_in_source_and_to_agents(char: str) -> None:
    named = f"pass<U+{ord(char):04X}>word"
    assert visible(f"pass{char}word") == cleaned(f"pass{char}word") == named


@pytest.mark.parametrize(
    "text",
    [
        "❤️ \u2139\ufe0f ™️ ↩︎ ‼️",
        "1️⃣ #️⃣",
        "👩\u200d💻 🏳️\u200d🌈 👍🏽",
        "שב\u200cשב",
        "क्\u200dष",
        "é 日本",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == cleaned(text) == text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("❤️\ufe0f\ufe0e", "❤️<U+FE0F><U+FE0E>"),
        ("1\ufe0f", "1<U+FE0F>"),
        ("é\ufe0f", "é<U+FE0F>"),
        ("\ufe0f", "<U+FE0F>"),
        ("é\u200d\u200c\u200d", "é\u200d<U+200C><U+200D>"),
        ("\u200c", "<U+200C>"),
    ],
)
def test_a_selector_stays_where_it_selects_and_a_joiner_where_it_joins(
    text: str, named: str
) -> None:
    assert visible(text) == cleaned(text) == named


def test_source_is_shown_with_nothing_left_out() -> None:
    assert visible("x = 1\r\ny\rz\x1b[2K\x9b\n") == "x = 1\ny^Mz^[[2K<U+009B>\n"
