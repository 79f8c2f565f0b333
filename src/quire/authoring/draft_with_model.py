"""Have the configured model draft a task. Its draft is read and checked, and never run here."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ConfigError, ModelError
from ..task.parameter_cell import Parameter
from ..workspace import Workspace
from .draft import Draft, draft
from .draft_check import vet
from .language_model import complete

_SHOWN = 20  # problems that are sent back
_SYSTEM = """\
You write notebook tasks for Quire: one Python file in the percent format, and nothing around it.

- The first cell is `# %% [markdown]`: a title `# # …`, what the task does, and why, for whom.
- Then `# %% parameters tags=["parameters"]`: one line for each input that the description names or
  needs, as `name: type = default  # help`. Literal defaults only; int, float, str, bool, date,
  list[str]. No computing there. Imports of the types may stand above.
- Then code cells with the titles gather, decide, report and check (`# %% gather`), each with a
  short Markdown cell above it where that helps.
- gather gets the data. decide applies the rule. report prints a summary and names the outcome:
  `from quire.runtime import glue`, `glue("status", status)`.
- check asserts what must hold of the results, whatever the parameters are.
- Plain Python: no magics, no shell lines, no header, no list of packages to install.
  The standard library where it is enough.
- Invent no data and no results. A cell that the description does not say enough for holds nothing
  but `raise NotImplementedError("what belongs there")`: the author goes on from there.
- Nothing is deleted, sent or changed unless a parameter says so; the default does not.
- No keys or passwords in the text: read them from the environment."""


def ask(
    ws: Workspace, lines: Sequence[str], given: Sequence[Parameter] = ()
) -> tuple[Draft | None, str]:
    """The model's draft, or none and the reason. What is wrong with a first one is sent back."""
    description = "\n".join(lines)
    keep = "\n\nKeep its parameters as they are; others may join them." if given else ""
    begun = draft(lines, given).text
    asked = f"The task:\n\n{description}\n\nA beginning to improve on:\n\n{begun}{keep}"
    try:
        answer = complete(ws, _SYSTEM, asked)
        found, problems = vet(answer, given)
        if found is None:
            listed = "\n".join(f"- {problem}" for problem in problems[:_SHOWN])
            again = (
                f"{asked}\n\nYour draft:\n\n{answer}\n\nMend this, and give all of it:\n{listed}"
            )
            found, problems = vet(complete(ws, _SYSTEM, again), given)
    except (ConfigError, ModelError) as error:
        return None, f"{error.message}; {error.hint}" if error.hint else error.message
    if found is None:
        return None, f"the model's draft does not pass, also when told why: {problems[0]}"
    return found, ""
