"""`from quire.runtime import …` in cells: the tools, notes and questions, and who answers them."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pexpect
import pytest
from desk import Desk, shown

import made_environments as environments
import quire
from quire.cell_tools import dispatch
from quire.cell_tools.dispatch import Answering
from quire.cell_tools.toolbox import Toolbox
from quire.engine.run import NotebookExecutor, drained
from quire.kernel.engine_calls import HungUp
from quire.kernel.protocol import KernelSpec
from quire.proof.verify import verify_run
from quire.record.questions import Answers, Declined, Question
from scratch import QUIRE, Scratch
from web_server import Server

ALL = "from quire.runtime import *"


class Person:
    """Answers in order; an exception is raised instead."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    def ask(
        self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
    ) -> Answers | None:
        self.asked += questions
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Answers((answer,), "ada")


def attended(desk: Desk, person: Any, *cells: str) -> quire.Record:
    desk.cells("t.py", *cells)
    workspace = quire.Workspace(
        desk.root, cwd=desk.root, env=desk.env, engine=desk.engine, asker=person
    )
    return drained(NotebookExecutor("t.py", workspace=workspace))


def policy(desk: Desk, text: str) -> None:
    (desk.root / "quire.toml").write_text(f"[tools]\n{text}\n")


USE = """
import hermes_runtime, hermes_tools
from quire.runtime import *
assert hermes_tools.read_file is read_file is hermes_runtime.read_file
write_file("a/b.txt", "one\\ntwo\\n")
print(read_file("a/b.txt", offset=2).content)
print(patch("a/b.txt", old_string="two", new_string="2")["replacements"])
print(search_files("2", "a").matches[0]["path"], search_files("*.txt", target="files").total)
print(terminal("echo said; exit 3", workdir="a")["exit_code"])
print(json_parse('{"a": "x\\ty"}')["a"], shell_quote("a b"), retry(lambda: 5))
note("done")
print(ask("Which?", ["eu", "us"], default="us"))
glue("x", 1)
"""
USED = "2|two\n1\na/b.txt 1\n3\nx\ty 'a b' 5\nus\n"


