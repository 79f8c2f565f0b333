"""A1 to A3: what a model has to read and wait for, over MCP, beside jupyter-mcp-server.

Both servers are driven over stdio by the SDK's own client, in turns, with the same code in a warm
kernel. Characters are those of the whole answer as it goes over the wire to the client: texts,
pictures in base64, and structured content where a server sends it too.

Each call is measured on a machine at rest: the peer's JupyterLab is busy for a while after it has
answered.

A call that is to be stopped takes its limit on both sides, so what it takes beyond that is
measured, until the kernel has answered the next cell: only then can an agent go on. The peer's own
answer comes as soon as it has asked the kernel to stop, ours when we have seen that it did. Until
that answer both take a few milliseconds, which are shown, but have no goal.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from bench import agentpeer, report
from bench.figures import Bench
from bench.measure import CannotMeasure
from bench.peers import clean_environment
from bench.report import Row
from bench.us import workspace

LIMIT = 2  # seconds, of the call that takes too long
ANSWER = 120.0
REST = 1.0  # seconds before a call is measured


@dataclass(frozen=True, slots=True)
class Work:
    """`prepare` runs before, off the clock. `fails`: a true answer says that it did."""

    name: str
    code: str
    prepare: str = "pass"
    fails: bool = False
    timeout: int = 60


WORKS = (
    Work("20,000 printed lines", "for i in range(20_000): print('line', i, 'of the output')"),
    Work("a RecursionError", "deeper(0)", "def deeper(n):\n    return deeper(n + 1)", fails=True),
    Work("a timeout", "import time; time.sleep(30)", fails=True, timeout=LIMIT),
    Work(
        "a plot of 4,000 x 3,000 px",
        "display(Image(data=png))",
        "import io\n"
        "import matplotlib.pyplot as plt\n"
        "from IPython.display import Image, display\n"
        "figure, axes = plt.subplots(figsize=(40, 30), dpi=100)\n"
        "for k in range(40):\n"
        "    axes.plot([(n * k * 7919) % 1009 for n in range(300)])\n"
        "file = io.BytesIO(); figure.savefig(file, format='png'); plt.close(figure)\n"
        "png = file.getvalue()",
    ),
    Work(
        "a 30,000-row table",
        "table",
        "import pandas as pd\n"
        "table = pd.DataFrame({f'c{k}': range(k, 30_000 + k) for k in range(8)})",
    ),
)


@dataclass(frozen=True, slots=True)
class Answer:
    characters: int
    seconds: float
    failed: bool
    next: float = 0.0  # seconds until the cell after it was answered too


class Side(Protocol):
    async def run(self, code: str, timeout: int) -> Answer: ...


@dataclass(slots=True)
class Connection:
    """A client of one server."""

    client: Any
    listed: int = 0

    async def count_tools(self) -> None:
        self.listed = size((await self.client.list_tools()).tools)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answer:
        start = time.perf_counter()
        result = await asyncio.wait_for(self.client.call_tool(tool, dict(arguments)), ANSWER)
        seconds = time.perf_counter() - start
        told = size(result.content)
        extra = getattr(result, "structured_content", None)
        if extra is not None:
            told += len(json.dumps(extra, ensure_ascii=False))
        return Answer(told, seconds, bool(result.is_error))


def size(parts: Any) -> int:
    """Characters of a list of the protocol's objects, as they go over the wire."""
    return len(
        json.dumps(
            [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in parts],
            ensure_ascii=False,
            separators=(",", ":"),
        )
    )


@dataclass(slots=True)
class Theirs(Connection):
    async def open(self) -> None:
        arguments = {"notebook_name": "n", "notebook_path": "n.ipynb", "kernel_id": "NEW"}
        answer = await self.call("use_notebook", arguments)
        if answer.failed:
            raise CannotMeasure("jupyter-mcp-server could not use a notebook")

    async def run(self, code: str, timeout: int) -> Answer:
        return await self.call("execute_code", {"code": code, "timeout": timeout})


@dataclass(slots=True)
class Ours(Connection):
    async def open(self) -> None:
        answer = await self.call("notebook_session", {"action": "open", "path": "n.py"})
        if answer.failed:
            raise CannotMeasure("quire mcp could not open a session")

    async def run(self, code: str, timeout: int) -> Answer:
        arguments = {"action": "exec", "session": "n", "code": code, "cell_timeout": timeout}
        return await self.call("notebook_session", {**arguments, "wait": 90})


@dataclass(slots=True)
class Seen:
    """What both sides answered to each piece of work, and how long they took."""

    listed: tuple[int, int] = (0, 0)
    answers: dict[str, tuple[list[Answer], list[Answer]]] = field(default_factory=dict)
    calls: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))


def agents(bench: Bench) -> Iterator[Row]:
    """A1 to A3: characters, seconds, truth of isError, and what a call costs by itself."""
    peer = agentpeer.lease(bench.peers.root.parent)
    folder = bench.folder / "jupyter"
    with (
        agentpeer.lab(peer, folder) as environment,
        workspace(bench.quire, bench.folder / "quire") as us,
    ):
        (us.folder / "n.py").write_text("# %%\npass\n")
        seen = asyncio.run(
            measured(bench, (peer.command, folder, environment), (bench.quire, us.folder))
        )
    yield from rows(seen, peer.versions[agentpeer.SERVER])


