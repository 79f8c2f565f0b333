"""What a cell may not do through the tools, tried from inside a cell. Each is refused and written
down, and whoever runs the cell is none the worse.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from desk import Desk, shown
from knock import say
from live import Live, statuses
from live import shown as said

import quire
from quire.errors import ConfigError
from quire.record.cell_calls import called
from quire.record.events import NoteAdded, ToolCalled
from quire.record.record import Record
from quire.text import without_escapes
from quire.workspace import Engine
from scratch import Scratch
from web_server import Server

TOOLS = """
[tools]
terminal = "allow"
web_extract = "allow"
commands = ["echo *", "cat notes.txt", "git log *"]
refuse_commands = ["* --output*", "git * --exec*"]
calls = 400
write_limit = 10_000
"""
SECRET = "kept from cells"

# What an attempt is, and what the refusal must say. `outside` is a folder beside the workspace.
ATTEMPTS = {
    # Paths
    "an absolute path": ("read_file('/etc/passwd')", "outside"),
    "up": ("read_file('../outside/secret.txt')", "outside"),
    "up and down again": ("read_file('sub/../../outside/secret.txt')", "outside"),
    "up beyond the root": ("read_file('../' * 60 + 'etc/passwd')", "outside"),
    "a name with the root's as its beginning": ("read_file(root + '-other/x')", "outside"),
    "NUL in a path": ("read_file('notes.txt\\0.png')", "NUL"),
    "NUL in a folder": ("search_files('x', path='sub\\0')", "NUL"),
    "half a character": ("read_file('\\ud800')", "no text that a file system knows"),
    "a huge path": ("read_file('x/' * 50_000)", "4,096"),
    "a long name": ("read_file('x' * 300)", "too long"),
    "no text": ("call('read_file', {'path': ['notes.txt'], 'cwd': root})", "a path is a text"),
    "an empty path": ("call('read_file', {'path': '', 'cwd': root})", "a path is a text"),
    "no folder": ("call('read_file', {'path': 'notes.txt', 'cwd': '.'})", "not known"),
    "another folder": ("call('read_file', {'path': 'passwd', 'cwd': '/etc'})", "outside"),
    # Links
    "a link to a file": ("link('l', outside + '/secret.txt'); read_file('l')", "outside"),
    "a link to a folder": ("link('d', outside); read_file('d/secret.txt')", "outside"),
    "a relative link": ("link('r', '../outside/secret.txt'); read_file('r')", "outside"),
    "a link to a link": (
        "link('a', 'b'); link('b', outside); read_file('a/secret.txt')",
        "outside",
    ),
    "a circle of links": ("link('c1', 'c2'); link('c2', 'c1'); read_file('c1')", "too many links"),
    "a link to write through": ("link('w', outside + '/new'); write_file('w', 'x')", "outside"),
    "a link to patch through": (
        "link('p', outside + '/secret.txt'); patch('p', 'kept', 'lost')",
        "outside",
    ),
    "a link to search in": ("link('s', outside); search_files('kept', path='s')", "outside"),
    "a link to what is protected": ("link('g', '.git'); read_file('g/config')", "protected"),
    "a link to this process": ("link('self', '/proc/self'); read_file('self/environ')", "outside"),
    # What is protected
    ".git": ("read_file('.git/config')", "protected"),
    ".git, in capitals": ("write_file('.GIT/hooks/pre-commit', 'x')", "protected"),
    ".git by the way": ("write_file('sub/../.git/hooks/post-checkout', 'x')", "protected"),
    ".quire": ("read_file('.quire/host.log')", "protected"),
    ".env": ("read_file('.env')", "protected"),
    ".env of another kind": ("read_file('.env.local')", "protected"),
    "a private key": ("read_file('server.key')", "protected"),
    "a key of ssh": ("read_file('sub/id_ed25519')", "protected"),
    "looking into .git": ("search_files('x', path='.git')", "protected"),
    "the policy": ("write_file('quire.toml', '')", "protected"),
    "a piece of the policy": ("patch('quire.toml', '400', '9000')", "protected"),
    "the policy in another file": (
        "write_file('pyproject.toml', '[tool.quire.tools]\\nterminal = \"allow\"\\n')",
        "protected",
    ),
    "the policy in a folder below": (
        "write_file('sub/pyproject.toml', 'tool.quire.tools.calls = 9000')",
        "protected",
    ),
    "the list of trusted keys": ("write_file('.quire-keys', 'x')", "protected"),
    "an agent's settings": ("write_file('.claude/settings.json', '{}')", "protected"),
    "a workflow": ("write_file('.github/workflows/ci.yml', 'x')", "protected"),
    "a file that is read-only": (
        "open('ro', 'w').close(); os.chmod('ro', 0o444); write_file('ro', 'x')",
        "read-only",
    ),
    "what the workspace protects": ("read_file('payroll.csv')", "protected"),
    # What is no file
    "a pipe": ("os.mkfifo('pipe'); read_file('pipe')", "a device, a socket or a pipe"),
    "writing to a pipe": ("os.mkfifo('pipe2'); write_file('pipe2', 'x')", "a device, a socket"),
    "a socket": ("listen('sock'); read_file('sock')", "a device, a socket or a pipe"),
    "a device": ("read_file('/dev/zero')", "outside"),
    "a folder": ("read_file('sub')", "is a folder"),
    "writing over a folder": ("write_file('sub', 'x')", "is a folder"),
    "a file as a folder": ("write_file('notes.txt/x', 'x')", "not a folder"),
    "a file too large": ("hole('huge', 10**12); read_file('huge')", "files up to"),
    "bytes": ("open('bin', 'wb').write(bytes(100)); read_file('bin')", "not a text file"),
    # Sizes
    "too much to write": ("write_file('big', 'x' * 20_000)", "at most 10,000"),
    "more than a call holds": ("write_file('big', 'x' * (17 << 20))", "are sent"),
    "a call that lies of its size": ("raw_call(b'a b 999999999\\n')", "at most 16,777,216"),
    "deep nesting": ("raw_proven(b'[' * 200_000 + b']' * 200_000)", "not a call"),
    "deep arguments": ("raw_proven(deep)", "a path is a text"),
    "a huge number": (
        "call('read_file', {'path': 'notes.txt', 'cwd': root, 'limit': 10**400})",
        "limit",
    ),
    "a limit below zero": ("read_file('notes.txt', limit=-1)", "limit must be"),
    "a text as a limit": ("search_files('x', limit='9')", "limit must be"),
    # Searching
    "a regular expression that never ends": (
        "open('as', 'w').write('a' * 60); search_files('(a+)+$b', path='as')",
        "took longer",
    ),
    "no regular expression": ("search_files('(')", "no regular expression"),
    "a huge pattern": ("search_files('x' * 20_000)", "10,000 characters"),
    "a target that is none": (
        "call('search_files', {'pattern': 'x', 'cwd': root, 'target': 'y'})",
        "target",
    ),
    # Commands
    "a command that is not allowed": ("terminal('id')", "fits no pattern"),
    "a second command": ("terminal('echo a; id')", "needs a shell"),
    "a second command, if": ("terminal('echo a && id')", "needs a shell"),
    "a pipe of commands": ("terminal('echo a | sh')", "needs a shell"),
    "a command in the background": ("terminal('echo a & id')", "needs a shell"),
    "a command in a command": ("terminal('echo $(id)')", "needs a shell"),
    "a command in backticks": ("terminal('echo `id`')", "needs a shell"),
    "a command in quotes": ("terminal('echo \"$(id)\"')", "needs a shell"),
    "a variable": ("terminal('echo $HOME')", "needs a shell"),
    "another line": ("terminal('echo a\\nid')", "needs a shell"),
    "a return": ("terminal('echo a\\rid')", "needs a shell"),
    "writing by a shell": ("terminal('echo a > stolen')", "needs a shell"),
    "reading by a shell": ("terminal('echo < /etc/passwd')", "needs a shell"),
    "a name that is no path": ("terminal('/tmp/echo a')", "fits no pattern"),
    "a variable before it": ("terminal('PATH=. echo a')", "fits no pattern"),
    "an allowed beginning": ("terminal('cat notes.txt /etc/passwd')", "fits no pattern"),
    "an allowed word": ("terminal('echoes')", "fits no pattern"),
    "a refused option": ("terminal('git log --exec=id')", "which is refused"),
    "a refused option behind others": ("terminal('git log -1 -p --exec=id x')", "which is refused"),
    "NUL in a command": ("terminal('echo a\\0id')", "NUL"),
    "a huge command": ("terminal('echo ' + 'x' * 200_000)", "100,000 characters"),
    "quotes that do not end": ("terminal('echo \"a')", "cannot be read"),
    "a folder outside": ("terminal('echo a', cwd='/etc')", "outside"),
    "a timeout below zero": ("terminal('echo a', timeout=-1)", "timeout"),
    "a timeout that is none": ("terminal('echo a', timeout=float('nan'))", "timeout"),
    # The web
    "a tool that is denied": ("web_search('x')", "not allowed"),
    "this machine": ("web_extract('http://127.0.0.1:1/')", "not on the public internet"),
    "this machine by name": ("web_extract('http://localhost/')", "not on the public internet"),
    "this machine as a number": ("web_extract('http://2130706433/')", "not on the public internet"),
    "this machine in IPv6": ("web_extract('http://[::1]/')", "not on the public internet"),
    "this machine as IPv4 in IPv6": (
        "web_extract('http://[::ffff:127.0.0.1]/')",
        "not on the public",
    ),
    "a site's own network": ("web_extract('http://[fec0::1]/')", "not on the public internet"),
    "this machine in octal": ("web_extract('http://0177.1/')", "not on the public internet"),
    "this machine, translated": ("web_extract('http://[64:ff9b::7f00:1]/')", "not on the public"),
    "this machine in other digits": ("web_extract('http://①②⑦.0.0.1/')", "%XX"),
    "a host behind a backslash": ("web_extract('http://127.0.0.1\\\\@example.org/')", "no http"),
    "the cloud's metadata": ("web_extract('http://169.254.169.254/latest/')", "not on the public"),
    "a neighbour": ("web_extract('http://10.0.0.1/')", "not on the public internet"),
    "nowhere": ("web_extract('http://0.0.0.0/')", "not on the public internet"),
    "a file as a page": ("web_extract('file:///etc/passwd')", "no http or https URL"),
    "another protocol": ("web_extract('gopher://127.0.0.1:25/x')", "no http or https URL"),
    "a password in a URL": ("web_extract('http://a:b@example.org/')", "name or password"),
    "a header in a URL": ("web_extract('http://example.org/\\r\\nX: y')", "characters"),
    "many pages": ("web_extract(['http://example.org/'] * 1000)", "one to 10"),
    # Calls
    "a call that is none": ("call('burn', {})", "no call 'burn'"),
    "a call of Python": ("call('__class__', {})", "no call"),
    "a task outside": ("run('/etc/passwd')", "passwd"),
    "itself": ("run('t.py')", "already running"),
    "a note of many characters": ("call('note', {'text': 3})", "a note is a text"),
    "a question of many characters": ("ask('x' * 5_000)", "at most 4,000"),
    "many choices": ("ask('x', choices=map(str, range(1000)))", "up to 50"),
    "a forged token": ("forged(token='x' * 32)", "not from its kernel"),
    "no token": ("forged(token='')", "not from its kernel"),
    "another line's name": ("forged(line='0' * 16)", "not from its kernel"),
    "a call of before": ("replayed()", "not from its kernel"),
    "a call of before, changed": ("replayed(b'notes', b'other')", "not from its kernel"),
    "nonsense": ("raw_call(b'\\xff\\x00 \\n\\n')", "not a call"),
    "another protocol on the line": ("raw_call(b'GET / HTTP/1.1\\r\\n\\r\\n')", "not a call"),
    "a child that was forked": ("from_fork()", "child process"),
    "a child that was started": ("from_child()", "child process"),
    "the runtime in a child": ("runtime_in_fork()", "child process"),
}

# Python that a cell may well run itself: the tools are what is attacked.
TOOLKIT = f"""
import json, os, socket, subprocess, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import knock
from quire.runtime import *
from _quire_inside.engine_socket import call
root, outside = os.getcwd(), os.path.join(os.path.dirname(os.getcwd()), "outside")
context = sys.modules["_quire_inside"].context
deep = b'{{"call": "read_file", "arguments": {{"path": ' + b"[" * 400 + b"]" * 400 + b"}}}}"

