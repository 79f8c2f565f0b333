"""Who may come in over the network: `.quire/tokens.json`, readable by its owner only.

A token is shown once, when it is made. Kept is its SHA-256: it has 256 random bits, so there is
nothing to guess and nothing to slow down.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import StorageError, UsageError
from ..files import disk, locked, write_atomic

PREFIX = "quire"
_TOKEN = re.compile(rf"{PREFIX}_([0-9a-f]{{8}})_([A-Za-z0-9_-]{{43}})")
_NOBODY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Token:
    id: str
    agent: str
    scopes: tuple[str, ...]
    created: str
    digest: str


class Tokens:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "tokens.json"
        self._read: tuple[tuple[int, int, int], list[Token]] | None = None

    def create(self, agent: str, scopes: Sequence[str], created: str) -> tuple[Token, str]:
        """The token and its text, which nobody can show again."""
        secret = secrets.token_urlsafe(32)
        ident = secrets.token_hex(4)
        token = Token(ident, agent, tuple(scopes), created, _digest(secret))
        with disk(str(self.folder)):
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
        with locked(self.folder):
            self._write([*self._tokens(), token])
        return token, f"{PREFIX}_{ident}_{secret}"

    def all(self) -> list[Token]:
        return list(self._tokens())

    def revoke(self, ident: str) -> Token:
        if not self.folder.is_dir():
            raise _unknown(ident)
        with locked(self.folder):
            tokens = self._tokens()
            gone = [token for token in tokens if token.id == ident]
            if not gone:
                raise _unknown(ident)
            self._write([token for token in tokens if token.id != ident])
        return gone[0]

    def check(self, text: str) -> Token | None:
        """Whose it is. Takes as long for a wrong one as for a right one."""
        match = _TOKEN.fullmatch(text)
        ident, secret = match.groups() if match else ("", "")
        known = {token.id: token for token in self._tokens()}
        token = known.get(ident)
        same = hmac.compare_digest(_digest(secret), token.digest if token else _NOBODY)
        return token if same and match else None

    def _tokens(self) -> list[Token]:
        """Read again only where the file has changed: it is asked at every request."""
        try:
            stat = self.path.stat()
            mark = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if self._read is None or self._read[0] != mark:
                self._read = (mark, [_token(one) for one in json.loads(self.path.read_bytes())])
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"cannot read {self.path}: {error}",
                hint="mend it, or remove it and make new tokens",
            ) from error
        return self._read[1]

    def _write(self, tokens: Sequence[Token]) -> None:
        text = json.dumps([asdict(token) for token in tokens], indent=1) + "\n"
        write_atomic(self.path, text.encode(), mode=0o600)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(data: Mapping[str, Any]) -> Token:
    scopes = tuple(str(scope) for scope in data["scopes"])
    return Token(
        str(data["id"]), str(data["agent"]), scopes, str(data["created"]), str(data["digest"])
    )


def _unknown(ident: str) -> UsageError:
    return UsageError(
        f"there is no token {ident[:40]!r}", hint="`quire token list` shows their ids"
    )
