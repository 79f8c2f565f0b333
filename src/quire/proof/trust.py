"""Whom to believe: public keys, each with a name and the time in which it counts.

A list of them is a text file, `.quire-keys` at the root of a repository, one key a line:

    # who may sign records here
    ed25519 <base64 of the public key> ada until=2027-01-01T00:00:00Z
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import ConfigError, UsageError

LIST = ".quire-keys"
SHORT = 16  # digits of a key's id that people are shown
_NAME = re.compile(r"[\w.@+-]{1,80}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_FORM = "ed25519 <base64> <name> [since=TIME] [until=TIME]"
# Points under which anybody can make a signature that fits: no key pair has them. The sign bit of
# the last byte does not matter.
_WEAK = frozenset(
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


@dataclass(frozen=True, slots=True)
class Trusted:
    """A public key. `since` and `until` are ISO times, empty where there is no bound."""

    public: str  # base64 of the 32 bytes
    name: str
    since: str = ""
    until: str = ""

    @property
    def id(self) -> str:
        return key_id(base64.b64decode(self.public))

    def verify(self, message: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(base64.b64decode(self.public)).verify(
                signature, message
            )
        except (InvalidSignature, ValueError):
            return False
        return True

    def objection(self, at: str) -> str:
        """Why the key does not count for what was done at that time; '' when it does."""
        if not self.since and not self.until:
            return ""
        moment = when(at)
        if moment is None:
            return "counts only for a time, and the record does not say when it ended"
        since, until = when(self.since), when(self.until)
        if until is not None and moment > until:
            return f"ended at {self.until}, before this run did ({at})"
        if since is not None and moment < since:
            return f"counts only since {self.since}, after this run ended ({at})"
        return ""

    def line(self) -> str:
        parts = ["ed25519", self.public, self.name]
        parts += [f"since={self.since}"] if self.since else []
        parts += [f"until={self.until}"] if self.until else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys that count, by id, and where that is said."""

    keys: Mapping[str, Trusted] = field(default_factory=dict)
    where: str = LIST
    own: bool = False  # no list: only this machine's own keys count


def trusting(keys: Iterable[Trusted], where: str = LIST, *, own: bool = False) -> Trust:
    return Trust({key.id: key for key in keys}, where, own)


def key_id(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()


def short(id_: str) -> str:
    return id_[:SHORT]


def when(text: Any) -> datetime | None:
    """A time with its zone, or None for what is none."""
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def public_key(text: str) -> str:
    """The key, if it is one: exactly the base64 of 32 bytes, and not a point that fits anything."""
    wrong = ""
    try:
        raw = base64.b64decode(text, validate=True)
        if len(raw) != 32 or base64.b64encode(raw).decode() != text:
            wrong = "is not the base64 of 32 bytes"
        elif raw[:31] + bytes([raw[31] & 0x7F]) in _WEAK:
            wrong = "is a point under which anybody can sign"
    except (binascii.Error, ValueError):
        wrong = "is not base64"
    if wrong:
        raise UsageError(f"the public key {text[:60]!r} {wrong}", hint="quire key show prints one")
    return text


def key_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise UsageError(
            f"{text!r} cannot be the name of a key",
            hint="letters, digits and . @ + - _ without spaces, such as ada@example.org",
        )
    return text


def parse(data: bytes, where: str = LIST) -> Trust:
    """A list of keys. Every line counts: one that cannot be read makes the list useless."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{where}:{number}: this is not UTF-8 text", hint="mend it") from error
    found: dict[str, tuple[int, Trusted]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        try:
            key = _parsed(words)
        except UsageError as error:
            raise ConfigError(f"{where}:{number}: {error.message}", hint=error.hint) from error
        if key.id in found:
            raise ConfigError(
                f"{where}:{number}: the key of line {found[key.id][0]} again",
                hint="keep one line for each key",
            )
        found[key.id] = number, key
    return Trust({id_: key for id_, (_, key) in found.items()}, where)


def _parsed(words: list[str]) -> Trusted:
    if words[0] != "ed25519" or len(words) < 3:
        raise UsageError("this is not a key", hint=f"the form is: {_FORM}")
    key = Trusted(public_key(words[1]), key_name(words[2]))
    for word in words[3:]:
        option, _, value = word.partition("=")
        if option not in ("since", "until") or getattr(key, option):
            raise UsageError(f"{word!r} has no place here", hint=f"the form is: {_FORM}")
        if when(value) is None:
            raise UsageError(
                f"{value!r} is not a time with its zone", hint="such as 2027-01-01T00:00:00Z"
            )
        key = replace(key, **{option: value})
    if key.since and key.until and not _before(key.since, key.until):
        raise UsageError("the key ends before it begins", hint="mend since= or until=")
    return key


def _before(first: str, second: str) -> bool:
    one, two = when(first), when(second)
    return one is not None and two is not None and one < two


def added(text: str, *keys: Trusted) -> str:
    """The text of a list with more lines."""
    if text and not text.endswith("\n"):
        text += "\n"
    return text + "".join(f"{key.line()}\n" for key in keys)


def ended(text: str, public: str, until: str) -> str:
    """The text of a list in which that key ends. One that ends earlier stays as it is."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        body, mark, comment = line.partition("#")
        words = body.split()
        if words[1:2] != [public]:
            continue
        key = _parsed(words)
        if not key.until or _before(until, key.until):
            rest = f"  {mark}{comment.rstrip()}" if mark else ""
            lines[at] = replace(key, until=until).line() + rest
    return "\n".join(lines)