def link(name, target):
    os.symlink(target, name)

def hole(name, size):
    with open(name, "wb") as file:
        file.truncate(size)

def listen(name):
    globals()["listener"] = socket.socket(socket.AF_UNIX)
    listener.bind(name)

def told(answer):
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer["value"]

def raw_call(data):
    with knock.connect(context) as sock:
        knock.read_line(sock)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        told(json.loads(knock.read_line(sock)))

def raw_proven(body):
    return told(knock.raw(context, body))

def forged(**other):
    told(knock.say({{**context, **other}}, "read_file", path="notes.txt", cwd=root))

def replayed(*change):
    arguments = {{"path": "notes.txt", "cwd": root}}
    body = json.dumps({{"call": "read_file", "arguments": arguments}}).encode()
    with knock.connect(context) as sock:
        recorded = knock.proven(context, knock.read_line(sock)[:-1], body)
        sock.sendall(recorded)
        told(json.loads(knock.read_line(sock)))
    raw_call(recorded.replace(*change) if change else recorded)

def from_fork():
    read, write = os.pipe()
    if os.fork() == 0:
        answer = knock.say(context, "read_file", path="notes.txt", cwd=root)
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    told(json.loads(os.read(read, 10_000)))

def from_child():
    code = "import sys, json; sys.path.insert(0, sys.argv[1]); import knock; "
    code += "print(json.dumps(knock.say(json.loads(sys.argv[2]), 'note', text='x')))"
    told(json.loads(subprocess.check_output(
        [sys.executable, "-c", code, sys.path[0], json.dumps(context)])))

