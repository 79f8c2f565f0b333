"""Any installed Jupyter kernel behind the Kernel protocol: the wire protocol over IPC sockets.

The kernel runs under `inside/keeper.py`, which ends it and all it started when we go away. The
connection file and the sockets lie in a directory of their own that only the owner can enter.
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from ..errors import KernelError
from ..record.events import (
    CellFinished,
    KernelDied,
    Warned,
)
from . import kernelspecs
from .exit_status import Exit
from .installed_packages import installed, platform, search_path
from .jupyter_messages import ending, event_of
from .jupyter_used_values import WAIT, answered, question
from .kept_process import GRACE, Keeper
from .protocol import KernelEvent, KernelSpec, Tick, milliseconds

START_TIMEOUT = 60.0
# Reply and idle status belong together; when one is missing for this long it will not come.
MISSING = 5.0
# ipykernel's publishing thread may sleep through a call to wake up, with outputs in its hands until
# it is called again. When the idle status has not followed the reply for this long, call it.
OVERDUE = 0.2

DEFAULT_NAME = "python3"
INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")

# ipykernel copies what child processes and C code write to fd 1 and 2 in a thread of its own, and
# a cell can be over before that thread has read it. At the end of each cell this sends a marker
# down each of the two pipes and waits for it, so that such output stays with its cell. It also
# escapes lone surrogates, for which ipykernel drops the whole message, silences advice on how to
# leave a prompt that is not there, and lets signals wake the event loop: any handler added through
# the loop does that, and without one an interrupted await goes on until its own next event. And it
# lifts the limit of 1,000 waiting messages, beyond which the kernel's socket would drop output.
PREPARE_IPYKERNEL = """
def prepare(marker):
    import asyncio, os, signal, sys, threading, warnings, zmq
    def settle(stream):
        fd, thread = stream._original_stdstream_fd, stream.watch_fd_thread
        write, arrived, held = stream.write, threading.Event(), ""
        def copied(text):
            nonlocal held
            if threading.current_thread() is not thread:
                return write(text)
            before, found, after = (held + text).partition(marker)
            held = ""
            if not found:  # the marker may come in two pieces
                n = next((n for n in range(len(marker), 0, -1) if before.endswith(marker[:n])), 0)
                before, held = before[:len(before) - n], before[len(before) - n:]
            if before + after:
                write(before + after)
            if found:  # last: the cell may be over now
                arrived.set()
        # Not when the cell has put something else there.
        if os.fstat(fd).st_ino == os.fstat(stream._fid).st_ino and thread.is_alive():
            stream.write = copied
            try:
                os.write(fd, marker.encode())
                arrived.wait(2)
            finally:
                stream.write = write
    def settle_all():
        for stream in streams:
            try:
                settle(stream)
            except OSError:
                pass
    def escape(flush):
        return lambda: [(p, t.encode("utf-8", "backslashreplace").decode()) for p, t in flush()]
    streams = [s for s in (sys.stdout, sys.stderr) if getattr(s, "_fid", None) is not None]
    for stream in streams:
        stream._flush_buffers = escape(stream._flush_buffers)
    get_ipython().events.register("post_execute", settle_all)
    warnings.filterwarnings("ignore", "To exit: use 'exit'", UserWarning)
    publisher = get_ipython().kernel.iopub_thread
    publisher.schedule(lambda: publisher.socket.setsockopt(zmq.SNDHWM, 0))
    asyncio.get_running_loop().add_signal_handler(signal.SIGURG, lambda: None)
"""

# Where a Python kernel's calls go, in its memory and not in its environment, which everything that
# it starts would have. The call says which process the line is for, before any cell runs.
ENTER = """
def enter(here, context):
    import os, sys, types
    package = types.ModuleType("_quire_inside")
    package.__path__, package.context = [here], {**context, "pid": os.getpid()}
    sys.modules["_quire_inside"] = package
    from _quire_inside import runtime_finder as finder, engine_socket as line
    finder.install()
    line.call("hello", {})