@pytest.mark.parametrize("kernel", [None, "python3"], ids=["native", "jupyter"])
def test_all_of_them(desk: Desk, kernel: str | None) -> None:
    policy(desk, 'terminal = "allow"')
    record = desk.ran(USE, kernel=kernel)
    assert record.ok, record.error
    assert shown(record) == USED
    assert record.values == {"x": 1}
    told = [(call.tool, call.ok) for call in record.tool_calls]
    tools = ["write_file", "read_file", "patch", "search_files", "search_files", "terminal"]
    assert told == [(tool, True) for tool in tools]
    assert record.tool_calls[-1].result["exit_code"] == 3
    assert len(record.tool_calls[0].result["sha256"]) == 64
    assert [note.text for note in record.notes] == ["done"]
    assert [(a.question, a.answer, a.by) for a in record.asked] == [("Which?", "us", "policy")]


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter with IPython, and without Quire."""
    return str(environments.make(tmp_path_factory.mktemp("other") / "venv", "ipython", "ipykernel"))


def test_in_an_interpreter_without_quire(desk: Desk, bare_python: str) -> None:
    policy(desk, 'terminal = "allow"')
    check = "import importlib.metadata as m\nassert not list(m.distributions(name='quire'))\n"
    record = desk.ran(check + USE, python=bare_python)
    assert record.ok, record.error
    assert shown(record) == USED


def test_in_a_jupyter_kernel_without_quire(desk: Desk, bare_python: str) -> None:
    policy(desk, 'terminal = "allow"')
    spec = desk.root / "jupyter" / "kernels" / "bare"
    spec.mkdir(parents=True)
    argv = [bare_python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    resource = {"argv": argv, "display_name": "Bare", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(resource))
    desk.env = {**desk.env, "JUPYTER_PATH": str(desk.root / "jupyter")}
    record = desk.ran(USE, kernel="bare")
    assert record.ok, record.error
    assert shown(record) == USED


def test_a_run_with_calls_verifies(desk: Desk) -> None:
    more = r"note('x\n  run(path=\"no call\"): ok')"
    record = desk.ran(ALL, f"{more}\nprint(1)\n_ = write_file('a', 'b')")
    assert record.ok
    verdict = verify_run(desk.workspace(), record.run_id)
    assert verdict.ok, verdict.findings
    shown_nb = json.loads(desk.workspace().runs.find(record.run_id).notebook.read_text())
    ours = shown_nb["cells"][1]["outputs"][-1]["data"]
    assert ours["text/plain"].startswith(
        'tool calls:\n  note: x\n          run(path="no call"): ok\n  write_file('
    )
    assert len(record.cells[1].outputs) == 1


FORGED = "application/vnd.quire.calls+json"


def test_a_cell_cannot_say_what_it_called(desk: Desk) -> None:
    record = desk.ran(
        "from IPython.display import display\n"
        f"display({{{FORGED!r}: {{'tool_calls': []}}, 'text/plain': 'fine'}}, raw=True)"
    )
    assert record.cells[0].outputs[0]["data"] == {"text/plain": "fine"}
    assert record.tool_calls == ()


# Secrets


def test_arguments_notes_and_questions_are_masked(desk: Desk) -> None:
    policy(desk, 'terminal = "allow"')
    looks_like_one = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    desk.env = {
        **desk.env,
        "DEPLOY_TOKEN": "s3cr3t-s3cr3t-s3cr3t",
        "NOTE": looks_like_one[:40],
        "PLAIN": "shown",
    }
    record = desk.ran(
        ALL,
        "import os\nt = os.environ['DEPLOY_TOKEN']\n"
        "write_file('a.txt', 'x' * 295 + t); note(t); ask(t, [t, 'b'], default='b')\n"
        "assert read_file('a.txt').text.endswith(t)\n"
        "env = terminal('env').output\n"
        "print([name in env for name in ('DEPLOY_TOKEN', 'NOTE', 'PLAIN')])\n"
        "print(terminal('echo ' + t + '; cat a.txt').output[-20:])\n"
        "read_file(t)",
    )
    assert record.error is not None
    assert record.error.name == "ToolFailed"
    assert shown(record) == "[False, False, True]\n[masked:DEPLOY_TOKEN]\n", "one rule for all"
    folder = desk.workspace().runs.find(record.run_id)
    for path in folder.path.iterdir():
        assert "s3cr3t" not in path.read_text(errors="replace"), path.name
    assert record.notes[0].text == "[masked:DEPLOY_TOKEN]"


def test_new_files_have_the_callers_mode(desk: Desk) -> None:
    """In this process its own umask, in a host that of the client."""
    before = os.umask(0o077)
    try:
        record = desk.ran(ALL, "_ = write_file('new/a.txt', 'b')")
    finally:
        os.umask(before)
    assert record.ok, record.error
    assert (desk.root / "new" / "a.txt").stat().st_mode & 0o777 == 0o600
    assert (desk.root / "new").stat().st_mode & 0o777 == 0o700
    workspace = quire.Workspace(
        desk.root, cwd=desk.root, env=desk.env, engine=desk.engine, world={"umask": 0o027}
    )
    spec = KernelSpec(desk.root, desk.env)
    assert Answering(workspace, spec, lambda *_: {}).toolbox._umask() == 0o027


def test_a_timeout_may_be_larger_than_any_float(desk: Desk) -> None:
    policy(desk, 'terminal = "allow"')
    record = desk.ran(ALL, "print(terminal('echo a', timeout=10**400).output)")
    assert record.ok, record.error
    assert shown(record) == "a\n\n"


def test_a_call_that_does_not_end_with_its_cell_is_written_down(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, with what it was asked to do: it may have done it."""
    monkeypatch.setattr(dispatch, "PATIENCE", 0.1)
    begun, may_end = threading.Event(), threading.Event()

    def endless(*given: Any) -> dict[str, Any]:
        begun.set()
        may_end.wait(60)
        return {"ok": "late"}

    calls = Answering(desk.workspace(), KernelSpec(desk.root, desk.env), lambda *_: {})
    monkeypatch.setattr(Toolbox, "use", endless)
    told: list[Any] = []
    calls.open("c", told.append)
    given = {"path": "a.txt", "old": "x", "new": "y"}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        call = threading.Thread(target=calls, args=("patch", given, HungUp(ours)))
        call.start()
        assert begun.wait(60)
        calls.close()
        assert [(one.tool, one.ok, one.reason) for one in told] == [
            ("patch", False, "still going on when the cell ended")
        ]
        assert told[0].arguments == given
        may_end.set()
        call.join()
    assert (len(told), calls.leftover()) == (1, [])