def runtime_in_fork():
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            read_file("notes.txt")
            answer = "it was answered"
        except RuntimeError as error:
            answer = str(error)
        os.write(write, answer.encode())
        os._exit(0)
    raise RuntimeError(os.read(read, 10_000).decode())
"""
TRY = """
answers = {}
for name, code in json.load(open("attempts.json")).items():
    try:
        answers[name] = f"it was done: {exec(code)}"
    except Exception as error:
        answers[name] = f"{type(error).__name__}: {error}"
json.dump(answers, open("answers.json", "w"))
print(read_file("notes.txt").text)
"""
# Refused before they reach the engine, so there is nothing for it to write down.
STAY_INSIDE = {"more than a call holds", "the runtime in a child"}


def workspace_of(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret.txt").write_text(SECRET)
    (root / "sub").mkdir()
    for name in ("notes.txt", ".env", ".env.local", "server.key", "sub/id_ed25519", "payroll.csv"):
        (root / name).write_text(f"# this is {name}\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    text = TOOLS + 'protect = ["payroll*"]\nseconds = 1.5\n'
    (root / "quire.toml").write_text(text)
    (root / "attempts.json").write_text(json.dumps({n: code for n, (code, _) in ATTEMPTS.items()}))


@pytest.fixture(scope="module", params=["native", "jupyter"])
def attacked(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    engine: Engine,
    kernel_env: dict[str, str],
) -> tuple[Record, dict[str, str], Path]:
    """One run that tries them all."""
    root = tmp_path_factory.mktemp("attacked") / "workspace"
    root.mkdir()
    workspace_of(root)
    desk = Desk(root, kernel_env, engine)
    kernel = "python3" if request.param == "jupyter" else None
    record = desk.ran(TOOLKIT, TRY, kernel=kernel)
    return record, json.loads((root / "answers.json").read_text()), root


def test_there_are_enough_of_them() -> None:
    assert len(ATTEMPTS) >= 40


@pytest.mark.parametrize("name", ATTEMPTS)
def test_it_is_refused(attacked: tuple[Record, dict[str, str], Path], name: str) -> None:
    answer = attacked[1][name]
    assert "it was done" not in answer
    assert ATTEMPTS[name][1] in answer


def test_every_refusal_is_in_the_record(attacked: tuple[Record, dict[str, str], Path]) -> None:
    record, answers, _ = attacked
    reasons = [call.reason for call in record.tool_calls if not call.ok]
    for name in ATTEMPTS.keys() - STAY_INSIDE:
        core = answers[name].partition(": ")[2].partition(" (")[0]
        assert any(reason and core.startswith(reason[:40]) for reason in reasons), name
    assert len(reasons) >= len(ATTEMPTS) - len(STAY_INSIDE)
    assert sum(call.refused for call in record.tool_calls) >= 60


def test_nothing_was_changed_and_the_run_went_on(
    attacked: tuple[Record, dict[str, str], Path],
) -> None:
    record, _, root = attacked
    assert record.ok, record.error
    assert "this is notes.txt" in shown(record)
    outside = root.parent / "outside"
    assert sorted(os.listdir(outside)) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(root / ".git") == ["config"]
    assert "calls = 400" in (root / "quire.toml").read_text()
    assert not (root / "stolen").exists()
    assert SECRET not in json.dumps([call.arguments for call in record.tool_calls])


RACE = """
import ctypes, os, threading
from quire.runtime import patch, read_file, search_files, ToolRefused, ToolFailed
os.makedirs("swap", exist_ok=True)
open("swap/secret.txt", "w").write("harmless")
os.symlink(os.path.join("..", OUTSIDE), "bad")
stop, rename = threading.Event(), ctypes.CDLL(None).renameat2

