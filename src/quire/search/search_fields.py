"""The fields of a run that can be searched, and what a match in each is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    name: str  # as in `note:word`
    weight: float  # of a match in it, against one in an output
    what: str  # for people


FIELDS = (
    Field("title", 10.0, "the task's title"),
    Field("task", 8.0, "the task's path"),
    Field("note", 9.0, "what cells left with note()"),
    Field("result", 8.0, "named results"),
    Field("request", 7.0, "what was asked for, and by whom"),
    Field("error", 6.0, "what it failed with"),
    Field("param", 6.0, "parameters"),
    Field("heading", 5.0, "headings and cell titles"),
    Field("prose", 3.0, "the text between the cells"),
    Field("tool", 2.0, "tasks and tools that cells called"),
    Field("code", 1.5, "code"),
    Field("output", 1.0, "outputs, head and tail of each"),
)
NAMES = tuple(field.name for field in FIELDS)
STRONG = ("title", "task", "note", "result", "request", "error", "param", "heading")
WEIGHTS = {field.name: field.weight for field in FIELDS}
# What does not depend on the run: the same for all runs of one version of a task.
SHARED = ("heading", "prose", "code")
OWN = tuple(name for name in NAMES if name not in SHARED)
# Other words that people use for them.
ALIASES = {
    "notes": "note",
    "results": "result",
    "errors": "error",
    "params": "param",
    "parameter": "param",
    "headings": "heading",
    "outputs": "output",
    "tools": "tool",
    "text": "prose",
}
