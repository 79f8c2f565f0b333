"""notebook_create, notebook_read, notebook_edit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..authoring.create import new
from ..authoring.edit_file import Edit, edit, stale_in_sessions
from ..errors import DocumentError, UsageError
from ..record.summary import one_line
from ..render.agent_hints import for_tools
from ..render.agent_lines import Lines, asked_lines, tell_lines
from ..render.agent_run import Told
from ..render.next_steps import Step, as_tool
from ..render.quoting import LONGEST_NAME, MARK, inline, mentioned, quoted
from ..task import params
from ..task.document import Cell, Document
from ..task.edit import Address
from ..task.lint import Finding, lint
from ..task.read_task import read
from ..text import plain, unseen_named, visible
from ..workspace import Workspace
from . import cell_aim, tool_texts
from .caller import Caller
from .cell_aim import Notebook

# Whoever copies the code into a cell would put other characters there than the cell has.
UNSEEN = r"<U+…> is one character that cannot be seen; in a string write it as its escape, \u…"


def inside(ws: Workspace, path: str) -> str:
    """The path, if it leads to a place in the workspace that is not git's or Quire's own."""
    full = Path(os.path.normpath(ws.cwd / path))
    try:
        there = full.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{path!r} is not a path: {error}", hint="check it") from error
    root = ws.root.resolve()
    if not there.is_relative_to(root):
        raise UsageError(
            f"{path} lies outside of the workspace {ws.root}",
            hint="name a notebook in it by its path from there",
        )
    if {part.casefold() for part in there.relative_to(root).parts} & {".git", ".quire"}:
        raise UsageError(f"{path} is none of your notebooks", hint="choose another place")
    return path


def create(
    ws: Workspace,
    caller: Caller,
    *,
    task_description: str,
    parameters: Sequence[Mapping[str, Any]] = (),
    path: str | None = None,
) -> Told:
    place = inside(ws, path) if path is not None else None
    made = new(ws, task_description, parameters=parameters, path=place)
    name = ws.named(made.path)
    by = "a model" if made.drafted_by == "model" else "rules"
    lines = [f"created {mentioned(name)}, drafted by {by}"]
    if made.note:
        lines.append(f"note: {plain(for_tools(made.note))}")
    lines += [
        f"waits for you: cell {one.index} ({one.cell_id}): {one_line(one.what)}"
        for one in made.waiting
    ]
    if made.waiting:
        lines.append(f'next: notebook_edit(path={_path(name)}, cell="…", new_source="…")')
    return tool_texts.above("\n".join(lines), listing(ws, caller, name))


def show(
    ws: Workspace, caller: Caller, *, path: str, cells: str | None = None, lines: str = ""
) -> Told:
    if lines:
        return cell_lines(ws, inside(ws, path), cells, asked_lines(lines))
    return listing(ws, caller, inside(ws, path), cells)


def cell_lines(ws: Workspace, path: str, cells: str | None, wanted: Lines) -> Told:
    """Some lines of one cell: the way to all of a long one."""
    source = read(ws, path)
    document = source.document
    chosen = places(document, cells) if cells is not None else []
    if len(chosen) != 1:
        raise UsageError("lines are of one cell", hint='name it: cells="3", or its id or title')
    cell, name = document.cells[chosen[0]], ws.named(source.path)
    head = _head(cell, chosen[0])
    what = f"its source in {mentioned(name)}"
    if not cell.source:
        return Told(f"{head}\n{what} is empty")
    rows = visible(cell.source).split("\n")
    room = tool_texts.ROOM - len(head) - 1

    def more(lines: str) -> str:
        return _reading(name, cell, lines)

    return Told(f"{head}\n{tell_lines(rows, len(rows), wanted, what=what, limit=room, more=more)}")


def _reading(name: str, cell: Cell, lines: str) -> str:
    return as_tool(Step("read", {"path": name, "cells": cell.id, "lines": lines}))


def listing(ws: Workspace, caller: Caller, path: str, cells: str | None = None) -> Told:
    source = read(ws, path)
    document = source.document
    remember(ws, caller, source.path, cell_aim.all_of(document))
    chosen = range(len(document.cells)) if cells is None else places(document, cells)
    name = ws.named(source.path)
    lines = [f"{mentioned(name)}: {len(document.cells)} cells"]
    if declared := params.declared(document):
        lines.append("parameters:\n" + "\n".join(quoted(str(one)) for one in declared))
    lines += findings(lint(document))
    for session, behind in stale_in_sessions(ws, source.path, document).items():
        lines.append(f"session {session} is open on it{_stale(behind)}")
    first = len(lines)
    for at in chosen:
        lines.append(cell_text(document.cells[at], at))
    rest = f'notebook_read(path={_path(name)}, cells="…")'

    def more(at: int, shown: str) -> str:
        if at < first:
            return ""
        return _reading(name, document.cells[chosen[at - first]], _after(lines[at], shown))

    return Told(tool_texts.bounded(lines, rest, more=more))


def cell_text(cell: Cell, at: int) -> str:
    head = _head(cell, at)
    return "\n".join([head, *_source(cell.source)]) if cell.source else head


def _head(cell: Cell, at: int) -> str:
    title = f"  {inline(cell.title)}" if cell.title else ""
    tags = f"  tags: {', '.join(map(mentioned, cell.tags))}" if cell.tags else ""
    return f"[{at}] {cell.kind} {cell.id}{title}{tags}"


def _after(text: str, shown: str) -> str:
    """The lines of a cell's source that follow what was shown of its text, below its head."""
    number = shown.count("\n")
    if not number or text[len(shown)] == "\n":
        return f"{number + 1}-"
    part = len(shown) - shown.rfind("\n") - 1 - len(MARK)
    return f"{number}:{part + 1}"