def exchange():
    # A folder in one moment, and a link to the outside in the next: never neither.
    while not stop.is_set():
        assert rename(-100, b"swap", -100, b"bad", 2) == 0

racing = threading.Thread(target=exchange)
racing.start()
seen, refused = set(), 0
for n in range(300):
    try:
        seen.add(read_file("swap/secret.txt").text)
        patch("swap/secret.txt", "", "x") if n % 2 else patch("swap/secret.txt", "kept", "lost")
    except (ToolRefused, ToolFailed):
        refused += 1
for n in range(5):
    try:
        seen.update(match["text"] for match in search_files(".", "swap").matches)
    except (ToolRefused, ToolFailed):
        refused += 1
alive = racing.is_alive()
stop.set()
racing.join()
print(sorted(seen), refused > 0, alive)
"""


def test_a_race_with_links_gains_nothing(desk: Desk) -> None:
    outside = desk.root.parent / f"outside-{desk.root.name}"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    record = desk.ran(f"OUTSIDE = {outside.name!r}", RACE)
    assert record.ok, record.error
    assert shown(record) == "['harmless'] True True\n"
    assert (outside / "secret.txt").read_text() == SECRET


LOOP = """
from quire.runtime import note, read_file, ToolRefused
open("x.txt", "w").write("x")
done = refused = 0
for n in range(10_000):
    try:
        read_file("x.txt")
        done += 1
    except ToolRefused as error:
        refused, why = refused + 1, str(error)
print(done, refused, why)
"""


def test_ten_thousand_calls_in_a_loop_are_a_bounded_record(desk: Desk) -> None:
    (desk.root / "quire.toml").write_text("[tools]\ncalls = 300\n")
    record = desk.ran(
        LOOP,
        "from quire.runtime import note\ntry:\n    note('x')\nexcept Exception as e:\n    print(e)",
    )
    assert record.ok, record.error
    assert "300 9700 there were more than 300 calls" in shown(record)
    assert len(record.tool_calls) < 350
    assert sum(call.times for call in record.tool_calls) == 10_001
    assert sum(call.times for call in record.tool_calls if call.refused) == 9_701
    store = desk.workspace().runs
    folder = store.find(record.run_id)
    assert folder.events.stat().st_size < 400_000
    assert desk.ran("print(1)").ok, "whoever runs it goes on"


JUNK = """
import contextlib, sys
from quire.runtime import terminal, write_file
sys.path.insert(0, HERE)
import knock
for _ in range(75):
    with knock.connect(sys.modules["_quire_inside"].context) as sock, contextlib.suppress(OSError):
        knock.read_line(sock)
        sock.sendall(b"x\\n")
        knock.read_line(sock)
