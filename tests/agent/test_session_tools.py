"""notebook_session as an agent calls it, without a client between."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quire.agent.call_tool import call
from quire.agent.caller import Caller
from quire.render.agent_run import Told
from quire.workspace import Engine, Workspace

TASK = """# %% count
for n in range(1, 4):
    print("count", n)

# %% quiet
x = 1

# %% twin
print("first twin")

# %% twin
print("second twin")
"""
Do = Callable[..., Told]


@pytest.fixture
def do(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Do]:
    """A parameter is what the workspace is configured with."""
    (tmp_path / "quire.toml").write_text(getattr(request, "param", ""))
    (tmp_path / "a.py").write_text(TASK)
    engine = Engine(outlives=True)
    ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)

    def act(action: str, **given: Any) -> Told:
        given = {"path": "a.py", "action": action, **given}
        return call(ws, "notebook_session", given, Caller("test"))

    yield act
    engine.close()


def test_a_long_promotion_goes_on_by_itself(do: Do, tmp_path: Path) -> None:
    go = tmp_path / "go"
    (tmp_path / "a.py").write_text(
        "# %% hold\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
    )
    go.touch()
    do("exec", cells="all")
    go.unlink()
    told = do("promote", to="b.py", wait=0).text
    assert re.match(r"the clean run \S+ is at cell 1 of 1", told), told
    assert told.endswith('next: notebook_session(action="wait", session="a")')
    assert "goes on by itself" in do("wait", wait=0).text
    assert "is being promoted to b.py" in do("promote", to="c.py").text
    assert not (tmp_path / "b.py").exists()
    go.touch()
    assert do("wait").text.startswith("written: b.py, as the clean run ")
    assert (tmp_path / "b.py").exists()
    assert "b.py is already there" in do("promote", to="b.py", wait=0).text


def test_what_holds_only_in_the_session_says_how_to_go_on(do: Do, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("# %% use\nprint(x)\n")
    do("exec", code="x = 1")
    do("exec", cells="all")
    (tmp_path / "b.py").write_text("")
    told = do("promote", to="b.py", force=True)
    assert told.failed
    assert told.text.startswith('not written: "cell 0 (use) ran in the session but fails')
    rows = told.text.split("\n")[1:]
    assert [re.sub(r'run="[^"]+"', 'run="ID"', row) for row in rows] == [
        "next:",
        '  1. see the clean run: run_show(run="ID")',
        '  2. mend the notebook: notebook_edit(path="a.py", cell=…, new_source=…)',
        '  3. run what is stale then: notebook_session(action="exec", session="a", cells="stale")',
        '  4. try again: notebook_session(action="promote", session="a", to="b.py", force=true)',
    ]


def test_an_interrupt_calls_a_promotion_off(do: Do, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("# %% hold\nimport threading\nthreading.Event().wait()\n")
    do("open")
    assert "goes on by itself" in do("promote", to="b.py", wait=0).text
    told = do("interrupt")
    assert not told.failed
    assert told.text.startswith("called off the promotion of session a, with its clean run ")
    over = do("wait")
    assert over.text.startswith('not written: "the clean run was called off: it was cancelled"')
    assert not (tmp_path / "b.py").exists()
    assert do("interrupt").text == "nothing was running in session a"


HIDDEN = """# %%
limit = 50
orders = [120, 80, 300]

