"""One kernel: a forked process that runs cells in the shell and answers over its channel."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import random
import selectors
import signal
import socket
import sys
import threading
import time
from typing import Any

from . import reaper, snapshot
from . import shell as shells
from .streams import Channel, OutStream


def main(shell: Any, births: int, channel_fd: int, out_fd: int, err_fd: int) -> None:
    """Never returns. Called in the child right after the fork. `births` is where copies of it are
    announced to the server."""
    os.setsid()
    reaper.die_with_parent()
    reaper.adopt_orphans()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = _attach(channel_fd, out_fd, err_fd)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        worker = Worker(shell, channel, births)
        start = channel.receive()
        if start is not None:
            worker.enter(start)
            worker.serve()
    os._exit(0)


def _attach(channel_fd: int, out_fd: int, err_fd: int) -> Channel:
    os.dup2(out_fd, 1)
    os.dup2(err_fd, 2)
    # The private copies stay open for the look at what waits in the pipes; children get none.
    return Channel(socket.socket(fileno=channel_fd), (out_fd, err_fd))


class Worker:
    def __init__(self, shell: Any, channel: Channel, births: int) -> None:
        """Everything that can be done before it is known what the kernel is for."""
        self.shell = shell
        self.channel = channel
        self.births = births
        self.aside = False  # being forked into a snapshot just now
        self.random_state: Any = None
        self.server = os.getppid()
        self.bound = True  # to end with the server
        self.copies = snapshot.Copies()
        self.stdout = OutStream("stdout", 1, channel)
        self.stderr = OutStream("stderr", 2, channel)
        os.register_at_fork(after_in_child=self._forked)
        # A selector without state in the kernel, which a fork would share with its snapshots.
        self.loop = asyncio.SelectorEventLoop(selectors.PollSelector())
        asyncio.set_event_loop(self.loop)
        shells.settle(shell, self.stdout, self.stderr)
        # The first cell of a fork pays for copying the pages it touches: pay now.
        self._run_cell("pass")
        shells.forget(shell)
        shell.quire_wire.channel = channel

    def enter(self, start: dict[str, Any]) -> None:
        """The caller's world: environment, folder, and random numbers of one's own."""
        backend = os.environ.get("MPLBACKEND", "")
        os.environ.clear()
        os.environ.update(start["env"])
        if backend:
            os.environ.setdefault("MPLBACKEND", backend)
        self.shell.init_environment()
        with contextlib.suppress(AttributeError):
            time.tzset()
        os.chdir(start["cwd"])
        _inherit(start.get("world") or {})
        self.shell.user_ns["_dh"] = [os.getcwd()]
        random.seed()
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            numpy_random.seed()
        _set_context(start.get("context"))

    def _forked(self) -> None:
        """A child made by the cell (multiprocessing, os.fork): its text goes to fd 1 and 2."""
        if self.aside:
            return  # not a child of the cell but a copy of the kernel
        self.channel.open = False
        self.stdout.forget()
        self.stderr.forget()
        self.channel.lock = threading.RLock()

    def serve(self) -> None:
        while (message := self._next()) is not None:
            if message["m"] == "execute":
                self._execute(message)
            elif message["m"] == "snapshot":
                self._snapshot()
            elif message["m"] == "context":
                _set_context(message["context"])
            elif message["m"] == "variables":
                self._tell_variables()
            elif message["m"] == "close":
                break
        self._leave()

    def _next(self) -> dict[str, Any] | None:
        """Wait for a message; let asyncio tasks that a cell left behind go on meanwhile."""
        if not self.channel.pending() and self._loop_has_work():
            self.loop.add_reader(self.channel.sock, self.loop.stop)
            try:
                self.loop.run_forever()
            finally:
                self.loop.remove_reader(self.channel.sock)
        message = self.channel.receive()
        self._bind()
        return message

    def _bind(self) -> None:
        """End with the server. A woken copy is at first a child of the kernel it replaces, and
        must not end with that one."""
        if not self.bound and os.getppid() == self.server:
            reaper.die_with_parent()
            self.bound = True

    def _loop_has_work(self) -> bool:
        # Private, but stable since asyncio exists; without them waiting tasks just wait.
        if getattr(self.loop, "_ready", None) or getattr(self.loop, "_scheduled", None):
            return True
        return bool(asyncio.all_tasks(self.loop))

    def _execute(self, message: dict[str, Any]) -> None:
        shell = self.shell
        shell._last_traceback = None
        shell._last_traceback_during_displayhook = False
        result = interrupted = None
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            result = self._run_cell(message["code"])
        except BaseException as error:  # noqa: BLE001
            # An interrupt in the instant before or after the cell's own code ran, or an exception
            # that IPython itself failed to show. Either way it is the cell's.
            interrupted = error
        finally:
            while True:
                try:
                    signal.signal(signal.SIGINT, signal.SIG_IGN)
                    break
                except KeyboardInterrupt as error:
                    interrupted = error
        shells.end_script_loop(shell)
        self._end_streams()
        self.channel.area = ""
        verdict = self._verdict(result, interrupted)
        if verdict["status"] == "failed":
            verdict["variables"] = self._used(message["code"], result, interrupted)
        self.channel.send(verdict)
        if message.get("aside"):
            # The state before the next cell, set aside while the answer is on its way. Not where
            # tasks go on between cells: that state would be an older one.
            if self._loop_has_work():
                self.channel.send({"m": "snapshot", "later": True})
            else:
                self._snapshot()

    def _snapshot(self) -> None:
        """Set a copy aside, or say why not. Returns in the live process and in woken copies."""
        reason = snapshot.obstacle(self._descriptors(), self.copies)
        if reason:
            self.channel.send({"m": "snapshot", "reason": reason})
            return
        ours, theirs = socket.socketpair()
        self.random_state = random.getstate()  # Python seeds anew in every fork
        self.copies.bury()
        shares_positions = bool(snapshot.open_files())
        self.aside = self.copies.aside = True
        copy = os.fork()
        if copy == 0:
            os.setpgid(0, 0)
            ours.close()
            if shares_positions:
                snapshot.own_files()
                theirs.send(b"r")
            self._let_go()
            self._wake(*snapshot.sleep(theirs, self.births))
            return
        self.aside = self.copies.aside = False
        snapshot.announce(self.births, copy)
        with contextlib.suppress(OSError):
            os.setpgid(copy, copy)  # on both sides: whoever looks next must find it done
        self.copies.pids.add(copy)
        theirs.close()
        if shares_positions:
            ours.recv(1)  # before we read on
        self.channel.send({"m": "snapshot", "pid": copy}, ours.fileno())
        ours.close()

    def _tell_variables(self) -> None:
        from . import variables

        found = variables.listing(self.shell.user_ns, self.shell.user_ns_hidden)
        self.channel.send({"m": "variables", "found": found})

    def _descriptors(self) -> set[int]:
        """What the engine itself holds open."""
        loop: Any = self.loop
        own = {self.births, self.channel.sock.fileno(), *self.channel.watched}
        own |= {part.fileno() for part in (loop._ssock, loop._csock) if part is not None}
        return own

    def _let_go(self) -> None:
        """A snapshot holds nothing of the live kernel: its end must be seen by those outside."""
        self.channel.sock.close()
        for fd in self.channel.watched:
            os.close(fd)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (1, 2):
            os.dup2(null, fd)
        os.close(null)

    def _wake(self, channel_fd: int, out_fd: int, err_fd: int) -> None:
        """This copy is the live kernel now."""
        random.setstate(self.random_state)
        self.copies.pids.clear()
        _set_context(getattr(sys.modules[__package__ or ""], "context", None))
        self.bound = False
        reaper.adopt_orphans()
        self.aside = self.copies.aside = False
        channel = _attach(channel_fd, out_fd, err_fd)
        self.channel = self.shell.quire_wire.channel = channel
        for stream in (self.stdout, self.stderr):
            stream.channel = channel
        loop: Any = self.loop
        loop._close_self_pipe()
        loop._make_self_pipe()
        channel.send({"m": "awake", "pid": os.getpid()})

    def _end_streams(self) -> None:
        for current in (sys.stdout, sys.stderr):  # a cell may have put its own there
            # Whatever a cell's replacement does on flush is that cell's affair.
            with contextlib.suppress(Exception):
                current.flush()
        for stream in (self.stdout, self.stderr):
            stream.end_cell()

    def _run_cell(self, code: str) -> Any:
        """As ipykernel does it, inside a running event loop, but transforming the cell once."""
        shell = self.shell
        failed = None
        try:
            transformed = shells.transform(shell, code)
        except Exception:  # noqa: BLE001 - a broken transformer is reported as the cell's own error
            transformed, failed = code, sys.exc_info()
        coroutine = shell.run_cell_async(
            code,
            store_history=True,
            silent=False,
            transformed_cell=transformed,
            preprocessing_exc_tuple=failed,
        )
        result = None
        try:
            if "await" in transformed or "async" in transformed:
                needs_loop = shell.should_run_async(
                    code, transformed_cell=transformed, preprocessing_exc_tuple=failed
                )
            else:
                needs_loop = False
            result = self._in_loop(coroutine) if needs_loop else self._at_once(coroutine)
        finally:
            shell.events.trigger("post_execute")
            if result is not None:
                shell.events.trigger("post_run_cell", result)
        return result

    def _at_once(self, coroutine: Any) -> Any:
        """Drive a cell that never awaits, as if from a running loop, so that create_task works.

        What run_until_complete would do around it, without its two turns of the loop.
        """
        loop: Any = self.loop
        asyncio._set_running_loop(loop)
        loop._thread_id = threading.get_ident()
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        finally:
            loop._thread_id = None
            asyncio._set_running_loop(None)
        raise RuntimeError("the cell awaited something although it holds no await")

    def _in_loop(self, coroutine: Any) -> Any:
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except KeyboardInterrupt as error:
            stopped = error
        # Not in there: what the cell makes of it did not come of where the loop was just then.
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, KeyboardInterrupt):
            result = self.loop.run_until_complete(task)
            if isinstance(result.error_in_exec, asyncio.CancelledError):
                from .error_origin import Interrupted

                frames = result.error_in_exec.__traceback__
                result.error_in_exec = Interrupted().with_traceback(frames)
            return result
        raise stopped

    def _verdict(self, result: Any, interrupted: BaseException | None) -> dict[str, Any]:
        shell = self.shell
        verdict: dict[str, Any] = {"m": "done", "status": "ok", "stop": False}
        verdict["count"] = shell.execution_count - 1
        payload_manager = getattr(shell, "payload_manager", None)
        if payload_manager is not None:
            self._page(payload_manager)
        error = interrupted
        if result is not None and error is None:
            error = result.error_before_exec or result.error_in_exec
        if isinstance(error, SystemExit) and error.code in (None, 0, False):
            verdict["stop"] = True
            return verdict
        shown = shell.quire_wire.take_error()
        # While a value is displayed, or where IPython fails, there is an error only here.
        raised = vars(shell).pop("quire_raised", None)
        if error is not None or getattr(shell, "_last_traceback_during_displayhook", False):
            from . import error_origin

            if shown is None:
                shown = {"ename": type(error).__name__, "evalue": _text(error), "traceback": []}
                self.channel.send({"m": "error", "content": shown})
            verdict |= {"status": "failed", **shown, **error_origin.instead(error, shell)}
            if raised is None or type(error).__name__ in (shown["ename"], "Interrupted"):
                raised = error
            verdict["frames"] = error_origin.of_shell(raised, shell)
        if getattr(shell, "exit_now", False):
            verdict["stop"] = True
            shell.exit_now = False
        return verdict

    def _used(
        self, code: str, result: Any, interrupted: BaseException | None
    ) -> list[dict[str, Any]]:
        """What the cell worked with, for whoever has to mend it."""
        from . import used_values

        error = interrupted
        if error is None and result is not None:
            error = result.error_in_exec or result.error_before_exec
        # It never is worth more than the answer that it comes with.
        with contextlib.suppress(Exception):
            if "%" in code or "!" in code or "?" in code:
                code = shells.transform(self.shell, code)
            return used_values.used(code, self.shell.user_ns, error)
        return []

    def _page(self, payload_manager: Any) -> None:
        """`help?` and %page produce payloads; nobody pages here, so they are outputs."""
        for payload in payload_manager.read_payload():
            if payload.get("source") == "page":
                self.channel.send({"m": "display_data", "content": {"data": payload["data"]}})
        payload_manager.clear_payload()

    def _leave(self) -> None:
        """Close what the task left open, so that its files are whole, then go."""
        for step in (self.shell.atexit_operations, atexit._run_exitfuncs):
            # Nobody is left to tell; the run is over.
            with contextlib.suppress(Exception, SystemExit, KeyboardInterrupt):
                step()
        with contextlib.suppress(Exception):
            self.shell.user_ns.clear()
            self.shell.user_module.__dict__.clear()
        # Taking down a large process takes a while that nobody has to wait for.
        self.channel.send({"m": "bye"})


def _inherit(world: dict[str, Any]) -> None:
    """What a process started by the caller would have of it; the fork server has its own."""
    if not world:
        return
    import resource

    os.umask(world["umask"])
    for name, soft in world["limits"].items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, (soft, hard))
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, world["affinity"])
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, world["nice"])


def _set_context(context: Any) -> None:
    """Where the runtime's calls go. In memory only: programs a cell starts do not get it."""
    inside: Any = sys.modules[__package__ or ""]
    inside.context = {**(context or {}), "pid": os.getpid()}


def _text(error: BaseException | None) -> str:
    try:
        return str(error) if error is not None else ""
    except Exception:  # noqa: BLE001 - an exception whose __str__ raises is still an exception
        return "<the exception's own text could not be made>"
