"""Where a cell may fetch a page from: public hosts, and private ones that the workspace names."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import SplitResult, urlsplit

from ..errors import Refused, ToolError

LONGEST = 8_000
PORTS = {"http": 80, "https": 443}

Lookup = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Target:
    """A page, and the addresses that its host has been found to have."""

    url: SplitResult
    host: str
    port: int
    addresses: tuple[str, ...]

    @property
    def is_secure(self) -> bool:
        return self.url.scheme == "https"

    @property
    def path(self) -> str:
        query = f"?{self.url.query}" if self.url.query else ""
        return f"{self.url.path or '/'}{query}"

    @property
    def named(self) -> str:
        """For the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.url.scheme] else f"{host}:{self.port}"


def parsed(url: object) -> SplitResult:
    if not isinstance(url, str) or len(url) > LONGEST:
        raise Refused("a URL is a text of at most 8,000 characters")
    if any(ord(char) <= 32 or ord(char) > 126 for char in url):
        raise Refused("the URL holds characters that have to be written as %XX", hint=url)
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Refused(f"that is no URL: {error}") from None
    if parts.scheme not in PORTS or not parts.hostname or "\\" in url:
        raise Refused(f"{url} is no http or https URL")
    if parts.username is not None or parts.password is not None:
        raise Refused("the URL has a name or password in it")
    return parts


def resolve(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{host} has no address: {error}", hint="check the host's name") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def target(url: object, private: Sequence[str], lookup: Lookup = resolve) -> Target:
    """Refuses a host unless all of its addresses may be reached."""
    parts = parsed(url)
    host = (parts.hostname or "").rstrip(".").lower()
    port = parts.port or PORTS[parts.scheme]
    addresses = lookup(host, port)
    if not addresses:
        raise ToolError(f"{host} has no address", hint="check the host's name")
    if not _is_named(host, port, private):
        for address in addresses:
            if not is_public(address):
                which = host if host == address else f"{host} is {address}, which"
                raise Refused(
                    f"{which} is not on the public internet",
                    hint="private_hosts under [tools] names hosts that may be reached all the same",
                )
    return Target(parts, host, port, tuple(addresses))


def _is_named(host: str, port: int, private: Sequence[str]) -> bool:
    spelled = [host, f"{host}:{port}"]
    if ":" in host:  # as it stands in a URL, where brackets are no pattern
        spelled += [f"[{host}]", f"[{host}]:{port}"]
    return any(
        one == low or fnmatchcase(one, low) for low in map(str.lower, private) for one in spelled
    )


def is_public(address: str) -> bool:
    """Neither this machine nor its neighbours, however the address is written."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        translated = any(found in network for network in _TRANSLATED)
        low = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF) if translated else None
        for inner in (found.ipv4_mapped, found.sixtofour, low):
            if inner is not None:
                return is_public(str(inner))
        if found.teredo is not None or found.is_site_local or found.scope_id:
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


# NAT64, and IPv4-compatible addresses.
_TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
