"""In what two environments differ, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMED = 6  # of each kind


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Empty where tasks cannot tell them apart: the same Python with the same packages."""
    said: list[str] = []
    was, now = _interpreter(old), _interpreter(new)
    if was and now and was != now:
        said.append(f"{was} is now {now}")
        if was.split()[0] != now.split()[0]:
            return said[0]  # another language: its packages are no news
    before, after = _packages(old), _packages(new)
    both = sorted(before.keys() & after.keys())
    changed = [f"{n} {before[n]} → {after[n]}" for n in both if before[n] != after[n]]
    added = [f"{n} {after[n]}" for n in sorted(after.keys() - before.keys())]
    removed = [f"{n} {before[n]}" for n in sorted(before.keys() - after.keys())]
    for word, names in (("changed", changed), ("added", added), ("removed", removed)):
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            said.append(f"{word}: {', '.join(names[:NAMED])}{more}")
    return "; ".join(said)


def _interpreter(environment: Mapping[str, Any]) -> str:
    found = environment.get("interpreter")
    if not isinstance(found, Mapping) or not found.get("version"):
        return ""
    # What implements it is called differently by different kernels.
    return f"{found.get('language') or ''} {found['version']}".strip()


def _packages(environment: Mapping[str, Any]) -> dict[str, str]:
    found = environment.get("packages")
    return {str(n): str(v) for n, v in found.items()} if isinstance(found, Mapping) else {}
