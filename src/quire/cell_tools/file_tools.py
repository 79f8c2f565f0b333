"""Reading, writing and patching text files for a cell, within `Places`."""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from ..errors import Refused, ToolError
from . import policy
from .allowed_paths import Places, Spot

SCANNED = 200_000_000  # bytes of a file whose lines are counted
DIFF_LINES = 200
DIFF_WIDTH = 2_000  # characters of each
DIFF_COMPARED = 800  # lines that are compared with each other
AROUND = 2  # lines that are shown around each change
_BLOCK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def read_file(
    places: Places,
    given: Mapping[str, Any],
    limit: int,
    seconds: float,
    called_off: Callable[[], bool],
) -> dict[str, Any]:
    offset = whole(given.get("offset", 1), "offset", least=1)
    lines = whole(given.get("limit", 2000), "limit", least=1)
    with places.at(given.get("path"), given.get("cwd")) as spot, _opened(spot) as fd:
        size = os.fstat(fd).st_size
        if size > SCANNED:
            raise ToolError(
                f"{spot.path} has {size:,} bytes; files up to {SCANNED:,} are read",
                hint="open it in Python and read the part that matters",
            )
        deadline = time.monotonic() + seconds

        def check() -> None:
            if called_off():
                raise ToolError("called off")
            if time.monotonic() > deadline:
                raise ToolError(
                    f"reading {spot.path} took longer than {seconds:g} s", hint="open it in Python"
                )
            if file.tell() > SCANNED:
                raise ToolError(f"{spot.path} grows while it is read", hint="read it in Python")

        with open(fd, "rb", closefd=False) as file:
            check()
            if b"\0" in file.read(8192):
                raise ToolError(f"{spot.path} is not a text file", hint="open it in Python")
            file.seek(0)
            text, kept, total, cut = _lines(file, offset, lines, limit, check)
    more = offset + kept <= total
    return {
        "path": spot.path,
        "text": text,
        "offset": offset,
        "lines": kept,
        "total_lines": total,
        "size": size,
        "truncated": more or cut,
        "next_offset": offset + kept if more else None,
    }


def _lines(
    file: BinaryIO, offset: int, wanted: int, limit: int, check: Callable[[], object]
) -> tuple[str, int, int, bool]:
    """The text of the wanted lines, how many they are, how many there are, and whether one was cut.
    The others are only counted, block by block."""
    number, last = 1, b""  # of the line that is read next; the last byte so far
    while number < offset and (block := file.read(_BLOCK)):
        check()
        ends = block.count(b"\n")
        last = block[-1:]
        if number + ends < offset:
            number += ends
            continue
        start = 0
        for _ in range(offset - number):
            start = block.index(b"\n", start) + 1
        file.seek(start - len(block), os.SEEK_CUR)
        number, last = offset, b"\n"
    parts: list[bytes] = []
    room = limit
    while number >= offset and len(parts) < wanted and room >= 0:
        line = file.readline(room + 1)
        if not line or (len(line) > room and parts):
            file.seek(
                -len(line), os.SEEK_CUR
            )  # lines are given whole, but for one that is too long
            break
        parts.append(line[:room])
        room -= len(line)
        number, last = number + line.endswith(b"\n"), line[-1:]
    while block := file.read(_BLOCK):
        check()
        number, last = number + block.count(b"\n"), block[-1:]
    total = number if last not in (b"", b"\n") else number - 1
    return b"".join(parts).decode("utf-8", "replace"), len(parts), total, room < 0


def write_file(places: Places, given: Mapping[str, Any], limit: int, umask: int) -> dict[str, Any]:
    data = _encoded(given.get("content"), "content")
    if len(data) > limit:
        raise Refused(
            f"the content has {len(data):,} bytes; at most {limit:,} are written",
            hint="raise write_limit under [tools], or write it in Python",
        )
    with places.at(given.get("path"), given.get("cwd"), write=True, make=0o777 & ~umask) as spot:
        _writable(spot)
        policy.keep(spot, data)
        _replace(spot, data, umask)
    return {"path": spot.path, "bytes": len(data), "created": spot.status is None}


def patch(places: Places, given: Mapping[str, Any], limit: int, umask: int) -> dict[str, Any]:
    old, new = given.get("old"), given.get("new")
    _encoded(old, "old")
    _encoded(new, "new")
    assert isinstance(old, str)
    assert isinstance(new, str)
    if not old:
        raise ToolError("the text to replace is empty", hint="use write_file for a new file")
    if old == new:
        raise ToolError("the old and the new text are the same", hint="nothing was changed")
    with places.at(given.get("path"), given.get("cwd"), write=True) as spot:
        _writable(spot)
        before = _whole_text(spot, limit)
        count = before.count(old)
        if count == 0:
            hint = "read it again: it may differ"
            if _unix(old) in _unix(before):
                hint = r"only the ends of lines differ: \r\n in one of the two, \n in the other"
            raise ToolError(f"the old text does not stand in {spot.path}", hint=hint)
        if count > 1 and not given.get("replace_all"):
            raise ToolError(
                f"the old text stands {count} times in {spot.path}",
                hint="give more of what is around it, or replace_all=True",
            )
        after = before.replace(old, new)
        data = after.encode("utf-8")
        if len(data) > limit:
            raise Refused(
                f"{spot.path} would have {len(data):,} bytes; at most {limit:,} are written"
            )
        policy.keep(spot, data)
        _replace(spot, data, umask)
    return {"path": spot.path, "replacements": count, "diff": _diff(before, old, new, spot.path)}


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _whole_text(spot: Spot, limit: int) -> str:
    with _opened(spot) as fd, open(fd, "rb", closefd=False) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{spot.path} has more than {limit:,} bytes", hint="change it in Python")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{spot.path} is not UTF-8", hint="change it in Python") from None


