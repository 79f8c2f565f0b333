"""`from quire.runtime import glue, run`: what cells can say to the engine that runs them."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, shown
from knock import say

import quire
from quire.record.events import OutputAdded

GLUE = "from quire.runtime import glue"
RUN = "from quire.runtime import run, TaskFailed"

VALUES = {
    "integer": ("3", 3),
    "big integer": ("10**100", 10**100),
    "float": ("0.5", 0.5),
    "text": ("'é\\n\"'", 'é\n"'),
    "none": ("None", None),
    "boolean": ("True", True),
    "list": ("[1, [2.5, None], 'x']", [1, [2.5, None], "x"]),
    "tuple": ("(1, 2)", [1, 2]),
    "set": ("{2, 1}", [1, 2]),
    "dict": ("{'a': {1: True}}", {"a": {"1": True}}),
    "date": ("__import__('datetime').date(2026, 1, 2)", "2026-01-02"),
    "empty": ("{}", {}),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, engine: Any, kernel_env: Any) -> quire.Record:
    """One run that glues them all: a result each is what the tests look at."""
    root = tmp_path_factory.mktemp("plain")
    lines = [f"glue({name!r}, {code})" for name, (code, _) in VALUES.items()]
    (root / "t.py").write_text("\n".join(["# %%", GLUE, *lines, ""]))
    workspace = quire.Workspace(root, cwd=root, env=kernel_env, engine=engine)
    return quire.run("t.py", workspace=workspace)


@pytest.mark.parametrize("name", VALUES)
def test_glue_a_json_value(plain: quire.Record, name: str) -> None:
    result = plain.results[name]
    assert result.value == VALUES[name][1]
    assert type(result.value) is type(VALUES[name][1])
    assert result.kind == "json"
    assert result.cell == plain.cells[0].id


def test_glue_does_not_spoil_the_notebook(plain: quire.Record) -> None:
    """Other tools find the values where scrapbook puts them."""
    output = plain.cells[0].outputs[0]
    payload = output["data"]["application/scrapbook.scrap.json+json"]
    assert payload == {"name": "integer", "data": 3, "encoder": "json", "version": 1}
    assert output["metadata"]["scrapbook"]["name"] == "integer"


def test_glue_what_numpy_and_pandas_hold(desk: Desk) -> None:
    record = desk.ran(
        GLUE,
        "import numpy as np, pandas as pd",
        "glue('int', np.int64(7)); glue('float', np.float32(0.5)); glue('bool', np.bool_(True))",
        "glue('array', np.arange(6).reshape(2, 3)); glue('mixed', {'a': [np.int8(1)]})",
        "glue('time', pd.Timestamp('2026-01-02'))",
    )
    assert record.ok, record.error
    assert record.values == {
        "int": 7,
        "float": 0.5,
        "bool": True,
        "array": [[0, 1, 2], [3, 4, 5]],
        "mixed": {"a": [1]},
        "time": "2026-01-02T00:00:00",
    }


def test_glue_a_data_frame_as_a_bounded_table(desk: Desk) -> None:
    record = desk.ran(
        GLUE,
        "import pandas as pd",
        "glue('big', pd.DataFrame({'n': range(1500), 'x': ['é'] * 1500}))",
        "glue('odd', pd.DataFrame({'t': [pd.Timestamp('2026-01-02')], 1: [float('nan')]}))",
        "glue('series', pd.Series([1, 2], name='s'))",
    )
    assert record.ok, record.error
    big = record.results["big"]
    assert big.kind == "table"
    assert big.value["columns"] == ["n", "x"]
    assert (big.value["total"], big.value["kept"], len(big.value["rows"])) == (1500, 1000, 1000)
    assert (big.value["rows"][0], big.value["rows"][-1]) == ([0, "é"], [999, "é"])
    assert big.value["types"][0] == "int64"
    odd = record.values["odd"]
    assert (odd["columns"], odd["rows"][0][1]) == (["t", "1"], None)
    assert odd["rows"][0][0].startswith("2026-01-02")
    assert (record.values["series"]["columns"], record.values["series"]["rows"]) == (
        ["s"],
        [[1], [2]],
    )


def test_glue_a_figure(desk: Desk) -> None:
    record = desk.ran(
        GLUE,
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); ax.plot([1, 2])\n"
        "glue('plot', fig)",
    )
    assert record.ok, record.error
    plot = record.results["plot"]
    assert plot.kind == "display"
    assert base64.b64decode(plot.value["image/png"]).startswith(b"\x89PNG")
    pictures = [o for o in record.cells[1].outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == 1, "the figure must not be shown again at the end of the cell"


def test_glue_and_show(desk: Desk) -> None:
    record = desk.ran(f"{GLUE}\nglue('x', 41, display=True)")
    assert record.values == {"x": 41}
    texts = [o["data"].get("text/plain") for o in record.cells[0].outputs]
    assert "41" in texts


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("glue('x', object())", "TypeError", "cannot glue 'x': a object is neither JSON"),
        ("glue('x', {'a': print})", "TypeError", "cannot glue 'x'"),
        ("glue('', 1)", "TypeError", "a result needs a name"),
        ("glue(3, 1)", "TypeError", "a result needs a name"),
        ("glue('x', 'y' * 9_000_000)", "ValueError", "the result 'x' is 9,000,002 bytes"),
        ("x = []; x.append(x); glue('x', x)", "", ""),
        ("glue('x', 10**5000)", "", ""),
    ],
    ids=["object", "inside", "no name", "name", "too large", "circular", "too many digits"],
)
def test_what_cannot_be_glued(desk: Desk, code: str, name: str, said: str) -> None:
    record = desk.ran(f"{GLUE}\n{code}")
    assert record.outcome == "failed"
    assert record.error is not None
    assert not name or record.error.name == name
    assert said in record.error.value
    assert record.results == {}


def test_results_read_back_typed(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    record = desk.ran(
        f"{GLUE}\nglue('score', 0.5); glue('names', ['a', None]); glue('odd', float('nan'))"
    )
    from quire.cli.main import App, dispatch
    from quire.cli.terminal import Terminal

    app = App(Terminal(), desk.root, desk.env, desk.engine)
    assert dispatch(["results", record.run_id, "--json"], app) == 0
    assert json.loads(capfd.readouterr().out) == {
        "score": 0.5,
        "names": ["a", None],
        "odd": "nan",
    }
    assert dispatch(["results", "last", "names", "--json"], app) == 0
    assert json.loads(capfd.readouterr().out) == ["a", None]
    assert dispatch(["results", "last", "nome"], app) == 2
    assert "it has: score, names, odd" in capfd.readouterr().err


def test_outputs_of_scrapbook_are_results(desk: Desk) -> None:
    payload = {"name": "x", "data": [1], "encoder": "json", "version": 1}
    code = f"""