write_file("planted.txt", "planted")
"""


def test_what_was_done_is_never_counted_with_what_was_refused(desk: Desk) -> None:
    """Neither questions, nor notes, nor strangers make room for a call that nobody reads of."""
    rules = '[tools]\nterminal = "ask"\nunattended = "allow"\ncalls = 50\n'
    (desk.root / "quire.toml").write_text(rules)
    record = desk.ran(
        "from quire.runtime import terminal\nfor n in range(45):\n    terminal(f'echo {n}')"
    )
    assert record.ok, record.error
    told = [(call.arguments, call.ok, call.times) for call in record.tool_calls]
    assert told == [({"command": f"echo {n}"}, True, 1) for n in range(45)]

    record = desk.ran(JUNK.replace("HERE", repr(str(Path(__file__).parent))))
    assert record.ok, record.error
    written = record.tool_calls[20]
    assert (written.tool, written.ok, written.times) == ("write_file", True, 1)
    assert written.arguments == {"path": "planted.txt", "content": "planted"}
    strangers = [call for call in record.tool_calls if call.tool == "call"]
    assert len(strangers) == 21
    assert sum(call.times for call in strangers) == 75


NONSENSE = """
from _quire_inside.engine_socket import call
for n in range(2_000):
    try:
        call(f"burn{n}", {"x": "y" * 1000})
    except RuntimeError:
        pass
"""


def test_calls_that_are_none_are_a_bounded_record(desk: Desk) -> None:
    record = desk.ran(NONSENSE)
    assert record.ok, record.error
    assert len(record.tool_calls) < 80
    assert sum(call.times for call in record.tool_calls) == 2_000
    assert not any(call.refused for call in record.tool_calls)


KNOWN = """
import json, sys
context = sys.modules["_quire_inside"].context
open("line", "w").write(json.dumps({k: context[k] for k in ("socket", "line", "token")}))
"""


def test_after_the_end_nothing_is_answered(desk: Desk) -> None:
    record = desk.ran(KNOWN)
    assert record.ok, record.error
    told = json.loads((desk.root / "line").read_text())
    before = desk.engine.calls.strangers
    answer = say(told, "write_file", path="late.txt", content="x", cwd=str(desk.root))
    assert "this run is over" in answer["error"]["message"]
    assert desk.engine.calls.strangers == before + 1
    assert not (desk.root / "late.txt").exists()


def test_the_host_stays_up(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "workspace")
    scratch.root.mkdir()
    workspace_of(scratch.root)
    scratch.write("t.py", f"# %%\n{TOOLKIT}\n# %%\n{TRY}\n{KNOWN}")
    scratch.write("fine.py", "# %%\nfrom quire.runtime import read_file\nread_file('notes.txt')\n")

    def host() -> dict[str, Any]:
        told: dict[str, Any] = json.loads(scratch.quire("host", "status", "--json").stdout)
        return told

    try:
        assert scratch.run("fine.py")[0] == 0
        before = host()
        code, told = scratch.run("t.py")
        assert code == 0, told["error"]
        assert "error" in say(json.loads((scratch.root / "line").read_text()), "note", text="x")
        assert scratch.run("fine.py")[0] == 0
        after = host()
        assert (after["pid"], after["refused_calls"]) == (before["pid"], 1)
        shown = json.loads(scratch.quire("show", told["run_id"], "--json").stdout)
        refused = [call for call in shown["tool_calls"] if call["refused"]]
        assert len(refused) >= 60
    finally:
        scratch.quire("host", "stop")


BETWEEN = """
import threading, time, os
from quire.runtime import write_file
def later():
    while not os.path.exists("go"):
        time.sleep(0.005)
    try:
        write_file("between.txt", "x")
    except RuntimeError as error:
        open("said", "w").write(str(error))
