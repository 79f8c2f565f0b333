"""Archived runs made from a task's text, as the engine would make them but without a kernel."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quire.proof.attestation import ATTESTATION, envelope, statement
from quire.proof.key_store import Key
from quire.proof.trust import Trust, Trusted, trusting
from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    OriginNoted,
    OutputAdded,
    ResultGlued,
    RunFinished,
    RunStarted,
    Warned,
)
from quire.record.plan import Plan
from quire.record.record import Record, fold
from quire.record.record_files import archive_files
from quire.task import formats, params

VERSION = "9.9"
AT = "2026-11-16T15:55:01.5+00:00"
END = "2026-11-16T15:55:09.25+00:00"
RUN = "2026-11-16-155501-report-8121"
ADA, EVE = Key(b"a" * 32), Key(b"e" * 32)
KERNEL = {"kind": "native", "name": "", "language": "python"}
ORIGIN = OriginNoted(
    {
        "interpreter": {"version": "3.11.2", "executable": "python"},
        "platform": "Linux",
        "packages": {"numpy": "2.1.0", "pandas": "2.2.3"},
    },
    {"name": "quire", "version": VERSION},
    {"commit": "ab" * 20, "branch": "main", "dirty": False},
    {"by": "ada", "behalf": "the board"},
)
TASK = """# %% [markdown]
# # Report

# %% tags=["parameters"]
n: int = 4

# %% look
print("total", n)
n * 2

# %% quiet
m = n + 1
"""
# Of the code cells in order: the parameters, the injected ones, `look`, `quiet`.
SHOWN: tuple[Sequence[dict[str, Any]], ...] = (
    (),
    (),
    (
        {"output_type": "stream", "name": "stdout", "text": "total 4\nof all\n"},
        {
            "output_type": "execute_result",
            "data": {"text/plain": "8", "text/html": "<b>8</b>"},
            "metadata": {},
            "execution_count": 3,
        },
    ),
    (),
)


def trust(*keys: Key, until: str = "", since: str = "") -> Trust:
    names = {ADA.public: "ada", EVE.public: "eve"}
    return trusting(
        Trusted(k.public, names.get(k.public, "somebody"), since, until) for k in keys or (ADA,)
    )


def ran(
    source: str = TASK,
    suffix: str = ".py",
    parameters: Mapping[str, Any] | None = None,
    shown: Sequence[Sequence[dict[str, Any]]] = SHOWN,
    *,
    run_id: str = RUN,
    fails_at: int | None = None,
    error: tuple[str, str] = ("ValueError", "no"),
    results: Sequence[tuple[str, Any]] = (),
    warnings: Sequence[str] = (),
    origin: OriginNoted = ORIGIN,
    mode: str = "clean",
) -> Record:
    """A record of the task, whose code cells show what they are told to."""
    document = formats.loads(source, suffix)
    values = {"n": 4} if parameters is None else parameters
    document = params.inject(document, values)
    plan = Plan(
        run_id, "0b5a", f"notebooks/report{suffix}", Path("report"), document, source, values
    )
    told = plan.as_json(KERNEL) | {"mode": mode}
    events: list[Event] = [
        RunStarted(run_id, plan.uuid, AT, plan.task, document.title, plan.cells_as_json(), told),
        origin,
    ]
    outcome = "ok"
    code = [cell for cell in document.cells if cell.kind == "code"]
    for at, cell in enumerate(code):
        events.append(CellStarted(cell.id, AT))
        events += [OutputAdded(cell.id, dict(o)) for o in (shown[at] if at < len(shown) else ())]
        if at == fails_at:
            name, value = error
            met = CellError(name, value, ("Traceback", f"{name}: {value}"))
            raised = {"output_type": "error", "ename": name, "evalue": value}
            events.append(OutputAdded(cell.id, {**raised, "traceback": list(met.traceback)}))
            events.append(CellFinished(cell.id, "failed", END, 0.5, at + 1, met))
            outcome = "failed"
            break
        events += [ResultGlued(cell.id, k, "json", v) for k, v in results if at == 0]
        events += [Warned(cell.id, text) for text in warnings if at == 0]
        events.append(CellFinished(cell.id, "ok", END, 0.25, at + 1))
    events.append(RunFinished(outcome, END, 7.75, "" if outcome == "ok" else ": ".join(error)))
    return fold(events)


def files_of(
    record: Record,
    source: str = TASK,
    suffix: str = ".py",
    *,
    large: int | None = None,
    keep: Callable[[bytes], None] | None = None,
) -> dict[str, bytes]:
    data = source.encode("utf-8", "surrogatepass")
    return archive_files(record, data, suffix, version=VERSION, large=large, keep=keep)


def signed(files: Mapping[str, bytes], key: Key = ADA) -> dict[str, bytes]:
    rest = {name: data for name, data in files.items() if name != ATTESTATION}
    return {**rest, ATTESTATION: envelope(statement(rest), key)}


def honest(**how: Any) -> dict[str, bytes]:
    return signed(files_of(ran(**how)))


def edited(
    files: Mapping[str, bytes], name: str, change: Callable[[Any], None]
) -> dict[str, bytes]:
    """The files with one of them changed as a JSON value."""
    value = json.loads(files[name])
    change(value)
    return {**files, name: json.dumps(value).encode()}
