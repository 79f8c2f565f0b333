"""One git process that is asked many things, or told many things, before it ends."""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Self

from ..errors import GitError
from .repository import Repository, Said, refused

TOLD = 4096  # characters of what git complains of that are kept


class Talk:
    """Use it in a `with`: whatever happens, the process is gone afterwards."""

    def __init__(
        self,
        repository: Repository,
        name: str,
        *args: str,
        options: Sequence[str] = (),
        buffer: int = -1,
    ) -> None:
        """`options` are those of git itself, before the name of the command. `buffer`: bytes that
        it may be ahead of whoever reads it."""
        self.name = name
        # A file, not a pipe: nobody reads it while git is at work.
        self._err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self._process = repository.start(*options, name, *args, err=self._err, buffer=buffer)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        if buffer > 0:
            # A small pipe has the two wait for each other all the time. The system may refuse.
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, buffer)

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, *parts: bytes) -> None:
        try:
            for part in parts:
                self._in.write(part)
            self._in.flush()
        except OSError as error:
            raise self.broken() from error

    def line(self) -> bytes:
        answer = self._out.readline()
        if not answer.endswith(b"\n"):
            raise self.broken()
        return answer[:-1]

    def read(self, size: int) -> bytes:
        data = self._out.read(size)
        if len(data) != size:
            raise self.broken()
        return data

    def hush(self) -> None:
        """Nothing more is said to it; its answers may still be on their way."""
        with contextlib.suppress(OSError):
            self._in.close()

    def end(self) -> Said:
        """Nothing more is said to it; what it came to."""
        self.hush()
        out = self._out.read()
        code = self._process.wait()
        self._err.seek(0)
        return Said(code, out, self._err.read(TOLD).decode("utf-8", "replace").strip())

    def broken(self) -> GitError:
        """git ended in the middle of an answer."""
        return refused(self.end(), [self.name])

    def abandon(self) -> None:
        """Whatever it still has to say: it may wait for somebody who reads no more."""
        self._process.kill()

    def close(self) -> None:
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()
        if self._process.poll() is None:
            self._process.wait()
        self._err.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
