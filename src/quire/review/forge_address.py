"""Where a remote is, on which kind of forge: read from its address. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ..errors import ConfigError

# Also `host:path` without a user; a single letter before the colon is a drive, not a host.
_SCP = re.compile(r"^(?:[^@/\s:]+@)?(\[[0-9a-fA-F:.]+\]|[^@/\s:\[\]]{2,}):(?!//)/?(.+)$")
_HOST = re.compile(r"^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])$")
_PART = re.compile(r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$")
_KNOWN = {"github.com": "github", "codeberg.org": "gitea", "gitea.com": "gitea"}
_BY_NAME = {"github": "github", "gitea": "gitea", "forgejo": "gitea"}


@dataclass(frozen=True, slots=True)
class Address:
    """`web` is the server as a browser opens it: scheme, host, port, and a path before owner."""

    web: str
    owner: str
    name: str

    @property
    def host(self) -> str:
        return urlsplit(self.web).netloc

    @property
    def repository(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def kind(self) -> str | None:
        """What the host's name tells; None for a host of somebody's own."""
        host = host_of(self.web)
        if host.endswith(".ghe.com"):
            return "github"
        return _KNOWN.get(host) or _BY_NAME.get(host.split(".")[0])

    def page(self, *parts: str) -> str:
        return "/".join([self.web, self.owner, self.name, *(quote(part) for part in parts)])


def host_of(url: str) -> str:
    """Without the port, in lower case; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def address(remote: str) -> Address | None:
    """The place a remote's URL names; None for a path and for what no forge would have."""
    url = remote.strip()
    if "://" in url:
        return _of_url(url)
    found = _SCP.match(url)
    return _made("https", found[1], found[2]) if found else None


def _of_url(url: str) -> Address | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.query or parts.fragment:
        return None
    host = f"[{host}]" if ":" in host else host
    if parts.scheme in ("http", "https"):
        # A user or password in it stays where it is: neither shown nor sent.
        return _made(parts.scheme, f"{host}:{port}" if port else host, parts.path)
    if parts.scheme in ("ssh", "git", "git+ssh", "ssh+git"):
        # That port is not the web's.
        return _made("https", host, parts.path)
    return None


def _made(scheme: str, host: str, path: str) -> Address | None:
    bare = re.sub(r":\d+$", "", host)
    parts = path.strip("/").removesuffix(".git").split("/")
    if not _HOST.match(bare) or len(parts) < 2 or not all(_PART.match(part) for part in parts):
        return None
    name = "github.com" if bare.lower() == "ssh.github.com" else host.lower()
    return Address("/".join([f"{scheme}://{name}", *parts[:-2]]), parts[-2], parts[-1])


def server(url: str) -> str:
    """`forge.url` of the configuration, as `web` of an Address."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    path = parts.path.strip("/")
    fine = parts.scheme in ("http", "https") and _HOST.match(host) and "@" not in parts.netloc
    if not fine or parts.query or parts.fragment or (path and not re.match(r"^[\w./~-]+$", path)):
        raise ConfigError(
            f"forge.url is {url!r}, which is not the address of a server",
            hint='url = "https://git.example.org", without user, password and repository',
        )
    place = f"{parts.scheme}://{host.lower()}" + (f":{port}" if port else "")
    return f"{place}/{path}" if path else place


def owner_and_name(text: str) -> tuple[str, str]:
    """`forge.repository` of the configuration."""
    parts = text.strip().removesuffix(".git").split("/")
    if len(parts) != 2 or not all(_PART.match(part) for part in parts):
        raise ConfigError(
            f"forge.repository is {text!r}, not owner/name", hint='repository = "ada/reports"'
        )
    return parts[0], parts[1]
