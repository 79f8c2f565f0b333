"""The host process: `python -m quire.cli.host_main ROOT READY_FD`, started by the first command."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import InternalError, QuireError
from ..host import host_socket
from ..host.host_calls import Call
from ..host.host_server import Host, Request
from ..kernel import processes
from ..kernel.inside import start_environment

if TYPE_CHECKING:
    from ..workspace import Engine

IDLE = 1800.0  # seconds, for a workspace whose configuration cannot be read


def main() -> None:
    root, ready = sys.argv[1], int(sys.argv[2])
    _let_go_of_others(ready)
    os.set_inheritable(ready, False)
    start_environment.overwrite()
    from ..workspace import Engine, Workspace

    processes.alone()
    engine = Engine(outlives=True)
    path = host_socket.address(root, __version__)

    def serve(request: Request) -> int:
        return served(request, engine)

    def answer(call: Call) -> dict[str, Any]:
        from ..agent import call_server

        return call_server.answer(engine, call)

    def describe() -> dict[str, Any]:
        return {
            "version": __version__,
            "zygotes": engine.kernels.native.status(),
            "refused_calls": engine.calls.strangers,
            "runs": list(engine.underway),
        }

    def in_use() -> bool:
        """Asked about once a second: also the time to let go of what nobody uses."""
        engine.tidy()
        if workspaces:
            from ..sessions.session import cull

            cull(workspaces[0])
        busy = engine.do_chores()
        kernels = any(live.session.alive for live in list(engine.sessions.values()))
        return busy or kernels or bool(engine.kept) or bool(engine.underway)

    workspaces: list[Workspace] = []
    host = Host(path, serve, describe=describe, in_use=in_use, answer=answer)
    if not host.listen():
        # Another client was quicker. Ours may talk to that host as soon as it answers.
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and (sock := host_socket.connect(path)) is None:
            time.sleep(0.005)
        if sock is not None:
            os.write(ready, b"1")
        return
    os.write(ready, b"1")
    os.close(ready)
    os.chdir(root)
    workspace = Workspace(root, cwd=root)
    with contextlib.suppress(QuireError):  # who runs something is told what is wrong with it
        host.idle = workspace.config.host_idle
        workspaces.append(Workspace(root, cwd=root, engine=engine))
    _warm_up(engine, workspace)
    try:
        host.serve()
    finally:
        engine.close()


def _let_go_of_others(ready: int) -> None:
    """The first client's other open files are not ours: a lock or a pipe of a script that we kept
    open would be held for as long as we live."""
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd != ready:
            with contextlib.suppress(OSError):
                os.close(fd)


def served(request: Request, engine: Engine) -> int:
    """Do what a client's command line says; the exit code."""
    from .main import App, dispatch, show_error
    from .terminal import Terminal

    engine.known.meet(request.env)
    stdin, out, err = request.files
    term = Terminal(out, err, request.env, request.columns, stdin=stdin)
    app = App(term, Path(request.cwd), request.env, engine, request.cancelled)
    app.announce = request.announce
    app.world = request.world
    app.caller = request.pid
    try:
        return dispatch(request.argv, app)
    except Exception as error:  # noqa: BLE001 - a program that asked for JSON gets JSON
        traceback.print_exc()
        said = f"Quire itself failed: {type(error).__name__}: {error}"
        wrong = InternalError(said, hint="the log has the details: .quire/host.log")
        show_error(app, wrong)
        return wrong.exit_code


def _warm_up(engine: Any, workspace: Any) -> float:
    """Start the first fork server, and import what every run needs while it starts.

    Returns for how long the workspace wants an idle host.
    """
    from ..kernel.protocol import KernelSpec

    idle = IDLE
    try:
        config = workspace.config
        idle = config.host_idle
        spec = KernelSpec(workspace.root, workspace.env, "", config.python, config.preload)
        if not config.dependencies:  # else tasks run in an environment that may not be there yet
            engine.kernels.native.zygote(spec)
    except (QuireError, OSError):
        pass  # the first run meets the same problem, and has somebody to tell
    from ..agent import call_tool  # noqa: F401
    from . import main as cli  # noqa: F401

    return idle


if __name__ == "__main__":
    main()