"""


class JupyterKernel:
    kind = "jupyter"

    def __init__(self, name: str, resource: Mapping[str, Any], keeper: Keeper, file: str) -> None:
        self.name = name
        self.language = str(resource.get("language", ""))
        self.epoch = 0
        self.connection_file = file
        self._interrupt_by_message = resource.get("interrupt_mode") == "message"
        self._keeper = keeper
        # Sockets belong to one thread at a time; interrupt() may come from any.
        self._control = threading.RLock()
        self._closed = False
        self._busy = False
        self._info: Mapping[str, Any] = {}
        # Which cell asked, so that what a thread prints after its cell is over is still its own.
        self._asked: dict[str, str] = {}
        self._area = ""
        self._reply: Mapping[str, Any] = {}  # the last one
        self._executable = ""
        self._client: Any = None
        self._context: Any = None

    @classmethod
    def start(
        cls,
        spec: KernelSpec,
        context: Mapping[str, Any] | None = None,
        *,
        timeout: float = START_TIMEOUT,
    ) -> JupyterKernel:
        """Start the kernel and wait until it answers. `context`: where its calls go."""
        name = spec.name or DEFAULT_NAME
        directory, resource = kernelspecs.find(name, spec.env)
        folder = kernelspecs.private_directory()
        connection_file = os.path.join(folder, "kernel.json")
        connection = kernelspecs.write_connection_file(connection_file, name)
        python = spec.python if spec.environment else ""
        argv = kernelspecs.command(resource, directory, connection_file, python)
        try:
            keeper = Keeper(argv, folder, spec.cwd, kernelspecs.environment(spec.env, resource))
        except OSError as error:
            os.unlink(connection_file)
            os.rmdir(folder)
            raise KernelError(
                f"kernel {name!r} could not be started in {spec.cwd}: {error.strerror}",
                hint="check that the working directory exists and can be entered",
            ) from error
        kernel = cls(name, resource, keeper, connection_file)
        kernel._executable = shutil.which(argv[0], path=spec.env.get("PATH")) or argv[0]
        try:
            kernel._connect(connection, time.monotonic() + timeout)
            if context and kernel.language == "python":
                source = f"{ENTER}enter({INSIDE!r}, {dict(context)!r})"
                kernel._run_silently(f"exec({source!r}, {{}})")
        except BaseException:
            kernel.close()
            raise
        return kernel

    def execute(
        self, code: str, cell: str, *, tick: Tick = 0.1, aside: bool = False
    ) -> Iterator[KernelEvent | None]:
        """Run one cell; see the protocol. Late output of earlier cells carries their id."""
        with self._control:
            gone = self._closed or self._keeper.look() is not None
            self._busy = not gone
        if gone:
            yield self._died(cell)
            return
        try:
            asked = self._client.execute(code, allow_stdin=False, stop_on_error=False)
            self._asked[asked] = cell
            for event in self._follow(asked, cell, tick):
                if isinstance(event, CellFinished) and event.status == "failed":
                    event = yield from self._with_variables(event, code, tick)
                yield event
        finally:
            with self._control:
                self._busy = False
                closed = self._closed
            if closed:
                self._let_go()

    def _with_variables(
        self, event: CellFinished, code: str, tick: Tick
    ) -> Generator[KernelEvent | None, None, CellFinished]:
        """What the cell worked with, where the kernel can be asked for it."""
        if self._info.get("implementation") != "ipython":
            return event
        asked = self._client.execute(
            "", silent=True, allow_stdin=False, user_expressions=question(code)
        )
        give_up = time.monotonic() + WAIT
        for other in self._follow(asked, event.cell, tick):
            if isinstance(other, CellFinished):
                return answered(event, self._reply)
            if isinstance(other, KernelDied) or time.monotonic() > give_up:
                break
            yield other
        return event

    @property
    def alive(self) -> bool:
        return not self._closed and self._keeper.look() is None

    def interrupt(self) -> None:
        if self._interrupt_by_message:
            with self._control:
                if not self._closed:
                    self._request_on_control("interrupt_request", {})
        else:
            self._keeper.tell(b"i")

    def kill(self) -> None:
        self._keeper.end()

    def describe(self) -> Mapping[str, Any]:
        language = self._info.get("language_info", {})
        return {
            "kind": self.kind,
            "kernel": self.name,
            "language": self.language,
            "version": language.get("version", ""),
            "implementation": self._info.get("implementation", ""),
            "implementation_version": self._info.get("implementation_version", ""),
            "pid": self._keeper.pid,
        }

    def environment(self) -> Mapping[str, Any]:
        language = self._info.get("language_info", {})
        interpreter = {
            "language": self.language,
            "implementation": self._info.get("implementation", ""),
            "version": language.get("version", ""),
            "executable": self._executable,
        }
        # Only Python's way of installing things is known here.
        path = search_path(self._executable) if self.language == "python" else ()
        return {
            "interpreter": interpreter,
            "platform": platform(),
            "packages": installed(path),
        }

    def close(self) -> None:
        with self._control:
            if self._closed:
                return
            self._closed = True
            busy = self._busy
            # A kernel at rest may run its own exit handlers; one in a cell would not listen.
            if self._info and not busy and self._keeper.look() is None:
                self._request_on_control("shutdown_request", {"restart": False})
                self._keeper.wait(GRACE)
        self._keeper.close()
        if not busy:  # else whoever follows the cell reads from them until it has seen the end
            self._let_go()

    def _let_go(self) -> None:
        """Of the sockets."""
        if self._client is not None:
            self._client.stop_channels()
        if self._context is not None:
            self._context.destroy(linger=0)

    def __enter__(self) -> JupyterKernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # How it comes up

    def _connect(self, connection: Mapping[str, Any], deadline: float) -> None:
        # Imported while the kernel is starting: both take a few hundred milliseconds.
        import zmq
        from jupyter_client.blocking.client import BlockingKernelClient

        self._context = context = zmq.Context()
        context.setsockopt(zmq.RCVHWM, 0)  # a flood is queued here, never dropped
        context.setsockopt(zmq.RECONNECT_IVL, 5)  # ms; the kernel has yet to make its sockets
        self._client = client = BlockingKernelClient(context=context)
        # Not from the file: it is gone already when the kernel died at once.
        client.load_connection_info(connection)
        client.start_channels(stdin=False, hb=False)
        self._poller = poller = zmq.Poller()
        for source in (client.iopub_channel.socket, client.shell_channel.socket, self._keeper):
            poller.register(source, zmq.POLLIN)
        self._info = self._handshake(deadline)
        if self._info.get("implementation") == "ipython":
            marker = f"\x00quire-{secrets.token_hex(8)}\x00"
            source = f"{PREPARE_IPYKERNEL}prepare({marker!r})"
            self._run_silently(f"exec({source!r}, {{'get_ipython': get_ipython}})")

    def _handshake(self, deadline: float) -> Mapping[str, Any]:
        """Ask who it is until the answer comes and its status is heard on the output channel.

        The subscription to outputs takes a moment to reach the kernel, and what is published
        before that is lost; hence both.
        """
        info: Mapping[str, Any] = {}
        self._client.kernel_info()
        asked_again = time.monotonic() + 1.0
        subscribed = False
        while not (info and subscribed):
            now = time.monotonic()
            if (ended := self._keeper.look()) or now > deadline:
                raise self._not_up(ended)
            if now > asked_again:
                self._client.kernel_info()
                asked_again = now + 1.0
            self._poller.poll(50)
            for message in self._messages(self._client.iopub_channel):
                subscribed = subscribed or bool(message)
            for message in self._messages(self._client.shell_channel):
                if message["msg_type"] == "kernel_info_reply":
                    info = message["content"]
                    if not subscribed:
                        asked_again = now + 0.02
        return info

    def _not_up(self, ended: Exit | None) -> KernelError:
        if ended is None:
            self._keeper.end()
        last = (self._keeper.exit or Exit()).stderr.strip()
        what = ended.reason if ended else "the kernel did not answer in time"
        return KernelError(
            f"kernel {self.name!r} did not start: {what}" + (f"\n{last[-2000:]}" if last else ""),
            hint="run `jupyter kernelspec list` and start the kernel by hand to see why",
        )

    def _run_silently(self, code: str) -> None:
        asked = self._client.execute(code, silent=True, store_history=False, allow_stdin=False)
        for _ in self._follow(asked, "", 0.1):
            pass

    # What a cell does

    def _follow(self, asked: str, cell: str, tick: Tick) -> Iterator[KernelEvent | None]:
        """Events until both the reply and the idle status of this request have come."""
        reply: Mapping[str, Any] | None = None
        shown: Mapping[str, Any] = {}
        idle = False
        give_up = overdue = 0.0
        reminded = False
        while reply is None or not idle:
            if not self._poller.poll(milliseconds(tick)):
                yield None
            heard = False
            for message in self._messages(self._client.iopub_channel):
                heard = True
                parent = message["parent_header"].get("msg_id")
                if parent == asked and message["msg_type"] == "status":
                    idle = message["content"]["execution_state"] == "idle"
                elif parent in self._asked:
                    self._watch_widgets(message)
                    if parent == asked and message["msg_type"] == "error":
                        shown = message["content"]
                    event = event_of(message, self._asked[parent], self._area)
                    if event is not None:
                        yield event
            for message in self._messages(self._client.shell_channel):
                if message["parent_header"].get("msg_id") == asked:
                    reply = message["content"]
            if self._keeper.look() and (reply is None or not idle):
                if heard:  # what it said before it died may still be on its way
                    continue
                yield self._died(cell)
                return
            now = time.monotonic()
            if heard or (reply is None and not idle):
                give_up, overdue = now + MISSING, now + OVERDUE
            elif reply is not None and not reminded and now > overdue:
                reminded = True
                self._client.kernel_info()  # any request makes it publish; nobody needs the answer
            elif now > give_up:
                lacking = "a reply" if reply is None else "an idle status"
                yield Warned(cell, f"the kernel never sent {lacking} for this cell")
                break
        if reply and reply.get("ename") == "NoneType":
            # A repr raised: ipykernel fails the cell but no longer knows by what.
            reply = {**reply, **shown}
        self._reply = reply or {}
        yield from ending(cell, self._reply, bool(shown))

    def _watch_widgets(self, message: Mapping[str, Any]) -> None:
        """Which output widget is being written to: it says so by taking a message's id."""
        if message["msg_type"] == "comm_msg":
            state = (message["content"].get("data") or {}).get("state")
            if isinstance(state, dict) and "msg_id" in state:
                self._area = str(message["content"].get("comm_id")) if state["msg_id"] else ""

    def _messages(self, channel: Any) -> Iterator[dict[str, Any]]:
        session = self._client.session
        while True:
            try:
                _, message = session.recv(channel.socket)
            except ValueError:  # not signed by this kernel, or not a message at all
                continue
            if message is None:
                return
            yield message

    def _died(self, cell: str) -> KernelDied:
        ended = self._keeper.exit or Exit()
        memory = {"max_rss": ended.max_rss} if ended.max_rss else {}
        return KernelDied(cell, ended.reason, ended.signal, ended.status, memory)

    def _request_on_control(self, kind: str, content: dict[str, Any]) -> None:
        session = self._client.session
        session.send(self._client.control_channel.socket, session.msg(kind, content))
