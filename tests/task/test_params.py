from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from test_literals import same, values

from quire.errors import ParameterError
from quire.task import ipynb, percent
from quire.task.document import Document
from quire.task.params import Given, declared, inject, parse_assignments, resolve


def task(*lines: str, tag: str = "parameters") -> Document:
    return percent.loads(
        f'import os\n\n# %% tags=["{tag}"]\n' + "\n".join(lines) + "\n\n# %%\nprint(1)\n"
    )


def bash(*lines: str, kernel: str = "bash", language: str = "bash") -> Document:
    head = f"# ---\n# jupyter:\n#   kernelspec:\n#     name: {kernel}\n#     language: {language}\n"
    return percent.loads(head + '# ---\n\n# %% tags=["parameters"]\n' + "\n".join(lines) + "\n")


def given_text(annotation: str, text: str):
    return resolve(task(f"x: {annotation}"), {"x": Given(text, "text")})["x"]


def given_typed(annotation: str, value):
    return resolve(task(f"x: {annotation}"), {"x": Given(value)})["x"]


def test_declared():
    found = {p.name: p for p in declared(task(
        "%matplotlib inline",
        "import os",
        "rows: int = 60 * 5  # how many",
        "# where to look",
        "# in the tree",
        "folder = os.getcwd()",
        "mode: Literal['a', 'b'] = 'a'",
        "names: list[str] = [",
        "    'x',  # inner",
        "]  # who",
        "ratio: float",
        "token: str = ...  # needed",
        "limit: Optional[int] = None",
        "text = 'a # b'",
        "",
        "a, b = 1, 'z'",
        "c = d = 2.5",
        "rows2 = -3",
    ))}  # fmt: skip
    assert list(found) == ["rows", "folder", "mode", "names", "ratio", "token", "limit", "text",
                           "a", "b", "c", "d", "rows2"]  # fmt: skip
    rows = found["rows"]
    assert (rows.type, rows.default, rows.default_source, rows.help) == (
        "int", 300, "60 * 5", "how many")  # fmt: skip
    folder = found["folder"]
    assert (folder.type, folder.has_default, folder.default_source) == ("", True, "os.getcwd()")
    assert folder.help == "where to look in the tree"
    assert (found["mode"].type, found["mode"].choices) == ("Literal['a', 'b']", ("a", "b"))
    assert (found["names"].default, found["names"].help) == (["x"], "who")
    assert [p.name for p in found.values() if p.required] == ["ratio", "token"]
    assert found["token"].help == "needed"
    assert (found["limit"].type, found["limit"].default) == ("Optional[int]", None)
    assert (found["text"].default, found["text"].help) == ("a # b", "")
    assert (found["a"].default, found["b"].type, found["d"].default) == (1, "str", 2.5)
    assert found["rows2"].default == -3


def test_nothing_declared():
    assert declared(percent.loads("# %%\nx = 1\n")) == ()
    assert declared(task("")) == ()


def test_only_the_first_tagged_code_cell_counts():
    text = (
        '# %% [markdown] tags=["parameters"]\n# x = 0\n\n# %% tags=["parameters"]\nx = 1\n\n'
        '# %% tags=["parameters"]\ny = 1\n'
    )
    assert [p.name for p in declared(percent.loads(text))] == ["x"]


def test_a_cell_python_cannot_parse_is_read_line_by_line():
    found = declared(task("x = 1  # help", "y = (", "def"))
    assert (found[0].name, found[0].default, found[0].help) == ("x", 1, "help")


@pytest.mark.parametrize("source", ["9 ** 9 ** 9", "10 ** 100000", "'a' * 10 ** 10", "1 / 0"])
def test_folding_is_bounded(source):
    (parameter,) = declared(task(f"x = {source}"))
    assert (parameter.default, parameter.default_source) == (None, source)


