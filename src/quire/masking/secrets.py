"""Which values of an environment are secret, and the texts under which such a value may show up."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

_SHORTEST = 8
_SHORTEST_NAMED = 4
# A line of a longer secret (a key file in a variable) is printed on its own more often than not.
_SHORTEST_LINE = 16
_SHORTEST_KEY = 4

_CREDENTIAL = re.compile(
    r"(?:\w+_)?(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY)|\w+_(?:KEY|PAT)",
    re.IGNORECASE,
)
_WORD = re.compile(r"true|false|yes|no|on|off|none|null|enabled|disabled|default", re.IGNORECASE)
_SMALL_NUMBER = re.compile(r"[+-]?[0-9.]{1,7}")
_SHORT_NUMBER = re.compile(r"[0-9]{1,5}")
# A leading slash alone says nothing: one AWS secret in 64 starts with one.
_PATH = re.compile(
    r"(?:file:/|~|\.{1,2}|[A-Za-z]:|/(?:app|data|dev|etc|home|lib|mnt|nix|opt|private|proc|root|run"
    r"|secrets|srv|sys|tmp|usr|var|work|workspace|Users|Volumes))(?:[/\\][\w.@ -]+)*[/\\]?"
)
_USERINFO = re.compile(r"[A-Za-z][\w+.-]*://(?P<user>[^\s/:@]*):(?P<password>[^\s/]+)@")
_COMMON = re.compile(
    r"passw(?:or)?d|postgres(?:ql)?|mysql|mariadb|admin(?:istrator)?|guest|root|redis|rabbitmq"
    r"|example|changeme|secret|localhost|anonymous|minioadmin"
)
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_URL_SAFE = str.maketrans("+/", "-_")
_SCRIPT_SAFE = str.maketrans({c: f"\\u{ord(c):04x}" for c in "&<>'"})


@dataclass(frozen=True, slots=True)
class Secret:
    """A value to hide and the variable it comes from."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Variant:
    """A text that gives a secret away.

    `lead` and `trail` are 1 where the base64 digit before or after carries some bits of it too.
    """

    key: str
    lead: int = 0
    trail: int = 0


def secrets_of(env: Mapping[str, str], names: Iterable[str] = ()) -> tuple[Secret, ...]:
    """The secrets of an environment, those of `names` (globs are allowed) first."""
    patterns = tuple(names)
    found: dict[str, str] = {}

    def named(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    for name, raw in env.items():
        value = raw.strip()
        if named(name) and _worth_hiding_named(value):
            found[value] = name
    for name, raw in env.items():
        value = raw.strip()
        if _CREDENTIAL.fullmatch(name) and _worth_hiding(value):
            found.setdefault(value, name)
        for password in _url_passwords(value):
            found.setdefault(password, name)
    return tuple(Secret(name, value) for value, name in found.items())


def is_credential(name: str) -> bool:
    """Whether a variable of that name holds something nobody should see."""
    return _CREDENTIAL.fullmatch(name) is not None


def _worth_hiding_named(value: str) -> bool:
    return (
        len(value) >= _SHORTEST_NAMED
        and not _WORD.fullmatch(value)
        and not _SHORT_NUMBER.fullmatch(value)
    )


def _worth_hiding(value: str) -> bool:
    return (
        len(value) >= _SHORTEST
        and not _WORD.fullmatch(value)
        and not _SMALL_NUMBER.fullmatch(value)
        and not _PATH.fullmatch(value)
    )


def _url_passwords(value: str) -> Iterator[str]:
    if "://" not in value:
        return
    from urllib.parse import unquote

    for match in _USERINFO.finditer(value):
        password = match["password"]
        # A development default is an ordinary word: in a URL the shape hides it anyway.
        if len(password) < 6 or password == match["user"] or _COMMON.fullmatch(password.lower()):
            continue
        yield password
        yield unquote(password, errors="surrogateescape")


def variants(value: str) -> list[Variant]:
    """Every text that counts as a showing of `value`; the value itself is the first."""
    found: dict[str, Variant] = {}
    pieces = [value]
    if "\n" in value:
        lines = (line.strip() for line in value.splitlines())
        pieces += [x for x in lines if len(x) >= _SHORTEST_LINE and not re.search(r"\s", x)]
    for piece in pieces:
        data = _as_bytes(piece)
        for key in (*_written(piece, data), *_hex(data)):
            found.setdefault(key, Variant(key))
        for variant in _base64(data):
            found.setdefault(variant.key, variant)
    return [v for v in found.values() if len(v.key) >= _SHORTEST_KEY]


def _as_bytes(value: str) -> bytes:
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def _written(value: str, data: bytes) -> Iterator[str]:
    """As it is, and as JSON, Python, HTML and URLs write it."""
    yield value
    if _PLAIN.fullmatch(value):
        return
    import html
    from urllib.parse import quote, quote_plus

    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield text
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield text.replace("/", "\\/")
        yield text.translate(_SCRIPT_SAFE)
    for text in (repr(value)[1:-1], repr(data)[2:-1]):
        yield text
        yield text.replace("\\'", "'").replace("'", "\\'")
    yield html.escape(value)
    yield html.escape(value, quote=False)
    for text in (
        quote(data),
        quote(data, safe=""),
        quote(data, safe="!'()*~"),
        quote_plus(data),
        quote_plus(data, safe="/"),
    ):
        yield text
        yield _ESCAPE.sub(lambda m: m[0].lower(), text)


def _hex(data: bytes) -> Iterator[str]:
    digits = data.hex()
    yield digits
    yield digits.upper()
    for separator in (":", " ", "-"):
        spread = data.hex(separator)
        yield spread
        yield spread.upper()
    escaped = "\\x" + data.hex(":").replace(":", "\\x")
    yield escaped
    yield escaped.upper().replace("\\X", "\\x")


def _base64(data: bytes) -> Iterator[Variant]:
    """The digits that are the same wherever in a larger blob the value lies."""
    for offset in range(3):
        bits = 8 * (offset + len(data))
        first = (8 * offset + 5) // 6
        digits = base64.b64encode(bytes(offset) + data).decode("ascii")[first : bits // 6]
        lead, trail = int(offset > 0), int(bits % 6 > 0)
        yield Variant(digits, lead, trail)
        yield Variant(digits.translate(_URL_SAFE), lead, trail)
