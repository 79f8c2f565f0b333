"""The IPython shell of a native kernel: ipykernel's own class without its sockets.

Libraries look at the shell's class name and traits to decide whether they are in a notebook, so
the class is ipykernel's where that is installed and looks like it where only IPython is.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
import warnings
import zlib
from typing import Any

from . import error_origin, tracebacks
from .streams import Channel

SCRIPT_ENDS = 1.0  # seconds for the thread that saw the end of a script to end itself


class Wire:
    """Stands where ipykernel has its ZMQ session: takes Jupyter messages, sends our lines."""

    def __init__(self) -> None:
        self.channel: Channel | None = None
        self._error: Any = None

    def msg(self, msg_type: str, content: Any = None, parent: Any = None, **_: Any) -> Any:
        header = {"msg_type": msg_type, "msg_id": "", "session": ""}
        return {
            "header": header,
            "msg_type": msg_type,
            "parent_header": parent or {},
            "content": content if content is not None else {},
            "metadata": {},
        }

    def send(self, _socket: Any, message: Any, content: Any = None, *_: Any, **__: Any) -> None:
        if isinstance(message, str):
            message = self.msg(message, content)
        if message["msg_type"] == "error":
            self._error = message["content"]
        if self.channel is not None:
            self.channel.send({"m": message["msg_type"], "content": message["content"]})

    def take_error(self) -> Any:
        """The last error that was shown, once."""
        error, self._error = self._error, None
        return error


class NoFrontEnd:
    """The little of a kernel object that libraries ask of `get_ipython().kernel`."""

    eventloop = None
    implementation = "ipython"
    language = "python"

    def __init__(self) -> None:
        self.shell: Any = None

    def get_parent(self, _channel: str | None = None) -> dict[str, Any]:
        # An output widget notes whose output it takes; any name does.
        return {"header": {"msg_id": "cell"}}


def _refuse_input(prompt: str = "") -> str:
    from IPython.core.error import StdinNotImplementedError

    raise StdinNotImplementedError(
        "input() was called, but nobody is there to answer. Make the value a parameter of the task."
    )


def make_shell() -> Any:
    """The one shell of this process, before it is forked into kernels."""
    base, hook, publisher = _bases()
    compiler = _compiler()

    def showtraceback(self: Any, *args: Any, **kwargs: Any) -> None:
        # sys.exit(0) ends a task well: there is no error to show.
        error = self.quire_raised = sys.exc_info()[1]
        if not (isinstance(error, SystemExit) and error.code in (None, 0, False)):
            try:
                with tracebacks.remembering(self.InteractiveTB):
                    base.showtraceback(self, *args, **kwargs)
            except BaseException:  # such as of an error whose own text cannot be had
                if error is None:
                    raise
                self._showtraceback(*error_origin.at_least(error, self))

    def _format_exception_for_storage(self: Any, *args: Any, **kwargs: Any) -> Any:
        # IPython formats it once more, for its history.
        with tracebacks.remembering(self.InteractiveTB):
            return base._format_exception_for_storage(self, *args, **kwargs)

    def enable_gui(self: Any, gui: Any = None) -> None:
        # ipykernel would ask its application; there is no window to show anything in anyway.
        if gui not in (None, "inline", "asyncio", "ipympl", "widget", "nbagg", "notebook", "agg"):
            from IPython.core.error import UsageError

            raise UsageError(f"there is no screen here for the GUI {gui!r}: use %matplotlib inline")
        self.active_eventloop = gui

    shell_class: Any = type(
        "ZMQInteractiveShell",
        (base,),
        {
            "__module__": base.__module__,  # where libraries expect a notebook's shell to be from
            "displayhook_class": _trait_type(hook),
            "display_pub_class": _trait_type(publisher),
            "showtraceback": showtraceback,
            "_format_exception_for_storage": _format_exception_for_storage,
            "enable_gui": enable_gui,
        },
    )
    warnings.filterwarnings("ignore", message="To exit: use 'exit'")
    from traitlets.config import Config

    config = Config()
    # The history database costs a thread and a lock on a shared file; the run's journal keeps it.
    config.HistoryManager.enabled = False
    config.InteractiveShell.autoindent = False
    kernel = NoFrontEnd()
    extra = {"kernel": kernel} if base.__name__ == "ZMQInteractiveShell" else {}
    shell = shell_class.instance(config=config, compiler_class=compiler, **extra)
    kernel.shell = shell
    wire = Wire()
    shell.display_pub.session = wire
    shell.displayhook.session = wire
    for part in (shell.display_pub, shell.displayhook):
        part.pub_socket = None
    shell.quire_wire = wire
    _watch_widgets(wire)
    _offer_sql(shell)
    shell.quire_transformers = _transformers(shell)
    return shell


def _offer_sql(shell: Any) -> None:
    """`%%sql`, unless an extension brings its own later."""

    def sql(line: str, cell: str) -> Any:
        from . import sql as database

        database.install(shell)
        return shell.run_cell_magic("sql", line, cell)

    shell.register_magic_function(sql, "cell", "sql")


def _watch_widgets(wire: Wire) -> None:
    """Notice which output widget is being written to: nobody else is there to follow it."""
    try:
        import comm
        from comm.base_comm import BaseComm
    except ImportError:
        return

    class QuietComm(BaseComm):  # type: ignore[misc]
        def publish_msg(self, msg_type: str, data: Any = None, *_: Any, **__: Any) -> None:
            state = data.get("state") if isinstance(data, dict) else None
            if isinstance(state, dict) and "msg_id" in state and wire.channel is not None:
                sys.stdout.flush()
                sys.stderr.flush()
                wire.channel.area = self.comm_id if state["msg_id"] else ""

    comm.create_comm = lambda *args, **kwargs: QuietComm(*args, **kwargs)


def warm_up(shell: Any) -> None:
    """Run what every first cell runs, so that its lazy imports are done before the fork."""
    from IPython.core.async_helpers import get_asyncio_loop

    for code in ("x = 1\nx", "1 / 0", "await __import__('asyncio').sleep(0)"):
        shell.run_cell(code, store_history=True)
    # The last of them made IPython open a loop. A kernel that inherited its sockets could never be
    # set aside.
    get_asyncio_loop().close()
    shell.user_ns.pop("x", None)
    forget(shell)


# Where IPython's syntax begins: escapes and prompts at the start of a line, help at its end,
# `name = !command`, indentation or blank lines at the very top.
_SPECIAL = re.compile(r"^\s*(?:[%!?/,;]|>>>|\.\.\.|In ?\[)|\?\s*$|=\s*[%!]|\A\s", re.MULTILINE)
_LONE_NAME = re.compile(r"\w+\s*")


def transform(shell: Any, code: str) -> str:
    """IPython's own transformation, skipped where it could not change anything."""
    # A lone name may be a macro; a changed number of transformers is somebody's extension.
    changed = _transformers(shell) != shell.quire_transformers
    if changed or _SPECIAL.search(code) or _LONE_NAME.fullmatch(code):
        return str(shell.transform_cell(code))
    return code if code.endswith("\n") else code + "\n"