def test_other_languages_are_read_line_by_line():
    found = declared(bash("name=world  # who", 'path="a # b"', "n=3", "x=$(date)", "# comment"))
    assert [(p.name, p.default, p.help) for p in found] == [
        ("name", "world", "who"), ("path", "a # b", ""), ("n", 3, ""), ("x", None, "")]  # fmt: skip
    found = declared(bash("a.b <- 5L # five", "y = TRUE", kernel="ir", language="R"))
    assert [(p.name, p.default, p.help) for p in found] == [("a.b", 5, "five"), ("y", True, "")]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("int", " 3 ", 3), ("int", "1_000", 1000), ("int", "0x10", 16), ("int", "007", 7),
        ("float", "3", 3.0), ("float", "nan", math.nan), ("float", "-inf", -math.inf),
        ("str", " 3 ", " 3 "), ("str", "", ""), ("str", "null", "null"),
        ("bool", "Yes", True), ("bool", "0", False), ("bool", "false", False),
        ("list[int]", "1, 2", [1, 2]), ("list[int]", "[1, 2]", [1, 2]), ("list", "", []),
        ("list[str]", "1,2", ["1", "2"]), ("list[str]", "['a', 'b']", ["a", "b"]),
        ("list[str]", "[a, b]", ["a", "b"]), ("list[float]", "[1]", [1.0]),
        ("set[int]", "1,1", {1}), ("tuple[int, str]", "1,a", (1, "a")),
        ("tuple[int, ...]", "(1, 2, 3)", (1, 2, 3)), ("tuple", "[1, 'a']", (1, "a")),
        ("dict[str, int]", '{"a": 1}', {"a": 1}), ("dict", "{a: 1}", {"a": 1}),
        ("Optional[int]", "none", None), ("int | None", "5", 5), ("str | None", "null", None),
        ("int | str", "x", "x"), ("str | int", "5", 5), ("Union[int, float]", "2.5", 2.5),
        ("Literal['a', 'b']", "b", "b"), ("Literal[1, 2]", "2", 2), ("Literal['1', 1]", "1", "1"),
        ("date", "2024-01-31", date(2024, 1, 31)),
        ("datetime.datetime", "2024-01-31T10:00", datetime(2024, 1, 31, 10)),
        ("Path", "a/b", Path("a/b")), ("Decimal", "0.10", Decimal("0.10")),
        ("Any", "3", 3), ("Any", "x", "x"), ("Any", "true", True), ("Any", "null", None),
        ("np.ndarray", "2.5", 2.5), ("'int'", "5", 5), ("typing.List[int]", "1", [1]),
        ("Annotated[int, 'rows']", "5", 5), ("bytes", "é", "é".encode()),
    ],
)  # fmt: skip
def test_text_is_converted(annotation, text, value):
    assert same(given_text(annotation, text), value)


def test_very_long_integers_are_read():
    assert given_text("int", "9" * 6000) == 10**6000 - 1
    assert given_text("Any", "-" + "1" * 5000) == -(10**5000 // 9)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [("int", "3.5"), ("int", "x"), ("int", ""), ("int", "true"), ("float", "x"), ("bool", "2"),
     ("bool", ""), ("list[int]", "1,x"), ("list", "[1"), ("dict", "[1]"), ("dict[str, int]", "x"),
     ("tuple[int, int]", "1"), ("Literal['a']", "b"), ("date", "2024-13-01"), ("int | None", "x"),
     ("Decimal", "x"), ("None", "x"), ("set", "[[1]]")],
)  # fmt: skip
def test_text_that_does_not_fit(annotation, text):
    with pytest.raises(ParameterError, match="x expects"):
        given_text(annotation, text)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("float", 1, 1.0), ("int", 1, 1), ("str", "x", "x"), ("list[float]", [1, 2.5], [1.0, 2.5]),
        ("tuple[int, int]", [1, 2], (1, 2)), ("set[str]", ["a"], {"a"}), ("Path", "a", Path("a")),
        ("dict[str, float]", {"a": 1}, {"a": 1.0}), ("Optional[int]", None, None),
        ("date", "2024-01-31", date(2024, 1, 31)), ("date", date(2024, 1, 31), date(2024, 1, 31)),
        ("datetime", date(2024, 1, 31), datetime(2024, 1, 31)), ("Any", [1], [1]),
        ("str", date(2024, 1, 31), "2024-01-31"), ("Literal[1, 'a']", "a", "a"),
        ("int | float", 1, 1), ("float | int", 1, 1), ("Decimal", 0.1, Decimal("0.1")),
        ("DataFrame", {"a": 1}, {"a": 1}), ("bool", True, True), ("str | list[str]", ["a"], ["a"]),
    ],
)  # fmt: skip
def test_typed_values_that_fit(annotation, value, expected):
    assert same(given_typed(annotation, value), expected)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [("int", True), ("int", 1.0), ("int", "1"), ("float", True), ("float", "1"), ("bool", 1),
     ("str", 1), ("str", None), ("list", "ab"), ("list[int]", ["1"]), ("dict", [1]),
     ("Literal[1]", True), ("tuple[int]", [1, 2]), ("date", datetime(2024, 1, 1, 5)),
     ("int | None", "x"), ("float", 10**400), ("bytes", "x")],
)  # fmt: skip
def test_typed_values_that_do_not_fit(annotation, value):
    with pytest.raises(ParameterError, match="x expects"):
        given_typed(annotation, value)


