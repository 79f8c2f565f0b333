"""The command line. Each command calls one verb and shows what it returns."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..errors import QuireError, StorageError, UsageError
from .terminal import Terminal

if TYPE_CHECKING:
    from ..record.questions import Asker
    from ..workspace import Engine, Workspace


@dataclass(slots=True)
class App:
    """One call of the command: where it writes, where it is, and who may call it off."""

    terminal: Terminal
    cwd: Path
    env: Mapping[str, str]
    engine: Engine | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    json_asked: bool = False
    # Tells whoever started us what it should ask for, should we be gone before the end.
    announce: Callable[[str], None] = lambda _: None
    world: Mapping[str, Any] = field(default_factory=dict)
    caller: int = 0  # the process that asks, where that is not this one

    def read(self, name: str, what: str = "") -> str:
        """The text of a file that the caller names; - is what comes in."""
        from ..task.formats import decode

        if name == "-":
            return decode(sys.stdin.buffer.read(), "stdin")
        try:
            return decode(Path(self._as_caller(name)).read_bytes(), name)
        except OSError as error:
            said = f"{what} {name}".strip()
            raise UsageError(
                f"cannot read {said}: {error.strerror}", hint="check the path"
            ) from error

    def _as_caller(self, name: str) -> str:
        """A process's own files, such as /dev/fd/63 of a shell's <(…), are the caller's."""
        path = str(self.cwd / name)
        own = re.sub(r"^/dev/(?=fd/)", "/proc/self/", os.path.normpath(path))
        own = "/proc/self/fd/0" if own == "/dev/stdin" else own
        if not self.caller or not own.startswith("/proc/self/"):
            return path
        return own.replace("self", str(self.caller), 1)

    def say(self, text: str) -> None:
        """What goes on before a run begins."""
        self.terminal.err(self.terminal.paint(text, "dim", on_err=True))

    def workspace(self) -> Workspace:
        from ..workspace import Workspace  # the engine, which --help can do without

        return Workspace(
            cwd=self.cwd,
            env=self.env,
            engine=self.engine,
            world=self.world,
            asker=self.asker(),
            say=self.say,
            caller=self.caller,
        )

    def asker(self) -> Asker | None:
        """Whoever sits at the terminal, if somebody does: not a cell that has made one."""
        if not self.terminal.is_attended:
            return None
        from ..kernel import descent

        if descent.objection(self.caller or os.getpid()):
            return None
        from .terminal_questions import TerminalAsker

        return TerminalAsker(self.terminal)


