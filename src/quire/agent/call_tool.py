"""Call a tool by its name: the one way in, whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import QuireError
from ..render.agent_run import Told
from ..workspace import Workspace
from . import find_tool, notebook_tools, proposal_tools, run_tools, session_tools, tool_texts
from .caller import Caller
from .tool_arguments import checked, tool

_DO: dict[str, Callable[..., Told]] = {
    "notebook_create": notebook_tools.create,
    "notebook_read": notebook_tools.show,
    "notebook_edit": notebook_tools.change,
    "notebook_execute": run_tools.execute,
    "notebook_session": session_tools.act,
    "notebook_commit": proposal_tools.commit,
    "notebook_pr": proposal_tools.pr,
    "run_find": find_tool.search,
    "run_show": run_tools.show,
    "run_wait": run_tools.wait,
    "run_cancel": run_tools.cancel,
}


def call(ws: Workspace, name: str, arguments: Mapping[str, Any], caller: Caller) -> Told:
    """What the tool says. Never raises for what an agent or a notebook can do wrong."""
    try:
        asked = tool(name)
        return _DO[name](ws, caller, **checked(asked, arguments))
    except QuireError as problem:
        return tool_texts.error(problem)
