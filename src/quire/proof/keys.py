"""Keys: look at one's own, renew it, and say whom a repository trusts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..host.person_only import refuse_from_kernel
from ..workspace import Workspace
from .key_store import Key, read_list
from .trust import LIST, Trust, Trusted, key_name, parse, public_key, when

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Shown:
    """A key of this machine, in full."""

    id: str
    public: str
    path: Path
    name: str  # in the list that counts here; empty where it is not in it
    trusted: bool
    where: str  # who says so

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "public": self.public,
            "path": str(self.path),
            "name": self.name,
            "trusted": self.trusted,
            "trust": self.where,
        }


def trust_of(ws: Workspace, *, file: str | None = None, revision: str | None = None) -> Trust:
    """Whose signatures count.

    The list in the working tree; or `file`; or the list as it is in a `revision`: a reviewer takes
    the base branch's, so that a proposal cannot bring its own key. Without a list, only the keys of
    this machine count.
    """
    if file is not None and revision is not None:
        raise UsageError("two lists of keys are named", hint="give --keys or --keys-from, not both")
    if file is not None:
        data = read_list(ws.cwd / file, follow=True)
        if data is None:
            raise UsageError(f"there is no file {file}", hint="check the path")
        return parse(data, file)
    if revision is None:
        return ws.keys.listed() or ws.keys.own_trust()
    repository = ws.repository
    if repository is None:
        raise UsageError("this is no git repository", hint="leave --keys-from out")
    commit = repository.resolve(revision)
    if commit is None:
        raise UsageError(
            f"there is no revision {revision!r}", hint="name a branch, a tag or a commit"
        )
    data = repository.blob(commit, LIST)
    return ws.keys.own_trust() if data is None else parse(data, f"{LIST} at {revision}")


def shown(ws: Workspace) -> Shown:
    """This machine's key, made if there is none yet."""
    if ws.keys.held() is None:
        refuse_from_kernel(ws, "a new key")
    return _shown(ws, ws.keys.own())


def rotated(ws: Workspace) -> tuple[Shown, str]:
    """A new key, and the id of the one that it follows, if there was one."""
    refuse_from_kernel(ws, "a new key")
    held = ws.keys.rotate()
    return _shown(ws, held.key), held.ended[-1].id if held.ended else ""


def _shown(ws: Workspace, key: Key) -> Shown:
    keys = ws.keys
    trust = trust_of(ws)
    known = trust.keys.get(key.id)
    at = keys.now().isoformat()
    where = "there is no list: the keys of this machine count" if trust.own else trust.where
    name = known.name if known is not None and not trust.own else ""
    return Shown(
        key.id,
        key.public,
        keys.path,
        name,
        known is not None and not known.objection(at),
        where,
    )


def trusted(
    ws: Workspace, key: str | None, *, name: str | None = None, until: str | None = None
) -> list[Trusted]:
    """Add a key to the repository's list; what was added.

    `key` is a public key, a file with one or with lines of a list, or None for one's own. A new
    list begins with one's own key: without it, one's own records would count no more.
    """
    refuse_from_kernel(ws, "to trust a key")
    end = _end(until)
    keys = ws.keys
    listed = keys.listed()
    known = dict(listed.keys) if listed is not None else {}
    own = Trusted(keys.own().public, key_name(name or _own_name(ws)))
    wanted = [own] if key is None else _given(ws, key, name)
    wanted = [replace(one, until=end) if end else one for one in wanted]
    if listed is None and key is not None and own.id not in {one.id for one in wanted}:
        wanted.insert(0, replace(own, name=_own_name(ws)))
    for one in wanted:
        if one.id in known:
            raise UsageError(
                f"{LIST} already has the key {one.id[:16]}, as {known[one.id].name}",
                hint=f"to change it, edit its line in {LIST}",
            )
    keys.trust(*wanted)
    return wanted


def _given(ws: Workspace, text: str, name: str | None) -> list[Trusted]:
    """From a key itself, or a file: `quire key show` of somebody else, or lines of a list."""
    data = None
    if not _is_key(text):
        data = read_list(ws.cwd / text, follow=True)
        if data is None:
            raise UsageError(
                f"{text!r} is neither a public key nor a file", hint="quire key show prints a key"
            )
        lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
        if len(lines) != 1 or not _is_key(lines[0].strip()):
            found = list(parse(data, text).keys.values())
            if not found:
                raise UsageError(f"{text} holds no key", hint="quire key show prints one")
            if name is not None and len(found) > 1:
                raise UsageError(f"{text} holds {len(found)} keys", hint="leave --name out")
            return [replace(key, name=key_name(name)) if name else key for key in found]
        text = lines[0].strip()
    if name is None:
        raise UsageError("whose key is it?", hint="give --name NAME")
    return [Trusted(public_key(text), key_name(name))]


def _is_key(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9+/]{43}=", text) is not None


def _own_name(ws: Workspace) -> str:
    """As git knows them, else the user of the machine."""
    repository = ws.repository
    email = repository.config("user.email") if repository is not None else None
    name = email or ws.env.get("USER") or ws.env.get("LOGNAME") or "me"
    return re.sub(r"[^\w.@+-]", "-", name)[:80]


def _end(until: str | None) -> str:
    """A date is meant to the end of that day."""
    if until is None:
        return ""
    if _DATE.fullmatch(until):
        try:
            day = datetime.fromisoformat(until).replace(tzinfo=UTC)
        except ValueError:
            day = None
        if day is not None:
            return (day + timedelta(days=1)).isoformat().replace("+00:00", "Z")
    if when(until) is None:
        raise UsageError(
            f"{until!r} is not a time", hint="such as 2027-01-31 or 2027-01-31T12:00:00Z"
        )
    return until
