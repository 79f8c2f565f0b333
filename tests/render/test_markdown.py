"""A record as Markdown."""

from __future__ import annotations

import base64
import re

from markdown_it import MarkdownIt

from made_records import PNG, made, shown, stream
from quire.record.events import CellError, ResultGlued
from quire.record.record import fold
from quire.render.markdown import render


def test_facts_status_and_what_did_not_run() -> None:
    plan = {"parameters": {"limit": 2.5}, "defaults": {"limit": 1.0, "host": ""}}
    text = render(made(plan=plan))
    assert text.startswith("# Health\n")
    assert "| Outcome | **ok** |" in text
    assert "| Run | run-1 |" in text
    assert "| Task | tasks/health.py |" in text
    assert "| Started | 2026-11-16 15:55:01 UTC |" in text
    assert "| Duration | 1.50 s |" in text
    assert "| Parameter `limit` | `2.5` |" in text
    assert '| Parameter `host` | `""` (default) |' in text
    assert "**In [1]** *ok, 0.12 s*\n\n```python\nwork()\n```" in text
    assert "*not run*\n\n```python\nafter()\n```" in text


def test_the_fence_is_longer_than_any_inside() -> None:
    text = render(made(stream("````\n# not a heading\n"), source='x = """\n```\n"""'))
    assert '````python\nx = """\n```\n"""\n````' in text
    assert "`````\n````\n# not a heading\n`````" in text
    headings = [t for t in MarkdownIt().parse(text) if t.type == "heading_open"]
    assert len(headings) == 1


def test_streams_lose_their_colours_and_their_middle() -> None:
    text = render(made(stream("\x1b[31mred\x1b[0m\n" + "".join(f"{n}\n" for n in range(1000)))))
    assert "\x1b" not in text
    assert "```\nred\n0\n" in text
    assert "… 801 lines omitted …" in text
    assert "\n999\n```" in text
    assert "\n500\n" not in text


def test_the_place_of_the_rest_survives_the_cut() -> None:
    marker = "[quire: 9,000 characters of stdout were cut here; all of it is in /spill/c0.txt]"
    text = render(made(stream("a\n" * 500 + marker + "\n" + "b\n" * 500)))
    assert marker in text


def test_a_progress_bar_is_its_last_drawing() -> None:
    text = render(made(stream("\r 10%\r 50%\r100%\ndone\n", "stderr")))
    assert "```\n100%\ndone\n```" in text
    assert "50%" not in text


def test_an_error_is_its_traceback() -> None:
    lines = ["\x1b[31mValueError\x1b[0m", "  line 1", "ValueError: no"]
    error = CellError("ValueError", "no", tuple(lines))
    output = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": lines}
    text = render(made(output, error=error))
    assert "```\nValueError\n  line 1\nValueError: no\n```" in text
    assert "**failed** in cell 0: ValueError: no" in text
    assert "*failed, 0.12 s*" in text
    assert render(made(error=error)).count("  line 1") == 1


def test_tables_prefer_markdown_then_text() -> None:
    html = "<table><tr><td>1</td></tr></table>"
    both = render(
        made(shown(text__html=html, text__markdown="| a |\n|---|\n| 1 |", text__plain="P"))
    )
    assert "> | a |\n> |---|\n> | 1 |" in both
    assert "<table>" not in both
    only = render(made(shown(text__html=html, text__plain="   a\n0  1")))
    assert "```\n   a\n0  1\n```" in only


def test_html_without_words_of_its_own_gives_its_text() -> None:
    display = shown(
        text__html="<p>fine <b>day</b></p><script>x()</script>",
        text__plain="<IPython.core.display.HTML object>",
    )
    text = render(made(display))
    assert "fine day" in text
    assert "IPython" not in text
    assert "x()" not in text


def test_pictures_are_data_uris_and_must_be_pictures() -> None:
    good = render(made(shown(image__png=f"{PNG}\n", text__plain="<Figure [1]>")))
    assert f"![\\<Figure \\[1\\]\\>](data:image/png;base64,{PNG})" in good
    for broken in ("not base64!", base64.b64encode(b"<script>").decode()):
        text = render(made(shown(image__png=broken, text__plain="a figure")))
        assert "data:" not in text
        assert "a figure" in text


def test_a_markdown_cell_stays_as_it_is() -> None:
    source = "## Load *data*\n\n- one\n- two <b>x</b>"
    assert f"\n\n{source}\n\n" in render(made(before=(("markdown", source),)))


def test_markdown_cannot_swallow_what_follows() -> None:
    for source in ("```\nnever closed", "<!-- never closed", "<script>\nnever closed"):
        text = render(made(before=(("markdown", source),)))
        tokens = MarkdownIt("commonmark").parse(text)
        assert any(t.type == "fence" and t.content == "work()\n" for t in tokens), source


def test_results_as_tables() -> None:
    frame = {"columns": ["a", "b|c"], "types": [], "rows": [[1, "x|y"]], "total": 30, "kept": 1}
    results = (
        ResultGlued("c0", "score", "json", {"a": [1, "p|q"]}),
        ResultGlued("c0", "frame", "table", frame),
        ResultGlued("c0", "plot", "display", {"image/png": PNG}),
    )
    text = render(made(results=results))
    assert '| `score` | `{"a": [1, "p\\|q"]}` |' in text
    assert "`frame`, the first 1 of 30 rows:" in text
    assert "| a | b\\|c |\n| --- | --- |\n| 1 | x\\|y |" in text
    assert f"![figure](data:image/png;base64,{PNG})" in text


def test_json_latex_and_unknown_types() -> None:
    text = render(
        made(
            shown(application__json={"a": 1}),
            shown(text__latex="$x$"),
            shown(**{"application__x-unknown": "?"}),
        )
    )
    assert '```json\n{\n  "a": 1\n}\n```' in text
    assert "```latex\n$x$\n```" in text
    assert "*an output of type `application/x-unknown`: see the notebook*" in text


def test_any_text_can_be_written() -> None:
    record = made(stream("\ud800 \x00\x07 ok\n"), title="a\nb \udfff", source="x = '\ud800'")
    text = render(record)
    text.encode()
    assert text.startswith("# a b ?\n")
    assert not re.search(r"[\x00-\x08]", text)


def test_an_empty_record() -> None:
    assert render(fold([])).startswith("# A run that left no journal\n")
