"""`{name}` gives way to a value; every other brace stays."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import DocumentError, ParameterError
from quire.task import formats, params
from quire.task.document import Document

FRONT = """---
parameters:
  name: ...
  n: 3
  flag: true
  mood:
    default: calm
    choices: [calm, merry]
    help: how
---
"""


def filled(body: str, **values: Any) -> Document:
    doc = formats.loads(FRONT + body, ".md")
    given_ = {key: params.Given(value) for key, value in {"name": "World", **values}.items()}
    return params.filled(doc, params.resolve(doc, given_))


def last(body: str, **values: Any) -> str:
    return filled(body, **values).cells[-1].source


def code(source: str, language: str = "python", **values: Any) -> str:
    return last(f"```{language}\n{source}\n```\n", **values)


@pytest.mark.parametrize(
    "text",
    [
        "f-string {x!r} {y:>10} {z['a']}",
        '{"json": {"a": [1, {}]}}',
        r"$\frac{a}{b}$ $x_{i}$ \begin{align}",
        "{{ name }} {% if name %} {{name}}",
        "{ name }",
        "{}",
        "{0}",
        "{name",
        "name}",
    ],
)
def test_other_braces_stay(text: str) -> None:
    assert last(text) == text
    assert code(text) == text


def test_values_stand_in_prose_and_code() -> None:
    assert last("Hi {name}, {n} times, {flag}.") == "Hi World, 3 times, true."
    assert code("print('{name}', {n}, {flag})") == "print('World', 3, True)"
    assert code('d = {"count": {n}}') == 'd = {"count": 3}'


def test_values_are_variables_too() -> None:
    doc = filled("```python\nx\n```", name="Ada")
    (cell,) = [cell for cell in doc.cells if "injected-parameters" in cell.tags]
    assert cell.source == "# Parameters\nname = 'Ada'\nn = 3\nflag = True\nmood = 'calm'"


@given(st.text(max_size=20))
def test_no_value_leaves_its_string(value: str) -> None:
    for source in ('"{name}"', "'{name}'", '"""a {name} b"""', 'f"{name}"'):
        found = code(source, name=value)
        if "\0" in value or ("\r" in value and '"""' in source):
            continue
        told = ast.literal_eval(found.removeprefix("f"))
        plain = value if '"""' not in source else f"a {value} b"
        expected = (
            plain if not source.startswith("f") else plain.replace("{", "{{").replace("}", "}}")
        )
        assert told == expected


def test_a_shell_and_sql_keep_values_in_their_place() -> None:
    bad = "'; rm x; echo \"$(id)`id`"
    for source in ("printf %s {name}", "printf %s '{name}'", 'printf %s "{name}"'):
        script = code(source, "bash", name=bad).removeprefix("%%bash\n")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout == bad
    script = code("cat <<END\n{name}\nEND", "bash", name="$(id)").removeprefix("%%bash\n")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "$(id)\n"
    assert code('echo "${name}"', "bash") == '%%bash\necho "${name}"'
    assert code("select '{name}', {n}", "sql", name="O'Brien") == "%%sql\nselect 'O''Brien', 3"


HOSTILE = [
    "it's", 'say "hi"', "'; touch broken; '", '"; touch broken; "', "$(touch broken)",
    "`touch broken`", "end\\", "a\\nb", "two\nlines", "x' y", ")", "))'", "*", "~", "",
    "-n {other}", "$HOME ${HOME}", "# no", "END", "a\\'b",
]  # fmt: skip
SHELL = [
    "printf '[%s]' {name}",
    "printf '[%s]' '{name}'",
    'printf "[%s]" "{name}"',
    "printf '[%s]' $'{name}'",
    "printf '[%s]' \"$(printf %s '{name}')\"",
    'printf "[%s]" "$(printf %s "{name}")"',
    "printf '[%s]' \"$(printf %s {name})\"",
    "printf '[%s]' \"$(printf %s \"$(printf '%s' '{name}')\")\"",
    "x=$(printf %s '{name}') # it's\nprintf '[%s]' \"$x\"",
    "cat <<EOF\n[{name}]$(printf '<%s>' '{name}')\nEOF",
    "cat <<'EOF'\nit's\nEOF\nprintf '[%s]' '{name}'",
    "cat <<< 'it''s'; echo $((1<<n))\nprintf '[%s]' '{name}'",
]


