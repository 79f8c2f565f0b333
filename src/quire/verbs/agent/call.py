"""Call a tool by its name: the one way in, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import QuireError
from ...runs.telling import Told
from ...workspace import Workspace
from . import memory, notebooks, proposals, runs, sessions, texts
from .arguments import checked, tool
from .caller import Caller

_DO: dict[str, Callable[..., Told]] = {
    "notebook_create": notebooks.create,
    "notebook_read": notebooks.show,
    "notebook_edit": notebooks.change,
    "notebook_execute": runs.execute,
    "notebook_session": sessions.act,
    "notebook_commit": proposals.commit,
    "notebook_pr": proposals.pr,
    "run_find": memory.search,
    "run_show": runs.show,
    "run_wait": runs.wait,
    "run_cancel": runs.cancel,
}


def call(ws: Workspace, name: str, arguments: Mapping[str, Any], caller: Caller) -> Told:
    """What the tool says. Never raises for what an agent or a notebook can do wrong."""
    try:
        asked = tool(name)
        return _DO[name](ws, caller, **checked(asked, arguments))
    except QuireError as problem:
        return texts.error(problem)
