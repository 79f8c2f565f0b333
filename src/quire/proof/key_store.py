"""The keys this machine signs with: one file, for its owner alone, outside every repository.

    $QUIRE_KEYS, or $XDG_CONFIG_HOME/quire/keys, or ~/.config/quire/keys
        signing.json    the private key, and the public halves of those that came before it

It is one file so that a change of keys is one step: there is never a moment without a key, and
none in which an ended key still signs.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import StorageError, UsageError
from ..files import disk, locked, write_atomic
from . import strict_json
from .signatures import seal
from .trust import LIST, Trust, Trusted, added, ended, key_id, parse, public_key, when

FILE = "signing.json"
OWN = "this machine"
_LIMIT = 1_000_000  # bytes of a file of keys


@dataclass(frozen=True)
class Key:
    """A key that signs. Read anew for every signing: another process may have changed it."""

    seed: bytes = field(repr=False)

    @cached_property
    def _private(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self.seed)

    @cached_property
    def public(self) -> str:
        """The public half, in base64."""
        return base64.b64encode(self._private.public_key().public_bytes_raw()).decode()

    @cached_property
    def id(self) -> str:
        return key_id(base64.b64decode(self.public))

    def sign(self, data: bytes) -> bytes:
        signature: bytes = self._private.sign(data)
        return signature


@dataclass(frozen=True)
class Held:
    """What the file holds: the key, and the public halves of those that ended."""

    key: Key
    made: str
    ended: tuple[Trusted, ...] = ()

    def dumps(self) -> bytes:
        told = {
            "format": 1,
            "private": base64.b64encode(self.key.seed).decode(),
            "made": self.made,
            "ended": [{"public": key.public, "until": key.until} for key in self.ended],
        }
        return json.dumps(told, indent=1).encode() + b"\n"


def utc_now() -> datetime:
    return datetime.now(UTC)


def folder(env: Mapping[str, str]) -> Path:
    """Where keys are kept, from the environment given."""
    if chosen := env.get("QUIRE_KEYS", ""):
        if not os.path.isabs(chosen):
            raise UsageError(
                f"QUIRE_KEYS is {chosen!r}, which is no absolute path", hint="begin it with /"
            )
        return Path(chosen)
    config = env.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(config):
        return Path(config) / "quire" / "keys"
    home = env.get("HOME", "")
    if not os.path.isabs(home):
        raise UsageError("there is no home folder to keep keys in", hint="set QUIRE_KEYS")
    return Path(home) / ".config" / "quire" / "keys"


class Keys:
    """This machine's own keys, and the list of a repository that says whom to trust."""

    def __init__(
        self,
        env: Mapping[str, str],
        root: Path,
        now: Callable[[], datetime] = utc_now,
        *,
        tracked: bool = False,
    ) -> None:
        """`root` is where the list lies; `tracked`: it is the top of a repository."""
        self.env = env
        self.root = root
        self.now = now
        self.tracked = tracked

    @property
    def path(self) -> Path:
        return folder(self.env) / FILE

    @property
    def list_path(self) -> Path:
        return self.root / LIST

    # Signing

    def own(self) -> Key:
        """The key to sign with, made on first use.

        Under the lock: a key that is read while another takes its place would sign after its end.
        """
        with self._locked():
            found = self.held()
            if found is None:
                found = Held(_new_key(), self._moment())
                write_atomic(self.path, found.dumps(), mode=0o600)
            return found.key

    def seal(self, data: bytes) -> str:
        """A signature on a step of the archive's history."""
        return seal(data, self.own())

    def held(self) -> Held | None:
        """What the file holds, or None before the first use."""
        data = self._private_bytes()
        return None if data is None else _loads(data, self.path)

    def rotate(self) -> Held:
        """A new key in place of the old one, which from now on only verifies."""
        with self._locked():
            old = self.held()
            moment = self._moment()
            new = Held(_new_key(), moment)
            if old is not None:
                gone = Trusted(old.key.public, OWN, until=moment)
                new = replace(new, ended=(*old.ended, gone))
            # First the list learns of the new key, last that the old one ended: wherever this is
            # cut short, what this machine signs is trusted.
            if old is not None:
                self._follow(old.key.public, new.key.public)
            write_atomic(self.path, new.dumps(), mode=0o600)
        if old is not None:
            self._change(lambda text: ended(text, old.key.public, moment))
        return new

    def _moment(self) -> str:
        return self.now().astimezone(UTC).isoformat().replace("+00:00", "Z")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        place = folder(self.env)
        if self.tracked:
            _outside(place, self.root)
        with disk(str(place)):
            place.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                place.mkdir(mode=0o700)
        _mine(place, place.stat(), 0o022, "0700")
        with locked(place):
            yield

    def _private_bytes(self) -> bytes | None:
        path = self.path
        with _opened(path, "the key", "it must be a file of your own, and no link") as fd:
            if fd is None:
                return None
            _mine(path, os.fstat(fd), 0o077, "0600")
            return os.read(fd, _LIMIT)

    # Trust

    def own_trust(self) -> Trust:
        """This machine's keys, with the time at which each ended."""
        found = self.held()
        keys = () if found is None else (*found.ended, Trusted(found.key.public, OWN))
        return Trust({key.id: key for key in keys}, str(self.path), own=True)

    def listed(self) -> Trust | None:
        """The list in the working tree, or None where there is none."""
        text = self._list_text()
        return None if text is None else parse(text.encode(), LIST)

    def trust(self, *keys: Trusted) -> None:
        """Add keys to the list, all or none."""
        for key in keys:
            key_in_list = added("", key).encode()
            parse(key_in_list)  # what we write we can read
        self._change(lambda text: added(text, *keys), make=True)

    def _follow(self, old: str, new: str) -> None:
        """Where the list has the old key, it gets the new one under the same name."""

        def following(text: str) -> str:
            known = {key.public: key for key in parse(text.encode()).keys.values()}
            if old not in known or new in known:
                return text
            return added(text, Trusted(new, known[old].name))

        self._change(following)

    def _change(self, edit: Callable[[str], str], *, make: bool = False) -> None:
        """Replace the list as a whole, one process at a time."""
        with locked(self.root):
            text = self._list_text()
            if text is None and not make:
                return
            wanted = edit(text or "")
            parse(wanted.encode(), LIST)
            if wanted != text:
                mode = 0o644 if text is None else stat.S_IMODE(self.list_path.stat().st_mode)
                write_atomic(self.list_path, wanted.encode(), mode=mode)

    def _list_text(self) -> str | None:
        data = read_list(self.list_path)
        if data is None:
            return None
        parse(data, LIST)  # says which line is wrong, before anything is done with it
        return data.decode()


