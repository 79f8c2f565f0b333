"""Where a command writes: the caller's own files, with colour only where a person looks."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping

from ..errors import StorageError

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "dim": "2", "bold": "1"}


class Terminal:
    def __init__(
        self,
        out: int = 1,
        err: int = 2,
        env: Mapping[str, str] | None = None,
        columns: int = 0,
        *,
        stdin: int = 0,
    ) -> None:
        env = os.environ if env is None else env
        self._fds = (out, err)
        self.columns = columns or 80
        self.stdin = stdin
        self.busy = False  # a person is being asked: nothing that moves is drawn
        self.live = _isatty(err) and env.get("TERM") != "dumb"
        self._colour = [
            _isatty(fd) and "NO_COLOR" not in env and env.get("TERM") != "dumb" for fd in self._fds
        ]

    @property
    def is_attended(self) -> bool:
        """Whether somebody can be asked."""
        return _isatty(self.stdin) and _isatty(self._fds[1])

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """A person is being asked something."""
        self.busy = True
        if self.live:
            self.err("\r\x1b[K", end="")
        try:
            yield
        finally:
            self.busy = False

    def out(self, text: str = "", *, end: str = "\n") -> None:
        self._write(0, text + end)

    def err(self, text: str = "", *, end: str = "\n") -> None:
        self._write(1, text + end)

    def paint(self, text: str, colour: str, *, on_err: bool = False) -> str:
        if not self._colour[on_err] or not colour:
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"

    def _write(self, which: int, text: str) -> None:
        view = memoryview(text.encode("utf-8", "replace"))
        try:
            while view:
                view = view[os.write(self._fds[which], view) :]
        except BrokenPipeError:
            pass  # a reader that left (`| head`) does not stop a run
        except OSError as error:
            if which == 0 and error.errno not in (errno.EBADF, errno.EIO):
                raise StorageError(
                    f"cannot write to standard output: {error.strerror}",
                    hint="free some space, or send it somewhere else",
                ) from error


def _isatty(fd: int) -> bool:
    with contextlib.suppress(OSError):
        return os.isatty(fd)
    return False
