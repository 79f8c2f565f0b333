"""Markdown to a document and back, and what counts as a step."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import DocumentError
from quire.task import edit, formats, logbook, params
from quire.task.document import Document
from quire.task.parameter_types import Given, Misfit, convert

LINES = st.sampled_from(
    [
        "",
        "  ",
        "# A heading",
        "Some prose with {name} and {other}.",
        "- an item",
        "  1. another",
        "```python",
        "```bash approve: true",
        "~~~python title='A b' raises-exception",
        "```",
        "~~~",
        "````",
        "  ```",
        "    ```python",
        "```json",
        "{python}",
        "print('hello')",
        "    indented()",
        "<!-- a comment",
        "-->",
        "> ```python",
        "$\\frac{a}{b}$ {{ jinja }}",
        "---",
        "%%bash",
    ]
)


def read(text: str) -> Document:
    return formats.loads(text, ".md")


def steps(text: str) -> list[str]:
    return [cell.source for cell in read(text).cells if cell.kind == "code"]


@given(st.lists(LINES, max_size=25), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_read_is_written_byte_by_byte(lines: list[str], end: str, closed: bool) -> None:
    text = end.join(lines) + (end if closed and lines else "")
    try:
        doc = read(text)
    except DocumentError:
        return
    assert formats.dumps(doc, ".md") == text


@given(st.text(alphabet="`~ \n#{}:-pyth>", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        doc = read(text)
    except DocumentError:
        return
    assert formats.dumps(doc, ".md") == text


@given(st.lists(LINES, max_size=20), st.text(alphabet="ab`~\n ", max_size=20))
def test_a_changed_step_is_read_again_and_nothing_else_moves(lines: list[str], new: str) -> None:
    text = "\n".join([*lines, "", "```python", "old", "```", "after"])
    try:
        doc = read(text)
    except DocumentError:
        return
    at = next((n for n, cell in enumerate(doc.cells) if cell.source == "old"), None)
    if at is None:
        return
    cells = list(doc.cells)
    cells[at] = replace(cells[at], source=new.rstrip("\n"))
    written = formats.dumps(replace(doc, cells=tuple(cells)), ".md")
    again = read(written)
    assert [c.source for c in again.cells] == [c.source for c in cells]
    assert written.startswith("\n".join(lines))


TEXT = "# T\r\n\r\n\r\n~~~python\r\nx\r\n~~~\r\n\r\nAfter.\r\n"


def test_one_cell_is_edited_and_every_other_byte_stays() -> None:
    task = edit.Task(TEXT, ".md")
    assert edit.change(task, "T", source="y\nz").text == TEXT.replace("x", "y\r\nz")
    added = edit.insert(task, 1, "new()").text
    assert added == TEXT.replace("After.", "```python\r\nnew()\r\n```\r\n\r\nAfter.")
    with pytest.raises(DocumentError, match="cannot hold"):
        edit.insert(task, 0, "prose", kind="markdown")


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx\n```",
        "~~~~python\nx\n~~~~",
        "- item\n\n  ```python\n  x\n  ```",
        "1. item\n\n    ```python\n    x\n    ```",
        "   ```python\n   x\n   ```",
        "```{python}\nx\n```",
        "```{.python #name key=value}\nx\n```",
        "```py\nx\n```",
        "```Python\r\nx\r\n```\r\n",
    ],
)
def test_a_step_in_every_way_of_writing_it(text: str) -> None:
    assert steps(text) == ["x"]


@pytest.mark.parametrize(
    "text",
    [
        "```\nx\n```",
        "```json\n{}\n```",
        "```python run: false\nx\n```",
        "````markdown\n```python\nx\n```\n````",
        "<!--\n```python\nx\n```\n-->",
        "> ```python\n> x\n> ```",
        "    ```python\n    x\n    ```",
        "`` ```python ``",
        "```nokernel\nx\n```",
    ],
)
def test_what_is_only_shown(text: str) -> None:
    assert steps(text) == []


def test_other_languages_run_by_their_magic_or_kernel() -> None:
    doc = logbook.loads(
        "```bash\na\n```\n```sql into=rows\nb\n```\n```ir\nc\n```\n", frozenset({"ir"})
    )
    assert [cell.source for cell in doc.cells] == ["%%bash\na", "%%sql rows\nb", "c"]
    assert doc.cells[2].metadata["kernel"] == "ir"
    assert doc.metadata["logbook"]["kernels"] == ["ir"]


def test_what_stands_behind_a_fence() -> None:
    (cell,) = read('```python title="Load it" id=load approve: true raises-exception\nx\n```').cells
    assert (cell.title, cell.name) == ("Load it", "load")
    assert cell.tags == ("raises-exception", "approve")
    (cell,) = read('```python approve: false tags=["a", "b"] linenums="1"\nx\n```').cells
    assert cell.tags == ("a", "b")


def test_a_step_is_called_after_the_heading_above_it() -> None:
    doc = read("# T\n\n## Load\n\n```python\na\n```\n\nText.\n\n```python\nb\n```\n")
    assert [cell.title for cell in doc.cells if cell.kind == "code"] == ["Load", ""]
    assert doc.title == "T"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prose\n\n```python\nx\n", "line 3: the block that begins here is not closed"),
        ("---\na: 1\n", "line 1: the front matter"),
        ("```python approve: maybe\nx\n```", "neither true nor false"),
        ("---\nparameters:\n  a: [\n---\n", "line "),
        ("---\nparameters:\n  a: 1\n  b: 2\n  a: 3\n---\n", "line 5 .*'a' is given twice.*line 3"),
        ("---\nparameters:\n  class: 1\n---\n", "line 3 .*cannot be the name"),
        ("---\nparameters:\n  a: {type: int, default: x}\n---\n", "line 3 .*does not fit"),
        ("---\nparameters:\n  a: {type: int, defualt: 3}\n---\n", "line 3 .*defualt"),
        ("---\n- a\n---\n", "a list"),
        ("---\nparameters: 3\n---\n", "line 2 "),
        ("---\nenv: {9A: x}\n---\n", "variable"),
        ("---\na: 1\nparameter: {b: 1}\n---\n", "line 3 .*`parameter` .*is parameters meant"),
        ("---\nparams: {b: 1}\n---\n", "is parameters meant"),
        ("---\nParameters: {b: 1}\n---\n", "is parameters meant"),
        ("---\nENV: [A]\n---\n", "is env meant"),
        ("---\nvariable: [A]\n---\n", "is variables meant"),
        ("---\ndependency: [six]\n---\n", "is dependencies meant"),
        ("---\nrequire-python: '>=3.11'\n---\n", "is requires-python meant"),
    ],
)
def test_what_is_refused_says_where(text: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        read(text)


def test_keys_of_its_own_are_left_alone() -> None:
    own = [
        "title",
        "author",
        "tags",
        "kernel",
        "description",
        "hyperparameters",
        "partners",
        "variants",
        "version",
    ]
    text = "".join(f"{name}: 1\n" for name in own)
    read(f"---\n{text}parameters: {{a: 1}}\nparameter: of the other system\n---\n")
    read("---\nrequires_python: '>=3.11'\ndependencies: [six]\n---\n")


def test_front_matter_that_multiplies_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(DocumentError, match="too large"):
        read("\n".join(["---", *lines, "---", ""]))


@pytest.mark.parametrize(
    "info",
    ["approve:true", "approve: true", "approve=true", "approve", "Approve: YES", "x approve:true,"],
)
def test_a_step_that_waits_for_approval_however_it_is_written(info: str) -> None:
    (step,) = formats.loads(f"```python {info}\n1\n```\n", ".md").cells
    assert "approve" in step.tags


def test_what_holds_a_step_back_is_not_left_alone_when_misspelled() -> None:
    for word in ("aprove", "approved", "approval", "aprrove"):
        with pytest.raises(DocumentError, match=f"`{word}: true` behind a fence means nothing"):
            formats.loads(f"```python {word}: true\n1\n```\n", ".md")
    for info in ("improve: true", "linenos:true", "approver=ada", "a:b", "http://x"):
        (step,) = formats.loads(f"```python {info}\n1\n```\n", ".md").cells
        assert "approve" not in step.tags
    assert not [
        c for c in formats.loads("```py run:false\n1\n```\n", ".md").cells if c.kind == "code"
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"), ("01234", "01234"), ("1e3", 1000.0), ("0x1F", 31), ("1_000", 1000),
        ("-0.5", -0.5), ("0", 0), ("yes", True), ("2026-01-31", date(2026, 1, 31)),
    ],
)  # fmt: skip
def test_a_default_is_what_a_person_means_by_it(text: str, value: object) -> None:
    """YAML 1.1 makes 750 of 12:30, and 668 of 01234."""
    (found,) = params.declared(formats.loads(f"---\nparameters:\n  x: {text}\n---\n", ".md"))
    assert (found.default, type(found.default)) == (value, type(value))


def test_names_that_yaml_takes_for_yes_and_no() -> None:
    doc = formats.loads("---\nparameters:\n  no: 5\n  on: x\n  y: 3\n---\n", ".md")
    assert [(p.name, p.default) for p in params.declared(doc)] == [("no", 5), ("on", "x"), ("y", 3)]


@pytest.mark.parametrize(
    ("kind", "hint"), [("itn", "type: int"), ("list[strr]", ""), ("email", "")]
)
def test_a_type_that_nobody_knows_would_let_anything_through(kind: str, hint: str) -> None:
    with pytest.raises(DocumentError, match=r"there is no type .*, which x shall have") as caught:
        formats.loads(f'---\nparameters:\n  x: {{type: "{kind}"}}\n---\n', ".md")
    assert hint in caught.value.hint
    for known in ("Optional[int]", "dict[str, int]", "tuple[int, ...]", "datetime.date", "number"):
        formats.loads(f'---\nparameters:\n  x: {{type: "{known}"}}\n---\n', ".md")


@pytest.mark.parametrize(
    ("described", "told", "value"),
    [
        ("{type: number, choices: [1, 2]}", Given("2", "text"), 2.0),
        ("{type: number, choices: [1, 2]}", Given(2), 2.0),
        ("{choices: [1, 2.5, x]}", Given("1", "text"), 1),
        ("{type: date, choices: [2026-01-01]}", Given("2026-01-01", "text"), date(2026, 1, 1)),
        ("{type: date, choices: [2026-01-01]}", Given(date(2026, 1, 1)), date(2026, 1, 1)),
        ("{choices: [yes, no]}", Given("no", "text"), False),
        ("{type: int | None, choices: [1, 2]}", Given("none", "text"), None),
    ],
)
def test_a_choice_is_given_as_people_write_it(described: str, told: Given, value: object) -> None:
    (parameter,) = params.declared(read(f"---\nparameters:\n  w: {described}\n---\n"))
    found = convert(told, parameter.type)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("described", "value"),
    [
        ("{type: number, choices: [1, 2], default: 1}", 1.0),
        ("{type: date, choices: [2026-01-01], default: 2026-01-01}", date(2026, 1, 1)),
        ("{type: int | None, choices: [1, 2], default: null}", None),
        ("{choices: [a, null], default: null}", None),
    ],
)
def test_a_choice_may_be_the_default(described: str, value: object) -> None:
    (parameter,) = params.declared(read(f"---\nparameters:\n  w: {described}\n---\n"))
    assert (parameter.required, parameter.default) == (False, value)


def test_what_is_no_choice_does_not_fit() -> None:
    for described, text in (("{choices: [1, 2]}", "1.5"), ("{choices: [yes]}", "no")):
        (parameter,) = params.declared(read(f"---\nparameters:\n  w: {described}\n---\n"))
        with pytest.raises(Misfit):
            convert(Given(text, "text"), parameter.type)