async def measured(
    bench: Bench,
    theirs: tuple[str, Path, Mapping[str, str]],
    ours: tuple[tuple[str, ...], Path],
) -> Seen:
    command, folder, environment = theirs
    quire, workspace_folder = ours
    argv = (*quire, "mcp")
    seen = Seen()
    async with (
        connected((command,), folder, environment) as peer_client,
        connected(argv, workspace_folder, clean_environment()) as our_client,
    ):
        peer, us = Theirs(peer_client), Ours(our_client)
        for side in (peer, us):
            await side.count_tools()
            await side.open()
            await side.run("1", 60)
        seen.listed = (peer.listed, us.listed)
        for _ in range(bench.repeats(60, 20)):
            for side, times in zip((peer, us), seen.calls, strict=True):
                times.append((await side.run("1", 60)).seconds)
        for work in WORKS:
            seen.answers[work.name] = await raced(peer, us, work, bench.repeats(3, 1))
    return seen


async def raced(
    peer: Side, us: Side, work: Work, repeats: int
) -> tuple[list[Answer], list[Answer]]:
    found: tuple[list[Answer], list[Answer]] = ([], [])
    for side in (peer, us):
        if (await side.run(work.prepare, 60)).failed:
            raise CannotMeasure(f"{work.name}: what comes before it failed")
    for _ in range(repeats):
        for side, answers in zip((peer, us), found, strict=True):
            await asyncio.sleep(REST)
            answer = await side.run(work.code, work.timeout)
            after = await side.run("1", 60)
            answers.append(replace(answer, next=answer.seconds + after.seconds))
    return found


@asynccontextmanager
async def connected(
    argv: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[Any]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=argv[0], args=list(argv[1:]), cwd=folder, env=dict(environment)
    )
    with open(folder / "mcp.log", "w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            yield client


def rows(seen: Seen, version: str) -> Iterator[Row]:
    unit = f"jupyter-mcp-server {version} "
    yield characters("A1", "tools/list", seen.listed[0], seen.listed[1], unit)
    for work in WORKS:
        theirs, ours = seen.answers[work.name]
        yield characters("A1", work.name, worst(theirs), worst(ours))
    for work in WORKS:
        theirs, ours = seen.answers[work.name]
        if work.timeout == LIMIT:
            yield from stopping(theirs, ours)
        else:
            yield waiting(f"{work.name}, seconds", middle(theirs), middle(ours))
    yield truth(seen)
    yield overhead(*map(statistics.median, seen.calls))


def worst(answers: list[Answer]) -> int:
    return max(answer.characters for answer in answers)


def middle(answers: list[Answer]) -> float:
    return statistics.median(answer.seconds for answer in answers)


def stopping(theirs: list[Answer], ours: list[Answer]) -> Iterator[Row]:
    def until_the_next(answers: list[Answer]) -> float:
        return statistics.median(answer.next for answer in answers) - LIMIT

    what = f"a timeout of {LIMIT} s, seconds over it"
    yield waiting(f"{what} to go on", until_the_next(theirs), until_the_next(ours))
    peer, us = middle(theirs) - LIMIT, middle(ours) - LIMIT
    yield Row(
        "A2",
        f"{what} to its answer",
        peer=report.seconds(peer),
        us=report.seconds(us),
        ratio=report.ratio(us / peer),
        values={"peer": peer, "us": us, "ratio": us / peer},
    )


def characters(figure: str, what: str, theirs: int, ours: int, unit: str = "") -> Row:
    quotient = ours / theirs
    return Row(
        figure,
        f"{what}, characters",
        peer=f"{unit}{theirs:,}",
        us=f"{ours:,}",
        ratio=report.ratio(quotient),
        goal="≤ 1/4",
        met=quotient <= 1 / 4,
        values={"peer": theirs, "us": ours, "ratio": quotient},
    )


def waiting(what: str, theirs: float, ours: float) -> Row:
    quotient = ours / theirs
    return Row(
        "A2",
        what,
        peer=report.seconds(theirs),
        us=report.seconds(ours),
        ratio=report.ratio(quotient),
        goal="≤ 1/4",
        met=quotient <= 1 / 4,
        values={"peer": theirs, "us": ours, "ratio": quotient},
    )


def truth(seen: Seen) -> Row:
    """How often isError said what happened."""

    def wrong(side: int) -> int:
        return sum(
            answer.failed != work.fails
            for work in WORKS
            for answer in seen.answers[work.name][side]
        )

    total = sum(len(seen.answers[work.name][0]) for work in WORKS)
    theirs, ours = wrong(0), wrong(1)
    return Row(
        "A2",
        "isError that was not true",
        peer=f"{theirs} of {total}",
        us=f"{ours} of {total}",
        goal="none",
        met=ours == 0,
        values={"peer": theirs, "us": ours, "of": total},
    )


def overhead(theirs: float, ours: float) -> Row:
    return Row(
        "A3",
        "a call that executes `1`, warm, median",
        peer=report.seconds(theirs),
        us=report.seconds(ours),
        ratio=report.ratio(ours / theirs),
        goal="≤ 15 ms",
        met=ours <= 0.015,
        values={"peer": theirs, "us": ours, "ratio": ours / theirs},
    )
