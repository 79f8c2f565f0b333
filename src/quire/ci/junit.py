"""A gate's result as JUnit XML, as CI servers read it: a test case for each task."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..text import plain
from .gate_report import MARK, GateResult, TaskRun, cell_table

# What XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
TEXT_LIMIT = 100_000
# A run that ended badly is a failure of the task; what could not be run is an error of the gate.
_ERRORS = ("error", "cancelled", "running")


def junit(result: GateResult, name: str = "quire") -> bytes:
    from xml.etree import ElementTree as ET

    failures = sum(_kind(run) == "failure" for run in result.tasks)
    errors = sum(_kind(run) == "error" for run in result.tasks)
    counts = {
        "name": name,
        "tests": str(len(result.tasks)),
        "failures": str(failures),
        "errors": str(errors),
        "time": _seconds(result.duration),
    }
    top = ET.Element("testsuites", counts)
    suite = ET.SubElement(top, "testsuite", {**counts, "skipped": "0"})
    if result.started:
        suite.set("timestamp", _timestamp(result.started))
    for run in result.tasks:
        case = ET.SubElement(
            suite,
            "testcase",
            {
                "name": _text(run.task),
                "classname": _text(f"{name}.{_package(run.task)}"),
                "time": _seconds(run.duration),
            },
        )
        kind = _kind(run)
        if kind:
            said = {"message": _text(run.error), "type": _text(run.error_type or run.outcome)}
            element = ET.SubElement(case, kind, said)
            parts = [f"in {run.where}" if run.where else "", run.traceback or run.error, run.hint]
            element.text = _text("\n".join(part for part in parts if part))
        out = "\n".join(part for part in (_about(run), cell_table(run)) if part)
        if out:
            ET.SubElement(case, "system-out").text = _text(out)
    ET.indent(top)
    body: bytes = ET.tostring(top, encoding="utf-8")
    return b"<?xml version='1.0' encoding='utf-8'?>\n" + MARK.encode() + b"\n" + body + b"\n"


def _kind(run: TaskRun) -> str:
    if run.ok:
        return ""
    return "error" if run.outcome in _ERRORS else "failure"


def _package(task: str) -> str:
    """The folder, as a name with dots: servers group test cases by it."""
    return ".".join(task.split("/")[:-1]) or "tasks"


def _about(run: TaskRun) -> str:
    rows = [("run", run.run_id), ("notebook", run.notebook), ("because", run.because)]
    return "\n".join(f"{label}: {value}" for label, value in rows if value)


def _text(text: str) -> str:
    text = _ILLEGAL.sub("", plain(text))
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]}\n… {len(text) - TEXT_LIMIT:,} more characters"


def _seconds(value: float | None) -> str:
    return f"{value or 0.0:.3f}"


def _timestamp(at: str) -> str:
    """In UTC, without the zone, which the format has no place for."""
    try:
        return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError):
        return at
