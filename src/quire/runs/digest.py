"""What happened in many runs, on one page: by topic, by task, by day. Pure, and bounded.

A topic is the folder that a task is in. Everything quoted is a stranger's text: escaped and cut.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .summary import one_line

LONGEST = 60_000  # characters of a whole digest
TOPICS, TASKS, DAYS, NOTES, FAILURES, CHANGES = 40, 40, 7, 6, 5, 6
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&@])")


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

    @property
    def day(self) -> str:
        return f"{datetime.fromtimestamp(self.started, UTC):%Y-%m-%d}"


Link = Callable[[str], str]  # a run's id to the place that is linked to


def digest(runs: Sequence[Told], link: Link, *, title: str = "Digest of runs") -> str:
    """Oldest first in, the newest first out."""
    out = [f"# {title}", "", _head(runs), ""]
    size = sum(map(len, out))
    topics: dict[str, list[Told]] = defaultdict(list)
    for run in runs:
        topics[run.task.rpartition("/")[0] or "."].append(run)
    order = sorted(topics, key=lambda name: topics[name][-1].started, reverse=True)
    for at, name in enumerate(order):
        lines = [f"## {escaped(name, 80)}", "", *_topic(topics[name], link)]
        size += sum(len(line) + 1 for line in lines)
        if at == TOPICS or size > LONGEST - 200:
            left = sum(len(topics[rest]) for rest in order[at:])
            out.append(f"{left:,} more runs of {len(order) - at} topics are left out here.")
            break
        out += lines
    return "\n".join(out).rstrip() + "\n"


def _head(runs: Sequence[Told]) -> str:
    if not runs:
        return "No runs."
    tasks = len({run.task for run in runs})
    outcomes = Counter(run.outcome for run in runs)
    counted = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in outcomes.most_common())
    return (
        f"{runs[0].day} to {runs[-1].day}: {len(runs):,} runs of {tasks:,} tasks: {counted}. "
        "Made from their records; it proves nothing by itself."
    )


def _topic(runs: Sequence[Told], link: Link) -> Iterator[str]:
    tasks: dict[str, list[Told]] = defaultdict(list)
    for run in runs:
        tasks[run.task].append(run)
    order = sorted(tasks, key=lambda name: tasks[name][-1].started, reverse=True)
    for name in order[:TASKS]:
        yield f"### {escaped(tasks[name][-1].title or name, 80)} ({escaped(name, 120)})"
        yield ""
        yield from _days(tasks[name], link)
        yield from _learned(tasks[name], link)
        yield from _failed(tasks[name], link)
        yield ""
    if len(order) > TASKS:
        yield f"{len(order) - TASKS} more tasks are left out here."
        yield ""


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
    for name, old, new, run in _changes(runs)[:CHANGES]:
        yield f"- result {escaped(name, 60)}: {_value(old)} → {_value(new)} ({_linked(run, link)})"


def _changes(runs: Sequence[Told]) -> list[tuple[str, Any, Any, Told]]:
    """Of each result the last two values that differ; the latest change first."""
    last: dict[str, Any] = {}
    changed: dict[str, tuple[str, Any, Any, Told]] = {}
    for run in runs:
        for name, value in run.results:
            if name in last and last[name] != value:
                changed.pop(name, None)
                changed[name] = (name, last[name], value, run)
            last[name] = value
    return list(reversed(changed.values()))


def _failed(runs: Sequence[Told], link: Link) -> Iterator[str]:
    kinds: dict[str, list[Told]] = defaultdict(list)
    for run in runs:
        if run.failure:
            kinds[run.failure].append(run)
    order = sorted(kinds.values(), key=lambda same: same[-1].started, reverse=True)
    for same in order[:FAILURES]:
        last = same[-1]
        times = "once" if len(same) == 1 else f"{len(same):,} times"
        passed = next((r for r in runs if r.outcome == "ok" and r.started > last.started), None)
        since = f"; passed since in {_linked(passed, link)}" if passed else "; not passed since"
        yield f"- failed {times}: {escaped(last.error, 200)} (last {_linked(last, link)}{since})"
    if len(order) > FAILURES:
        yield f"- and {len(order) - FAILURES} other failures"


def _linked(run: Told, link: Link) -> str:
    return f"[{run.run_id}]({link(run.run_id)})"


def _value(value: Any) -> str:
    return escaped(json.dumps(value, ensure_ascii=False, default=str), 60)


def escaped(text: str, most: int) -> str:
    """One line that means nothing to Markdown."""
    text = one_line(text[: most + 1])
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    # A bare address would become a link wherever the page is shown.
    return _SPECIAL.sub(r"\\\1", text).replace("://", ":\u200b//")
