"""Values and frames of a failed cell, asked of a Jupyter kernel that runs IPython."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ..record.events import CellFinished

NAME = "quire_used"
WAIT = 2.0  # seconds; it is never worth more than the answer that it comes with


@cache
def _source(module: str) -> str:
    return (Path(__file__).parent / "inside" / f"{module}.py").read_text()


def question(code: str) -> dict[str, str]:
    """Expressions of the user for an `execute_request` without code; they leave nothing behind."""
    used = f"d['used'](shell.transform_cell({code!r}), shell.user_ns, last)"
    look = f"dict(variables={used}, frames=f['of_shell'](last, shell))"
    sources = f"exec({_source('used_values')!r}, d) or exec({_source('error_origin')!r}, f)"
    ask = f"(lambda d, f, shell, last: {sources} or __import__('json').dumps({look}))"
    return {
        NAME: f"{ask}({{}}, {{}}, get_ipython(), getattr(__import__('sys'), 'last_value', None))"
    }


def answered(event: CellFinished, reply: Mapping[str, Any]) -> CellFinished:
    """With what it said; as it was where it said something else."""
    with suppress(KeyError, TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
        told = reply["user_expressions"][NAME]["data"]["text/plain"]
        found = json.loads(ast.literal_eval(told))
        variables = tuple(
            {str(key): str(value) for key, value in one.items()}
            for one in found["variables"]
            if "name" in one
        )
        frames = tuple(dict(one) for one in found["frames"])
        error = event.error and replace(event.error, frames=frames)
        return replace(event, variables=variables, error=error)
    return event
