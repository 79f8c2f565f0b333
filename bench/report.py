"""The rows of the table and how they read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

HEADS = ("figure", "what", "peer", "us", "ratio", "goal", "met")


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `met` is None where DESIGN.md sets no goal: the row is for information."""

    figure: str
    what: str
    peer: str = "-"
    us: str = "-"
    ratio: str = "-"
    goal: str = "-"
    met: bool | None = None
    # The numbers behind the texts, for --json: seconds or bytes.
    values: dict[str, Any] | None = None


def table(rows: list[Row]) -> str:
    lines = [HEADS, *(texts(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def texts(row: Row) -> tuple[str, ...]:
    met = {None: "-", True: "yes", False: "no"}[row.met]
    return (row.figure, row.what, row.peer, row.us, row.ratio, row.goal, met)


def as_dict(row: Row) -> dict[str, Any]:
    return asdict(row)


def seconds(value: float) -> str:
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1000:.3g} ms" if value < 0.1 else f"{value * 1000:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def size(value: float) -> str:
    return f"{value / 1e6:.1f} MB" if value < 10e6 else f"{value / 1e6:.0f} MB"


def ratio(value: float) -> str:
    """1/12 where we are faster, 3.1 x where we are not."""
    if 0 < value < 1:
        return f"1/{1 / value:.1f}" if value > 0.01 else f"1/{1 / value:.0f}"
    return f"{value:.2f} x"
