"""How a client finds and talks to the workspace's host.

Part of every command's start-up, so it imports nothing the interpreter has not loaded anyway:
`_socket` instead of `socket`, a checksum instead of a hash, no json, no pathlib.
"""

from __future__ import annotations

import _socket
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MARKS = ("quire.toml", ".quire", ".git")
# All that hosts and fork servers are started with: where things are, and what an interpreter and
# libraries read while they load. Whatever else a caller has comes over the line, for its own run.
START = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"),
    *("CONDA_PREFIX", "QUIRE_CACHE", "QUIRE_KEYS", "SSL_CERT_DIR", "SSL_CERT_FILE", "VIRTUAL_ENV"),
    *("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"),
    *("all_proxy", "https_proxy", "http_proxy", "no_proxy"),
)
# Read while a program loads, so that one fork server cannot serve two values of them.
LOADED_WITH = (
    "PYTHON",
    "LD_",
    "LC_",
    "LANG",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "MPL",
    "HOME",
    "IPYTHON",
)
START_PREFIXES = (*LOADED_WITH, "XDG_")
_TELLING = ("TOKEN", "SECRET", "PASS", "KEY", "CRED", "AUTH")
STOP, STATUS, CALL = b"stop", b"stat", b"call"
_INT = 4


def start_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Those of START that an environment has, without what looks as if it told a secret."""
    return {
        name: value
        for name, value in env.items()
        if name in START
        or (name.startswith(START_PREFIXES) and not any(w in name.upper() for w in _TELLING))
        if "://" not in value or "@" not in value
    }


def find_root(start: str) -> str:
    """The workspace a folder is in: the nearest one that has a mark, else the folder itself."""
    folder = start
    while True:
        for mark in MARKS:
            if os.path.exists(f"{folder}/{mark}"):
                return folder
        if _has_table(f"{folder}/pyproject.toml"):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return start
        folder = parent


def _has_table(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"[tool.quire" in file.read()
    except OSError:
        return False


def address(root: str, version: str) -> str:
    """Where the host of a workspace listens. Different installations never share a host."""
    key = f"{zlib.crc32(f'{version} {sys.prefix} {root}'.encode('utf-8', 'surrogateescape')):08x}"
    path = f"{root}/.quire/host-{key}.sock"
    if len(os.fsencode(path)) < 100:
        return path
    # Unix socket paths are short by law; a deep workspace gets a private folder elsewhere.
    return f"/tmp/quire-{os.getuid()}/{key}.sock"


_LIMITS = ("AS", "CORE", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")


def world() -> str:
    """What a process inherits besides folder and environment: umask, niceness, cores, limits."""
    import resource

    mask = os.umask(0o077)
    os.umask(mask)
    cores = ",".join(map(str, os.sched_getaffinity(0)))
    soft = (resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in _LIMITS)
    return f"{mask} {os.getpriority(os.PRIO_PROCESS, 0)} {cores} {','.join(map(str, soft))}"


def read_world(text: str) -> dict[str, object]:
    mask, nice, cores, soft = text.split(" ")
    return {
        "umask": int(mask),
        "nice": int(nice),
        "affinity": [int(core) for core in cores.split(",")],
        "limits": dict(zip(_LIMITS, map(int, soft.split(",")), strict=True)),
    }


def encode(argv: list[str], cwd: str, env: dict[str, str], columns: int) -> bytes:
    """Neither arguments nor environment can hold a NUL, so it separates them."""
    parts = [cwd, str(columns), world(), str(len(argv)), *argv]
    parts += [f"{key}={value}" for key, value in env.items()]
    body = "\0".join(parts).encode("utf-8", "surrogateescape")
    return len(body).to_bytes(_INT, "big") + body


def decode(body: bytes) -> tuple[list[str], str, dict[str, str], int, dict[str, object]]:
    parts = body.decode("utf-8", "surrogateescape").split("\0")
    count = int(parts[3])
    env = dict(item.split("=", 1) for item in parts[4 + count :] if "=" in item)
    return parts[4 : 4 + count], parts[0], env, int(parts[1]), read_world(parts[2])


def connect(path: str) -> _socket.socket | None:
    """A line to our host, or None when there is none."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sock.connect(path)
        # Nobody else's process may answer in our name: it would get our environment and files.
        if _credentials(sock)[_INT : 2 * _INT] == os.getuid().to_bytes(_INT, sys.byteorder):
            return sock
    except OSError:
        pass
    sock.close()
    return None


def _credentials(sock: _socket.socket) -> bytes:
    """Process, user and group at the other end."""
    return sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 3 * _INT)


def peer(sock: _socket.socket) -> int:
    """The process at the other end; 0 where it cannot be seen from here."""
    return int.from_bytes(_credentials(sock)[:_INT], sys.byteorder)


def send(sock: _socket.socket, request: bytes, files: tuple[int, ...]) -> None:
    """The request, and with its first bytes the client's own standard files."""
    fds = b"".join(fd.to_bytes(_INT, sys.byteorder) for fd in files)
    sent = sock.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
    if sent < len(request):
        sock.sendall(request[sent:])


def start(root: str) -> bool:
    """Start a host and wait until it listens. False when it could not."""
    read, write = os.pipe()
    os.set_inheritable(write, True)
    null = os.open(os.devnull, os.O_RDWR)
    os.makedirs(f"{root}/.quire", exist_ok=True)
    log = os.open(f"{root}/.quire/host.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "quire.cli.host_main", root, str(write)],
            start_variables(os.environ),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setsid=True,
        )
    finally:
        for fd in (write, null, log):
            os.close(fd)
    try:
        return os.read(read, 1) == b"1"
    finally:
        os.close(read)