def test_raw_is_always_text():
    doc = task("s = 'a'", "n = 1", "u: str | int = 1", "z = None", "p: Path = ...")
    raw = {"s": Given("3", "raw"), "u": Given("3", "raw"), "z": Given("null", "raw")}
    assert resolve(doc, {**raw, "p": Given("x", "text")}) == {
        "s": "3", "u": "3", "z": "null", "p": Path("x")}  # fmt: skip
    with pytest.raises(ParameterError, match="raw value is always text"):
        resolve(doc, {"n": Given("3", "raw"), "p": Given("x", "text")})


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [("2 * 3 + 1", "5", 5), ("'a' + 'b'", "5", "5"), ("-(1.5)", "5", 5.0), ("1", "5", 5),
     ("1.0", "5", 5.0), ("True", "no", False), ("'a'", "5", "5"),
     ("[1]", "a,2", ["a", 2]), ("None", "5", 5), ("None", "abc", "abc"), ("f()", "1.5", 1.5)],
)  # fmt: skip
def test_without_annotation_the_default_gives_the_type(default, text, value):
    assert same(resolve(task(f"x = {default}"), {"x": Given(text, "text")})["x"], value)


def test_all_problems_at_once():
    doc = task("rows: int = 5  # how many rows", "name: str", "day: date = None", "flag = True")
    with pytest.raises(ParameterError) as caught:
        resolve(doc, {"row": Given("5", "text"), "rows": Given("x", "text"), "flag": Given(3)})
    message = caught.value.message
    for part in (
        "row is not a parameter; did you mean rows?",
        "rows expects int, got 'x'",
        "name is required (str)",
        "flag expects bool, got 3 (int)",
        "rows: int = 5  # how many rows",
        "name: str (required)",
    ):
        assert part in message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("wrong", "meant"), [("N", "n"), ("rowS", "rows"), ("Rwos", "rows"), ("zzz", "")]
)
def test_the_name_that_was_meant_is_named(wrong: str, meant: str) -> None:
    doc = task("other = 1", "n = 1", "rows = 1", "Zed = 1")
    with pytest.raises(ParameterError) as caught:
        resolve(doc, {wrong: Given(1)})
    said = f"{wrong} is not a parameter" + (f"; did you mean {meant}?" if meant else "")
    assert caught.value.message.splitlines()[0] == said


def test_huge_values_do_not_fill_the_message():
    with pytest.raises(ParameterError) as caught:
        resolve(task("x: str = ''"), {"x": Given(10**9000)})
    assert len(caught.value.message) < 300


def test_values_without_a_parameters_cell():
    doc = percent.loads("# %%\nx = 1\n")
    assert resolve(doc, {}) == {}
    with pytest.raises(ParameterError) as caught:
        resolve(doc, {"x": Given(1)})
    assert '# %% tags=["parameters"]' in caught.value.hint


