"""What happened in many runs, on one page of Markdown: by topic, by task, by day. Bounded.

A topic is the folder that a task is in. Everything quoted is untrusted text: escaped and cut.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ..errors import UsageError
from ..record.summary import one_line
from ..workspace import Workspace
from . import ask
from .ask import Row
from .breadcrumbs import COUNTS
from .fill import Progress, silent
from .find import Narrow, asked_of, warnings_of

MOST = 20_000  # runs
USUAL = "7d"
KEPT = "30d"  # how far back the page in the archive goes
LONGEST = 60_000  # characters of a whole digest
TOPICS, TASKS, DAYS, NOTES, FAILURES, CHANGES = 40, 40, 7, 6, 5, 6
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&@])")
_WWW = re.compile(r"\b(www)\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Digest:
    text: str  # Markdown
    runs: int
    place: str = ""  # where it was written, if it was
    warnings: tuple[str, ...] = ()


def digest(
    ws: Workspace,
    *,
    since: str = "",
    until: str = "",
    task: str = "",
    write: bool = False,
    now: datetime | None = None,
    progress: Progress = silent,
) -> Digest:
    """`write`: the page of the last 30 days, into the archive."""
    if write and (task or since or until):
        raise UsageError(
            f"DIGEST.md is about all tasks, the last {KEPT}, up to now", hint="quire digest --write"
        )
    narrow = Narrow(task, KEPT if write else since or USUAL, until).condition(ws, now)

    def question(con: sqlite3.Connection) -> list[Row]:
        # A run of this folder alone stays here: the page in the archive goes where that goes.
        where, values = narrow(con)
        where += " AND r.local = 0" if write else ""
        found = ask.newest(con, (where, values), MOST + 1)
        kept = ("note", "error")  # of 20,000 runs the outputs would fill the memory
        return [
            replace(run, pieces=tuple(p for p in run.pieces if p.field in kept)) for run in found
        ]

    def link(run_id: str) -> str:
        try:
            return f"{ws.archive.path(run_id)}/notebook.ipynb"
        except UsageError:
            return ""  # the index was written by hand

    caught, runs = asked_of(ws, question, progress)
    of = f"the newest {MOST:,} runs of that time" if len(runs) > MOST else ""
    runs = runs[:MOST][::-1]
    text = page(runs, link, of=of)
    place = ws.archive.write_digest(text.encode("utf-8", "replace")) if write else ""
    return Digest(text, len(runs), place, warnings_of(caught))


Link = Callable[[str], str]  # a run's id to the place that is linked to


def page(runs: Sequence[Row], link: Link, *, of: str = "") -> str:
    """Oldest first in, the newest first out. `of`: what these are, where there were more."""
    out = ["# Digest of runs", "", _head(runs), *([f"Only {of}."] if of else []), ""]
    room = _Page(LONGEST - 500 - sum(len(line) + 1 for line in out))
    topics: dict[str, list[Row]] = defaultdict(list)
    for run in runs:
        topics[run.task.rpartition("/")[0] or "."].append(run)
    order = sorted(topics, key=lambda name: topics[name][-1].started, reverse=True)
    for at, name in enumerate(order):
        _topic(name, topics[name], link, room, shown=TASKS if at < TOPICS else 0)
    if room.left:
        left = f"{_many(sum(room.left), 'more run')} of {_many(len(room.left), 'task')}"
        room.lines.append(f"{left} {'is' if sum(room.left) == 1 else 'are'} left out here.")
    return "\n".join([*out, *room.lines]).rstrip() + "\n"


@dataclass(slots=True)
class _Page:
    """What there is room for. Cut between tasks: a topic alone may be too long for it."""

    room: int  # characters
    lines: list[str] = field(default_factory=list)
    left: list[int] = field(default_factory=list)  # of each task left out, how many runs

    def add(self, lines: Sequence[str]) -> bool:
        size = sum(len(line) + 1 for line in lines)
        if size > self.room:
            return False
        self.room -= size
        self.lines += lines
        return True


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _head(runs: Sequence[Row]) -> str:
    if not runs:
        return "No runs."
    tasks = len({run.task for run in runs})
    of = f"{_many(len(runs), 'run')} of {_many(tasks, 'task')}"
    outcomes = Counter(run.outcome for run in runs)
    counted = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in outcomes.most_common())
    return (
        f"{runs[0].day} to {runs[-1].day}: {of}: {counted}. "
        "Made from their records; it proves nothing by itself."
    )


def _topic(name: str, runs: Sequence[Row], link: Link, room: _Page, *, shown: int) -> None:
    tasks: dict[str, list[Row]] = defaultdict(list)
    for run in runs:
        tasks[run.task].append(run)
    heading = [f"## {escaped(name, 80)}", ""]
    for at, of in enumerate(sorted(tasks.values(), key=lambda t: t[-1].started, reverse=True)):
        if at < shown and room.add([*heading, *_task(of, link)]):
            heading = []
        else:
            room.left.append(len(of))


def _task(runs: Sequence[Row], link: Link) -> list[str]:
    name = runs[-1].task
    heading = f"### {escaped(runs[-1].title or name, 80)} ({escaped(name, 120)})"
    parts = (_days, _learned, _built, _failed)
    return [heading, "", *(line for part in parts for line in part(runs, link)), ""]


def _days(runs: Sequence[Row], link: Link) -> Iterator[str]:
    days: dict[str, list[Row]] = defaultdict(list)
    for run in runs:
        days[run.day].append(run)
    for day in sorted(days, reverse=True)[:DAYS]:
        counted = Counter(run.outcome.replace("_", " ") for run in days[day])
        told = ", ".join(f"{n} {name}" for name, n in counted.most_common())
        yield f"- {day}: {told}; last {_linked(days[day][-1], link)}"
    if len(days) > DAYS:
        earlier = sum(len(days[day]) for day in sorted(days, reverse=True)[DAYS:])
        yield f"- before that: {earlier:,} runs on {len(days) - DAYS} days"


def _learned(runs: Sequence[Row], link: Link) -> Iterator[str]:
    """Each note once, where it was last said; results that are not what they were."""
    said: dict[str, Row] = {}
    for run in reversed(runs):
        for note in run.texts("note"):
            said.setdefault(one_line(note), run)
    for note, run in list(said.items())[:NOTES]:
        yield f"- noted: {escaped(note, 300)} ({_linked(run, link)})"
    for name, old, new in _changes(runs)[:CHANGES]:
        change = f"{_value(old.results[name])} → {_value(new.results[name])}"
        given = "" if old.parameters == new.parameters else " with other parameters"
        yield f"- result {escaped(name, 60)}: {change}{given} ({_linked(new, link)})"


def _built(runs: Sequence[Row], link: Link) -> Iterator[str]:
    """Of code that is built: what the last run that says so found."""
    for run in reversed(runs):
        values = run.results
        said = []
        for name, of in (("validations", "validations"), ("tests", "test_results")):
            counts = [(word, values.get(f"{of}.{word}")) for word in COUNTS]
            there = [f"{n} {word}" for word, n in counts if n and isinstance(n, int)]
            said += [f"{name}: {', '.join(there)}"] if there else []
        if said:
            yield f"- built, {'; '.join(said)} ({_linked(run, link)})"
            return


def _changes(runs: Sequence[Row]) -> list[tuple[str, Row, Row]]:
    """Of each result the last two runs that differ in it; the latest change first."""
    last: dict[str, tuple[Any, Row]] = {}
    changed: dict[str, tuple[str, Row, Row]] = {}
    for run in runs:
        for name, value in run.results.items():
            old, before = last.get(name, (value, run))
            if old != value:
                changed.pop(name, None)
                changed[name] = (name, before, run)
            last[name] = value, run
    return list(reversed(changed.values()))


def _failed(runs: Sequence[Row], link: Link) -> Iterator[str]:
    kinds: dict[str, list[Row]] = defaultdict(list)
    for run in runs:
        if run.error:
            kinds[run.error].append(run)
    order = sorted(kinds.values(), key=lambda same: same[-1].started, reverse=True)
    for same in order[:FAILURES]:
        last = same[-1]
        times = "once" if len(same) == 1 else f"{len(same):,} times"
        said, since = escaped(last.said, 200), _passed(runs, last, link)
        yield f"- failed {times}: {said} (last {_linked(last, link)}; {since})"
    if len(order) > FAILURES:
        yield f"- and {len(order) - FAILURES} other failures"


def _passed(runs: Sequence[Row], failed: Row, link: Link) -> str:
    """That it passed with other parameters does not say that it was mended."""
    later = [run for run in runs if run.outcome == "ok" and run.started > failed.started]
    same = [run for run in later if run.parameters == failed.parameters]
    if same:
        return f"passed since in {_linked(same[0], link)}"
    if later:
        return f"passed since with other parameters in {_linked(later[0], link)}"
    return "not passed since"


def _linked(run: Row, link: Link) -> str:
    return escaped(run.run_id, 120) if run.local else f"[{run.run_id}]({link(run.run_id)})"


def _value(value: Any) -> str:
    return escaped(json.dumps(value, ensure_ascii=False, default=str), 60)


def escaped(text: str, most: int) -> str:
    """One line that means nothing to Markdown."""
    text = one_line(text[: most + 1])
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    # A bare address would become a link wherever the page is shown.
    text = _SPECIAL.sub(r"\\\1", text).replace("://", ":\u200b//")
    return _WWW.sub("\\1\u200b.", text)