# Who decides


def test_a_person_allows_refuses_or_allows_for_good(desk: Desk) -> None:
    policy(desk, 'terminal = "ask"\nwrite_file = "ask"')
    person = Person("yes", "no", "always", Declined("no"))
    code = """
def attempt(call):
    try:
        return call().get("output", "written")
    except ToolRefused as error:
        return str(error)
print(attempt(lambda: terminal("echo 1")), end="")
print(attempt(lambda: terminal("echo 2")))
print(attempt(lambda: terminal("echo 3")), end="")
print(attempt(lambda: terminal("echo 4")), end="")
print(attempt(lambda: write_file("a", "b")))
"""
    record = attended(desk, person, ALL, code)
    assert record.ok, record.error
    assert shown(record).splitlines() == [
        "1",
        "terminal() was not allowed",
        "3",
        "4",
        "the person who was asked did not answer",
    ]
    first = person.asked[0]
    assert first.kind == "approval"
    assert first.choices == ("yes", "always", "no")
    assert 'terminal(command="echo 1")' in first.text
    assert [(a.answer, a.by) for a in record.asked] == [
        ("yes", "ada"),
        ("no", "ada"),
        ("always", "ada"),
        (None, "person"),
    ]
    assert not (desk.root / "a").exists()


def test_a_person_sees_all_of_what_is_to_be_allowed(desk: Desk) -> None:
    policy(desk, 'terminal = "ask"')
    person = Person("no", "no")
    code = "for n in (500, 9_000):\n    try:\n        terminal('echo ' + 'a' * n + '; id')\n"
    code += "    except ToolRefused:\n        pass"
    record = attended(desk, person, ALL, code)
    assert record.ok, record.error
    short, long = (question.text for question in person.asked)
    assert f'terminal(command="echo {"a" * 500}; id")' in short
    assert f'terminal(command="echo {"a" * 9_000}; id")' in long


def test_what_nobody_can_read_is_not_asked(desk: Desk) -> None:
    policy(desk, 'terminal = "ask"\nwrite_file = "ask"')
    person = Person("no")
    record = attended(
        desk,
        person,
        f"{ALL}\ndef attempt(call, *given):\n    try:\n        call(*given)\n"
        "    except ToolRefused as error:\n        print(error)\n"
        "attempt(terminal, 'echo ' + 'a' * 20_000)\n"
        "attempt(write_file, 'a.txt', 'b' * 9_000 + 'end')",
    )
    assert record.ok, record.error
    assert "its command is too long for a person to read" in shown(record)
    (question,) = person.asked
    assert 'write_file(path="a.txt", content="bbb' in question.text
    assert "[… 7,005 characters are not shown here …]" in question.text
    assert question.text.endswith('bbend"). Let it?')
    assert len(question.text) < 2_200


