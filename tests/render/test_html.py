"""A record as a page: complete, and harmless whatever the notebook said."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from made_records import PNG, made, shown, stream
from quire.record.events import CellError, ResultGlued
from quire.record.record import Record, fold
from quire.render.html import coloured, render

VOID = {"meta", "br", "hr", "img", "col", "wbr"}


class _Reader(HTMLParser):
    """Every tag and attribute of a page, and whether its tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)


def read(record: Record) -> _Reader:
    reader = _Reader()
    reader.feed(render(record))
    reader.close()
    assert reader.open == []
    return reader


def words(record: Record) -> str:
    return " ".join(" ".join(read(record).words).split())


def assert_harmless(record: Record) -> None:
    for tag, attrs in read(record).tags:
        assert tag not in {"script", "iframe", "object", "embed", "form", "input", "link", "svg"}
        for name, value in attrs.items():
            assert not name.startswith("on"), (tag, name)
            if name == "src":
                assert re.match(r"data:image/(png|jpeg|gif|webp|svg\+xml);base64,", value or "")
            if name == "href":
                assert re.match(r"(#cell-|https?://|mailto:)", value or "")
            if name == "style":
                assert not re.search(r"position|fixed|url|margin|transform|z-index", value or "")


def test_the_page_allows_itself_nothing() -> None:
    page = render(made())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "img-src data:" in policy[1]
    assert "script" not in page
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_header_results_and_cells() -> None:
    frame = {"columns": ["a"], "types": [], "rows": [[7]], "total": 1, "kept": 1}
    results = (
        ResultGlued("c0", "score", "json", 0.5),
        ResultGlued("c0", "frame", "table", frame),
        ResultGlued("c0", "plot", "display", {"image/png": PNG}),
    )
    plan = {"parameters": {"limit": 2.5}, "defaults": {"limit": 1.0, "host": "x"}}
    record = made(stream("hello\n"), results=results, plan=plan)
    text = words(record)
    assert text.startswith("Health · ok Health ok")
    for piece in (
        "run-1",
        "tasks/health.py",
        "1.50 s",
        "1 ok, 1 not run",
        "score 0.5",
        "limit 2.5",
    ):
        assert piece in text
    assert 'host "x" default' in text
    assert "frame a 7 1 rows" in text
    assert "[1] 0.12 s ok work () hello" in text.replace("work()", "work ()")
    assert re.search(r"\[ \] not run after ?\(\)", text)
    assert ("img", {"src": f"data:image/png;base64,{PNG}", "alt": "figure"}) in read(record).tags


@pytest.mark.parametrize(
    "attack",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<img src='https://evil.example/p.png'>",
        "<img src='data:text/html;base64,PHNjcmlwdD4='>",
        "<a href='javascript:alert(1)'>x</a>",
        "<a href='data:text/html,<script>1</script>'>x</a>",
        "<a href='https://evil.example'>x</a>",
        "<iframe srcdoc='<script>1</script>'></iframe>",
        "<form action='https://evil.example'><input name=a></form>",
        "<div style='position:fixed;top:0'>x</div>",
        "<div style='color:red;background:url(https://evil.example)'>x</div>",
        "<div style='color:red;background-color:url(https://evil.example)'>x</div>",
        "<div style='margin:-500px;transform:scale(9)'>x</div>",
        "<style>body{display:none}</style>",
        "<svg onload=alert(1)><a xlink:href='javascript:1'></a></svg>",
        "</div></section></main><h1>fooled",
        "<base href='https://evil.example/'>",
        "<meta http-equiv=refresh content='0;url=https://evil.example'>",
        "<link rel=stylesheet href='https://evil.example'>",
        "<math><mtext><table><mglyph><style><img src=x onerror=1>",
        "<!-- --!><script>alert(1)</script>",
        "<noscript><p title='</noscript><img src=x onerror=1>'>",
    ],
)
def test_attacks_end_in_text(attack: str) -> None:
    assert_harmless(made(shown(text__html=f"{attack}<p>seen</p>")))
    assert_harmless(made(shown(text__plain=attack), stream(attack)))
    assert_harmless(made(shown(text__markdown=f"{attack}\n\n[x]({attack})\n")))
    assert_harmless(made(before=(("markdown", attack), ("raw", attack)), source=attack))
    assert_harmless(made(shown(application__json={attack: attack}), title=attack))
    assert_harmless(made(shown(**{f"text__{attack}": attack})))
    error = CellError(attack, attack, (attack,))
    assert_harmless(made(error=error, plan={"parameters": {attack: attack}, "language": attack}))
    frame = {"columns": [attack], "types": [], "rows": [[attack]], "total": 1, "kept": 1}
    results = (
        ResultGlued("c0", attack, "table", frame),
        ResultGlued("c0", attack + "2", "json", attack),
        ResultGlued("c0", attack + "3", "display", {"text/html": attack}),
        ResultGlued("c0", attack + "4", "table", attack),
    )
    assert_harmless(made(results=results))


def test_an_output_cannot_wear_the_clothes_of_the_page() -> None:
    forged = '<span class="badge s-ok" id="cell-c0">ok</span>'
    spans = [attrs for tag, attrs in read(made(shown(text__html=forged))).tags if tag == "span"]
    assert {} in spans


