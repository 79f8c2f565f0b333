"""Logbooks in sessions: values in their places, steps for other kernels, steps that wait."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from live import Live, shown, statuses

from person import Says
from quire.errors import QuireError, UsageError
from quire.record.events import CellSubmitted, Event, NoteAdded, Warned
from quire.sessions import session
from quire.sessions.promote import promote
from quire.workspace import Workspace
from scratch import Scratch

GREETING = """---
parameters:
  name: World
---
# Greet {name}

```python
greeting = "Hello, {name}!"
print(greeting)
```

```bash
echo "in a shell: {name}"
```

## Send

```python approve: true
print("sent", greeting)
```

```python
print("after")
```
"""
OTHER = """# Two

```python
x = 1
```

```python kernel=python3
print("x" in globals())
y = 2
```

```python
print(x, "y" in globals())
```
"""


def opened(live: Live, text: str, **options: Any) -> str:
    (live.root / "t.md").write_text(text)
    return live.open(task="t.md", **options)


def executed(live: Live, name: str, what: str, *answers: str) -> list[Event]:
    ws = Workspace(live.root, cwd=live.root, env=live.env, engine=live.engine, asker=Says(*answers))
    return list(session.execute(ws, name, what, threading.Event()))


def test_values_stand_in_the_steps_and_ids_are_those_of_the_file(live: Live) -> None:
    name = opened(live, GREETING, parameters={"name": "Ada"})
    assert shown(live.exec(name, "2")) == "Hello, Ada!\n"
    assert shown(live.exec(name, "3")) == "in a shell: Ada\n"
    states = session.cells(live.workspace, name)
    assert states[2].state == "ran"
    from quire.task.read_task import read

    source = read(live.workspace, "t.md").document
    assert [state.cell.id for state in states] == [cell.id for cell in source.cells]
    live.rewind(name, "2")
    assert session.cells(live.workspace, name)[2].state == "never ran"
    live.ran(name, "2", "3")
    with pytest.raises(UsageError, match="logbook"):
        promote(live.workspace, name, "u.py", threading.Event())
    paused = promote(live.workspace, name, "u.md", threading.Event())
    assert "waits for approval" in paused.difference
    ws = Workspace(
        live.root, cwd=live.root, env=live.env, engine=live.engine, asker=Says("run", "run")
    )
    done = promote(ws, name, "u.md", threading.Event())
    assert (done.path, done.difference) == (live.root / "u.md", "")
    assert (live.root / "u.md").read_text() == GREETING


def test_a_step_of_another_kernel_runs_there_and_what_that_means_for_the_way_back(
    live: Live,
) -> None:
    name = opened(live, OTHER)
    assert shown(live.exec(name, "all")) == "False\n1 False\n"
    assert live.said(name, "print(x)") == "1"
    assert [v for v in live.variables(name) if v in ("x", "y")] == ["x"]
    with pytest.raises(UsageError, match="another kernel"):
        live.rewind(name, "3")
    live.rewind(name, "1")  # before it there was no other kernel
    live.ran(name, "1")
    assert shown(live.exec(name, "2")) == "False\n"
    (live.root / "t.md").write_text(OTHER.replace("kernel=python3", "kernel=nowhere"))
    with pytest.raises(QuireError, match="nowhere"):
        live.exec(name, "0-")
    with pytest.raises(QuireError, match="nowhere"):
        live.open(task="t.md")


def test_another_kernel_may_call_too_also_after_going_back(live: Live) -> None:
    name = opened(live, OTHER.replace("y = 2", "from quire.runtime import note\nnote('hi')"))
    for _ in range(2):
        assert [e.text for e in live.exec(name, "1-2") if isinstance(e, NoteAdded)] == ["hi"]
        live.rewind(name, "1")


def test_what_ran_in_another_kernel_is_restored_there(live: Live) -> None:
    from quire.sessions.restore import restore

    name = opened(live, OTHER)
    live.ran(name, "1", "2")
    (live.root / "t.md").write_text("```python\nz = 1\n```\n")
    live.engine.sessions[name].others.clear()  # as after the loss of a host
    events = list(restore(live.workspace, name, threading.Event()))
    kernels = [event.kernel for event in events if isinstance(event, CellSubmitted)]
    assert live.said(name, "print(x, 'y' in globals())") == "1 False"
    assert len(kernels) == 2
    assert live.engine.sessions[name].others


def test_a_step_that_waits_is_refused_where_nobody_can_be_asked(live: Live) -> None:
    name = opened(live, GREETING)
    with pytest.raises(UsageError, match=r"step 3 of 4 \(Send\) waits for approval"):
        live.exec(name, "5")
    assert live.inner(name).executions == []
    events = live.exec(name, "all")
    assert "sent" not in shown(events)
    assert "after" not in shown(events)
    assert any("waits for approval" in e.message for e in events if isinstance(e, Warned))
    live.ran(name, "6")  # what is asked for by itself, and waits for nobody


def test_a_person_decides(live: Live) -> None:
    name = opened(live, GREETING)
    live.ran(name, "2")
    assert shown(executed(live, name, "5", "run")) == "sent Hello, World!\n"
    events = executed(live, name, "5-6", "skip")
    assert shown(events) == "after\n"
    with pytest.raises(UsageError, match="waits for approval"):
        executed(live, name, "5", "stop")
    events = executed(live, name, "5", "edit", "print('other')", "a reason")
    assert (shown(events), statuses(events)) == ("other\n", ["ok"])


def test_the_policy_decides_where_it_says_so(live: Live) -> None:
    (live.root / "quire.toml").write_text('approval = "skip"\n')
    name = opened(live, GREETING)
    events = live.exec(name, "2-6")
    assert "after" in shown(events)
    assert "sent" not in shown(events)


def test_the_command_says_that_it_waits(scratch: Scratch) -> None:
    scratch.write("t.md", GREETING)
    assert scratch.quire("session", "open", "t.md", "--name", "greet").returncode == 0
    done = scratch.quire("exec", "greet", "all", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, len(told["warnings"])) == (3, 1), done.stderr
    assert [cell["index"] for cell in told["cells"]][:2] == [2, 3]
    done = scratch.quire("exec", "greet", "Send")
    assert done.returncode == 2
    assert "quire resume" in done.stderr
