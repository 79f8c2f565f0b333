"""Logbooks as they run: asked for, approved, changed, paused, taken up, written down."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from quire import __version__
from quire.archive.read import find
from quire.engine import resume as taking_up
from quire.engine.planning import Errand
from quire.engine.replay import replay
from quire.engine.run import NotebookExecutor, drained
from quire.engine.step_changes import Asked as Change
from quire.errors import QuireError, UsageError
from quire.git.init_repository import SHIPPED
from quire.logbooks.page import dumps
from quire.logbooks.read_back import kept, loads
from quire.proof.consistency import agreement
from quire.proof.verify import verify_run
from quire.record.questions import Answers, Declined, Question
from quire.record.record import Record
from quire.workspace import Workspace

GREETING = """---
parameters:
  name: ...
---
# Greet {name}

```python
greeting = "Hello, {name}!"
print(greeting)
```

## Send

```python approve: true
print("sent", greeting)
```

```python
print("after")
```
"""


class Scripted:
    """Gives prepared answers and remembers the questions."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        self.asked += questions
        if not self.answers:
            return None
        if self.answers[0] == "declined":
            raise Declined("no")
        given, self.answers = self.answers[: len(questions)], self.answers[len(questions) :]
        return Answers(tuple(given), "ada")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "quire.toml").write_text("archive.enabled = true\n")
    template = tmp_path / "logbooks" / "templates" / "GREET.md"
    template.parent.mkdir(parents=True)
    template.write_text(GREETING)
    return tmp_path


def workspace(root: Path, *answers: str, **env: str) -> Workspace:
    import os

    return Workspace(root, cwd=root, env={**os.environ, **env}, asker=Scripted(*answers))


def run(
    ws: Workspace, path: str = "GREET", errand: Errand | None = None, **values: object
) -> Record:
    return drained(NotebookExecutor(path, values, workspace=ws, errand=errand))


def page(ws: Workspace, record: Record) -> str:
    return (ws.root / str(record.plan["logbook"])).read_text()


def out(record: Record) -> str:
    return "".join(o.get("text", "") for c in record.cells for o in c.outputs)


def test_the_record_lies_by_day_and_uuid_and_reads_as_the_run(root: Path) -> None:
    ws = workspace(root, "run")
    record = run(ws, errand=Errand(request="Please greet World"), name="World")
    assert record.outcome == "ok"
    path = ws.root / str(record.plan["logbook"])
    assert path.parent.parent == root / "logbooks" / "runs"
    assert path.stem == record.uuid
    text = path.read_text()
    assert "user_request: Please greet World" in text
    assert "# Greet World" in text
    assert "Results: ok" in text
    assert loads(text) == kept(record)
    found = find(ws, record.run_id)
    assert found.archived is not None
    assert found.record.request == "Please greet World"
    assert not verify_run(ws, record.run_id).findings


def test_a_run_is_named_by_its_record_and_uuid_too(root: Path) -> None:
    ws = workspace(root)
    record = run(ws, name="Ada")
    for name in (record.plan["logbook"], record.uuid, record.uuid.upper()):
        found = find(ws, name)
        assert (found.record.run_id, found.folder is None) == (record.run_id, False)


def test_where_there_is_only_the_record_it_is_read_and_that_is_said(
    root: Path, tmp_path: Path
) -> None:
    record = run(workspace(root), name="Ada")
    clone = tmp_path / "clone"
    shutil.copytree(root / "logbooks", clone / "logbooks")
    ws = workspace(clone)
    found = find(ws, record.plan["logbook"])
    assert (found.record.outcome, found.folder) == (record.outcome, None)
    assert out(found.record) == out(record) == "Hello, Ada!\n"
    assert found.record.parameters == {"name": "Ada"}
    assert "no proof" in found.record.warnings[0]
    assert record.outcome == "paused"
    with pytest.raises(UsageError, match="only the record"):
        taking_up.prepare(ws, record.plan["logbook"], decision="run")
    # Of another run with that id it says nothing.
    other = run(ws, name="Bob")
    page = clone / record.plan["logbook"]
    page.write_text(page.read_text().replace(record.run_id, other.run_id))
    assert find(ws, record.uuid).record.parameters == {"name": "Ada"}


@pytest.mark.parametrize("name", ["logbooks/templates/GREET.md", "nothing.md", "../out.md"])
def test_what_is_no_record_names_no_run(root: Path, name: str) -> None:
    (root.parent / "out.md").write_text("---\nuuid: x\nexecuted_at: 2026-01-01T00:00:00\n---\n")
    with pytest.raises(QuireError, match=r"there is no run|not the record"):
        find(workspace(root), name)


