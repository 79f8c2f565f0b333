from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from quire.task import formats, logbook
from quire.task.document import Cell, Document, identified
from quire.task.lint import lint


def doc(*sources: str, language: str = "python", tags: tuple[str, ...] = ()) -> Document:
    cells = [Cell("code", source, tags=tags if not at else ()) for at, source in enumerate(sources)]
    return Document(identified(cells), language=language)


def said(*sources: str) -> list[tuple[int, int, int, str]]:
    return [(f.index, f.line, f.column, f.message) for f in lint(doc(*sources))]


def test_a_task_without_fault():
    assert (
        said("import os\nx = 1", "def f():\n    return later", "later = os.getcwd()", "f()") == []
    )


def test_names_that_nothing_above_defines():
    assert said("x = 1", "print(x)\nprint(y)", "y = 1") == [(1, 2, 7, "y is not defined above")]
    (finding,) = lint(doc("x = 1", "\nz"))
    assert (finding.kind, finding.cell_id) == ("undefined", doc("x = 1", "\nz").cells[1].id)
    assert said("x = 1\ndel x", "x") == [(1, 1, 1, "x is not defined above")]


def test_code_that_does_not_parse():
    (finding,) = lint(doc("x = 1", "a = 1\nb = = 2", "print(x)"))
    assert (finding.index, finding.line, finding.column, finding.kind) == (1, 2, 5, "syntax")
    assert said("return 1")[0][:2] == (0, 1)
    assert said("def f():\n    x = 1\n  y = 2")[0][:2] == (0, 3)
    assert lint(doc("x = '\0'"))[0].kind == "syntax"


def test_a_broken_cell_hides_what_it_might_have_defined():
    assert said("df = load(\ndf.x = 1", "print(df)", "print(other)")[1:] == [
        (2, 1, 7, "other is not defined above")
    ]


def test_ipython_is_known():
    assert (
        said(
            "display(1)\nget_ipython()\nIn, Out, _, __, _i, _3, _i12",
            "%matplotlib inline\n!ls\nx = !pwd\nprint(x)",
            "%%time\ny = 1",
            "%%bash\necho $undefined_here",
            "print(y)\n%time z = y\nprint(z)",
            "%%capture out\nprint(1)",
            "out.show()\ny?\npip install pandas",
            "await z\nasync with z as q:\n    pass\n[i async for i in q]",
            "ls -l",
            "  indented = 1\n  print(indented)",
        )
        == []
    )


def test_lines_stay_where_they_are_beside_magics():
    assert said("%matplotlib inline\n!ls \\\n  -l\nprint(q)") == [
        (0, 4, 7, "q is not defined above")
    ]
    assert said("!ls\nx = = 1")[0][:2] == (0, 2)


def test_whatever_a_star_brings_is_allowed():
    assert said("from os.path import *", "join('a')") == []
    assert said("%run setup.py", "print(set_there)") == []
    assert said("print(a)", "exec('b = 1')", "print(b)") == [(0, 1, 7, "a is not defined above")]


def test_no_noise():
    assert said("import os\nimport sys", "x = 1\nx = 2", "def f():\n    a = 1", "f'plain'") == []
    assert said("x = 1", "from __future__ import annotations") == []


def test_required_parameters_are_given():
    assert (
        lint(doc("region: str\nlimit: int = 1", "print(region, limit)", tags=("parameters",))) == []
    )
    assert lint(doc("region: str", "print(region)"))[0].kind == "undefined"


FRONT = "---\nparameters:\n  seed: 7\n  items: {type: int, default: 3}\n---\n"


def test_parameters_of_the_front_matter_are_given() -> None:
    book = FRONT + "\n```python\nprint(seed, items, other)\n```\n"
    assert [f.message for f in lint(logbook.loads(book))] == ["other is not defined above"]
    task = "# ---\n# parameters:\n#   seed: 7\n# ---\n\n# %%\nprint(seed, other)\n"
    assert [f.message for f in lint(formats.loads(task, ".py"))] == ["other is not defined above"]


def test_front_matter_that_cannot_be_read_may_declare_what_it_mentions() -> None:
    task = "# ---\n# parameters: [seed\n# ---\n\n# %%\nprint(seed, other)\n"
    assert [f.message for f in lint(formats.loads(task, ".py"))] == ["other is not defined above"]


SHIPPED = [
    found
    for found in (files("quire") / "shipped" / "logbooks").iterdir()
    if found.name.endswith(".md")
]


@pytest.mark.parametrize("template", SHIPPED, ids=lambda found: str(found.name))
def test_templates_that_are_shipped_are_clean(template: Path) -> None:
    assert lint(logbook.loads(template.read_text(encoding="utf-8"))) == []


def test_a_name_that_a_line_uses_twice_is_told_once() -> None:
    assert said("a = 1\nprint(y, y + z)\nprint(y)") == [
        (0, 2, 7, "y is not defined above"),
        (0, 2, 14, "z is not defined above"),
        (0, 3, 7, "y is not defined above"),
    ]


def test_other_languages_and_text_are_left_alone():
    assert lint(doc("x <- 1", language="r")) == []
    assert lint(Document(identified([Cell("markdown", "x = = 1"), Cell("raw", "y y")]))) == []
    assert lint(Document(())) == []


def test_a_step_of_a_logbook_in_another_language_is_left_alone() -> None:
    book = "```r\ny <- x + 1\n```\n\n```julia\nusing X\n```\n\n```python\nz\n```\n"
    found = lint(logbook.loads(book, frozenset({"r", "julia"})))
    assert [f.message for f in found] == ["z is not defined above"]
