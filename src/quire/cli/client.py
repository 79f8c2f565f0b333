"""The command's first few milliseconds.

A warm run is handed to the workspace's host before anything big is imported: this file may use
only what the interpreter has loaded anyway. Everything else goes to `quire.cli.main`.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

# Commands that a host does better than a fresh process.
HOSTED = ("run", "replay", "resume", "session", "exec", "rewind", "wait", "cancel")
STAY_HERE = ("--no-host", "--help", "-h", "-")  # a lone "-" reads stdin, which we have
STOPPING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)


def main() -> None:
    _open_standard_files()
    argv = sys.argv[1:]
    try:
        if argv and argv[0] in HOSTED and not any(a in STAY_HERE for a in argv) and _can_host():
            code = hand_off(argv)
            if code is not None:
                # Nothing of ours is left to clean up, and finalising the interpreter takes a while.
                os._exit(code)
        if argv[:1] == ["git"]:  # git waits for us at every add and every checkout
            from ..git.drivers import answer

            code = answer(argv[1:])
            if code is not None:
                sys.exit(code)
        from .main import main as cli_main

        code = cli_main(argv)
    except KeyboardInterrupt:  # before anything had begun, or after it had ended
        os._exit(130)
    sys.exit(code)


def _open_standard_files() -> None:
    """Where one of the three is closed, the next file opened would take its place."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _can_host() -> bool:
    return hasattr(os, "posix_spawn") and not os.environ.get("QUIRE_NO_HOST")


def hand_off(argv: list[str]) -> int | None:
    """Let the workspace's host do it. The exit code, or None when no host could be had."""
    from .. import __version__
    from ..host import host_socket

    cwd = os.getcwd()
    root = host_socket.find_root(cwd)
    path = host_socket.address(root, __version__)
    try:
        sock = host_socket.connect(path)
        if sock is None:
            if not host_socket.start(root):
                return None
            sock = host_socket.connect(path)
            if sock is None:
                return None
    except OSError:
        return None  # a read-only or full workspace: the command itself will say so
    request = host_socket.encode(argv, cwd, dict(os.environ), _columns())
    try:
        host_socket.send(sock, request, (0, 1, 2))
    except OSError:
        return None  # the host left in this very moment: nothing has begun
    _cancel_on_signals(sock)
    return _wait(sock, argv)


def _columns() -> int:
    """Width of the terminal progress is shown on; 0 where there is none."""
    try:
        return os.get_terminal_size(2).columns
    except OSError:
        return 0


def _cancel_on_signals(sock: socket) -> None:
    """Ctrl-C and SIGTERM cancel the run, a second one leaves at once. Before this they just leave:
    the host then sees that nobody is there."""
    asked = False

    def cancel(*_: object) -> None:
        nonlocal asked
        if asked:
            os._exit(130)
        asked = True
        try:
            sock.sendall(b"c")
        except OSError:
            os._exit(130)

    for name in STOPPING:
        # What was ignored when we started, as under nohup, stays ignored.
        if _signal.getsignal(name) != _signal.SIG_IGN:
            _signal.signal(name, cancel)


def _wait(sock: socket, argv: list[str]) -> int:
    """The host's exit code.

    The host sends the id of the run, a line, and at the end the code, a NUL and a byte.
    """
    said = b""
    while b"\0" not in said[:-1]:
        try:
            answer = sock.recv(256)
        except OSError:
            answer = b""
        if not answer:
            from .main import lost

            return lost(argv, said.decode().strip())
        said += answer
    return int(said[said.index(b"\0") + 1])