def own(env: Mapping[str, str]) -> Key:
    """The key of whoever has this environment, made on first use."""
    return Keys(env, Path("/")).own()


def read_list(path: Path, *, follow: bool = False) -> bytes | None:
    """A list of keys as a file, or None where there is none.

    The list of a repository is no link: what that leads to is not what was reviewed.
    """
    hint = "name a text file" if follow else "it must be a file, and no link"
    with _opened(path, "the list", hint, follow=follow) as fd:
        if fd is None:
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise UsageError(f"the list {path} is larger than {_LIMIT:,} bytes", hint="is it a list?")
    return data


@contextlib.contextmanager
def _opened(path: Path, what: str, hint: str, *, follow: bool = False) -> Iterator[int | None]:
    """A plain file, opened for reading; None where there is none."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        yield None
        return
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {what} {path}: {why}", hint=hint) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise UsageError(f"{what} {path} is not a file", hint=hint)
        yield fd
    finally:
        os.close(fd)


def _new_key() -> Key:
    return Key(os.urandom(32))


def _loads(data: bytes, path: Path) -> Held:
    try:
        told = strict_json.loads(data)
        seed = base64.b64decode(told["private"], validate=True)
        gone = tuple(Trusted(public_key(k["public"]), OWN, until=k["until"]) for k in told["ended"])
        wrong = told["format"] != 1 or len(seed) != 32 or not all(when(k.until) for k in gone)
        made = str(told["made"])
    except (ValueError, KeyError, TypeError, UsageError):
        wrong = True
    if wrong:
        raise StorageError(
            f"the key {path} is damaged", hint="move it away: a new one is made on the next use"
        )
    return Held(Key(seed), made, gone)


def _mine(path: Path, status: os.stat_result, forbidden: int, wanted: str) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise UsageError(
            f"{path} belongs to another user, who can sign in your name",
            hint="set QUIRE_KEYS to a folder of your own",
        )
    if stat.S_IMODE(status.st_mode) & forbidden:
        others = "write to" if forbidden == 0o022 else "read"
        raise UsageError(f"others can {others} {path}", hint=f"chmod {wanted} {path}")


def _outside(place: Path, root: Path) -> None:
    if place.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"the keys would lie inside the repository: {place}",
            hint="set QUIRE_KEYS to a folder outside it: a private key must not be committed",
        )
