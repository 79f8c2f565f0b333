"""Results as an agent reads them. A stand-in: thin, replaced as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .printed import plain
from .record import CellRecord, Record
from .summary import brief_json, took


@dataclass(frozen=True, slots=True)
class Picture:
    mime: str
    data: str  # base64


@dataclass(frozen=True, slots=True)
class Limits:
    total: int = 24_000
    stream: int = 8_000
    images: int = 4
    width: int = 1_200


@dataclass(frozen=True, slots=True)
class Told:
    text: str
    images: tuple[Picture, ...] = ()
    failed: bool = False


def quoted(text: str) -> str:
    return "\n".join(f"| {line}" for line in plain(text).rstrip("\n").split("\n"))


def tell_run(record: Record, limits: Limits, *, path: str = "", resumable: bool = False) -> Told:
    lines = [f"{record.outcome}: run {record.run_id} of {record.task}, {took(record.duration)}"]
    for name, result in record.results.items():
        lines.append(f"{name} = {brief_json(result.value)}")
    body = tell_cells(record.cells, limits).text
    if resumable:
        body += (
            f"\nThen: notebook_edit(path={record.task!r}, …), "
            f"notebook_execute(path={record.task!r}, resume={record.run_id!r})"
        )
    return Told(
        "\n".join([*lines, body])[: limits.total], (), record.outcome not in ("ok", "running")
    )


def tell_cells(cells: Sequence[CellRecord], limits: Limits) -> Told:
    lines: list[str] = []
    failed = False
    for at, cell in enumerate(cells):
        if cell.kind != "code":
            continue
        lines.append(f"[{at}] {cell.id} {cell.status} {took(cell.duration)} {cell.title}".rstrip())
        for output in cell.outputs:
            kind = output["output_type"]
            text = str(output.get("text") or "")
            if kind == "error":
                text = f"{output['ename']}: {output['evalue']}"
            elif kind != "stream":
                text = str(output["data"].get("text/plain", ""))
            lines.append(quoted(text[: limits.stream]))
        failed = failed or cell.status in ("failed", "died", "timed_out", "cancelled")
    return Told("\n".join(lines)[: limits.total], (), failed)


def tell_lines(text: str, first: int, last: int, limits: Limits) -> Told:
    rows = text.split("\n")
    shown = "\n".join(rows[first - 1 : last])[: limits.total]
    return Told(f"lines {first}-{min(last, len(rows))} of {len(rows)}\n{quoted(shown)}")