threading.Thread(target=later, daemon=True).start()
"""


def test_between_the_cells_of_a_session_nothing_is_answered(live: Live) -> None:
    name = live.open(BETWEEN)
    live.ran(name, "0")
    (live.root / "go").touch()
    wait_for(lambda: (live.root / "said").exists())
    assert "no cell is running" in (live.root / "said").read_text()
    assert not (live.root / "between.txt").exists()
    events = live.exec(name, code="print(1)")
    late = [event for event in events if isinstance(event, ToolCalled)]
    assert [(event.tool, event.refused) for event in late] == [("write_file", True)]


def test_a_session_has_the_tools_too(live: Live) -> None:
    (live.root / "child.py").write_text("# %%\nfrom quire.runtime import glue\nglue('x', 41)\n")
    code = "from quire.runtime import *\nwrite_file('a.txt', 'b')\nnote('hello')\n"
    code += "print(read_file('a.txt').text, run('child.py')['x'], ask('?', default='none'))"
    name = live.open(code)
    events = live.exec(name, "0")
    assert statuses(events) == ["ok"], said(events)
    assert said(events) == "b 41 none\n"
    tools = [event.tool for event in events if isinstance(event, ToolCalled)]
    assert tools == ["write_file", "read_file", "run"]
    assert [event.text for event in events if isinstance(event, NoteAdded)] == ["hello"]
    journal = live.engine.sessions[name].journal.path.read_text()
    assert journal.count('"event":"ToolCalled"') == 3
    live.rewind(name, "0")
    assert (
        live.said(name, "from quire.runtime import read_file; print(read_file('a.txt').text)")
        == "b"
    )


def wait_for(done: Any, timeout: float = 10.0) -> None:
    moment = threading.Event()
    for _ in range(int(timeout / 0.01)):
        if done():
            return
        moment.wait(0.01)
    raise AssertionError("it did not happen in time")


def test_a_command_ends_with_the_cell(desk: Desk) -> None:
    """What it started, in a session of its own, ends as well."""
    (desk.root / "quire.toml").write_text('[tools]\nterminal = "allow"\n')
    desk.cells(
        "t.py",
        "from quire.runtime import terminal\n"
        "terminal('setsid sleep 1000 & echo $! > pid; touch begun; sleep 1000')",
    )
    execution = quire.NotebookExecutor("t.py", workspace=desk.workspace())

    def call_off() -> None:
        wait_for(lambda: (desk.root / "begun").exists())
        execution.cancel()

    caller = threading.Thread(target=call_off, daemon=True)
    caller.start()
    record = drain(execution)
    caller.join(10)
    assert record.outcome == "cancelled"
    (call,) = record.tool_calls
    assert (call.tool, call.ok, call.reason) == ("terminal", False, "called off")
    pid = int((desk.root / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


OTHER_PROGRAMS = """
import os
from quire.runtime import run, terminal
os.environ["PATH"] = os.path.join(os.getcwd(), "evil") + os.pathsep + os.environ["PATH"]
os.environ["MARK"] = "of the cell"
print(terminal("date").exit_code, run("child.py")["said"], run("mid.py")["said"])
"""
SAYS = """# %%
from quire.runtime import glue, terminal
glue("said", [terminal("date -u").output[:4], "MARK" in terminal("env").output])
"""
HANDS_ON = "# %%\nfrom quire.runtime import glue, run\nglue('said', run('child.py')['said'])\n"


@pytest.mark.parametrize("in_a_session", [False, True])
def test_a_child_does_not_choose_the_programs_of_commands(
    desk: Desk, live: Live, in_a_session: bool
) -> None:
    """A cell gives its child an environment; the commands of both have that of the caller."""
    root = live.root if in_a_session else desk.root
    text = '[tools]\nterminal = "allow"\ncommands = ["date *", "env"]\n'
    (root / "quire.toml").write_text(text)
    (root / "evil").mkdir()
    (root / "evil" / "date").write_text("#!/bin/sh\necho evil\n")
    (root / "evil" / "date").chmod(0o755)
    (root / "child.py").write_text(SAYS)
    (root / "mid.py").write_text(HANDS_ON)
    if in_a_session:
        printed = said(live.exec(live.open(OTHER_PROGRAMS), "0"))
    else:
        record = desk.ran(OTHER_PROGRAMS)
        assert record.ok, record.error
        printed = shown(record)
    assert printed.startswith("0 [")
    assert "evil" not in printed
    assert "True" not in printed


def test_a_command_has_none_of_the_values_that_are_masked(desk: Desk) -> None:
    desk.write("quire.toml", '[tools]\nterminal = "allow"\n')
    desk.write(".env", "OF_THE_FILE=blue-bird-seven\n")
    record = desk.ran("from quire.runtime import terminal\nprint(terminal('env').output)")
    assert record.ok, record.error
    assert "PATH=" in shown(record)
    assert "OF_THE_FILE" not in shown(record)


def test_a_secret_in_two_variables_is_in_no_command(desk: Desk) -> None:
    """Each is left out, and so is what has the secret of another one in it."""
    rules = '[tools]\nterminal = "allow"\nweb_search = "allow"\n'
    rules += """search_command = "sh -c 'env | grep -E \\"$1\\" >&2; exit 3' sh {query}"\n"""
    desk.write("quire.toml", rules)
    desk.write(".env", "ONE_TOKEN=green-bird-of-one-file\n")
    desk.env = {
        **desk.env,
        "GH_TOKEN": "hush-hush-for-a-forge",
        "GITHUB_TOKEN": "hush-hush-for-a-forge",
        "TWO_TOKEN": "green-bird-of-one-file",
        "PGPASSWORD": "blue+bird+of+night",
        "DATABASE_URL": "postgres://ada:blue+bird+of+night@db/x",
        "AUTH_HEADER": "Authorization: Bearer hush-hush-for-a-forge",
        "HARMLESS": "seen",
    }
    record = desk.ran(
        "from quire.runtime import terminal, web_search\nprint(terminal('env').output)\n"
        "try:\n    web_search('LESS|TOK|PASS|DATA|AUTH')\n"
        "except RuntimeError as error:\n    print(error.hint)"
    )
    assert record.ok, record.error
    assert shown(record).count("HARMLESS=seen") == 2
    for name in ("TOKEN", "PASSWORD", "DATABASE_URL", "AUTH_HEADER", "masked"):
        assert name not in shown(record)


@pytest.mark.parametrize("home", [None, "", "not/absolute"])
def test_without_a_home_the_whole_disk_is_not_open(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    home: str | None,
) -> None:
    desk.write("quire.toml", '[tools]\nread_roots = ["~/", "~/etc"]\n')
    desk.env = {k: v for k, v in desk.env.items() if k != "HOME"}
    if home is not None:
        desk.env["HOME"] = home
    entry = pwd.getpwuid(os.getuid())
    own = tmp_path_factory.mktemp("own")
    (own / "mine.txt").write_text("of the caller")
    kept = own / ".config" / "quire" / "keys"
    kept.mkdir(parents=True)
    (kept / "signs").write_text("a secret key")
    desk.env = {k: v for k, v in desk.env.items() if k not in ("QUIRE_KEYS", "XDG_CONFIG_HOME")}
    told = pwd.struct_passwd((*entry[:5], str(own), entry[6]))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: told)
    record = desk.ran(
        f"from quire.runtime import *\nprint(read_file({str(own / 'mine.txt')!r}).text)\n"
        f"for path in ('/etc/passwd', {str(kept / 'signs')!r}):\n"
        "    try:\n        read_file(path)\n"
        "    except ToolRefused as error:\n        print(error)"
    )
    assert record.ok, record.error
    assert "of the caller" in shown(record)
    assert "/etc/passwd is outside of what" in shown(record)
    assert "signs: keys is protected" in shown(record)
    nowhere = pwd.struct_passwd((*entry[:5], "/", entry[6]))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: nowhere)
    with pytest.raises(ConfigError, match="there is no home folder"):
        desk.ran("print(1)")


def test_a_root_that_is_protected_is_said_before_anything_runs(desk: Desk) -> None:
    (desk.root / "x" / ".git").mkdir(parents=True)
    desk.write("quire.toml", '[tools]\nread_roots = ["x/.git"]\n')
    with pytest.raises(ConfigError, match=r"\.git is protected"):
        desk.ran("open('ran', 'w')")
    assert not (desk.root / "ran").exists()


SPOOFS = """
import os
from _quire_inside.engine_socket import call
cwd = os.getcwd()
spoofed = {'path="notes.txt", content': "hello " * 400, "path": "sub/start.sh"}
spoofed |= {"content": "evil", "zz": "bye " * 400, "cwd": cwd}
hidden = {'command="ls notes"): ok, 0.01 s': 1, **{f"k{n}": n for n in range(19)}}
hidden |= {"command": "touch planted.txt", "cwd": cwd}
for name, arguments in (
    ("write_file", spoofed),
    ("terminal", hidden),
    ("run", {"path": "t.py", "parameters": {}, "cwd": cwd, "env": {}, "python": "/bin/false"}),
    ("note", {"text": "x", "path": "y"}),
    ("terminal", {"zz": 1, "timeout": 5, "command": "true", "cwd": cwd}),
):
    try:
        call(name, arguments)
    except RuntimeError as error:
        print(error)