@pytest.mark.parametrize("source", SHELL)
def test_no_value_leaves_its_place_in_a_script(source: str, tmp_path: Path) -> None:
    """Also in quotes inside `$(…)` inside quotes, as people write it."""
    for value in HOSTILE:
        script = code(source, "bash", name=value).removeprefix("%%bash\n")
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), (value, script)
        assert f"[{value}]" in done.stdout, (value, script)
        assert "<<EOF" not in source or f"<{value}>" in done.stdout, (value, script)
    assert not list(tmp_path.iterdir())


def test_a_line_for_a_shell_in_python_is_one_of_a_shell(tmp_path: Path) -> None:
    found = code("x = 1\n!printf %s '{name}'\ny = '{name}'", name="it's")
    assert found == "x = 1\n!printf %s 'it'\\''s'\ny = 'it\\'s'"
    assert code("files = !ls '{name}'", name="it's") == "files = !ls 'it'\\''s'"
    assert code("ok = x != '{name}'", name="it's") == "ok = x != 'it\\'s'"


@pytest.mark.parametrize(
    ("source", "language", "bad", "good"),
    [
        ("x = r'{name}'", "python", ["it's", "end\\", "two\nlines"], ["a\\b", 'say "hi"']),
        ('x = r"""{name}"""', "python", ['a"""b', 'a"', "end\\"], ["two\nlines", "it's", 'a"b']),
        ("x = f\"{d['{name}']}\"", "python", ["it's", "a}b", "a\\b"], ["a", "b c"]),
        ("echo `echo '{name}'`", "bash", ["it's", "a`b"], ["a b"]),
    ],
)
def test_where_nothing_can_be_escaped_a_value_that_breaks_out_is_refused(
    source: str, language: str, bad: list[str], good: list[str]
) -> None:
    for value in good:
        assert value in code(source, language, name=value)
    for value in bad:
        with pytest.raises(DocumentError, match="the value of name cannot be put into") as caught:
            code(f"# first\n{source}", language, name=value)
        assert "line 2 of" in caught.value.message or language == "bash"
        assert caught.value.hint


def test_a_comment_cannot_be_left() -> None:
    assert code("# for {name}\nx = 1", name="a\nimport os") == "# for a import os\nx = 1"


@pytest.mark.parametrize("text", ["Hi {nmae}", "Hi {naame}", "Hi {Name}", "{moods}"])
def test_a_look_alike_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(DocumentError, match=r"is \{\w+\} meant\? It stands on line 2"):
        filled(f"First line.\n{text}\n")


def test_a_name_the_code_uses_is_no_look_alike() -> None:
    assert "{moods}" in code("moods = []\nprint(f'{moods}')")


def test_required_choices_and_types() -> None:
    doc = formats.loads(FRONT, ".md")
    with pytest.raises(ParameterError) as caught:
        params.resolve(doc, {"mood": params.Given("sad", "text"), "n": params.Given("x", "text")})
    text = caught.value.message
    assert "name is required" in text
    assert "mood expects" in text
    assert "n expects int" in text


def test_the_same_front_matter_stands_in_a_py_task() -> None:
    text = "# ---\n# parameters:\n#   name: ...\n#   n: 2\n# ---\n\n# %%\nprint(f'{name}')\n"
    doc = formats.loads(text, ".py")
    assert [p.name for p in params.declared(doc)] == ["name", "n"]
    done = params.filled(doc, params.resolve(doc, {"name": params.Given("x")}))
    assert [cell.source for cell in done.cells[1:]] == [
        "# Parameters\nname = 'x'\nn = 2",
        "print(f'{name}')",
    ]


def test_a_parameter_declared_twice_is_refused() -> None:
    text = '# ---\n# parameters:\n#   n: 2\n# ---\n\n# %% tags=["parameters"]\nn = 3\n'
    with pytest.raises(DocumentError, match="n is declared in the front matter and in a cell"):
        params.declared(formats.loads(text, ".py"))