def test_a_run_with_parameters_by_default_is_verified(root: Path) -> None:
    """The notebook sets what was not given, too; a value that is not the default is noticed."""
    (root / "d.md").write_text(
        "---\nparameters:\n  a: ...\n  n: 2\n  xs: [1, 2]\n  d: {type: date, default: 2026-01-31}\n"
        "---\n```python\nprint(a, n, xs, d)\n```\n"
    )
    ws = workspace(root)
    record = run(ws, "d.md", a="x")
    assert record.parameters == {"a": "x"}
    assert not verify_run(ws, record.run_id).findings
    (folder,) = root.glob(f".quire/archive/runs/*/*/*/{record.run_id}")
    told = json.loads((folder / "record.json").read_text())
    shown = (folder / "notebook.ipynb").read_text()
    assert '"n = 2' in shown
    forged = json.loads(shown.replace('"n = 2', '"n = 3'))
    source = ("source.md", (folder / "source.md").read_bytes())
    found = [one.what for one in agreement(told, forged, source, __version__, [])]
    assert "the notebook sets 3, the record has 2" in found


@pytest.mark.parametrize(("kind", "value"), [("str", "hidden-4711"), ("int", "47114711")])
def test_a_run_with_a_secret_in_its_steps_is_verified(root: Path, kind: str, value: str) -> None:
    """What the steps were is not known where it stands, which is said; the others are compared."""
    (root / ".env").write_text(f"KEY={value}\n")
    (root / "s.md").write_text(
        f"---\nparameters:\n  key: {{type: {kind}}}\n---\n# With {{key}}\n\n"
        "```python\nprint('{key}')\n```\n\n```python\nprint('all is well')\n```\n"
    )
    ws = workspace(root)
    record = run(ws, "s.md", key=int(value) if kind == "int" else value)
    checked = verify_run(ws, record.run_id)
    assert not checked.findings
    assert any("where a value is masked" in note for note in checked.notes)
    (folder,) = root.glob(f".quire/archive/runs/*/*/*/{record.run_id}")
    told = json.loads((folder / "record.json").read_text())
    shown = (folder / "notebook.ipynb").read_text()
    forged = json.loads(shown.replace("print('all is well')", "print('all is lost')"))
    source = ("source.md", (folder / "source.md").read_bytes())
    found = [one.what for one in agreement(told, forged, source, __version__, [])]
    assert "its code is not what source.md says" in found
    # A marker hides a value, and no code beside it.
    for was, is_now in (
        ("print('[masked:KEY]')", "lose('[masked:KEY]')"),
        ("print('[masked:KEY]')", "print('[masked:KEY]'); lose()"),
        ("print('all is well')", "print('all is lost')  # [masked:KEY]"),
    ):
        lied = json.loads(shown.replace(was, is_now))
        assert lied != json.loads(shown)
        found = [one.what for one in agreement(told, lied, source, __version__, [])]
        assert [what for what in found if "source.md" in what], is_now


def test_what_lacks_is_asked_for_at_once(root: Path) -> None:
    (root / "x.md").write_text(
        "---\nparameters:\n  n: {type: int}\n  mood: {choices: [calm, merry]}\n"
        "env: {API_TOKEN: of the service}\n---\n```python\nimport os\n"
        "print({n}, mood, os.environ['API_TOKEN'])\n```\n"
    )
    ws = workspace(root, "3", "merry", "s3cret-value")
    record = run(ws, "x.md")
    assert out(record) == "3 merry [masked:API_TOKEN]\n"
    asked = {one.name: one for one in ws.asker.asked}  # type: ignore[attr-defined]
    assert asked["mood"].choices == ("calm", "merry")
    assert asked["API_TOKEN"].secret
    assert [(a.kind, a.answer) for a in record.asked] == [
        ("parameter", "3"),
        ("parameter", "merry"),
        ("variable", "(not kept)"),
    ]
    for file in root.rglob("*"):
        assert not file.is_file() or b"s3cret-value" not in file.read_bytes(), file


def test_unattended_one_error_names_everything(root: Path) -> None:
    (root / "x.md").write_text("---\nparameters:\n  a: ...\n  b: ...\nenv: [ONE_UNSET]\n---\n")
    with pytest.raises(UsageError) as caught:
        run(workspace(root), "x.md")
    assert all(name in caught.value.message for name in ("a is req", "b is req", "ONE_UNSET"))
    assert not (root / "logbooks" / "runs").exists()