call("terminal", {"timeout": 5, "command": "true", "cwd": cwd})
"""


def test_arguments_that_a_tool_does_not_take_are_refused(desk: Desk) -> None:
    """They would stand in the record, and before whoever is asked, instead of those that count."""
    rules = '[tools]\nterminal = "ask"\nwrite_file = "ask"\nunattended = "allow"\n'
    desk.write("quire.toml", rules)
    record = desk.ran(SPOOFS)
    assert record.ok, record.error
    said = shown(record).splitlines()
    assert len(said) == 5
    assert said[0].startswith("write_file() was given what it does not take (it takes path, con")
    assert not (desk.root / "sub").exists()
    assert not (desk.root / "planted.txt").exists()
    assert [one.question for one in record.asked] == [
        'A cell wants to call terminal(command="true", timeout=5). Let it?'
    ]
    assert [call.refused for call in record.tool_calls] == [True] * 5 + [False]
    assert list(record.tool_calls[0].arguments) == ["path", "content"]
    assert record.tool_calls[0].arguments["path"] == "sub/start.sh"
    assert record.tool_calls[1].arguments == {"command": "touch planted.txt"}
    assert list(record.tool_calls[5].arguments) == ["command", "timeout"]


HUGE = """
from _quire_inside.engine_socket import call
big = [[["y" * 300] * 20] * 20] * 20
for given in ({f"k{n}": big for n in range(5)}, {"path": big}, {"path": {"z" * 300: big}}) * 4:
    try:
        call("read_file", given)
    except RuntimeError:
        pass