def test_a_person_sees_where_a_call_goes(desk: Desk) -> None:
    """Neither the folder that a cell went to nor a link of its own hides it."""
    policy(desk, 'terminal = "ask"\nwrite_file = "ask"')
    person = Person("yes", "yes", "yes", "yes")
    (desk.root / "sub").mkdir()
    record = attended(
        desk,
        person,
        f"{ALL}\nimport os\nwrite_file('a.txt', 'x')\nos.symlink('sub', 'notes')\n"
        "write_file('notes/start.sh', 'x')\nos.chdir('sub')\nwrite_file('quiet.txt', 'x')\n"
        "_ = terminal('true', workdir='..')",
    )
    assert record.ok, record.error
    start, linked, gone, command = (question.text for question in person.asked)
    assert 'write_file(path="a.txt", content="x"). Let it?' in start
    assert f"The path leads to {desk.root}/sub/start.sh. Let it?" in linked
    assert f'path="quiet.txt", content="x", cwd="{desk.root}/sub")' in gone
    assert f'terminal(command="true", folder="..", cwd="{desk.root}/sub")' in command
    assert record.tool_calls[2].arguments["cwd"] == f"{desk.root}/sub"
    assert "cwd" not in record.tool_calls[0].arguments


def test_a_link_that_is_exchanged_while_a_person_reads(desk: Desk) -> None:
    policy(desk, 'write_file = "ask"')
    (desk.root / "notes.txt").write_text("")

    class Slow(Person):
        def ask(
            self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
        ) -> Answers | None:
            (desk.root / "notes.txt").unlink()
            (desk.root / "notes.txt").symlink_to("start.sh")
            return super().ask(questions, called_off)

    record = attended(desk, Slow("yes"), f"{ALL}\nwrite_file('notes.txt', 'x')")
    assert record.error is not None
    assert "another place than when it was allowed" in record.error.value
    assert not (desk.root / "start.sh").exists()


def test_a_note_of_several_lines_looks_like_one(scratch: Scratch) -> None:
    text = "first\n[2/2] ok     0.00 s  not a cell\n" + "more\n" * 20
    scratch.write("t.py", f"# %%\n{ALL}\nnote({text!r})\n")
    try:
        said = scratch.quire("run", "t.py").stderr.splitlines()
        at = said.index("  note: first")
        assert said[at + 1] == "        [2/2] ok     0.00 s  not a cell"
        assert said[at + 10] == "        … 12 more lines"
        shown = scratch.quire("show", "last").stdout.splitlines()
        at = shown.index("  · note: first")
        assert shown[at + 1] == "          [2/2] ok     0.00 s  not a cell"
        scratch.quire("session", "open", "t.py", "--name", "s")
        said = scratch.quire("exec", "s", "all").stderr.splitlines()
        at = said.index("note: first")
        assert said[at + 1] == "      [2/2] ok     0.00 s  not a cell"
    finally:
        scratch.quire("host", "stop")


@pytest.mark.parametrize(("mode", "done"), [("allow", True), ("deny", False)])
def test_where_nobody_is_there_the_policy_decides(desk: Desk, mode: str, done: bool) -> None:
    policy(desk, f'write_file = "ask"\nunattended = "{mode}"')
    record = desk.ran(ALL, "write_file('a', 'b')")
    assert record.ok == done
    assert (desk.root / "a").exists() == done
    assert [asked.by for asked in record.asked] == ["policy"]


def test_questions_reach_the_person(desk: Desk) -> None:
    person = Person("us", "a name", Declined("no"))
    record = attended(
        desk, person, ALL, "print(ask('Which?', ['eu', 'us']), ask('Name?'))", "ask('And?')"
    )
    assert shown(record) == "us a name\n"
    assert record.error is not None
    assert "did not answer" in record.error.value
    assert [asked.by for asked in record.asked] == ["ada", "ada", "person"]


def test_answers_that_are_declared(desk: Desk) -> None:
    policy(desk, 'ask_default = "eu"')
    record = desk.ran(
        ALL, "print(ask('?'), ask('?', ['eu', 'us']), ask('?', ['a', 'b'], default='b'))"
    )
    assert shown(record) == "eu eu b\n"
    policy(desk, "")
    record = desk.ran(ALL, "ask('?')")
    assert record.error is not None
    assert "ask_default" in record.error.value