def test_a_wrong_answer_is_asked_again(root: Path) -> None:
    (root / "x.md").write_text(
        "---\nparameters:\n  n: {type: int}\n---\n```python\nprint(n)\n```\n"
    )
    ws = workspace(root, "many", "4")
    assert out(run(ws, "x.md")) == "4\n"
    first, again = ws.asker.asked  # type: ignore[attr-defined]
    assert first.text == "n (int)?"
    assert again.text == "n expects int, got 'many'"


def test_dotenv_is_read_and_masked(root: Path) -> None:
    (root / ".env").write_text("ENDPOINT=harmless-looking\n")
    (root / "x.md").write_text(
        "---\nenv: [ENDPOINT]\n---\n```python\nimport os\nprint(os.environ['ENDPOINT'])\n```\n"
    )
    assert out(run(workspace(root), "x.md")) == "[masked:ENDPOINT]\n"
    assert "harmless" not in page(workspace(root), find(workspace(root), "last").record)


def test_a_step_can_be_edited_skipped_and_stopped_at_a_prompt(root: Path) -> None:
    ws = workspace(root, "edit", "print('Heya {0}')", "friendlier", "skip", "stop")
    record = run(ws, errand=Errand(step=True), name="World")
    assert record.outcome == "paused"
    assert [c.status for c in record.cells if c.kind == "code"] == [
        "ok",
        "ok",
        "skipped",
        "not run",
    ]
    text = page(ws, record)
    assert 'greeting = "Hello, World!"' in text
    assert "Modified: friendlier" in text
    assert "print('Heya {0}')" in text
    assert loads(text) == kept(record)


def test_what_is_typed_at_a_prompt_gets_its_values_too(root: Path) -> None:
    ws = workspace(
        root, "edit", "print('Heya {name}! {0}')\ngreeting = 1", "friendlier", "skip", "run"
    )
    record = run(ws, errand=Errand(step=True), name="O'Brien")
    assert out(record) == "Heya O'Brien! {0}\nafter\n"
    assert "print('Heya O\\'Brien! {0}')" in page(ws, record)


@pytest.mark.parametrize(
    ("answers", "outcome", "printed"),
    [(("run",), "ok", "after\n"), (("skip",), "ok", ""), ((), "paused", "")],
)
def test_the_step_that_somebody_stopped_at_is_asked_about_again(
    root: Path, answers: tuple[str, ...], outcome: str, printed: str
) -> None:
    """Also one that is not marked for approval."""
    paused = run(workspace(root, "run", "run", "stop"), errand=Errand(step=True), name="x")
    assert paused.reason == "step 3 of 3 waits for approval"
    ws = workspace(root, *answers)
    execution, _ = taking_up.prepare(ws, paused.run_id)
    record = drained(execution)
    assert record.outcome == outcome
    assert out(record).endswith("sent Hello, x!\n" + printed)
    assert len(ws.asker.asked) == 1  # type: ignore[attr-defined]


def test_a_person_who_declines_pauses_the_run(root: Path) -> None:
    assert run(workspace(root, "declined"), name="x").outcome == "paused"


@pytest.mark.parametrize(
    ("policy", "outcome", "statuses"),
    [
        ("pause", "paused", ["ok", "ok", "not run", "not run"]),
        ("skip", "ok", ["ok", "ok", "skipped", "ok"]),
        ("fail", "failed", ["ok", "ok", "failed", "not run"]),
    ],
)
def test_the_policy_decides_where_nobody_is(
    root: Path, policy: str, outcome: str, statuses: list[str]
) -> None:
    (root / "quire.toml").write_text(f'approval = "{policy}"\n')
    ws = workspace(root)
    record = run(ws, name="x")
    assert record.outcome == outcome
    assert [c.status for c in record.cells if c.kind == "code"] == statuses
    assert record.asked[-1].by == "policy"
    assert not verify_run(ws, record.run_id).findings


def test_a_paused_run_is_taken_up_by_running_again_what_ran(root: Path) -> None:
    ws = workspace(root)
    errand = Errand(
        "Please", {"name": "https://example.org"}, [Change("1", "greeting = 'Yo {name}'", "short")]
    )
    paused = run(ws, errand=errand, name="World")
    # The template may have changed since.
    (root / "logbooks" / "templates" / "GREET.md").write_text("# Other\n")
    execution, notes = taking_up.prepare(ws, paused.run_id, decision="run")
    record = drained(execution)
    assert record.outcome == "ok"
    assert "runs again" in notes[0]
    assert "sent Yo World\nafter\n" in out(record)
    assert record.request == "Please"
    assert record.plan["sources"] == {"name": "https://example.org"}
    assert record.replays == paused.run_id
    assert not verify_run(ws, record.run_id).findings
    with pytest.raises(UsageError, match="does not wait"):
        taking_up.prepare(ws, record.run_id)


