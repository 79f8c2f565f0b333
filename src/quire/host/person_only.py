"""What only a person, or who acts for one, may do: no cell, nor anything that a cell has started.

Who asks is known by its place among the processes, not by what it says of itself.
"""

from __future__ import annotations

import os

from ..errors import Refused
from ..kernel import descent
from ..workspace import Workspace


def refuse_from_kernel(ws: Workspace, what: str) -> None:
    """`what` is what was asked for, as the beginning of a sentence."""
    why = descent.objection(ws.caller or os.getpid())
    if why:
        raise Refused(
            f"{what} is refused: {why}",
            hint="a person does that, in a shell that no notebook has started",
        )
