"""The `.env` of a workspace: variables its tasks need and its repository does not hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigError

_NAME = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*")
_DOUBLE = re.compile(r'"((?:\\.|[^"\\])*)"', re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'")
_BRACED = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$", "'": "'"}
LARGEST = 1_000_000  # bytes


def read(root: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Its variables; empty where there is no such file."""
    path = root / ".env"
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"{path} is too large", hint="it holds one NAME=VALUE per line")
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return {}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text", hint="save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", hint="check its permissions"
        ) from error
    return parse(text, env, str(path))


def parse(text: str, env: Mapping[str, str], name: str = ".env") -> dict[str, str]:
    """`NAME=VALUE` lines, as common tools read them; a line that is none is never shown: it may be
    a part of a secret."""
    found: dict[str, str] = {}
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end].strip()
        if not line or line.startswith("#"):
            at = end + 1
            continue
        start = at + len(text[at:end]) - len(text[at:end].lstrip())
        match = _NAME.match(text, start, end)
        if match is None:
            raise ConfigError(
                f"{name}: line {text.count(chr(10), 0, at) + 1} is no NAME=VALUE",
                hint="mend that line, or begin it with #",
            )
        value, at = _value(text, match.end(), end, found, env, name)
        found[match[1]] = value
    return found


def _value(
    text: str, at: int, end: int, found: Mapping[str, str], env: Mapping[str, str], name: str
) -> tuple[str, int]:
    """The value that begins here, and where the next line does."""
    known = {**found, **env}
    char = text[at : at + 1]
    if char in ("'", '"') and at < end:
        match = (_DOUBLE if char == '"' else _SINGLE).match(text, at)
        if match is None:
            raise ConfigError(
                f"{name}: the quote on line {text.count(chr(10), 0, at) + 1} is not closed",
                hint="close it",
            )
        stop = text.find("\n", match.end())
        stop = len(text) if stop < 0 else stop
        if char == "'":
            return match[1], stop + 1
        value = _BRACED.sub(lambda m: known.get(m[1], ""), match[1])
        return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), value), stop + 1
    bare = re.sub(r"(?:^|\s)#.*$", "", text[at:end]).strip()
    return _BRACED.sub(lambda m: known.get(m[1], ""), bare), end + 1
