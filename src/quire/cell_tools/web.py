"""Searching the web and reading pages for a cell, by what the workspace names for it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from ..config import Tools
from ..errors import QuireError, Refused, ToolError
from . import deadline_process
from .file_tools import whole
from .shell_command import run_command
from .web_addresses import PORTS, Lookup, parsed, resolve, target

PAGES = 10
PAGE_CHARACTERS = 15_000
LONG = 1_000  # characters of what a command says of its failure
_RESULT = {"title": 300, "url": 2_000, "description": 2_000}


@dataclass(frozen=True, slots=True)
class Web:
    settings: Tools
    folder: str
    env: Mapping[str, str]
    called_off: Callable[[], bool]
    lookup: Lookup = resolve

    def search(self, given: Mapping[str, Any]) -> dict[str, Any]:
        query = given.get("query")
        if not isinstance(query, str) or not query.strip() or len(query) > 2_000:
            raise ToolError(
                "a query is a text of at most 2,000 characters", hint="say what to find"
            )
        limit = min(whole(given.get("limit", 5), "limit", least=1), 100)
        settings = self.settings
        if settings.search_command:
            said = self._command(settings.search_command, "query", query, str(limit))
        elif settings.search_url:
            said = self._endpoint(_search_address(settings.search_url, query), read=False)
        else:
            raise ToolError(
                "no search is set up in this workspace",
                hint='set search_url = "http://127.0.0.1:8888", the address of a SearXNG, or'
                " search_command under [tools]",
            )
        if said["cut"]:
            raise ToolError(
                f"the search answered with more than {settings.page_limit:,} bytes",
                hint="page_limit under [tools] is the limit",
            )
        return {"query": query, "results": _results(said["text"])[:limit]}

    def extract(self, given: Mapping[str, Any]) -> dict[str, Any]:
        urls = given.get("urls")
        if not isinstance(urls, list) or not 1 <= len(urls) <= PAGES:
            raise ToolError(f"urls is a list of one to {PAGES} addresses", hint="ask in pieces")
        limit = given.get("char_limit")
        most = PAGE_CHARACTERS if limit is None else whole(limit, "char_limit", least=1)
        most = min(most, self.settings.output_limit)
        found = []
        for url in urls:
            one: dict[str, Any] = {"url": url, "title": "", "content": ""}
            one |= {"error": None, "refused": False}
            try:
                title, text = self._page(url, most)
                one |= {"title": title, "content": text}
            except QuireError as error:
                if len(urls) == 1:
                    raise
                one |= {"error": error.message, "refused": isinstance(error, Refused)}
            found.append(one)
        return {"results": found}

    def _page(self, url: Any, most: int) -> tuple[str, str]:
        settings = self.settings
        address = parsed(url).geturl()
        if settings.extract_command or settings.extract_url:
            # Somebody else goes there, but not on our behalf to what we may not reach.
            target(address, settings.private_hosts, self.lookup)
        if settings.extract_command:
            page = self._command(settings.extract_command, "url", address)
        elif settings.extract_url:
            page = self._endpoint(_filled(settings.extract_url, "url", address))
        else:
            page = self._fetched(address, settings.private_hosts)
        text = _cut(page["text"], most)
        if page["cut"]:
            text += f"\n[quire: only {settings.page_limit:,} bytes of the page were read]"
        return page["title"], text

    def _endpoint(self, address: str, *, read: bool = True) -> dict[str, Any]:
        """What the workspace itself names may be anywhere; where it leads to may not."""
        parts = urlsplit(address)
        host = f"{parts.hostname}:{parts.port or PORTS.get(parts.scheme)}"
        return self._fetched(address, (*self.settings.private_hosts, host), read=read)

    def _fetched(
        self, address: str, private: Sequence[str], *, read: bool = True
    ) -> dict[str, Any]:
        """`read`: HTML as Markdown."""
        seconds = self.settings.seconds
        # Refused at once, without a process; the worker judges where it is led on to.
        found = target(address, private, self.lookup)
        request = {
            "url": address,
            "addresses": {found.host: found.addresses},
            "private": private,
            "limit": self.settings.page_limit,
            "seconds": seconds,
            "read": read,
        }
        page = deadline_process.ask("quire.cell_tools.fetch", request, seconds, self.called_off)
        if page is None:
            raise ToolError(f"{address} took too long", hint="seconds under [tools] is the limit")
        return page

    def _command(self, template: str, name: str, value: str, limit: str = "") -> dict[str, Any]:
        """Each word of the template is one argument, whatever is put into it: no shell."""
        # What begins with a dash would be an option of the command.
        value = f" {value}" if value.startswith("-") else value
        words = [
            word.replace("{limit}", limit).replace(f"{{{name}}}", value)
            for word in shlex.split(template)
        ]
        settings = self.settings
        done = run_command(
            words,
            self.folder,
            self.env,
            settings.seconds,
            settings.page_limit,
            self.called_off,
            together=False,  # what it warns of is no part of what it found
        )
        if done["exit_code"] != 0:
            why = done.get("error") or f"it ended with {done['exit_code']}"
            told = str(done.get("stderr") or done["output"]).strip()
            if len(told) > LONG:  # its first word may be half of one
                told = told.split(maxsplit=1)[-1]
            raise ToolError(f"{words[0]}: {why}", hint=told)
        return {"title": "", "text": done["output"], "cut": done["truncated"]}


def _search_address(address: str, query: str) -> str:
    if "{query}" in address:
        return _filled(address, "query", query)
    return f"{address.rstrip('/').removesuffix('/search')}/search?q={quote(query)}&format=json"


def _filled(address: str, name: str, value: str) -> str:
    return address.replace(f"{{{name}}}", quote(value, safe=""))


def _results(said: str) -> list[dict[str, str]]:
    """A list of results, or an object that has one under a usual name."""
    try:
        told: Any = json.loads(said)
    except (ValueError, RecursionError):
        raise ToolError(
            "the search did not answer in JSON",
            hint=f"it said {said!r}; a SearXNG needs `json` among its search.formats",
        ) from None
    for name in ("data", "web", "results"):
        if isinstance(told, dict) and name in told:
            told = told[name]
    rows = told if isinstance(told, list) else [told]
    found = [_result(one) for one in rows if isinstance(one, dict)]
    if not isinstance(told, list) or (rows and not found):
        raise ToolError("the search gave no list of results", hint=f"it said {said!r}")
    return found


def _result(one: Mapping[str, Any]) -> dict[str, str]:
    names: dict[str, Sequence[str]] = {
        "title": ("title", "name"),
        "url": ("url", "link", "href"),
        "description": ("description", "content", "snippet", "abstract", "body"),
    }
    return {
        key: next((str(one[name]) for name in known if one.get(name)), "")[: _RESULT[key]]
        for key, known in names.items()
    }


def _cut(text: str, limit: int) -> str:
    """Head and tail, and how much is missing between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    end = len(text) - tail
    return f"{text[:head]}\n[quire: {end - head:,} characters were cut here]\n{text[end:]}"
