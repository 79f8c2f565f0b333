"""HTTP exchanges with a forge, written down once and played back ever after.

Played back, a request must be the next one on the tape: same method, path, query and body, from the
same person. One that is not there fails; nothing is ever recorded by the way.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

EXCHANGES = Path(__file__).parent / "exchanges"
HEADERS = ("content-type", "link", "x-total-count")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ZERO = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Tape:
    path: Path
    about: dict[str, str]
    exchanges: list[dict[str, Any]]
    played: int = 0
    names: dict[str, str] = field(default_factory=dict)  # what to write instead, when recording

    @classmethod
    def load(cls, path: Path) -> Tape:
        assert path.exists(), f"{path.name} was never recorded: see tests/forges/README.md"
        value = json.loads(path.read_text("utf-8"))
        return cls(path, value["about"], value["exchanges"])

    def next(self, said: dict[str, Any]) -> dict[str, Any]:
        assert self.played < len(self.exchanges), f"{self.path.name} ends before {said}"
        exchange = self.exchanges[self.played]
        expected = {key: exchange[key] for key in said}
        assert said == expected, f"{self.path.name}: another request than number {self.played}"
        self.played += 1
        return exchange

    def finish(self) -> None:
        left = len(self.exchanges) - self.played
        assert left == 0, f"{self.path.name}: {left} requests were not made"

    def save(self) -> None:
        text = json.dumps(_ordered(self.exchanges), ensure_ascii=False)
        for old, new in self.names.items():
            text = text.replace(json.dumps(old)[1:-1], new)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        value = {"about": self.about, "exchanges": json.loads(text)}
        self.path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")


def said_by(who: str, request: httpx2.Request) -> dict[str, Any]:
    raw = request.content
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = raw.decode("utf-8", "replace")
    query = dict(request.url.params.multi_items())
    path = request.url.path
    return {"as": who, "method": request.method, "path": path, "query": query, "body": body}


class Player(httpx2.BaseTransport):
    def __init__(self, tape: Tape, who: str) -> None:
        self.tape, self.who = tape, who

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        assert request.headers["authorization"] == f"token {self.who}-token"
        exchange = self.tape.next(said_by(self.who, request))
        answer = exchange["answer"]
        content = b"" if answer is None else json.dumps(answer).encode()
        return httpx2.Response(exchange["status"], headers=exchange["headers"], content=content)


class Recorder(httpx2.BaseTransport):
    def __init__(self, tape: Tape, who: str, inner: httpx2.BaseTransport) -> None:
        self.tape, self.who, self.inner = tape, who, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        response = self.inner.handle_request(request)
        response.read()
        exchange = said_by(self.who, request) | {
            "status": response.status_code,
            "headers": {k: response.headers[k] for k in HEADERS if k in response.headers},
            "answer": cut(json.loads(response.content)) if response.content else None,
        }
        self.tape.exchanges.append(exchange)
        headers = {k: v for k, v in response.headers.items() if k != "content-encoding"}
        return httpx2.Response(response.status_code, headers=headers, content=response.content)


def cut(value: Any) -> Any:
    """Without the long descriptions of a repository and a person that come with everything."""
    if isinstance(value, list):
        return [cut(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "login" in value:
        return {key: value[key] for key in ("id", "login") if key in value}
    if "full_name" in value and "owner" in value:
        return {key: value[key] for key in ("id", "full_name")}
    return {key: cut(item) for key, item in value.items()}


def _ordered(exchanges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Times and ids by their rank, so that two recordings differ where the server does."""
    times: set[str] = set()
    ids: set[int] = set()
    _visit([e["answer"] for e in exchanges], times, ids)
    new_times = {
        old: (_ZERO + timedelta(seconds=rank)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for rank, old in enumerate(sorted(times))
    }
    new_ids = {old: rank for rank, old in enumerate(sorted(ids), 1)}
    return [e | {"answer": _renamed(e["answer"], new_times, new_ids)} for e in exchanges]


def _visit(value: Any, times: set[str], ids: set[int]) -> None:
    for item in value if isinstance(value, list) else []:
        _visit(item, times, ids)
    for key, item in value.items() if isinstance(value, dict) else []:
        if key == "id" and isinstance(item, int):
            ids.add(item)
        elif isinstance(item, str) and _TIME.fullmatch(item) and not item.startswith("19"):
            times.add(item)
        _visit(item, times, ids)


def _renamed(value: Any, times: dict[str, str], ids: dict[int, int], key: str = "") -> Any:
    if isinstance(value, list):
        return [_renamed(item, times, ids) for item in value]
    if isinstance(value, dict):
        return {k: _renamed(item, times, ids, k) for k, item in value.items()}
    if isinstance(value, str):
        value = times.get(value, value)
        value = re.sub(r"#issuecomment-\d+", "#issuecomment-0", value)
        return _UUID.sub("00000000-0000-0000-0000-000000000000", value)
    return ids[value] if key == "id" and isinstance(value, int) else value