def _path(name: str) -> str:
    """As the argument of a call."""
    return inline(name, LONGEST_NAME)


def _source(source: str) -> list[str]:
    """As it is, for whoever wants to change it; no line of it can pass for one of ours."""
    marked = "\n".join(f"{MARK}{line}" for line in visible(source).split("\n"))
    return [marked, UNSEEN] if unseen_named(source) != source else [marked]


def places(document: Document, what: str) -> list[int]:
    """`3`, an id, a title, or `3-7`, `3-`."""
    start, dash, end = what.partition("-")
    if dash and start.isdigit() and (end == "" or end.isdigit()):
        last = min(int(end or len(document.cells) - 1), len(document.cells) - 1)
        if int(start) > last:
            raise DocumentError(
                f"there are no cells {what}: it has {len(document.cells)}",
                hint=document.indexes,
            )
        return list(range(int(start), last + 1))
    return [document.find(what)]


def findings(found: list[Finding]) -> list[str]:
    lines = [
        f"{one.kind}: cell {one.index} ({one.cell_id}), line {one.line}: {one_line(one.message)}"
        for one in found[: tool_texts.SHOWN]
    ]
    if len(found) > tool_texts.SHOWN:
        lines.append(f"… and {len(found) - tool_texts.SHOWN} more findings")
    return lines


def remember(ws: Workspace, caller: Caller, path: Path, known: Notebook) -> None:
    """What this caller knows of the notebook, so that it changes no cell it has not seen."""
    if caller.name:
        ws.engine.seen.put(caller.name, path, known)


def change(
    ws: Workspace,
    caller: Caller,
    *,
    path: str,
    cell: Address,
    expect: str | None = None,
    **wish: Any,
) -> Told:
    source = read(ws, inside(ws, path))
    known: Notebook | None = ws.engine.seen.get(caller.name, source.path)
    aimed = cell_aim.Aim(cell, expect)
    if expect is None and known is not None:
        aimed = cell_aim.aimed(known, source.document, cell)
    try:
        done = edit(ws, path, aimed.cell, expect=aimed.expect, **wish)
    except DocumentError:
        if known is not None:
            now = read(ws, path).document
            shown = _shown(now, aimed.cell, aimed.expect)
            remember(ws, caller, source.path, cell_aim.learned(known, now, shown))
        raise
    after, at = done.edited.document, aimed.known_at
    if known is None:
        known = cell_aim.all_of(after)
    elif at is not None:
        known = cell_aim.changed(known, at, done.edited, wish.get("insert"))
    else:
        known = cell_aim.learned(known, after, {done.edited.index} if done.edited.cell_id else ())
    remember(ws, caller, source.path, known)
    return Told(_told(ws, done))


def _shown(document: Document, cell: Address, expect: str | None) -> set[int]:
    """The cell whose text stands in the refusal: there was another one than was expected."""
    with suppress(DocumentError):
        at = document.find(cell)
        if expect is not None and document.cells[at].id != expect:
            return {at}
    return set()


def _told(ws: Workspace, done: Edit) -> str:
    edited = done.edited
    name = ws.named(done.path)
    if not edited.diff:
        return f"unchanged: {mentioned(name)} already says that"
    lines = [f"edited {mentioned(name)}"]
    if edited.cell_id:
        lines = [f"edited {mentioned(name)}: cell {edited.index} is now {edited.cell_id}"]
    if edited.replaced:
        lines.append(f"replaced {edited.replaced} times")
    lines += _source(edited.diff.rstrip("\r\n"))
    lines += findings(list(done.findings))
    for session, behind in done.stale.items():
        lines.append(f"session {session} is open on it{_stale(behind)}")
    return tool_texts.bounded(lines, f"notebook_read(path={_path(name)})")


def _stale(behind: Any) -> str:
    if not behind:
        return ""
    shown = [f"cell {at}: {inline(why)}" for at, _, why in behind[: tool_texts.SHOWN]]
    more = f", and {len(behind) - len(shown)} more" if len(behind) > len(shown) else ""
    return f"; stale there: {'; '.join(shown)}{more}"