def test_data_frames_keep_their_shape() -> None:
    table = (
        "<div><style scoped>.dataframe tbody {color: red}</style>"
        '<table border="1" class="dataframe"><thead><tr style="text-align: right;"><th></th>'
        '<th colspan="2">a</th></tr></thead><tbody><tr><th>0</th>'
        '<td style="background-color: rgb(1, 2, 3); position: fixed">1</td></tr>'
        "</tbody></table></div>"
    )
    tags = read(made(shown(text__html=table, text__plain="P"))).tags
    assert ("table", {"class": "dataframe"}) in tags
    assert ("th", {"colspan": "2"}) in tags
    assert ("tr", {"style": "text-align: right"}) in tags
    assert ("td", {"style": "background-color: rgb(1, 2, 3)"}) in tags
    assert "color: red" not in words(made(shown(text__html=table)))


def test_what_needs_scripts_falls_back() -> None:
    plot = "<div><script>plot()</script></div>"
    assert "a plot" in words(made(shown(text__html=plot, text__plain="a plot")))
    alone = words(made(shown(text__html=plot)))
    assert "An output of type text/html: open the notebook to see it." in alone


def test_svg_is_an_image_and_payloads_are_checked() -> None:
    svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    page = render(made(shown(**{"image__svg+xml": svg})))
    payload = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert payload
    assert base64.b64decode(payload[1]).decode() == svg
    assert "<svg" not in page
    forged = shown(image__png='x" onerror="alert(1)', text__plain="words")
    assert "onerror" not in render(made(forged))
    assert "words" in words(made(forged))


def test_images_have_the_size_the_notebook_gave() -> None:
    output = shown(image__png=PNG) | {"metadata": {"image/png": {"width": 40, "height": '1"x'}}}
    images = [attrs for tag, attrs in read(made(output)).tags if tag == "img"]
    assert images == [{"src": f"data:image/png;base64,{PNG}", "alt": "figure", "width": "40"}]


def test_markdown_cells() -> None:
    source = "# Health\n\nSee [docs](https://x.example), ![pic](https://x.example/p.png) *now*"
    record = made(before=(("markdown", source),))
    tags = read(record).tags
    link = next(attrs for tag, attrs in tags if tag == "a")
    assert link["href"] == "https://x.example"
    assert "noreferrer" in str(link["rel"])
    assert "[image: pic]" in words(record)
    # The page's heading is this one: it is not said twice.
    assert sum(tag == "h1" for tag, _ in tags) == 1
    assert "<em>now</em>" in render(record)
    assert "raw <b>tag</b>" in words(made(before=(("markdown", "raw <b>tag</b>"),)))


def test_an_attached_picture_is_shown() -> None:
    record = made(before=(("markdown", "![p](attachment:a%20b.png)"),))
    first = record.cells[0]
    import dataclasses

    cell = dataclasses.replace(first, attachments={"a b.png": {"image/png": PNG}})
    record = dataclasses.replace(record, cells=(cell, *record.cells[1:]))
    assert f'<img src="data:image/png;base64,{PNG}"' in render(record)


def test_colours_become_spans() -> None:
    assert coloured("\x1b[31;1m<b>\x1b[0m & \x1b[38;5;28mg\x1b[39m\x1b[2K.") == (
        '<span class="a-red a-bold">&lt;b&gt;</span> &amp; <span class="a-green">g</span>.'
    )
    assert coloured("\x1b[38;2;10;20;250mx") == '<span class="a-blue">x</span>'
    assert coloured("\x1b[43mx\x1b[49my") == '<span class="a-marked">x</span>y'
    assert coloured("a\x1b[38;5") == "a"
    assert coloured("\x1b]8;;https://evil.example\x07link\x1b]8;;\x07") == "link"
    assert coloured(f"\x1b[{'9' * 5000}mx") == "x"


def test_a_failure_leads_to_its_cell() -> None:
    error = CellError("ValueError", "no <way>", ("\x1b[31mValueError\x1b[0m: no <way>",))
    record = made(error=error)
    tags = read(record).tags
    assert ("a", {"href": "#cell-c0"}) in tags
    assert ("section", {"class": "cell s-failed", "id": "cell-c0"}) in tags
    assert "ValueError: no <way> in cell 0" in words(record)


def test_long_output_says_what_is_missing() -> None:
    text = words(made(stream("".join(f"row{n}\n" for n in range(5000)))))
    assert "… 3,000 lines omitted …" in text
    assert "row999 " in text
    assert "row1000 " not in text
    assert "row4999" in text


@pytest.mark.parametrize("data", [{}, {"text/plain": 5}, {"text/html": ["<b>", "x</b>"]}])
def test_odd_bundles_do_not_break_the_page(data: dict[str, Any]) -> None:
    assert_harmless(made({"output_type": "display_data", "data": data, "metadata": None}))


def test_any_text_can_be_written() -> None:
    odd = "\ud800\x00\x1b[31"
    record = made(stream(odd), shown(text__html=odd), before=(("markdown", odd),), title=odd)
    render(record).encode()
    render(fold([])).encode()


def test_depth_and_length_fall_back_to_text() -> None:
    for bomb in ("<div>" * 100_000, "<div></b>" * 100_000, "x" * 5_000_001):
        assert "in words" in words(made(shown(text__html=bomb, text__plain="in words")))
    rows = "<table>" + "<tr><td>cell<br>" * 10_000 + "</table>"
    assert render(made(shown(text__html=rows, text__plain="P"))).count("<td>cell") == 10_000
    assert_harmless(made(shown(text__markdown="[<b>" * 100_000)))
