"""How a kernel's process ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exit:
    """A signal or a status, the most memory it had, and the end of what it wrote to stderr."""

    status: int | None = None
    signal: int | None = None
    max_rss: int = 0
    stderr: str = ""

    @property
    def reason(self) -> str:
        if self.signal is None and self.status is None:
            return "the kernel is gone and its exit status is not known"
        if self.signal is None:
            text = f"the kernel exited with status {self.status}"
        else:
            try:
                name = signal.Signals(self.signal).name
            except ValueError:
                name = f"signal {self.signal}"
            text = f"the kernel was killed by {name}"
            if self.signal == signal.SIGKILL:
                text += ", as the system does when memory runs out"
        return f"{text} (its memory peaked at {self.max_rss / 2**20:,.0f} MB)"