# %%
from quire.runtime import glue
glue("large", len([o for o in orders if o >= limit]))
"""


def test_what_a_lost_kernel_saw_is_compared_too(tmp_path: Path) -> None:
    """The host that held it is gone: only the journal knows what its cells gave."""
    (tmp_path / "a.py").write_text(HIDDEN)

    def say(engine: Engine, action: str, **given: Any) -> Told:
        ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
        given = {"path": "a.py", "action": action, **given}
        return call(ws, "notebook_session", given, Caller("test"))

    with closing(Engine(outlives=True)) as first:
        say(first, "exec", cells="0")
        say(first, "exec", code="limit = 100")
        assert not say(first, "exec", cells="1").failed
    with closing(Engine(outlives=True)) as engine:
        told = say(engine, "promote", to="b.py")
        announced, said = told.text.split("\n")[:2]
        assert announced.startswith("THE KERNEL WAS REPLACED (epoch 2): what ran before is gone.")
        assert "cell 1 gave large = 2 in the session, but 3 in a clean kernel" in said
        assert told.failed
        assert not (tmp_path / "b.py").exists()
        # What ran again since is what was seen last.
        say(engine, "exec", cells="all")
        again = say(engine, "promote", to="b.py").text
        assert again.startswith("written: b.py"), again


def test_what_is_refused_opens_no_session(do: Do) -> None:
    assert "no cell has the id or title 'nope'" in do("exec", cells="nope").text
    assert "cell_timeout must be above 0" in do("exec", code="1", cell_timeout=0).text
    assert do("list").text == "no session is open"


def test_a_kernel_that_was_replaced_is_announced_also_by_vars(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TASK)

    def say(engine: Engine, action: str, **given: Any) -> str:
        ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
        given = {"path": "a.py", "action": action, **given}
        return call(ws, "notebook_session", given, Caller("test")).text

    with closing(Engine(outlives=True)) as first:
        say(first, "exec", cells="all")
    with closing(Engine(outlives=True)) as engine:
        told = say(engine, "vars")
        assert told.startswith("THE KERNEL WAS REPLACED (epoch 2): what ran before is gone. Why: ")
        assert told.endswith("session a, epoch 2: 0 variables")
        say(engine, "exec", code="y = 1")
        assert "REPLACED" not in say(engine, "vars")


@pytest.mark.parametrize("cell", [0, "0", "-4", "count", "#1"])
def test_the_lines_of_a_cell_however_it_is_named(do: Do, cell: str | int) -> None:
    """By whatever exec and rewind take."""
    assert not do("exec", cells="all").failed
    told = do("output", cell=cell, lines="2-3")
    assert told.text.endswith("| count 2\n| count 3")
    assert "(#1) in session a, lines 2 to 3 of 3" in told.text


def test_the_lines_of_what_ran_at_a_place_before_it_was_edited(do: Do, tmp_path: Path) -> None:
    do("exec", cells="all")
    (tmp_path / "a.py").write_text(TASK.replace('"count", n', '"number", n'))
    assert "| count 1" in do("output", cell=0).text
    do("exec", cells="0")
    assert "| number 1" in do("output", cell=0).text
    assert "| count 1" in do("output", cell="#1").text


def test_loose_code_has_lines_too(do: Do) -> None:
    do("exec", code="print('loose')")
    assert "| loose" in do("output", cell="#1").text
    assert "| loose" in do("output", cell="code").text
    do("exec", code="print('again')")
    refused = do("output", cell="code")
    assert refused.failed
    assert "#1, #2" in refused.text


def test_a_line_of_code_that_was_stopped_is_told_in_a_line_and_can_be_undone(do: Do) -> None:
    do("open")
    told = do("exec", code="import time as clock; clock.sleep(60)", cell_timeout=0.2)
    assert told.failed
    assert re.fullmatch(r"timed out, [\d.]+ s: code #1; undo: rewind cell #1", told.text)
    told = do("exec", code="import asyncio; await asyncio.sleep(60)", cell_timeout=0.2)
    assert re.fullmatch(r"timed out, [\d.]+ s: code #2; undo: rewind cell #2", told.text)
    assert not do("rewind", cell="#1").failed
    assert "'clock' is not defined" in do("exec", code="clock").text


def test_what_names_no_lines(do: Do) -> None:
    never = do("output", cell="count")
    assert never.failed, never.text
    do("exec", cells="all")
    assert do("output", cell="quiet").text.endswith("it gave out nothing")
    assert do("output", cell="quiet", lines="1-").text.endswith("in session a: it is empty")
    assert do("output", cell="count", lines="9-").text.endswith("has only 3 lines")
    for cell, said in (
        ("twin", "#3, #4"),
        ("#9", "the last that ran: #1 ("),
        ("nothing", "no cell has the id or title 'nothing'"),
        (7, "there is no cell 7"),
    ):
        refused = do("output", cell=cell)
        assert refused.failed
        assert said in refused.text
        assert "hint: " in refused.text


def test_all_that_a_cell_gave_out(do: Do, tmp_path: Path) -> None:
    """A display that is too long for an answer about several cells, and more pictures than four."""
    import base64
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(out, "PNG")
    payload = base64.b64encode(out.getvalue()).decode()
    (tmp_path / "a.py").write_text(
        "# %% much\n"
        "print('printed')\n"
        f"for _ in range(6):\n    display({{'image/png': '{payload}'}}, raw=True)\n"
        "display({'text/plain': '\\n'.join(f'row {n}' for n in range(1_500))}, raw=True)\n"
    )
    told = do("exec", cells="all")
    assert len(told.pictures) == 4
    said = 'notebook_session(action="output", session="a", cell="'
    assert f"2 pictures of this cell omitted: only 4 pictures are shown at once; more: {said}" in (
        told.text
    )
    assert "| row 700" not in told.text
    alone = do("output", cell="much")
    assert len(alone.pictures) == 6
    assert "| printed" in alone.text
    assert "| row 700" in alone.text
    assert "omitted" not in alone.text
    (tmp_path / "quire.toml").write_text("pictures = 1\n")
    engine = Engine(outlives=True)
    ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
    few = call(ws, "notebook_execute", {"path": "a.py", "wait": 60}, Caller("test"))
    assert len(few.pictures) == 1
    run = few.text.split("run ")[1].split(" ")[0]
    assert len(call(ws, "run_show", {"run": run, "cell": 0}, Caller("test")).pictures) == 4
    engine.close()


NEXT = re.compile(r'notebook_session\((action="output".*?)\)')


def follow(do: Do, told: Told) -> Told:
    """The next call that an answer names, to the letter."""
    (found,) = set(NEXT.findall(told.text))
    return do(**dict(re.findall(r'(\w+)="([^"]*)"', found)))


@pytest.mark.parametrize("do", ["stream_limit = 20_000"], indirect=True)
def test_more_than_is_kept_is_counted_and_read_to_the_last_line(do: Do) -> None:
    code = "n = globals().get('n', 0) + 1\nfor i in range(5_000): print('run', n, 'row', i)"
    first, second = do("exec", code=code), do("exec", code=code)
    for n, told in ((1, first), (2, second)):
        omitted = re.search(r"^… ([\d,]+) lines \(", told.text, re.MULTILINE)
        assert omitted is not None
        shown = told.text.count(f"| run {n} row ")
        assert shown + int(omitted[1].replace(",", "")) == 5_000
        # Each has its own, though the cell is the same.
        rest = follow(do, told).text
        assert " of 5,000\n" in rest
        assert f"| run {n} row 300\n" in rest
        assert do("output", cell=f"#{n}", lines="5000").text.endswith(f"| run {n} row 4999")
        assert f"| run {n} row 0\n" in do("output", cell=f"#{n}").text


def test_all_of_one_long_line(do: Do) -> None:
    """As many calls as it takes, each named by the one before."""
    told = do("exec", code="print(*range(12_000)); print('end')")
    read = ""
    while "omitted; read them: " in told.text or "read on: " in told.text:
        told = follow(do, told)
        read += told.text.split("\n")[2].removeprefix("| ")
    assert read == " ".join(map(str, range(12_000)))


def test_all_that_a_failed_cell_gave_out_has_its_error(do: Do) -> None:
    told = do("exec", code="raise ValueError('\\n'.join(f'reason {n}' for n in range(1_000)))")
    assert "| reason 500\n" not in told.text
    assert "| reason 200\n" in follow(do, told).text  # from where the answer broke off
    whole = do("output", cell="#1")
    assert "| reason 500\n" in whole.text
    assert "gave out nothing" not in whole.text


def test_after_a_kernel_died_the_way_back_is_named_where_there_is_one(do: Do) -> None:
    do("exec", code="x = 41")
    dead = do("exec", code="import os; os._exit(3)")
    back = 'go back to before it: notebook_session(action="rewind", session="a", cell="#2")'
    assert back in dead.text
    assert not do("rewind", cell="#2").failed
    assert do("exec", code="x + 1").text.endswith("| 42")


DYING = "# %%\na = 1\n\n# %%\nb = a + 1\n\n# %%\nimport os; os._exit(3)\n"


def test_a_kernel_that_ended_by_itself_has_both_ways_back(do: Do) -> None:
    do("exec", code="x = 41")
    do("exec", code="import os")
    pid = int(do("exec", code="os.getpid()").text.rsplit("| ", 1)[1])
    os.kill(pid, signal.SIGKILL)
    told = do("vars")
    assert told.failed
    assert 'rewind", session="a", cell="#3") goes back to before #3 ran, and ' in told.text
    assert 'notebook_session(action="restore", session="a") runs again what' in told.text
    assert not do("rewind", cell="#3").failed
    assert do("exec", code="x + 1").text.endswith("| 42")


def test_a_call_in_between_does_not_take_the_way_back(do: Do, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(DYING)
    dead = do("exec", cells="all").text
    (cell,) = re.findall(r'action="rewind", session="a", cell="(\w+)"', dead)
    told = do("exec", code="b").text
    assert told.startswith("THE KERNEL WAS REPLACED")
    assert 'to go back to before #3: notebook_session(action="rewind", session="a", cell="#3")' in (
        told
    )
    assert do("rewind", cell=cell).text.startswith("session a is as it was before #3; 2 executions")
    assert do("exec", code="b").text.endswith("| 2")
    # What the journal says is the same: it is what a restore goes by.
    do("restart")
    assert not do("restore").failed
    assert do("exec", code="(a, b)").text.endswith("| (1, 2)")


def test_a_way_back_that_went_with_the_host_is_refused_with_the_way_there_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text(DYING)

    def say(engine: Engine, action: str, **given: Any) -> str:
        ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
        given = {"path": "a.py", "action": action, **given}
        return call(ws, "notebook_session", given, Caller("test")).text

    with closing(Engine(outlives=True)) as first:
        say(first, "exec", cells="0-1")
    with closing(Engine(outlives=True)) as engine:
        assert 'action="restore"' in say(engine, "rewind", cell="1")
        say(engine, "exec", code="x = 1")
        told = say(engine, "rewind", cell="1")
        assert "cell 1 ran in a kernel that was lost, with the state before it" in told
        assert 'notebook_session(action="restore", session="a") runs again' in told
        assert "cell 2 has not run in this session" in say(engine, "rewind", cell="2")


THREAD = "import threading\nwait = threading.Event()\nthreading.Thread(target=wait.wait).start()"


def test_no_way_back_is_named_where_there_is_none(do: Do) -> None:
    do("exec", code=THREAD)
    told = do("exec", code="1/0").text
    assert 'what it did cannot be undone: "threads are still running' in told
    assert 'action="rewind"' not in told
    dead = do("exec", code="import os; os._exit(3)").text
    assert 'run again what had run before: notebook_session(action="restore"' in dead
    assert 'action="rewind"' not in dead


def test_a_cell_that_had_to_be_ended_is_not_taken_for_one_that_took_the_memory(do: Do) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    told = do("exec", code=deaf, cell_timeout=0.2)
    assert "did not stop when it was interrupted" in told.text
    assert "memory runs out" not in told.text


def test_a_replaced_kernel_is_announced_by_whatever_looks_first(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "a.py").write_text(TASK)
    told: list[str] = []
    # The second one is as the next host: it knows only what is on the disk.
    for calls in (
        [{"action": "exec", "code": "x = 41"}],
        [{"action": "vars"}, {"action": "restore"}],
    ):
        engine = Engine(outlives=True)
        ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
        for given in calls:
            asked = {"path": "a.py", **given}
            told.append(call(ws, "notebook_session", asked, Caller("test")).text)
        engine.close()
    _, looked, again = told
    assert looked.startswith("THE KERNEL WAS REPLACED (epoch 2): what ran before is gone.")
    assert again.startswith("a fresh kernel (epoch 3), in which ran again what had run before")


def test_a_session_that_is_not_there_is_opened_with_its_notebook(do: Do) -> None:
    assert 'notebook_session(action="open", path=…)' in do("vars").text


def test_one_can_go_back_though_the_notebook_is_gone(do: Do, tmp_path: Path) -> None:
    do("exec", cells="quiet")
    do("exec", code="x = 2")
    (tmp_path / "a.py").unlink()
    assert do("rewind", cell="quiet").failed
    assert not do("rewind", cell="#2").failed
    assert do("exec", code="x").text.endswith("| 1")