class Group(click.Group):
    """Loads the file of a command when it is called, so that `--help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = __import__(f"quire.cli.{COMMANDS[name][0]}", fromlist=[name])
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


# name: (file in cli, one line of help)
COMMANDS = {
    "cancel": ("waiting_commands", "Call a run off."),
    "ci": ("ci_commands", "Run the tasks a change affects, as the gate does."),
    "close-proposal": ("review_commands", "Withdraw a proposal."),
    "commit": ("review_commands", "Commit a task and its notebook to a branch."),
    "completion": ("completion", "Print a completion script for your shell."),
    "diff": ("compare_commands", "Compare two runs, or two notebooks, cell by cell."),
    "digest": ("search_commands", "What many runs came to, on one page."),
    "doctor": ("project_commands", "Check that a repository is set up well."),
    "edit": ("edit_commands", "Change one cell of a task."),
    "env": ("environment_commands", "Environments of tasks that declare what they need."),
    "exec": ("exec_commands", "Run cells in a session's kernel."),
    "export": ("record_commands", "Write a run as a notebook, a web page or Markdown."),
    "find": ("search_commands", "Find runs by what they hold, and failures that were met before."),
    "git": ("git_commands", "What git itself calls: filters, drivers and hooks."),
    "host": ("host_commands", "Look at or stop the process that keeps kernels warm."),
    "index": ("search_commands", "The index over all runs: rebuild it, look at it."),
    "init": ("project_commands", "Set up a repository for tasks."),
    "key": ("proof_commands", "Look at, renew or trust the keys that sign records."),
    "log": ("archive_commands", "List archived runs, newest first."),
    "mcp": ("mcp_commands", "Serve agents over MCP."),
    "merge": ("compare_commands", "Merge two versions of a notebook, cell by cell."),
    "merge-proposal": ("review_commands", "Merge a proposal."),
    "new": ("project_commands", "Begin a task from a description."),
    "params": ("run_commands", "Show what a task can be given."),
    "proposals": ("review_commands", "List proposals."),
    "propose": ("review_commands", "Put a branch up for review."),
    "push": ("archive_commands", "Push archived runs and local proposals to the remote."),
    "replay": ("compare_commands", "Run an archived run again and compare."),
    "resume": ("resume_commands", "Take up a run that waits for a person."),
    "results": ("record_commands", "Read back the named results of a run."),
    "review": ("review_commands", "Look at a proposal, and say what you think of it."),
    "rewind": ("exec_commands", "Put a session's kernel back to before a cell ran."),
    "run": ("run_commands", "Run a task and keep its record."),
    "runs": ("record_commands", "List runs, newest first."),
    "session": ("session_commands", "Kernels that are still there at the next call."),
    "show": ("record_commands", "Show a run: outcome, cells, outputs."),
    "skill": ("skill_commands", "What teaches agents to work with Quire."),
    "sync": ("sync_commands", "Write .ipynb from .py, or back."),
    "wait": ("waiting_commands", "Wait for a run that goes on by itself."),
    "token": ("token_commands", "Tokens for agents that come in over HTTP."),
    "tools": ("tool_commands", "What agents get, without MCP."),
    "verify": ("proof_commands", "Check that archived runs are what was run."),
}


@click.command(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Examples: quire run notebooks/report.py -p region eu · quire show last · "
    "quire run --help",
)
@click.version_option(__version__, prog_name="quire", message="%(prog)s %(version)s")
def cli() -> None:
    """Quire runs plain-text notebooks at script speed and keeps a record of every run."""


def dispatch(argv: list[str], app: App) -> int:
    """Run one command line; the exit code. Never raises for what a user can do wrong."""
    try:
        code = cli.main(_split_assignments(argv), "quire", standalone_mode=False, obj=app)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        _show_usage_error(app.terminal, error)
        return 2
    except QuireError as error:
        show_error(app, error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130


def show_error(app: App, error: QuireError) -> None:
    from ..text import plain

    term = app.terminal
    term.err(f"{term.paint('error:', 'red', on_err=True)} {plain(error.message)}")
    if error.hint:
        term.err(f"{term.paint('hint:', 'blue', on_err=True)} {plain(error.hint)}")
    if app.json_asked:
        with contextlib.suppress(StorageError):  # it may be the very thing that failed
            term.out(json.dumps({"outcome": "error", "error": error.as_dict()}))


def _show_usage_error(term: Terminal, error: click.ClickException) -> None:
    ctx = getattr(error, "ctx", None)
    if ctx is not None:
        term.err(ctx.get_usage())
    term.err(f"{term.paint('error:', 'red', on_err=True)} {error.format_message()}")
    command = ctx.command_path if ctx is not None else "quire"
    term.err(f"{term.paint('hint:', 'blue', on_err=True)} {command} --help")


_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=", re.DOTALL)
_TAKES_PAIR = ("-p", "--parameter", "-r", "--raw")


def _split_assignments(argv: list[str]) -> list[str]:
    """`-p name=value` as `-p name value`. A name never holds '=', so this is unambiguous."""
    out: list[str] = []
    pending = 0
    for arg in argv:
        if pending == 2 and _ASSIGNMENT.match(arg):
            out += arg.split("=", 1)
            pending = 0
            continue
        out.append(arg)
        pending = 2 if not pending and arg in _TAKES_PAIR else max(0, pending - 1)
    return out


@contextlib.contextmanager
def calling_off(cancel: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM call the run off; a second one leaves at once.

    Only in a process of one's own: a host is told by its client.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(*_: object) -> None:
        if cancel.is_set():
            os._exit(130)
        cancel.set()

    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # What was ignored when we started (nohup, a shell's background job) stays ignored.
    heeded = [name for name in names if signal.getsignal(name) != signal.SIG_IGN]
    before = {name: signal.signal(name, asked) for name in heeded}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def main(argv: list[str]) -> int:
    columns = 0
    with contextlib.suppress(OSError):
        columns = os.get_terminal_size(2).columns
    # click's own ways (completion, --help, --version) write to sys.stdout; so be it.
    if "_QUIRE_COMPLETE" in os.environ:
        cli.main(argv, "quire")
    terminal = Terminal(columns=columns)
    try:
        cwd = Path.cwd()
    except FileNotFoundError:
        terminal.err("error: the current folder is gone\nhint: cd to one that exists")
        return 2
    code = dispatch(argv, App(terminal, cwd, dict(os.environ)))
    if sys.stdout is not None:  # it is None where a caller closed it
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
    return code


def lost(argv: list[str], run: str) -> int:
    """The host went away in the middle. Tell what the run had, as its own command would."""
    from ..errors import HostError

    app = App(Terminal(), Path.cwd(), dict(os.environ), json_asked="--json" in argv)
    try:
        if argv[0] not in ("run", "wait") or not run:
            raise HostError(
                "the host that ran this went away", hint="say it again: a new one is started"
            )
        from ..archive.read import find
        from ..record.report import report

        found = find(app.workspace(), run)
        if app.json_asked:
            emit_json(app, report(found.record, found.notebook, None))
        app.terminal.err(f"error: the host that ran this went away: {found.record.reason}")
        app.terminal.err(f"hint: quire show {run} has what the run had")
        return 1
    except QuireError as error:
        show_error(app, error)
        return error.exit_code


def emit_json(app: App, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, default=str)
    # JSON lets these stand as they are; a terminal obeys them.
    app.terminal.out(re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))
