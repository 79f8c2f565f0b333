"""The gather cell of a draft: reads the file that a description names, else has examples."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .described import Input

_EXAMPLES = 'records = [{"name": f"example {n}", "value": n} for n in range(1, 11)]'
_MOST = "100_000"
_READERS = {
    "csv": (
        "import csv",
        f"    records = list(islice(csv.DictReader(lines), {_MOST}))",
    ),
    "tsv": (
        "import csv",
        f'    records = list(islice(csv.DictReader(lines, delimiter="\\t"), {_MOST}))',
    ),
    "json": (
        "import json",
        "    records = json.load(lines)\n"
        "records = records if isinstance(records, list) else [records]",
    ),
    "jsonl": (
        "import json",
        f"    records = [json.loads(line) for line in islice(lines, {_MOST}) if line.strip()]",
    ),
    "log": (
        "",
        '    records = [{"name": line.rstrip("\\n"), "value": n}\n'
        f"               for n, line in enumerate(islice(lines, {_MOST}), 1){{keep}}]",
    ),
}
_SAME = {"ndjson": "jsonl", "txt": "log", "md": "log"}
_MEASURE = '''

def measure(record):
    """The number of a record that counts. For now: the last one that it has."""
    found = 0.0
    for value in record.values() if isinstance(record, dict) else [record]:
        try:
            found = float(value)
        except (TypeError, ValueError):
            continue
    return found


def called(record, n):
    """What to call it. For now: its first value."""
    return str(next(iter(record.values()), n)) if isinstance(record, dict) else str(n)


items = [
    {"name": called(record, n), "value": measure(record)} for n, record in enumerate(records, 1)
]'''


def subjects(inputs: Sequence[Input]) -> dict[str, Input]:
    """What is compared with which limit, where a description has one for each of several things."""
    limits = [item for item in inputs if item.role in ("above", "below")]
    named = {item.name.removesuffix("_threshold"): item for item in limits}
    apart = all(item.name.endswith("_threshold") for item in limits)
    ranged = any(item.role == "from" for item in inputs)
    alone = ranged or _file(inputs) is not None
    return named if len(limits) > 1 and apart and not alone else {}


def intention(inputs: Sequence[Input]) -> str:
    """What the cell is to do."""
    asides = [f"`{item.name}`" for item in inputs if item.role == "aside"]
    said = "What there is to look at, one item each."
    if asides:
        said += f" Use {' and '.join(asides)} here: the rule only looks at the value of an item."
    return said


def gather(inputs: Sequence[Input]) -> str:
    file = _file(inputs)
    asked = [item for item in inputs if item.role in ("", "aside") and item is not file]
    said = ", ".join(f'"{item.name}": {item.name}' for item in asked)
    parts = [f"asked = {{{said}}}\nprint(asked)"] if asked else []
    if file is not None:
        return "\n".join([*_head(file), *parts, _from_file(file, inputs)])
    for_each = subjects(inputs)
    if for_each:
        rows = "\n".join(f'    {{"name": "{name}", "value": 1.0}},' for name in for_each)
        examples = f"items = [\n{rows}\n]"
    else:
        examples = _EXAMPLES.replace("records", "items", 1)
    comment = "# Examples, until this gets the real ones."
    tail = f'{comment}\n{examples}\nsource = "example"\nprint(f"{{len(items)}} items: {{source}}")'
    return "\n\n".join([*parts, tail])


def _file(inputs: Sequence[Input]) -> Input | None:
    return next((item for item in inputs if item.role == "file" and _kind(item) in _READERS), None)


def _kind(item: Input) -> str:
    suffix = str(ast.literal_eval(item.source)).rsplit(".", 1)[-1].lower()
    return _SAME.get(suffix, suffix)


def _head(file: Input) -> list[str]:
    module = _READERS[_kind(file)][0]
    return [*([module] if module else []), "import os", "from itertools import islice", ""]


def _from_file(file: Input, inputs: Sequence[Input]) -> str:
    pattern = next((item.name for item in inputs if item.name in ("pattern", "query")), "")
    keep = f" if {pattern} in line" if pattern else ""
    read = _READERS[_kind(file)][1].replace("{keep}", keep)
    read = "\n".join(f"    {line}" for line in read.splitlines())
    return f"""\
file = os.path.expanduser({file.name})
if os.path.isfile(file) and os.access(file, os.R_OK):
    with open(file, newline="", encoding="utf-8", errors="replace") as lines:
{read}
    source = file
else:  # examples, until the file is there
    {_EXAMPLES}
    source = "example"
{_MEASURE}
print(f"{{len(items)}} items: {{source}}")"""