def test_a_change_keeps_the_original_and_the_reason(root: Path) -> None:
    ws = workspace(root, "run")
    change = Change("Greet World", 'print("Heyyy {name}!!")', "extra friendly and casual")
    record = run(ws, errand=Errand(changes=[change]), name="World")
    text = page(ws, record)
    first, second = text.index('greeting = "Hello, World!"'), text.index("Heyyy World!!")
    assert first < text.index("Modified: extra friendly and casual") < second
    assert record.outcome == "failed"  # the next step misses the greeting, and that is visible
    assert "**failed**" in text
    assert "NameError" in text
    assert not verify_run(ws, record.run_id).findings
    again = replay(workspace(root, "run"), record.run_id).new
    assert [c.source for c in again.cells] == [c.source for c in record.cells]


@pytest.mark.parametrize("step", ["9", "nowhere", ""])
def test_a_change_of_a_step_that_is_not_there_is_refused(root: Path, step: str) -> None:
    with pytest.raises(QuireError, match="step"):
        run(workspace(root), errand=Errand(changes=[Change(step, "x")]), name="x")


@pytest.mark.parametrize("front", ["", "---\nparameters: {n: 1}\n---\n"])
def test_a_title_that_two_steps_have_names_neither(root: Path, front: str) -> None:
    (root / "t.md").write_text(f"{front}# A\n\n```python\n1\n```\n\n# A\n\n```python\n2\n```\n")
    with pytest.raises(QuireError, match="'A' names 2 steps") as caught:
        run(workspace(root), "t.md", errand=Errand(changes=[Change("A", "x")]))
    assert caught.value.hint == "the steps: 1 A, 2 A"


def test_a_template_is_found_by_its_name_as_written(root: Path) -> None:
    with pytest.raises(QuireError, match="there is no file greet") as caught:
        run(workspace(root), "greet", name="x")
    assert "GREET" in caught.value.hint
    other = root / "logbooks" / "templates" / "more" / "GREET.md"
    other.parent.mkdir()
    other.write_text(GREETING)
    with pytest.raises(QuireError, match=r"GREET\.md and .*more/GREET\.md"):
        run(workspace(root), "GREET", name="x")
    assert run(workspace(root, "run"), "more/GREET", name="x").outcome == "ok"


def test_a_uuid_that_exists_is_refused(root: Path) -> None:
    record = run(workspace(root, "run"), name="x")
    with pytest.raises(UsageError, match="there is a run with the uuid"):
        run(workspace(root), errand=Errand(uuid=record.uuid), name="x")
    with pytest.raises(UsageError, match="no uuid"):
        run(workspace(root), errand=Errand(uuid="../x"), name="x")


def test_a_uuid_is_that_of_one_run_whatever_its_task(root: Path) -> None:
    (root / "t.py").write_text("# %%\nprint(1)\n")
    ws, chosen = workspace(root, "run"), "11111111-2222-4333-8444-555555555555"
    first = run(ws, "t.py", errand=Errand(uuid=chosen.upper()))
    assert first.uuid == chosen
    for task, values in (("t.py", {}), ("GREET", {"name": "x"})):
        with pytest.raises(UsageError, match=first.run_id):
            run(ws, task, errand=Errand(uuid=chosen), **values)
    with pytest.raises(UsageError, match="there is a run with the uuid"):
        run(ws, "t.py", errand=Errand(uuid=run(ws, "t.py").uuid))


def test_of_two_runs_with_one_uuid_at_the_same_moment_one_is_refused(root: Path) -> None:
    ws, errand = workspace(root, "run", "run"), Errand(uuid=str(uuid4()))
    both = [NotebookExecutor("GREET", {"name": n}, workspace=ws, errand=errand) for n in "ab"]
    assert drained(both[0]).outcome == "ok"
    with pytest.raises(UsageError, match=both[0].run_id):
        drained(both[1])
    assert len(list((root / ".quire" / "runs").iterdir())) == 1
    assert "Hello, a!" in (root / str(both[0].record.plan["logbook"])).read_text()


def test_a_record_is_no_template(root: Path) -> None:
    record = run(workspace(root, "run"), name="x")
    with pytest.raises(UsageError, match="record of a run"):
        run(workspace(root), str(record.plan["logbook"]))


def test_a_source_needs_its_parameter(root: Path) -> None:
    with pytest.raises(UsageError, match="a source is given for definition"):
        run(workspace(root), errand=Errand(sources={"definition": "x"}), name="x")


