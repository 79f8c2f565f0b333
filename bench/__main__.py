"""`python -m bench`: the figures of DESIGN.md, the peer and us in the same run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if not __package__:  # run by path: the folder above must be importable
    sys.path.insert(0, str(ROOT))

from bench import (  # noqa: E402 - needs the path above
    agents,
    archiving,
    environments,
    figures,
    flood,
    peers,
    report,
    rewinding,
    searching,
)
from bench.measure import CannotMeasure, load  # noqa: E402
from bench.us import find_quire  # noqa: E402

FIGURES = {
    "P1": figures.small,
    "P2": figures.many,
    "P3": figures.talkative,
    "P4": figures.script,
    "P5": figures.plotting,
    "P6": rewinding.rewinding,
    "P7": flood.flooding,
    "P8": searching.searching,
    "P9": archiving.archiving,
    "P10": figures.start,
    "ENV": environments.environments,
    "A1": agents.agents,
}


def main() -> int:
    options = arguments()
    rows: list[report.Row] = []
    failures: dict[str, str] = {}
    try:
        quire = tuple(shlex.split(options.us)) if options.us else find_quire()
        leased = peers.lease(ROOT / ".bench")
    except CannotMeasure as error:
        print(f"could not measure: {error}", file=sys.stderr)
        return 1
    machine = describe(leased.versions)
    with tempfile.TemporaryDirectory(prefix="quire-bench-", ignore_cleanup_errors=True) as scratch:
        for name in options.only:
            print(f"{name} …", file=sys.stderr, flush=True)
            folder = Path(scratch) / name.lower()
            folder.mkdir()
            bench = figures.Bench(leased, quire, folder, options.quick)
            try:
                rows += FIGURES[name](bench)
            except (CannotMeasure, OSError) as error:
                failures[name] = str(error)
    machine["load_after"] = load()
    show(machine, rows, failures, as_json=options.json)
    return 1 if failures else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only", type=chosen, default=list(FIGURES), metavar="P1,P4", help="these figures only"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats, a smaller flood")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--us", metavar="CMD", help="the command to measure instead of `quire`")
    return parser.parse_args()


def chosen(text: str) -> list[str]:
    names = [name.strip().upper() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FIGURES]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(FIGURES)}")
    return names


def describe(versions: dict[str, str]) -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_before": load(),
        "versions": versions,
    }


def show(
    machine: dict[str, Any], rows: list[report.Row], failures: dict[str, str], *, as_json: bool
) -> None:
    if as_json:
        found = {"machine": machine, "rows": [report.as_dict(row) for row in rows]}
        print(json.dumps(found | {"failures": failures}, indent=1))
        return
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    loads = f"load {machine['load_before']:.1f} before, {machine['load_after']:.1f} after"
    print(f"{machine['cores']} cores, Python {machine['python']}, {machine['system']}, {loads}")
    print(f"peers: {versions}\n")
    print(report.table(rows))
    judged = [row for row in rows if row.met is not None]
    print(f"\n{sum(row.met is True for row in judged)} of {len(judged)} goals met")
    for name, reason in failures.items():
        print(f"{name} could not be measured: {reason}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
