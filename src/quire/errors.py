"""What Quire itself could not do. What a task did wrong is data in its record, not an exception.

QuireError
 ├── UsageError              the caller asked for something that cannot be; exit 2
 │    ├── DocumentError      the file is not a task, or a broken one
 │    ├── ParameterError     a parameter is unknown, missing or does not fit
 │    ├── ConfigError        quire.toml or [tool.quire] is wrong
 │    ├── DependencyError    what a task declares to need cannot be had
 │    ├── RunNotFound        no run has that id
 │    └── KernelNotFound     no such interpreter or kernel
 ├── KernelError             a kernel could not be started or broke its protocol
 ├── HostError               the host process could not be reached or started
 ├── StorageError            the disk said no
 ├── GitError                git, or what is in a repository, said no
 ├── ForgeError              a forge (local, Gitea, GitHub) said no, or nothing
 ├── ModelError              the configured language model said no, or nothing of use
 ├── Declined                a person was asked and did not want to answer
 ├── Refused                 the workspace's policy says no to a tool call of a cell
 └── ToolError               a tool call was allowed and could not be done
"""

from __future__ import annotations

from .next_steps import Hint as Hint
from .next_steps import NextStep as NextStep
from .next_steps import Option as Option


class QuireError(Exception):
    """Carries a stable code, a hint with the next step, and whether trying again may help.

    A hint that names something to do is a `next_steps.Hint`: each view has its own words for that.
    """

    code = "quire"
    retryable = False
    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def as_dict(self) -> dict[str, object]:
        return {
            "code": self.code,
            "message": self.message,
            "hint": str(self.hint),
            "retryable": self.retryable,
        }


class UsageError(QuireError):
    code = "usage"


class DocumentError(UsageError):
    code = "document"


class ParameterError(UsageError):
    code = "parameter"


class ConfigError(UsageError):
    code = "config"


class DependencyError(UsageError):
    code = "dependency"


class RunNotFound(UsageError):
    code = "run_not_found"


class AmbiguousRun(RunNotFound):
    """The beginning of an id fits several runs."""


class KernelNotFound(UsageError):
    code = "kernel_not_found"


class KernelError(QuireError):
    code = "kernel"
    retryable = True


class HostError(QuireError):
    code = "host"
    retryable = True


class StorageError(QuireError):
    code = "storage"
    retryable = True


class GitError(QuireError):
    code = "git"


class ForgeError(QuireError):
    code = "forge"


class ModelError(QuireError):
    code = "model"


class Declined(QuireError):
    code = "declined"


class Refused(QuireError):
    code = "refused"


class ToolError(QuireError):
    code = "tool"


class InternalError(QuireError):
    """A mistake of ours, told in the way of all others to programs that read JSON."""

    code = "internal"