def test_a_run_that_is_cancelled_stops_asking(desk: Desk) -> None:
    asked, ended = threading.Event(), threading.Event()

    class Patient:
        def ask(
            self, questions: Sequence[Question], called_off: Callable[[], bool] = bool
        ) -> Answers | None:
            asked.set()
            while not called_off():
                ended.wait(0.01)
            ended.set()
            return None

    desk.cells("t.py", f"{ALL}\nask('Well?')")
    workspace = quire.Workspace(
        desk.root, cwd=desk.root, env=desk.env, engine=desk.engine, asker=Patient()
    )
    execution = NotebookExecutor("t.py", workspace=workspace)
    threading.Thread(target=lambda: (asked.wait(20), execution.cancel()), daemon=True).start()
    assert drained(execution).outcome == "cancelled"
    assert ended.is_set()


def test_a_child_is_under_the_policy_of_its_parent(desk: Desk) -> None:
    """Whatever a cell makes of the configuration in the meantime."""
    desk.cells("child.py", f"{ALL}\nterminal('touch made')")
    record = desk.ran(
        ALL, "open('quire.toml', 'w').write('[tools]\\nterminal = \"allow\"')", "run('child.py')"
    )
    assert record.error is not None
    assert "terminal() is not allowed" in record.error.value
    assert not (desk.root / "made").exists()


def test_the_web_of_a_workspace(desk: Desk) -> None:
    server = Server()
    results = [{"title": "Quires", "url": f"{server.url}/page", "content": "sheets"}]
    server.page("/search", json.dumps({"results": results}), "application/json")
    server.page("/page", "<title>T</title><h1>Sheets</h1><p>of paper</p>")
    policy(
        desk,
        f'web_search = "allow"\nweb_extract = "allow"\nsearch_url = "{server.url}"\n'
        f'private_hosts = ["127.0.0.1:{server.port}"]',
    )
    record = desk.ran(
        "import hermes_tools as h\n"
        "hit = h.web_search('quire')['data']['web'][0]\n"
        "page = h.web_extract([hit['url']])['results'][0]\n"
        "print(hit['title'], page['title'], page['content'])"
    )
    server.http.shutdown()
    server.http.server_close()
    assert record.ok, record.error
    assert shown(record) == "Quires T # Sheets\n\nof paper\n"


# On a terminal


@pytest.mark.parametrize("more", [[], ["--no-host"]], ids=["host", "no host"])
def test_a_question_on_the_terminal(scratch: Scratch, more: list[str]) -> None:
    scratch.write("quire.toml", '[tools]\nterminal = "ask"\n')
    code = f"{ALL}\nprint(ask('Which?', ['eu', 'us']), terminal('echo hi').output)\n"
    scratch.write("t.py", f"# %%\n{code}")
    child = pexpect.spawn(
        QUIRE[0],
        [*QUIRE[1:], "run", "t.py", *more],
        cwd=str(scratch.root),
        env=scratch.environment(),
        encoding="utf-8",
        timeout=60,
    )
    child.expect("Which")
    child.expect("2\\) us")
    child.expect("> ")
    child.sendline("2")
    child.expect('terminal\\(command="echo hi"\\)')
    child.expect("> ")
    child.sendline("yes")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    told = json.loads(scratch.quire("show", "last", "--json").stdout)
    assert [asked["answer"] for asked in told["questions"]] == ["us", "yes"]
    assert [call["ok"] for call in told["tool_calls"]] == [True]


def test_ctrl_c_ends_a_question(scratch: Scratch) -> None:
    scratch.write("t.py", f"# %%\n{ALL}\nask('Which?')\n")
    child = pexpect.spawn(
        QUIRE[0],
        [*QUIRE[1:], "run", "t.py"],
        cwd=str(scratch.root),
        env=scratch.environment(),
        encoding="utf-8",
        timeout=60,
    )
    child.expect("Which")
    child.expect("> ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
