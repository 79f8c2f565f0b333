"""Parameters, from the command line to the cell."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from desk import Desk
from hypothesis import given, settings
from hypothesis import strategies as st

import quire
from quire.errors import ParameterError
from scratch import Scratch

TASK = """# %% [markdown]
# # A report

# %% tags=["parameters"]
text: str = "default"
count: int = 1
ratio: float = 0.5
flag: bool = False
items: list = []
table: dict = {}
day = None  # a date
anything = None

# %%
import json
from quire.runtime import glue
names = ("text", "count", "ratio", "flag", "items", "table", "day", "anything")
glue("got", {name: repr(globals()[name]) for name in names})
"""


def got(scratch: Scratch, *args: str) -> dict[str, str]:
    code, told = scratch.run("t.py", *args)
    assert code == 0, told
    found: dict[str, str] = told["results"]["got"]
    return found


@pytest.fixture
def task(scratch: Scratch) -> Scratch:
    scratch.write("t.py", TASK)
    return scratch


def test_every_way_to_give_them(task: Scratch) -> None:
    """One warm host answers all of these."""
    task.write("p.yaml", "text: from a file\ncount: 7\nitems: [1, two]\nday: 2026-01-02\n")
    task.write("p.json", json.dumps({"table": {"a": [1, None]}, "ratio": 2}))
    cases: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("-p", "text", "hello", "-p", "count", "3"), {"text": "hello", "count": 3}),
        (("-p", "text=hello", "-p", "count=3"), {"text": "hello", "count": 3}),
        (("-p", "text=a=b", "-p", "anything", "x=y"), {"text": "a=b", "anything": "x=y"}),
        (("-p", "text="), {"text": ""}),
        (("-p", "text", ""), {"text": ""}),
        (("-p", "count", "-5", "-p", "ratio", "-0.25"), {"count": -5, "ratio": -0.25}),
        (("-p", "text", "--foo", "-p", "anything", "-x"), {"text": "--foo", "anything": "-x"}),
        (("-p", "text", "--json"), {"text": "--json"}),
        (("-p", "text=--foo -p x"), {"text": "--foo -p x"}),
        (("-p", "text", " a  b "), {"text": " a  b "}),
        (("-p", "text", "l1\nl2\n"), {"text": "l1\nl2\n"}),
        (("-p", "text", "'\"\\n'''\"\"\"{x}$HOME"), {"text": "'\"\\n'''\"\"\"{x}$HOME"}),
        (("-p", "text", "é 日本 🐝\u2028"), {"text": "é 日本 🐝\u2028"}),
        (("-p", "ratio", "inf"), {"ratio": math.inf}),
        (("-p", "count", str(10**100)), {"count": 10**100}),
        (("-p", "flag", "true"), {"flag": True}),
        (("-p", "items", "[1, 'two', null]"), {"items": [1, "two", None]}),
        (("-r", "text", "1", "-r", "anything", "true"), {"text": "1", "anything": "true"}),
        (("-r", "anything=1"), {"anything": "1"}),
        (("-y", "{count: 4, table: {a: {b: [1]}}}"), {"count": 4, "table": {"a": {"b": [1]}}}),
        (
            ("-f", "p.yaml", "-f", "p.json", "-p", "count", "9"),
            {
                "text": "from a file",
                "count": 9,
                "items": [1, "two"],
                "table": {"a": [1, None]},
                "ratio": 2.0,
            },
        ),
        ((), {"text": "default", "count": 1, "flag": False, "anything": None}),
    ]
    for args, expected in cases:
        arrived = got(task, *args)
        for name, value in expected.items():
            assert arrived[name] == repr(value), (args, name)
    assert "2026, 1, 2" in got(task, "-f", "p.yaml")["day"]
    assert got(task, "-p", "ratio", "nan")["ratio"] == "nan"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(values=st.lists(values, min_size=20, max_size=20))
@settings(max_examples=5, deadline=None)
def test_any_value_arrives_unchanged(
    desk_factory: Any, kernel_env: dict[str, str], values: list[Any]
) -> None:
    desk: Desk = desk_factory()
    names = [f"v{n}" for n in range(len(values))]
    declared = "\n".join(f"{name} = None" for name in names)
    desk.write(
        "t.py",
        f'# %% tags=["parameters"]\n{declared}\n# %%\nfrom quire.runtime import glue\n'
        f"glue('got', [repr(v) for v in ({', '.join(names)})])\n",
    )
    record = desk.run("t.py", dict(zip(names, values, strict=True)))
    assert record.ok, record.error
    assert record.values["got"] == [repr(value) for value in values]


@pytest.fixture(scope="session")
def desk_factory(
    tmp_path_factory: pytest.TempPathFactory, engine: Any, kernel_env: dict[str, str]
) -> Any:
    return lambda: Desk(tmp_path_factory.mktemp("desk"), kernel_env, engine)


REQUIRED = (
    '# %% tags=["parameters"]\nregion: str\ncount: int = 1  # how many\n# %%\nprint(region)\n'
)

WRONG = {
    "unknown": (("-p", "regoin", "eu", "-p", "region", "x"), ["regoin", "did you mean region?"]),
    "misfit": (("-p", "region", "eu", "-p", "count", "many"), ["count expects int", "'many'"]),
    "missing": ((), ["region is required", "(str)"]),
    "not yaml": (("-y", "{a: ["), ["-y", "YAML"]),
    "a list": (("-y", "[1]"), ["mapping"]),
    "no name": (("-p", "1x", "2"), ["1x"]),
}


@pytest.mark.parametrize(("args", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_before_anything_starts(
    scratch: Scratch, args: tuple[str, ...], said: list[str]
) -> None:
    scratch.write("t.py", REQUIRED)
    done = scratch.quire("run", "t.py", *args, "--no-host")
    assert done.returncode == 2
    for text in said:
        assert text in done.stderr
    if "required" in done.stderr or "expects" in done.stderr or "not a parameter" in done.stderr:
        assert "declared parameters:" in done.stderr
        assert "count: int = 1  # how many" in done.stderr
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (scratch.root / ".quire").exists()


def test_all_problems_at_once_and_as_json(scratch: Scratch) -> None:
    scratch.write("t.py", REQUIRED)
    args = ("-p", "zzz", "1", "-p", "count", "x")
    done = scratch.quire("run", "t.py", *args, "--no-host", "--json")
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert told["outcome"] == "error"
    assert told["error"]["code"] == "parameter"
    for text in ("3 problems", "zzz is not a parameter", "count expects int", "region is required"):
        assert text in told["error"]["message"]


def test_a_host_is_asked_but_no_run_is_made(scratch: Scratch) -> None:
    scratch.write("t.py", REQUIRED)
    assert scratch.quire("run", "t.py", "-p", "x", "1").returncode == 2
    assert not (scratch.root / ".quire" / "runs").exists()


def test_nothing_starts_for_a_wrong_parameter(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write("t.py", REQUIRED)
    monkeypatch.setattr(desk.engine.kernels, "start", lambda *_: pytest.fail("a kernel started"))
    with pytest.raises(ParameterError, match="region is required"):
        desk.run("t.py")
    assert not (desk.root / ".quire").exists()


def test_the_injected_cell_and_the_metadata(desk: Desk) -> None:
    path = desk.write("t.py", TASK)
    before = path.read_bytes()
    record = desk.run("t.py", {"count": 3, "text": "x"}, output="out.ipynb")
    assert record.ok, record.error
    assert path.read_bytes() == before
    tags = [cell.tags for cell in record.cells]
    assert tags == [(), ("parameters",), ("injected-parameters",), ()]
    injected = record.cells[2]
    assert injected.source == "# Parameters\ntext = 'x'\ncount = 3"
    nb = json.loads((desk.root / "out.ipynb").read_text())
    assert nb["cells"][2]["metadata"]["tags"] == ["injected-parameters"]
    papermill = nb["metadata"]["papermill"]
    assert papermill["parameters"] == {"count": 3, "text": "x"}
    assert papermill["default_parameters"] == {
        "text": "default",
        "count": 1,
        "ratio": 0.5,
        "flag": False,
        "items": [],
        "table": {},
        "day": None,
        "anything": None,
    }
    assert papermill["input_path"] == "t.py"
    assert papermill["exception"] is None
    assert papermill["environment_variables"] == {}
    assert papermill["version"] == quire.__version__
    assert papermill["start_time"] <= papermill["end_time"]
    assert papermill["duration"] == record.duration
    assert papermill["output_path"] == str(desk.root / "out.ipynb")


def test_without_parameters_nothing_is_injected(desk: Desk) -> None:
    desk.write("t.py", TASK)
    assert [cell.tags for cell in desk.run("t.py").cells] == [(), ("parameters",), ()]


def test_a_notebook_that_was_run_before_is_injected_anew(desk: Desk) -> None:
    desk.write("t.py", TASK)
    desk.run("t.py", {"count": 3}, output="out.ipynb")
    before = (desk.root / "out.ipynb").read_bytes()
    record = desk.run("out.ipynb", {"count": 4})
    assert (desk.root / "out.ipynb").read_bytes() == before
    assert [c.tags for c in record.cells].count(("injected-parameters",)) == 1
    assert record.values["got"]["count"] == "4"


def test_an_integer_of_any_size(desk: Desk) -> None:
    desk.write("t.py", TASK)
    record = desk.run("t.py", {"count": 7**9_999})
    assert record.ok or (record.error and "4300 digits" in record.error.value), record.error
    assert int(record.parameters["count"], 16) == 7**9_999
