"""The calls that an answer names after a failure mend it, as they stand there."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.agent.call_tool import call
from quire.agent.caller import Caller
from quire.render.agent_run import Told
from quire.workspace import Engine, Workspace

TASK = """# %% parameters tags=["parameters"]
n: int = 1

# %% boom
print(1 / (n - n))

# %% keep
precious = 42
"""
TEMPLATE = """---
parameters:
  name: ...
---
# Greet

Say hello to {name}.

```python
print("hello {name}", 1 / 0)
```

```python
print("bye {name}")
```
"""

Use = Callable[..., Told]


@pytest.fixture
def use(tmp_path: Path) -> Iterator[Use]:
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "t.py").write_text(TASK)
    templates = tmp_path / "logbooks" / "templates"
    templates.mkdir(parents=True)
    (templates / "greet.md").write_text(TEMPLATE)
    engine = Engine(outlives=True)

    def use(tool: str, **arguments: Any) -> Told:
        ws = Workspace(tmp_path, cwd=tmp_path, engine=engine)
        return call(ws, tool, arguments, Caller("test"))

    yield use
    engine.close()


def next_calls(told: Told, new: str) -> list[tuple[str, dict[str, Any]]]:
    """What stands under `next:`, with `new` for what is to be filled in."""
    found = re.findall(r"^  \d\. [^:]+: (\w+)(\(.*\))$", told.text, re.MULTILINE)
    out = []
    for name, arguments in found:
        tree = ast.parse(f"f{arguments.replace('…', repr(new))}", mode="eval").body
        assert isinstance(tree, ast.Call)
        out.append((name, {str(k.arg): ast.literal_eval(k.value) for k in tree.keywords}))
    return out


def test_a_place_in_the_answer_of_a_run_is_that_of_the_notebook(use: Use, tmp_path: Path) -> None:
    told = use("notebook_execute", path="t.py", parameters={"n": 2})
    assert "cell 1 (" in told.text
    assert "boom" in told.text
    run = re.findall(r"run (\S+) of", told.text)[0]
    assert '"boom": failed' in use("run_show", run=run, cell=1).text
    assert not use("notebook_edit", path="t.py", cell_index=1, new_source="print(n)").failed
    assert "precious = 42" in (tmp_path / "t.py").read_text()
    assert not use("notebook_execute", path="t.py", parameters={"n": 2}, resume=run).failed


def test_given_values_that_fail_are_no_cell_of_the_notebook(use: Use, tmp_path: Path) -> None:
    text = 'import os\n\n# %% tags=["parameters"]\nhome = None\n\n# %%\nprint(home)\n'
    (tmp_path / "t.py").write_text(text)
    told = use("notebook_execute", path="t.py", parameters={"home": "x"})
    assert not told.failed
    assert "cell 2 (" in told.text


@pytest.mark.parametrize("path", ["t.py", "greet"])
def test_a_failed_run_is_mended_and_goes_on(use: Use, path: str) -> None:
    given = {"n": 2} if path == "t.py" else {"name": "Ada"}
    told = use("notebook_execute", path=path, parameters=given)
    assert told.failed
    edit, again = next_calls(told, "print('mended')")
    assert edit[0] == "notebook_edit"
    done = use(edit[0], **edit[1])
    assert not done.failed, done.text
    done = use(again[0], **again[1])
    assert not done.failed, done.text
    assert "mended" in done.text


ODD = 'sub dir/it\'s "my" task.py'


@pytest.mark.parametrize("again", [False, True])
def test_a_run_that_cannot_go_on_is_run_in_full_as_it_was(
    use: Use, tmp_path: Path, again: bool
) -> None:
    """With its values, and whatever its path is called."""
    (tmp_path / ODD).parent.mkdir()
    text = TASK.replace("1 / (n - n)", "n").replace("n: int = 1", "n: int = 1\nwhat: str = ''")
    (tmp_path / ODD).write_text(text)
    values = {"n": 7, "what": 'it\'s a \\ "line"\nand more --find x; quire show y'}
    run = re.findall(r"run (\S+) of", use("notebook_execute", path=ODD, parameters=values).text)[0]
    given = {"parameters": values} if again else {}
    told = use("notebook_execute", path=ODD, resume=run, **given)
    assert f"the states of {run} are gone" in told.text
    (hint,) = re.findall(r"^hint: run the task in full: (.*)$", told.text, re.MULTILINE)
    ((tool, arguments),) = next_calls(Told(f"  1. so: {hint}"), "")
    assert arguments == {"path": ODD, "parameters": values}
    assert not use(tool, **arguments).failed
    # Other values are the caller's to say: they may be secrets.
    told = use("notebook_execute", path=ODD, resume=run, parameters={"n": 8})
    assert told.text.endswith("parameters=…)")


def test_a_logbook_with_its_defaults_is_mended_too(use: Use, tmp_path: Path) -> None:
    path = tmp_path / "logbooks" / "templates" / "greet.md"
    path.write_text(TEMPLATE.replace("name: ...", "name: World"))
    told = use("notebook_execute", path="greet")
    edit, again = next_calls(told, "print('mended')")
    assert not use(edit[0], **edit[1]).failed
    assert not use(again[0], **again[1]).failed
    assert 'print("bye {name}")' in path.read_text()


def test_places_of_a_notebook_with_values_of_papermill(use: Use, tmp_path: Path) -> None:
    """Where it was given values they take the place of those."""
    cells = [
        {"source": "n = 1", "metadata": {"tags": ["parameters"]}},
        {"source": "n = 2", "metadata": {"tags": ["injected-parameters"]}},
        {"source": "print('here', n)", "metadata": {}},
        {"source": "assert n < 5", "metadata": {}},
    ]
    code = {"cell_type": "code", "execution_count": None, "outputs": []}
    whole = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    whole["cells"] = [{**code, **one, "id": f"c{at}"} for at, one in enumerate(cells)]
    (tmp_path / "j.ipynb").write_text(json.dumps(whole))
    told = use("notebook_execute", path="j.ipynb", parameters={"n": 9})
    assert "cell 3 (" in told.text
    run = re.findall(r"run (\S+) of", told.text)[0]
    assert not use("notebook_edit", path="j.ipynb", cell=3, new_source="assert n < 50").failed
    given = {"path": "j.ipynb", "parameters": {"n": 9}, "resume": run}
    third = use("notebook_execute", **given, **{"from": 3})
    assert "3 carried, 1 ok" in third.text, third.text
    second = use("notebook_execute", **given, **{"from": 2})
    assert "2 carried, 2 ok" in second.text, second.text
    assert "| here 9" in second.text


def test_a_change_for_this_run_that_fails_is_given_anew(use: Use, tmp_path: Path) -> None:
    changes = [
        {"step": "boom", "source": "print('no division')", "reason": "to see the rest"},
        {"step": "keep", "source": "1 / 0", "reason": "a try"},
    ]
    told = use("notebook_execute", path="t.py", changes=changes)
    assert told.failed
    (again,) = next_calls(told, "print('better')")
    assert [one["source"] for one in again[1]["changes"]] == [
        "print('no division')",
        "print('better')",
    ]
    done = use(again[0], **again[1])
    assert not done.failed, done.text
    assert "better" in done.text
    assert (tmp_path / "t.py").read_text() == TASK


def read_on(use: Use, told: Told) -> str:
    """All that the calls give which say how to read on, one after the other."""
    rows: list[str] = []
    while found := re.search(r"read (?:them|on): (\w+)(\(.*\))$", told.text, re.MULTILINE):
        tree = ast.parse(f"f{found[2]}", mode="eval").body
        assert isinstance(tree, ast.Call)
        told = use(found[1], **{str(k.arg): ast.literal_eval(k.value) for k in tree.keywords})
        rows += [row[2:] for row in told.text.split("\n") if row.startswith("| ")]
        last = re.search(r"lines [\d,]+ to ([\d,]+) of ([\d,]+)", told.text)
        assert last is not None
        done, total = (int(one.replace(",", "")) for one in last.groups())
        if done == total:
            break
        more = {str(k.arg): ast.literal_eval(k.value) for k in tree.keywords}
        told = Told(f"read on: {as_tool_call(found[1], {**more, 'lines': f'{done + 1}-'})}")
    return "\n".join(rows)


def as_tool_call(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


@pytest.mark.parametrize("where", ["run", "session"])
def test_a_long_value_and_a_long_error_can_be_read_to_their_ends(
    use: Use, tmp_path: Path, where: str
) -> None:
    (tmp_path / "t.py").write_text(
        "# %% value\n{f'key{n}': list(range(20)) for n in range(900)}\n\n"
        "# %% error\nraise ValueError('\\n'.join(f'wrong {n}' for n in range(9_000)))\n"
    )
    if where == "run":
        told = use("notebook_execute", path="t.py")
    else:
        told = use("notebook_session", action="exec", path="t.py", cells="all")
    assert told.failed
    assert "wrong 8999" in read_on(use, told)  # the failure is told first
    cell = re.findall(r'cell 0 \((\w+)\) "value"', told.text)[0]
    if where == "run":
        run = re.findall(r"run (\S+) of", told.text)[0]
        alone = use("run_show", run=run, cell=cell)
    else:
        alone = use("notebook_session", action="output", session="t", cell=cell)
    rest = read_on(use, alone)
    assert all(f"'key{n}'" in alone.text + rest for n in range(900))
