"""What an executed notebook says of its run besides code and outputs: times, parameters, how it
ended, and the state of widgets, which a front end draws as if a cell had shown them.

What is left out claims nothing. What is there must be what the run says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..record.finding import Finding
from .strict_json import brief

# Where the file lies and which program wrote it: a copy may differ in these.
_FREE = {"papermill": ("output_path", "version")}
_SECTIONS = ("papermill", "quire")
_WHOLE = ("execution", "ExecuteTime")  # times as Jupyter and its extensions note them
WIDGETS = "widgets"


def untrue(told: Any, ran: Any, run_id: str, where: str) -> Iterator[Finding]:
    """What the metadata of a notebook, or of a cell, says that those of the run do not."""
    told, ran = _object(told), _object(ran)
    for section in _SECTIONS:
        place, run = f"{where} metadata.{section}", _object(ran.get(section))
        said = told.get(section)
        if not isinstance(said, Mapping):
            said = {} if said is None else {"": said}
        for key, value in said.items():
            if key not in _FREE.get(section, ()):
                yield from _unlike(value, run.get(key), f"{place}.{key}", run_id)
    for key in _WHOLE:
        if told.get(key):
            yield from _unlike(told[key], ran.get(key), f"{where} metadata.{key}", run_id)
    state = _states(told.get(WIDGETS))
    if state and not _same(state, _states(ran.get(WIDGETS))):
        what = f"this state of widgets is not that of the run {run_id}"
        yield Finding(f"{where} metadata.{WIDGETS}", what, "claim")


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _unlike(told: Any, ran: Any, place: str, run_id: str) -> Iterator[Finding]:
    if isinstance(told, Mapping) and isinstance(ran, Mapping):
        for key in dict.fromkeys((*told, *ran)):
            yield from _unlike(told.get(key), ran.get(key), f"{place}.{key}", run_id)
    elif not _same(told, ran):
        what = f"it says {brief(told)}, the run {run_id} {brief(ran)}"
        yield Finding(place, what, "claim")


def _same(one: Any, other: Any) -> bool:
    """As JSON values. A browser writes 2.0 as 2; true is no number."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _states(widgets: Any) -> Any:
    """Without those that hold no widget: some editors write an empty one."""
    if not isinstance(widgets, Mapping):
        return widgets
    return {
        mime: state
        for mime, state in widgets.items()
        if not (isinstance(state, Mapping) and state.get("state", state) == {})
    }