def _transformers(shell: Any) -> tuple[int, ...]:
    manager = shell.input_transformer_manager
    return (
        len(manager.cleanup_transforms),
        len(manager.line_transforms),
        len(manager.token_transformers),
        len(shell.input_transformers_post),
    )


def end_script_loop(shell: Any) -> None:
    """`%%bash` leaves the threads that ran its script and waited for it, and with threads the state
    cannot be set aside. The next one makes others; a script in the background still needs them."""
    magics = shell.magics_manager.registry.get("ScriptMagics")
    loop = getattr(magics, "event_loop", None)
    if loop is None or magics.bg_processes:
        return
    magics.event_loop = None
    threads = threading.enumerate()
    for thread in threads:
        if thread.name.startswith("asyncio-waitpid-"):
            thread.join(SCRIPT_ENDS)
    runs = [thread for thread in threads if getattr(thread, "_target", None) == loop.run_forever]
    loop.call_soon_threadsafe(loop.stop)
    for thread in runs:
        thread.join()
    loop.close()


def forget(shell: Any) -> None:
    """As if nothing had run: no history, counts from 1."""
    shell.reset(new_session=True)
    shell.quire_wire.take_error()
    for name in ("__spec__", "__loader__", "__package__"):  # multiprocessing asks for them
        shell.user_module.__dict__.setdefault(name, None)


def _trait_type(cls: type) -> Any:
    from traitlets import Type

    return Type(cls)


def _compiler() -> type:
    from IPython.core.compilerop import CachingCompiler

    class CellCompiler(CachingCompiler):  # type: ignore[misc]
        """Names cells as ipykernel does, by a hash that does not cost more than the cell."""

        def get_code_name(self, raw_code: str, code: str, number: int) -> str:
            digest = zlib.crc32(raw_code.encode("utf-8", "surrogatepass"))
            return os.path.join(tempfile.gettempdir(), f"ipykernel_{os.getpid()}", f"{digest}.py")

    return CellCompiler


def _bases() -> tuple[Any, Any, Any]:
    try:
        from ipykernel.displayhook import ZMQShellDisplayHook
        from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQInteractiveShell
    except ImportError:
        return _plain_bases()
    from traitlets import Any as AnyTrait

    hook = type("Hook", (ZMQShellDisplayHook,), {"session": AnyTrait(), "topic": b""})
    publisher = type("Publisher", (ZMQDisplayPublisher,), {"session": AnyTrait()})
    return ZMQInteractiveShell, hook, publisher


def _plain_bases() -> tuple[Any, Any, Any]:
    """Only IPython is there: the same messages, without ipykernel's finer points."""
    from . import plain_shell

    return plain_shell.PlainShell, plain_shell.PlainHook, plain_shell.PlainPublisher


def settle(shell: Any, stdout: Any, stderr: Any) -> None:
    """Make the forked process look like a fresh notebook."""
    sys.stdout, sys.stderr = stdout, stderr
    sys.__dict__.update(__stdout__=stdout, __stderr__=stderr)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - open for as long as the kernel lives
    sys.argv = [""]  # as in an interactive interpreter: ours are nobody's business
    main = sys.modules["__main__"]
    if main is not shell.user_module:
        sys.modules["__main__"] = shell.user_module
    import builtins

    builtins.input = _refuse_input  # type: ignore[assignment]
    import getpass

    getpass.getpass = _refuse_input  # type: ignore[assignment]