def _diff(before: str, old: str, new: str, path: str) -> str:
    """A unified diff. Where the replacements are is known: only what is around them is compared."""
    name = os.path.basename(path)
    rows = [f"--- {name}", f"+++ {name}"]
    line = moved = done = 0
    left, start = before.count(old), before.find(old)
    while start >= 0 and len(rows) < DIFF_LINES:
        begin = max(done, _line_before(before, start))
        line += before.count("\n", done, begin)
        done = begin
        while True:  # those close behind it are in the same hunk
            done = _line_after(before, start + len(old))
            start = before.find(old, start + len(old))
            if not 0 <= start < done:
                break
        text = before[begin:done]
        left -= text.count(old)
        was, now = text.splitlines(), text.replace(old, new).splitlines()
        rows.append(f"@@ -{line + 1},{len(was)} +{line + moved + 1},{len(now)} @@")
        rows += _compared(was, now)
        line += text.count("\n")
        moved += len(now) - len(was)
    rows += [f"… {left:,} more replacements"] if left else []
    return "\n".join(row[:DIFF_WIDTH] for row in rows)


def _line_before(text: str, at: int) -> int:
    for _ in range(AROUND + 1):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _line_after(text: str, at: int) -> int:
    for _ in range(AROUND + 1):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _compared(was: list[str], now: list[str]) -> Iterator[str]:
    # The time grows with the cube of their number where many lines are like each other.
    large = len(was) + len(now) > DIFF_COMPARED
    known = [("replace", 0, len(was), 0, len(now))]
    changes = known if large else difflib.SequenceMatcher(None, was, now).get_opcodes()
    for change, first, last, new_first, new_last in changes:
        if change == "equal":
            yield from (f" {text}" for text in was[first:last])
            continue
        for sign, texts in (("-", was[first:last]), ("+", now[new_first:new_last])):
            yield from (sign + text for text in texts[: DIFF_LINES // 2])
            if len(texts) > DIFF_LINES // 2:
                yield "… more of it"


@contextlib.contextmanager
def _opened(spot: Spot) -> Iterator[int]:
    """For reading. Only a regular file, and the one that was looked at."""
    if spot.status is None:
        raise ToolError(f"there is no file {spot.path}", hint="check the path")
    _regular(spot.path, spot.status)
    try:
        fd = os.open(spot.name, _READ, dir_fd=spot.folder)
    except OSError as error:
        raise _disk(spot, error) from error
    try:
        status = os.fstat(fd)
        if not os.path.samestat(status, spot.status):
            raise Refused(f"{spot.path} changed while it was looked at")
        _regular(spot.path, status)
        yield fd
    except OSError as error:  # what looks like a file need not be one, as in /proc
        raise _disk(spot, error) from error
    finally:
        os.close(fd)


def _writable(spot: Spot) -> None:
    """The permissions of a file would not keep another from being put in its place."""
    if spot.status is None:
        return
    _regular(spot.path, spot.status)
    if not spot.status.st_mode & 0o222:
        raise ToolError(f"{spot.path} is read-only", hint="chmod it first, if it is to be changed")


def _regular(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolError(f"{path} is a folder", hint="name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path} is a device, a socket or a pipe, not a file")


def _replace(spot: Spot, data: bytes, umask: int) -> None:
    """The whole new file in the place of the old one, or nothing."""
    mode = stat.S_IMODE(spot.status.st_mode) & 0o777 if spot.status else 0o666 & ~umask
    name = f".{secrets.token_hex(6)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, 0o600, dir_fd=spot.folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(fd, mode)
                os.fsync(fd)
            _unchanged(spot)
            os.replace(name, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=spot.folder)
            raise
    except OSError as error:
        raise _disk(spot, error) from error


def _unchanged(spot: Spot) -> None:
    """What somebody wrote there in the meantime is not lost."""
    now: os.stat_result | None = None
    with contextlib.suppress(FileNotFoundError):
        now = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
    if _version(now) != _version(spot.status):
        raise ToolError(
            f"{spot.path} was changed by somebody else in the meantime", hint="read it again"
        )


def _version(status: os.stat_result | None) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size) if status else ()


def _disk(spot: Spot, error: OSError) -> ToolError:
    return ToolError(f"{spot.path}: {error.strerror or error}", hint="check path and permissions")


def _encoded(value: object, name: str) -> bytes:
    if not isinstance(value, str):
        raise ToolError(f"{name} must be text", hint="give a str")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError(
            f"{name} holds half of a character that UTF-8 cannot write", hint="write it in Python"
        ) from None


def whole(value: object, name: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 53:
        raise ToolError(f"{name} must be a whole number from {least} on", hint=f"{name}={least}")
    return value
