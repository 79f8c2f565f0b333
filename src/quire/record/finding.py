"""What a check found wrong: where, what, and of which kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`where` and `what` may quote a stranger's text: make it plain before it is shown."""

    where: str  # the file, the cell, the output, the field
    what: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what