"""


def test_the_record_of_one_call_is_bounded_whatever_it_was_given(desk: Desk) -> None:
    record = desk.ran(HUGE)
    assert record.ok, record.error
    assert len(record.tool_calls) == 12
    sizes = [len(json.dumps(call.arguments)) for call in record.tool_calls]
    assert 5_000 < max(sizes) < 12_000
    assert desk.workspace().runs.find(record.run_id).events.stat().st_size < 200_000


LEAKS = r"""
import os
from quire.runtime import *
from _quire_inside.engine_socket import call
S = os.environ["MY_API_TOKEN"]
def attempt(function, *given, **more):
    try:
        function(*given, **more)
    except Exception as error:
        print(type(error).__name__, error)
far = "http://127.0.0.1:1/" + "p" * 50 + "?key=" + S
attempt(web_extract, far)
attempt(web_extract, [far, "http://10.0.0.1/" + "p" * 60 + "?key=" + S])
attempt(web_extract, "http://10.0.0.1/" + "p" * 60 + "?key=" + S + " ")
attempt(web_extract, "gopher://10.0.0.1/" + "p" * 60 + "?key=" + S)
for n in range(len(S)):
    attempt(read_file, "x" * (50 + n) + S + "y" * 300)
    attempt(call, "z" * (16 + n) + S, {})
    attempt(web_search, "z" * (470 + n) + S)
attempt(call, "terminal", {"command": "true", S: 1})
attempt(call, "note", {"text": "k", S: S})
codes = ("\x1b[1m", "\x1b]8;;\x07", "\x9b", "\x01", "\x7f")
for hidden in (*codes, "\r", "Z\b", "\b", "\u200b", "\u202e"):
    text = S[:6] + hidden + S[6:]
    note(text)
    attempt(ask, "really " + text, [text, "b"], default="b")
    attempt(terminal, "echo " + text)
    attempt(read_file, text)
    attempt(web_extract, "http://10.0.0.1/" + text)
    display({"text/plain": "disp " + text, "text/html": "<b>" + text}, raw=True)
    glue("g", "glued " + text)
    glue("h", {"a" + text: ["x", text]})
del text
print("done")
raise ValueError(S[:6] + "\x01" + S[6:])
"""


def test_nothing_cuts_or_disguises_a_secret_so_that_it_is_written_down(desk: Desk) -> None:
    rules = '[tools]\nterminal = "allow"\nweb_extract = "allow"\nweb_search = "allow"\n'
    rules += 'private_hosts = ["127.0.0.1:1"]\ncalls = 500\n'
    rules += """search_command = "sh -c 'echo $1 >&2; exit 3' sh {query}"\n"""
    desk.write("quire.toml", rules)
    secret = "kQ7vZ2xR9tLw4mB8nHc3Jd6Fg1Ys5Ua0Pe"
    desk.env = {**desk.env, "MY_API_TOKEN": secret}
    record = desk.ran(LEAKS)
    assert record.error is not None
    assert record.error.name == "ValueError"
    assert "done" in shown(record)
    assert len(record.notes) == 10
    folder = desk.workspace().runs.find(record.run_id)
    pieces = [secret[at : at + 7] for at in range(len(secret) - 6)]
    for path in folder.path.iterdir():
        text = path.read_text(errors="replace")
        assert not [piece for piece in pieces if piece in text], path.name
        for plain in (without_escapes(text), text):
            bare = re.sub(r"\\u00[019][0-9a-f]|\\u20[0-9a-f]{2}|\\[rb]|Z\\b", "", plain)
            assert secret[4:12] not in bare, path.name


def test_pages_that_were_refused_are_in_the_record(desk: Desk) -> None:
    server = Server()
    server.page("/page", "some text", "text/plain")
    rules = f'[tools]\nweb_extract = "allow"\nprivate_hosts = ["127.0.0.1:{server.port}"]\n'
    desk.write("quire.toml", rules)
    record = desk.ran(
        "from quire.runtime import web_extract\n"
        "bad = ['http://127.0.0.1/', 'http://169.254.169.254/latest/']\n"
        f"for urls in (bad, [*bad, '{server.url}/page'], ['{server.url}/page'] * 2):\n"
        "    print([page.get('refused') for page in web_extract(urls).results])"
    )
    server.http.shutdown()
    server.http.server_close()
    assert record.ok, record.error
    assert shown(record) == "[True, True]\n[True, True, False]\n[False, False]\n"
    none, some, both = record.tool_calls
    assert (none.ok, none.refused) == (False, True)
    assert none.reason.startswith("2 of 2 pages failed, 2 of them refused: 127.0.0.1 is not on")
    assert "169.254.169.254 is not on the public internet" in none.reason
    assert (some.ok, some.refused) == (True, False)
    assert some.reason.startswith("2 of 3 pages failed, 2 of them refused: 127.0.0.1 is not on")
    assert (some.result["failed"], some.result["refused"]) == (2, 2)
    assert "; 2 of 3 pages failed" in called(some)
    assert (both.ok, both.reason) == (True, "")
    assert "failed" not in both.result


def drain(execution: Any) -> Record:
    for _ in execution:
        pass
    return execution.record


def test_another_users_socket_is_not_answered() -> None:
    """The server asks the system who is at the other end."""
    from quire.kernel.engine_calls import _peer

    one, other = socket.socketpair()
    with one, other:
        assert _peer(one) == (os.getpid(), os.getuid())