def test_sql_and_shell_steps(root: Path) -> None:
    (root / "quire.toml").write_text('sql = "sqlite:///${DB}"\n')
    (root / "x.md").write_text(
        "---\nparameters: {who: O'Brien}\n---\n"
        "```sql into=rows\ncreate table t (a text);\ninsert into t values ('{who}; x');\n"
        "select a from t\n```\n\n```python\nprint(rows[0]['a'])\n```\n\n"
        "```bash\necho {who} > made.txt; cat made.txt\n```\n\n```bash\nexit 3\n```\n"
    )
    ws = workspace(root, DB="x.db")
    record = run(ws, "x.md")
    assert record.outcome == "failed"
    assert out(record) == "O'Brien; x\nO'Brien\n"
    assert (root / "x.db").exists()
    assert "| O'Brien; x |" in page(ws, record)


@pytest.mark.parametrize(
    ("first", "then", "stays"),
    [
        ("create table t (a)", "select count(*) as n from t", False),
        ("create temp table t (a)", "select count(*) as n from t", True),
        ("pragma user_version = 3; pragma foreign_keys = on", "pragma foreign_keys", True),
        ("attach ':memory:' as o; create table o.t (a)", "select count(*) as n from o.t", True),
    ],
)
def test_a_file_of_sqlite_is_open_for_longer_than_a_step_only_where_it_must(
    root: Path, first: str, then: str, stays: bool
) -> None:
    (root / "quire.toml").write_text('sql = "sqlite:///x.db"\n')
    look = "from pathlib import Path\nfds = Path('/proc/self/fd').iterdir()\n"
    look += "print(any(fd.resolve().name == 'x.db' for fd in fds))\n"
    (root / "x.md").write_text(
        f"```sql\n{first}\n```\n\n```python\n{look}```\n\n```sql into=rows\n{then}\n```\n\n"
        "```python\nprint(len(rows))\n```\n"
    )
    assert out(run(workspace(root), "x.md")) == f"{stays}\n1\n"


def test_steps_in_another_kernel_have_a_world_of_their_own(root: Path) -> None:
    (root / "x.md").write_text(
        "```python\nx = 1\n```\n\n```python kernel=python3\nprint('x' in globals())\ny = 2\n```\n\n"
        "```python kernel=python3\nprint(y)\n```\n\n```python\nprint(x, 'y' in globals())\n```\n"
    )
    ws = workspace(root)
    assert out(run(ws, "x.md")) == "False\n2\n1 False\n"
    (root / "y.md").write_text("```python kernel=nowhere\nx\n```\n")
    with pytest.raises(QuireError, match="nowhere"):
        run(ws, "y.md")


def test_both_kernels_of_a_task_may_call(root: Path) -> None:
    call = "from quire.runtime import note, read_file\nnote(read_file('said.txt')['content'])\n"
    (root / "said.txt").write_text("it is there")
    (root / "x.md").write_text(
        f"```python\n{call}```\n\n```python kernel=python3\n{call}```\n\n```python\n{call}```\n"
    )
    record = run(workspace(root), "x.md")
    assert (record.outcome, [note.text for note in record.notes]) == ("ok", ["1|it is there"] * 3)
    assert not [call for call in record.tool_calls if call.refused]


def test_what_a_step_called_stands_under_it(root: Path) -> None:
    (root / "x.md").write_text(
        "```python\nfrom quire.runtime import terminal, write_file\n"
        "write_file('a_b.txt', '`<b>`')\nterminal('ls')\n```\n\n```python\nprint(1)\n```\n"
    )
    record = run(workspace(root), "x.md")
    (file,) = root.glob("logbooks/runs/*/*.md")
    text = file.read_text()
    assert (
        '\n\nTool calls:\n\n- write\\_file(path="a\\_b.txt", content="\\`\\<b\\>\\`"): ok, '
    ) in text
    assert '\n- terminal(command="ls"): refused: terminal() is not allowed' in text
    assert text.count("Tool calls:") == 1
    assert dumps(record).text == text


def test_the_template_for_building_takes_a_folder_for_no_module(root: Path) -> None:
    name = "build_code.md"
    shutil.copy(SHIPPED / "logbooks" / name, root / "logbooks" / "templates" / name)
    (root / "code" / "data.py").mkdir(parents=True)
    (root / "code" / "real.py").write_text("x = 1\n")
    record = run(workspace(root), "build_code", goal="Sums", package="code", checks="true")
    assert record.outcome == "ok", record.error
    assert record.results["architecture"].value["modules"] == 1
