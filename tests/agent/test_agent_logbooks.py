"""The tools of agents on logbooks: by name, with a request and changes, paused and taken up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from person import Says
from quire.agent.call_tool import call
from quire.agent.caller import Caller
from quire.archive.read import find
from quire.render.agent_run import Told
from quire.workspace import Engine, Workspace

TEMPLATE = """---
parameters:
  name: ...
---
# Greet {name}

```python
print("Hello, {name}!")
```

## Send

```python approve: true
print("sent")
```
"""


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(outlives=True)
    yield engine
    engine.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "quire.toml").write_text("")
    place = tmp_path / "logbooks" / "templates" / "GREET.md"
    place.parent.mkdir(parents=True)
    place.write_text(TEMPLATE)
    (tmp_path / "t.py").write_text("# %%\nprint(1)\n")
    return tmp_path


def execute(root: Path, engine: Engine, *answers: str, **arguments: Any) -> Told:
    ws = Workspace(root, cwd=root, engine=engine, asker=Says(*answers))
    return call(ws, "notebook_execute", {"wait": 60, **arguments}, Caller())


def run_of(told: Told) -> str:
    found = re.search(r"run (\d{4}-\S+) of", told.text)
    assert found, told.text
    return found[1]


@pytest.mark.parametrize("step", ["1", 1])
def test_a_template_by_name_with_a_request_and_a_change(
    root: Path, engine: Engine, step: str | int
) -> None:
    change = {"step": step, "source": 'print("Heyyy {name}!")', "reason": "casual"}
    told = execute(
        root, engine, "run", path="GREET", parameters={"name": "Ada"}, request="greet Ada, please",
        changes=[change],
    )  # fmt: skip
    assert not told.failed, told.text
    assert "Heyyy Ada!" in told.text
    record = find(Workspace(root, cwd=root), run_of(told)).record
    assert (record.request, record.outcome) == ("greet Ada, please", "ok")
    changed = next(cell for cell in record.cells if "casual" in str(cell.metadata))
    assert f'cell "{changed.id}" ran other code in this run: "casual"' in told.text
    page = str(record.plan["logbook"])
    assert f'record for people: "{page}"' in told.text
    assert "Modified: casual" in (root / page).read_text()


def test_a_paused_run_says_what_is_next_and_a_person_is_asked(root: Path, engine: Engine) -> None:
    told = execute(root, engine, path="GREET", parameters={"name": "Ada"})
    run = run_of(told)
    assert told.text.startswith("paused")
    assert 'why it stopped: "step 2 of 2 (Send) waits for approval' in told.text
    task = "logbooks/templates/GREET.md"
    assert f'notebook_execute(path="{task}", resume="{run}")' in told.text
    assert f"quire resume {run} --approve" in told.text
    ws = Workspace(root, cwd=root, engine=engine)
    assert call(ws, "run_show", {"run": run}, Caller()).text == told.text
    again = execute(root, engine, path=task, resume=run)
    assert again.text.startswith("paused")  # nobody could be asked: an agent's word is no approval
    done = execute(root, engine, "run", path="GREET", resume=run_of(again))
    assert done.text.startswith("ok"), done.text
    assert "| sent" in done.text
    assert "| Hello" not in done.text.partition("sent")[2]
    # Taken up once: what was approved does not run twice.
    for earlier, goes_on in ((run, run_of(again)), (run_of(again), run_of(done))):
        refused = execute(root, engine, "run", path=task, resume=earlier)
        assert refused.failed
        assert f"{earlier} was taken up by {goes_on}" in refused.text
        shown = call(ws, "run_show", {"run": earlier}, Caller()).text
        assert f'{goes_on} took it up: run_show(run="{goes_on}")' in shown
        assert "resume=" not in shown


def test_what_does_not_go_with_a_paused_run(root: Path, engine: Engine) -> None:
    run = run_of(execute(root, engine, path="GREET", parameters={"name": "Ada"}))
    for extra, said in (
        ({"parameters": {"name": "Bob"}}, "parameters cannot be given"),
        ({"request": "x"}, "request cannot be given"),
        ({"path": "t.py"}, "was a run of logbooks/templates/GREET.md, not of t.py"),
    ):
        told = execute(root, engine, **{"path": "GREET", "resume": run, **extra})
        assert told.failed
        assert said in told.text
        assert "hint:" in told.text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["x"], "changes must be a list of objects with step, source (and reason)"),
        ([{"step": "1"}], "changes[0] has no source"),
        ([{"step": "1", "source": "x"}, {"step": 1.5, "source": "x"}], "changes[1].step must be"),
        ([{"step": True, "source": "x"}], "changes[0].step must be"),
        ([{"step": "1", "source": "x", "a": "b"}], "changes[0] has 'a'"),
        ([{"step": "1", "source": "a\0b"}], "changes[0].source holds a NUL"),
        ({"step": "1"}, "changes must be"),
    ],
)
def test_changes_that_are_none(root: Path, engine: Engine, changes: Any, said: str) -> None:
    told = execute(root, engine, path="t.py", changes=changes)
    assert told.failed
    assert said in told.text
    assert not list((root / ".quire" / "runs").glob("*"))


def test_a_change_of_a_step_that_is_not_there(root: Path, engine: Engine) -> None:
    told = execute(root, engine, path="t.py", changes=[{"step": "9", "source": "x"}])
    assert told.failed
    assert "there is no step 9" in told.text