def test_inject_follows_the_declaration_and_leaves_the_rest():
    doc = task("n = 1", "s = ''")
    done = inject(doc, {"n": 5, "s": "it's"})
    assert [cell.tags for cell in done.cells] == [(), ("parameters",), ("injected-parameters",), ()]
    assert done.cells[2].source == '# Parameters\nn = 5\ns = "it\'s"'
    assert (*done.cells[:2], *done.cells[3:]) == doc.cells
    assert done.cells[2].id not in {cell.id for cell in doc.cells}
    assert inject(doc, {}) is doc
    again = inject(done, {"n": 6})
    assert [cell.source for cell in again.cells if "injected-parameters" in cell.tags] == [
        "# Parameters\nn = 6"
    ]
    assert len(again.cells) == len(done.cells)
    assert ipynb.loads(ipynb.dumps(done)).cells[2].tags == ("injected-parameters",)


def test_an_injected_cell_never_shares_an_id():
    doc = percent.loads('# %% tags=["parameters"]\nn = 1\n\n# %%\n# Parameters\nn = 2\n')
    done = inject(doc, {"n": 2})
    assert len({cell.id for cell in done.cells}) == 3


def test_inject_in_other_languages():
    assert inject(bash("n=1"), {"n": "a b"}).cells[1].source == "# Parameters\nn='a b'"
    r = bash("n <- 1", kernel="ir", language="R")
    assert inject(r, {"n": 2}).cells[1].source == "# Parameters\nn <- 2L"
    with pytest.raises(ParameterError, match="n: "):
        inject(bash("n=1"), {"n": {"a": 1}})


@settings(max_examples=250)
@given(values)
def test_a_value_arrives_as_it_was_given(value):
    doc = task("x = None")
    done = inject(doc, resolve(doc, {"x": Given(value)}))
    source = ipynb.loads(ipynb.dumps(done)).cells[2].source
    namespace: dict[str, object] = {}
    exec(compile(source.encode(), "cell", "exec"), namespace)
    assert same(namespace["x"], value)


def test_assignments_of_the_command_line():
    found = parse_assignments(
        p=[("a", "1"), "b=x=y", ("a", "2")],
        r=[("c", "3"), "e=5"],
        y=["{d: [1, 2], a: 9, f: 8}", "e: 1", ""],
        f=[("p.yaml", "d: 0\nf: 7\ng: 2024-01-31"), ("q.json", '{"g": null, "h": 1.5}')],
    )
    assert found == {
        "a": Given("2", "text"), "b": Given("x=y", "text"), "c": Given("3", "raw"),
        "d": Given([1, 2]), "e": Given("5", "raw"), "f": Given(8), "g": Given(None),
        "h": Given(1.5),
    }  # fmt: skip


def test_the_order_of_r_and_p():
    assert parse_assignments(p=["a=1"], r=["a=2"])["a"] == Given("2", "raw")


@pytest.mark.parametrize(
    "arguments",
    [{"p": ["novalue"]}, {"p": [("1a", "x")]}, {"p": [("class", "x")]}, {"p": ["=x"]},
     {"p": [("a.b", "x")]}, {"r": [("a b", "x")]}, {"p": [("None", "1")]}, {"p": [("", "x")]},
     {"y": ["a: ["]}, {"y": ["- 1"]}, {"y": ["just text"]}, {"y": ["1: 2"]}, {"y": ["{[1]: 2}"]},
     {"y": ["a: !!python/object:os.system x"]}, {"y": ["a: " + "9" * 5000]},
     {"f": [("x.json", "{")]}, {"f": [("x.json", "[1]")]}, {"f": [("x.yml", "a: b: c")]}],
)  # fmt: skip
def test_assignments_that_cannot_be(arguments):
    with pytest.raises(ParameterError) as caught:
        parse_assignments(**arguments)
    assert caught.value.hint


def test_python_reads_both_spellings_as_one_name():
    assert list(parse_assignments(p=[("ﬁle", "1"), ("file", "2")])) == ["file"]