from IPython.display import display
display({{"application/scrapbook.scrap.json+json": {payload!r}}}, raw=True)
display({{"application/papermill.record+json": {{"old": 1}}}}, raw=True)
"""
    assert desk.ran(code).values == {"x": [1], "old": 1}


CHILD = """# %% tags=["parameters"]
n: int = 1
# %%
from quire.runtime import glue
glue("double", 2 * n)
glue("list", [n, None])
"""


def test_a_task_runs_a_task(desk: Desk) -> None:
    desk.write("sub/child.py", CHILD)
    record = desk.ran(
        RUN,
        "r = run('sub/child.py', {'n': 4})\nprint(r['double'], r['list'], r.outcome, r.run_id)",
        "print(run('sub/child.py', n=5)['double'], run('sub/child.py')['double'])",
    )
    assert record.ok, record.error
    printed = shown(record).split()
    assert printed[:4] == ["8", "[4,", "None]", "ok"]
    assert printed[-2:] == ["10", "2"]
    store = desk.workspace().runs
    child = store.read(store.find(printed[4]))
    assert (child.parent, child.task, child.parameters) == (
        record.run_id,
        "sub/child.py",
        {"n": 4},
    )
    assert [(c.tool, c.ok) for c in record.tool_calls] == [("run", True)] * 3
    assert record.tool_calls[0].cell == record.cells[1].id
    assert record.tool_calls[0].result == {"run_id": child.run_id, "outcome": "ok"}
    assert record.tool_calls[0].arguments["parameters"] == {"n": 4}
    assert len(store.ids()) == 4


def test_a_path_is_relative_to_the_folder_of_the_cell(desk: Desk) -> None:
    desk.write("sub/child.py", CHILD)
    desk.write("sub/here.txt", "found")
    record = desk.ran(
        RUN,
        "import os; os.chdir('sub')",
        "print(run('child.py')['double'])",
        "import pathlib; print(run(pathlib.Path('child.py'))['double'])",
    )
    assert record.ok, record.error
    assert shown(record) == "2\n2\n"


def test_a_child_that_fails_raises(desk: Desk) -> None:
    desk.cells("child.py", "from quire.runtime import glue\nglue('x', 1)", "1 / 0")
    record = desk.ran(
        RUN,
        "try:\n    run('child.py')\nexcept TaskFailed as e:\n"
        "    print(e.outcome, e.run_id, e.error['name'], '|', e)",
        "run('child.py')",
    )
    outcome, child, name = shown(record).split()[:3]
    assert (outcome, name) == ("failed", "ZeroDivisionError")
    assert "child.py ended failed: ZeroDivisionError: division by zero" in shown(record)
    assert desk.workspace().runs.find(child).run_id == child
    assert (record.outcome, record.error and record.error.name) == ("failed", "TaskFailed")
    assert [c.ok for c in record.tool_calls] == [False, False]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("run('missing.py')", "there is no file missing.py"),
        ("run('child.py', m=1)", "m is not a parameter"),
        ("run('child.py', n='x')", "n expects int"),
        ("run('child.py', n=object())", "must be JSON values"),
    ],
    ids=["missing", "unknown", "misfit", "not json"],
)
def test_a_call_that_cannot_be_done_says_why(desk: Desk, call: str, said: str) -> None:
    desk.write("child.py", CHILD)
    record = desk.ran(RUN, call)
    assert record.outcome == "failed"
    assert record.error is not None
    assert said in record.error.value
    assert len(desk.workspace().runs.ids()) == 1


def test_a_circle_is_refused(desk: Desk) -> None:
    desk.cells("a.py", f"{RUN}\nrun('b.py')")
    desk.cells("b.py", f"{RUN}\nrun('./../{desk.root.name}/a.py')")
    record = desk.run("a.py")
    assert record.outcome == "failed"
    assert record.error is not None
    assert "a.py is already running: it would run itself for ever" in record.error.value
    assert len(desk.workspace().runs.ids()) == 2


def test_a_task_that_runs_itself_is_refused(desk: Desk) -> None:
    record = desk.ran(f"{RUN}\nrun('t.py')")
    assert record.error is not None
    assert "already running" in record.error.value


def test_a_link_does_not_hide_a_circle(desk: Desk) -> None:
    desk.cells("a.py", f"{RUN}\nrun('link.py')")
    (desk.root / "link.py").symlink_to("a.py")
    record = desk.run("a.py")
    assert record.error is not None
    assert "already running" in record.error.value


def test_tasks_run_tasks_only_so_deep(desk: Desk) -> None:
    (desk.root / "quire.toml").write_text("depth = 3")
    for n in range(4):
        desk.cells(f"t{n}.py", f"{RUN}\nrun('t{n + 1}.py')")
    record = desk.run("t0.py")
    assert record.error is not None
    assert "tasks run tasks 3 deep here" in record.error.value
    assert len(desk.workspace().runs.ids()) == 3


WAITS = """
import pathlib, time
pathlib.Path('under_way').write_text('yes')
time.sleep(100)
"""


FORGETS = """
import os
from quire.runtime import run
token = os.environ.pop("API_TOKEN")
print(run("child.py", {"given": token})["found"])
"""


def test_what_a_cell_takes_out_of_its_environment_is_masked_in_its_child_too(desk: Desk) -> None:
    child = "# %% parameters tags=['parameters']\ngiven: str = ''\n"
    child += "# %%\nfrom quire.runtime import glue, note, run\nprint(given)\nnote(given)\n"
    grandchild = child + "glue('found', given)\n"
    desk.write("grandchild.py", grandchild)
    desk.write("child.py", child + "glue('found', run('grandchild.py', {'given': given})['found'])")
    desk.cells("t.py", FORGETS)
    secret = "plum-cake-4711"
    record = quire.run("t.py", workspace=desk.workspace({"API_TOKEN": secret}))
    assert record.ok, record.error
    kept = [path for path in (desk.root / ".quire").rglob("*") if path.is_file()]
    assert len([path for path in kept if path.name == "events.jsonl"]) == 3
    assert [path for path in kept if secret.encode() in path.read_bytes()] == []


def test_a_cancelled_parent_cancels_its_child(desk: Desk) -> None:
    desk.cells("child.py", WAITS)
    desk.cells("t.py", f"{RUN}\nrun('child.py')", "print('never')")
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())

    def call_off() -> None:
        while not (desk.root / "under_way").exists():
            threading.Event().wait(0.01)
        execution.cancel()

    caller = threading.Thread(target=call_off, daemon=True)
    caller.start()
    for _ in execution:
        pass
    caller.join(10)
    assert execution.record.outcome == "cancelled"
    store = desk.workspace().runs
    (child,) = [i for i in store.ids() if i != execution.run_id]
    wait_for(lambda: store.read(store.find(child)).outcome != "running")
    assert store.read(store.find(child)).outcome == "cancelled"


def test_a_child_ends_with_the_cell_that_waits_for_it(desk: Desk) -> None:
    """The cell gives up, or its kernel dies: nobody waits for the child any more."""
    desk.cells("child.py", WAITS)
    record = desk.ran(
        "import os, threading, time, pathlib\n"
        "def die():\n"
        "    while not pathlib.Path('under_way').exists():\n"
        "        time.sleep(0.01)\n"
        "    os._exit(3)\n"
        "threading.Thread(target=die).start()\n"
        f"{RUN}\nrun('child.py')"
    )
    assert record.outcome == "died"
    store = desk.workspace().runs
    (child,) = [i for i in store.ids() if i != record.run_id]
    wait_for(lambda: store.read(store.find(child)).outcome != "running")
    assert store.read(store.find(child)).outcome == "cancelled"


def wait_for(done: Any, timeout: float = 10.0) -> None:
    moment = threading.Event()
    for _ in range(int(timeout / 0.01)):
        if done():
            return
        moment.wait(0.01)
    raise AssertionError("it did not happen in time")


WHERE = """
import json, sys
context = sys.modules["_quire_inside"].context
open("line", "w").write(json.dumps({k: context[k] for k in ("socket", "line", "token")}))
"""
# What only the kernel itself may do, tried from a process that knows all it knows.
CHILD_CALL = """
import json, subprocess, sys
code = "import sys; sys.path.insert(0, sys.argv[1]); from knock import *; "
code += "print(json.dumps(say(json.load(open('line')), 'run', path='child.py')))"
done = subprocess.run([sys.executable, "-c", code, KNOCK], capture_output=True, text=True)
print(done.stdout + done.stderr)
"""


def test_only_the_run_itself_may_call_and_only_while_it_runs(desk: Desk) -> None:
    desk.write("child.py", CHILD)
    knocking = f"KNOCK = {str(Path(__file__).parent)!r}"
    desk.cells("t.py", WHERE, "print('between')", knocking + CHILD_CALL)
    answers: dict[str, Any] = {}
    told: dict[str, str] = {}
    for event in quire.NotebookExecutor("t.py", workspace=desk.workspace()):
        if isinstance(event, OutputAdded) and not told:
            told = json.loads((desk.root / "line").read_text())
            answers["not the kernel"] = say(told, "run", path="child.py")
            answers["wrong"] = say({**told, "token": "x"}, "run", path="child.py")
    answers["late"] = say(told, "run", path="child.py")
    store = desk.workspace().runs
    record = store.read(store.find("last"))
    answers["child"] = shown(record)
    assert "from a child process of the kernel" in str(answers["not the kernel"])
    assert "from a child process of the kernel" in str(answers["child"])
    for name in ("wrong", "late"):
        assert "this run is over, or the call is not from its kernel" in str(answers[name])
    assert len(store.ids()) == 1
    assert [(call.ok, call.refused) for call in record.tool_calls] == [(False, True)] * 3


def test_the_line_is_not_in_the_environment_of_what_a_cell_starts(desk: Desk) -> None:
    record = desk.ran("!env | grep -i quire_call || echo none")
    assert shown(record).strip() == "none"


def test_in_a_jupyter_kernel_too(desk: Desk) -> None:
    desk.write("child.py", CHILD)
    record = desk.ran(
        f"{GLUE}\n{RUN}\nglue('child', run('child.py', n=3)['double'])",
        "import sys; print(sys.modules['_quire_inside'].context['token'])",
        "try:\n    run('no.py')\nexcept RuntimeError as e:\n    print(e)",
        kernel="python3",
    )
    assert record.ok, record.error
    assert record.values == {"child": 6}
    assert record.plan["kernel"]["kind"] == "jupyter"
    assert "[masked:" in shown(record)
    assert "there is no file no.py" in shown(record)
    child = desk.workspace().runs.summary(record.tool_calls[0].result["run_id"])
    assert child["parent"] == record.run_id


def test_outside_of_a_run_it_says_so() -> None:
    from quire.runtime import run

    with pytest.raises(RuntimeError, match="works in a cell that Quire runs"):
        run("t.py")
