"""What happened in many runs, on one page: by topic, by task, by day. Pure, and bounded.

A topic is the folder that a task is in. Everything quoted is a stranger's text: escaped and cut.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..record.summary import one_line
from .build_results import COUNTS

LONGEST = 60_000  # characters of a whole digest
TOPICS, TASKS, DAYS, NOTES, FAILURES, CHANGES = 40, 40, 7, 6, 5, 6
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&@])")
_WWW = re.compile(r"\b(www)\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Told:
    """One run, as far as a digest needs it."""

    run_id: str
    task: str
    title: str
    outcome: str
    started: float  # seconds since 1970
    error: str = ""  # what it said
    failure: str = ""  # the same without what differs from run to run
    notes: tuple[str, ...] = ()
    results: tuple[tuple[str, Any], ...] = ()
    parameters: tuple[tuple[str, Any], ...] = ()
    local: bool = False  # in this folder only: there is no file in the archive to link to

    @property
    def day(self) -> str:
        return f"{datetime.fromtimestamp(self.started, UTC):%Y-%m-%d}"


Link = Callable[[str], str]  # a run's id to the place that is linked to


def digest(runs: Sequence[Told], link: Link, *, title: str = "Digest of runs", of: str = "") -> str:
    """Oldest first in, the newest first out. `of`: what these are, where there were more."""
    out = [f"# {title}", "", _head(runs), *([f"Only {of}."] if of else []), ""]
    page = _Page(LONGEST - 500 - sum(len(line) + 1 for line in out))
    topics: dict[str, list[Told]] = defaultdict(list)
    for run in runs:
        topics[run.task.rpartition("/")[0] or "."].append(run)
    order = sorted(topics, key=lambda name: topics[name][-1].started, reverse=True)
    for at, name in enumerate(order):
        _topic(name, topics[name], link, page, shown=TASKS if at < TOPICS else 0)
    if page.left:
        left = f"{_many(sum(page.left), 'more run')} of {_many(len(page.left), 'task')}"
        page.lines.append(f"{left} {'is' if sum(page.left) == 1 else 'are'} left out here.")
    return "\n".join([*out, *page.lines]).rstrip() + "\n"


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


def _head(runs: Sequence[Told]) -> str:
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


def _topic(name: str, runs: Sequence[Told], link: Link, page: _Page, *, shown: int) -> None:
    tasks: dict[str, list[Told]] = defaultdict(list)
    for run in runs:
        tasks[run.task].append(run)
    heading = [f"## {escaped(name, 80)}", ""]
    for at, of in enumerate(sorted(tasks.values(), key=lambda t: t[-1].started, reverse=True)):
        if at < shown and page.add([*heading, *_task(of, link)]):
            heading = []
        else:
            page.left.append(len(of))


def _task(runs: Sequence[Told], link: Link) -> list[str]:
    name = runs[-1].task
    heading = f"### {escaped(runs[-1].title or name, 80)} ({escaped(name, 120)})"
    parts = (_days, _learned, _built, _failed)
    return [heading, "", *(line for part in parts for line in part(runs, link)), ""]


def _days(runs: Sequence[Told], link: Link) -> Iterator[str]:
    days: dict[str, list[Told]] = defaultdict(list)
    for run in runs:
        days[run.day].append(run)
    for day in sorted(days, reverse=True)[:DAYS]:
        counted = Counter(run.outcome.replace("_", " ") for run in days[day])
        told = ", ".join(f"{n} {name}" for name, n in counted.most_common())
        yield f"- {day}: {told}; last {_linked(days[day][-1], link)}"
    if len(days) > DAYS:
        earlier = sum(len(days[day]) for day in sorted(days, reverse=True)[DAYS:])
        yield f"- before that: {earlier:,} runs on {len(days) - DAYS} days"


def _learned(runs: Sequence[Told], link: Link) -> Iterator[str]:
    """Each note once, where it was last said; results that are not what they were."""
    said: dict[str, Told] = {}
    for run in reversed(runs):
        for note in run.notes:
            said.setdefault(one_line(note), run)
    for note, run in list(said.items())[:NOTES]:
        yield f"- noted: {escaped(note, 300)} ({_linked(run, link)})"
    for name, old, new in _changes(runs)[:CHANGES]:
        change = f"{_value(dict(old.results)[name])} → {_value(dict(new.results)[name])}"
        given = "" if _same_given(old, new) else " with other parameters"
        yield f"- result {escaped(name, 60)}: {change}{given} ({_linked(new, link)})"


def _built(runs: Sequence[Told], link: Link) -> Iterator[str]:
    """Of code that is built: what the last run that says so found."""
    for run in reversed(runs):
        values = dict(run.results)
        said = []
        for name, of in (("validations", "validations"), ("tests", "test_results")):
            counts = [(word, values.get(f"{of}.{word}")) for word in COUNTS]
            there = [f"{n} {word}" for word, n in counts if n and isinstance(n, int)]
            said += [f"{name}: {', '.join(there)}"] if there else []
        if said:
            yield f"- built, {'; '.join(said)} ({_linked(run, link)})"
            return


def _changes(runs: Sequence[Told]) -> list[tuple[str, Told, Told]]:
    """Of each result the last two runs that differ in it; the latest change first."""
    last: dict[str, tuple[Any, Told]] = {}
    changed: dict[str, tuple[str, Told, Told]] = {}
    for run in runs:
        for name, value in run.results:
            old, before = last.get(name, (value, run))
            if old != value:
                changed.pop(name, None)
                changed[name] = (name, before, run)
            last[name] = value, run
    return list(reversed(changed.values()))


def _same_given(one: Told, other: Told) -> bool:
    return dict(one.parameters) == dict(other.parameters)


def _failed(runs: Sequence[Told], link: Link) -> Iterator[str]:
    kinds: dict[str, list[Told]] = defaultdict(list)
    for run in runs:
        if run.failure:
            kinds[run.failure].append(run)
    order = sorted(kinds.values(), key=lambda same: same[-1].started, reverse=True)
    for same in order[:FAILURES]:
        last = same[-1]
        times = "once" if len(same) == 1 else f"{len(same):,} times"
        since = _passed(runs, last, link)
        yield f"- failed {times}: {escaped(last.error, 200)} (last {_linked(last, link)}; {since})"
    if len(order) > FAILURES:
        yield f"- and {len(order) - FAILURES} other failures"


def _passed(runs: Sequence[Told], failed: Told, link: Link) -> str:
    """That it passed with other parameters does not say that it was mended."""
    later = [run for run in runs if run.outcome == "ok" and run.started > failed.started]
    same = [run for run in later if _same_given(run, failed)]
    if same:
        return f"passed since in {_linked(same[0], link)}"
    if later:
        return f"passed since with other parameters in {_linked(later[0], link)}"
    return "not passed since"


def _linked(run: Told, link: Link) -> str:
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
