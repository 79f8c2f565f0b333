"""A draft whose cells somebody has written."""

from __future__ import annotations

CELLS = {
    "gather": 'items = [{"name": "a", "value": 95.0}, {"name": "b", "value": 5.0}]',
    "decide": (
        'found = [item for item in items if item["value"] > threshold]\n'
        'status = "attention" if found else "ok"\n'
        'print(f"{len(found)} of {len(items)} items: {status}")'
    ),
    "report": (
        "from quire.runtime import glue\n\n"
        'glue("status", status)\nglue("shown", found)\nglue("items", len(items))'
    ),
    "check": 'assert len(found) <= len(items), "more was found than there is"\nprint("checked")',
}


def written(title: str = "Alert when CPU is above 80%", threshold: float = 80.0) -> str:
    cells = [
        f"# %% [markdown]\n# # {title}\n#\n# **Why.** For those on call.\n",
        f'# %% parameters tags=["parameters"]\nthreshold: float = {threshold}  # most\n',
        *(f"# %% {name}\n{source}\n" for name, source in CELLS.items()),
    ]
    return "\n".join(cells)
