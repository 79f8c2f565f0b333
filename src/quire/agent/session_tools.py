"""notebook_session: a live kernel for a notebook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from ..engine.run_underway import Progress
from ..errors import DocumentError, QuireError, UsageError
from ..next_steps import Hint, NextStep, as_tool
from ..record.events import Event, KernelReplaced
from ..record.summary import took
from ..render.agent_run import StaleCell, Told, replacement, tell_cells
from ..render.images import Shrinker
from ..sessions import session as sessions
from ..sessions.background_exec import Given
from ..sessions.promote import Promoted
from ..sessions.promote import promote as make_task
from ..sessions.promotion_underway import Promotion
from ..sessions.restore import restore as bring_back
from ..text import inline, mentioned, plain, quoted
from ..workspace import LiveSession, Workspace
from . import tool_texts
from .caller import Caller
from .describe_run import BesideSession, tell_session_output
from .notebook_tools import inside
from .run_tools import LONGEST, limit

NOT_UNDONE = "What was done outside the kernel (files, network) is not undone."


class _Never:
    """What a cell is not called off by: an agent interrupts it."""

    def is_set(self) -> bool:
        return False


def act(ws: Workspace, caller: Caller, *, action: str, **given: Any) -> Told:
    allowed, needed, do = _ACTIONS[action]
    extra = set(given) - {"path", "session"} - set(allowed)
    if extra:
        raise UsageError(
            f"{action} takes no {', '.join(sorted(extra))}",
            hint=f"it takes {', '.join(('path or session', *allowed))}",
        )
    missing = [name for name in needed if name not in given]
    if missing:
        raise UsageError(f"{action} needs {', '.join(missing)}", hint="give it")
    return do(ws, caller, given)


def _named(ws: Workspace, given: dict[str, Any]) -> str:
    if "session" in given:
        return str(given["session"])
    if "path" not in given:
        raise UsageError("which session?", hint="give session, its name, or path, its notebook")
    path = inside(ws, str(given["path"]))
    return path if "/" in path or "." in path else f"./{path}"


def _open(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    if "path" not in given:
        raise UsageError("open needs path", hint="the notebook's")
    path = inside(ws, str(given["path"]))
    info = sessions.open_session(ws, path, given.get("parameters"), name=given.get("session"))
    others = [
        one.name for one in sessions.sessions(ws) if one.task == info.task and one.name != info.name
    ]
    also = f"\nalso open on it: {', '.join(others)}" if others else ""
    step = f'notebook_session(action="exec", session="{info.name}", cells="all")'
    return Told(
        f"session {info.name} is open on {mentioned(info.task)} (epoch {info.epoch}); "
        f"nothing has run yet{also}\nNext: {step}"
    )


def _exec(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    if ("cells" in given) == ("code" in given):
        raise UsageError("exec takes cells or code", hint='cells="all", or code="df.head()"')
    cell_timeout = limit(given, "cell_timeout")
    name, opened = _opened(ws, caller, given)
    live = sessions.find(ws, name)
    what = str(given["cells"]) if "cells" in given else None
    shrink = _shrinker(ws)
    try:
        events = sessions.execute(
            ws,
            name,
            what,
            _Never(),
            code=given.get("code"),
            cell_timeout=cell_timeout,
            ahead=shrink.ahead,
        )
    except QuireError:
        if opened:  # a call that is refused changes nothing
            sessions.close(ws, name)
        raise
    return tool_texts.above(opened, _begin(ws, caller, live, events, shrink, given.get("wait")))


def _shrinker(ws: Workspace) -> Shrinker:
    limits = tool_texts.limits(ws)
    return Shrinker(limits.side, limits.pictures)


def _opened(ws: Workspace, caller: Caller, given: dict[str, Any]) -> tuple[str, str]:
    """The session meant; one is opened where a notebook has none yet."""
    name = _named(ws, given)
    if "session" not in given:
        path = (ws.cwd / name).resolve()
        open_on = [s for s in sessions.sessions(ws) if (ws.root / s.task).resolve() == path]
        if not open_on:
            info = sessions.open_session(ws, name, given.get("parameters"))
            return info.name, f"opened session {info.name} on {mentioned(info.task)}"
    if "parameters" in given:
        raise UsageError(
            "the session is open, with the parameters it was given then",
            hint="open another one with these, or close it first",
        )
    return sessions.named(ws, name), ""


def _begin(
    ws: Workspace,
    caller: Caller,
    live: LiveSession,
    events: Iterator[Event],
    shrink: Shrinker,
    wait: float | None,
) -> Told:
    name = live.session.name
    given = Given(name, shrink)
    if live.session.busy:
        next(events)  # refused, with the reason
    ws.engine.given[name] = given
    given.follow(events)
    return _followed(ws, caller, live, given, wait)


def _followed(
    ws: Workspace, caller: Caller, live: LiveSession, given: Given, wait: float | None
) -> Told:
    seconds = ws.config.answer_within if wait is None else min(wait, LONGEST)
    deadline = time.monotonic() + seconds
    began = 0
    while not caller.left():
        left = min(0.5, deadline - time.monotonic())
        if left <= 0 or given.wait(left, began):
            break
        if given.began > began:
            began = given.began
            caller.progress(began - 1, 0, f"cell {began}")
    return _tell(ws, live, given)


def _tell(ws: Workspace, live: LiveSession, given: Given) -> Told:
    answer, over = given.answer(), given.over
    if given.error is not None and not answer.cells:
        raise given.error
    bad = answer.failed
    told = tell_cells(
        answer,
        session=given.name,
        task=ws.named(live.path),
        epoch=live.session.epoch,
        stale=_stale(ws, live) if over else (),
        running=not over,
        no_way_back=live.session.no_way_back(bad.order) if bad is not None else "",
        limits=tool_texts.limits(ws),
        places=BesideSession(ws.sessions.folder(given.name), answer.cells),
        shrink=given.shrink,
    )
    lines = []
    if answer.replaced is not None and answer.replaced.how == "lost":
        step = f'notebook_session(action="restore", session="{given.name}")'
        lines.append(f"to run again what the lost kernel had run: {step}")
        if back := live.session.way_back():
            step = f'notebook_session(action="rewind", session="{given.name}", cell="#{back}")'
            lines.append(f"or, without what ran since, to go back to before #{back}: {step}")
    if not over:
        step = f'notebook_session(action="wait", session="{given.name}")'
        lines.append(f'it goes on by itself; next: {step}, or action="interrupt"')
    if given.error is not None:
        lines.append(tool_texts.error(given.error).text)
    text = "\n".join([told.text, *lines])
    return Told(text, told.pictures, told.failed or given.error is not None)


def _stale(ws: Workspace, live: LiveSession) -> list[StaleCell]:
    # Only what ran can be stale, and loose code belongs to no cell.
    if all(one.index is None for one in live.session.executions):
        return []
    try:
        states = sessions.states(ws, live)
    except DocumentError:  # the file may be gone by now; what ran is told all the same
        return []
    return [StaleCell(s.index, s.cell.id, s.reason) for s in states if s.state == "stale"]


def _wait(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    live = sessions.find(ws, _named(ws, given))
    name = live.session.name
    going = ws.engine.promotions.get(name)
    if going is not None:
        return tool_texts.above(_replaced(live), _promoted(ws, caller, going, given.get("wait")))
    latest = ws.engine.given.get(name)
    if latest is None:
        lost = f"; {live.session.why_lost}" if live.session.why_lost else ""
        return Told(f"session {name} has nothing to wait for{plain(lost)}")
    return _followed(ws, caller, live, latest, given.get("wait"))


def _vars(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    live = sessions.find(ws, _named(ws, given))
    found = sessions.variables(ws, live.session.name)
    session = live.session
    lines = [f"session {session.name}, epoch {session.epoch}: {len(found)} variables"]
    for one in found:
        size = f"  {one['size']}" if one["size"] else ""
        lines.append(quoted(f"{one['name']}: {one['type']}{size}  {one['value']}"[:400]))
    return tool_texts.above(
        _replaced(live), Told(tool_texts.bounded(lines, 'exec code="print(…)"'))
    )


def _replaced(live: LiveSession) -> str:
    """What comes first, until cells run in the new kernel and their answer has said it."""
    session = live.session
    why = session.why_lost
    return replacement(KernelReplaced(session.epoch, why, session.at())) if why else ""


def _output(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    name = sessions.find(ws, _named(ws, given)).session.name
    stream, lines = given.get("stream", ""), given.get("lines", "")
    cell = str(given["cell"])
    return tell_session_output(ws, name, cell, stream, lines, limits=tool_texts.limits(ws))


def _rewind(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    live = sessions.find(ws, _named(ws, given))
    name = live.session.name
    event, states = sessions.rewind(ws, name, str(given["cell"]))
    left = len(live.session.executions)
    behind = [f"stale: [{s.index}] {inline(s.reason)}" for s in states if s.state == "stale"]
    first = f"session {name} is as it was before #{event.order}; {left} executions stand"
    return Told("\n".join([first, NOT_UNDONE, *behind[: tool_texts.SHOWN]]))


def _interrupt(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    name = sessions.find(ws, _named(ws, given)).session.name
    running = sessions.interrupt(ws, name)
    going = ws.engine.promotions.get(name)
    if not running and going is not None and not going.over:
        going.call_off()
        step = f'notebook_session(action="wait", session="{name}")'
        return Told(
            f"called off the promotion of session {name}, with its clean run {going.run_id}\n"
            f"see its end: {step}"
        )
    said = "interrupted" if running else "nothing was running in"
    return Told(f"{said} session {name}")


def _restart(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    name = sessions.find(ws, _named(ws, given)).session.name
    event = sessions.restart(ws, name)
    ws.engine.given.pop(name, None)
    return Told(f"session {name} has a fresh kernel (epoch {event.epoch}); nothing has run in it")


def _restore(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    live = sessions.find(ws, _named(ws, given))
    events = bring_back(ws, live.session.name, _Never())
    return _begin(ws, caller, live, events, _shrinker(ws), given.get("wait"))


def _promote(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    live = sessions.find(ws, _named(ws, given))
    name = live.session.name
    target = inside(ws, str(given.get("to") or ws.named(live.path)))
    force = bool(given.get("force"))
    before = ws.engine.promotions.get(name)
    if before is not None and not before.over:
        raise UsageError(
            f"{name} is being promoted to {before.target}",
            hint=Hint("{}", NextStep("wait", {"run": before.run_id})),
        )

    def work(begun: Callable[[Any], None]) -> Promoted:
        return make_task(ws, name, target, _Never(), force=force, begun=begun)

    going = ws.engine.promotions[name] = Promotion(name, target, work, force=force)
    return tool_texts.above(_replaced(live), _promoted(ws, caller, going, given.get("wait")))


def _promoted(ws: Workspace, caller: Caller, going: Promotion, wait: float | None) -> Told:
    seconds = ws.config.answer_within if wait is None else min(wait, LONGEST)
    if not going.over:
        caller.announce(going.run_id)
        again = {"session": going.name, "to": going.target}
        caller.promotes({**again, "force": True} if going.force else again)

    def tell(progress: Progress) -> None:
        caller.progress(progress.done, progress.total, plain(str(progress)))

    if not going.wait(seconds, told=tell, called_off=caller.left):
        step = f'notebook_session(action="wait", session="{going.name}")'
        return Told(
            f"the clean run {going.run_id} is at {plain(str(going.progress))} and goes on by "
            f"itself; {plain(going.target)} is written if it agrees\nnext: {step}"
        )
    ws.engine.promotions.pop(going.name, None)
    made: Promoted = going.made()
    if made.path is None:
        lines = [
            f"not written: {inline(made.difference, 500)}",
            *_after_difference(ws, going, made),
        ]
        return Told("\n".join(lines), (), True)
    written = f"{mentioned(ws.named(made.path))}, as the clean run {made.run_id} saw it too"
    if made.outcome != "ok":
        return Told(
            f"written, but it fails, in the session and in a clean kernel: {written}\n"
            f'see why: run_show(run="{made.run_id}")',
            (),
            True,
        )
    return Told(f"written: {written}")


def _after_difference(ws: Workspace, going: Promotion, made: Promoted) -> list[str]:
    """The calls that find out why, mend it and try again."""
    session = {"session": going.name}
    mended = {"path": ws.named(sessions.find(ws, going.name).path), "cell": ..., "new_source": ...}
    again = {"to": going.target, **({"force": True} if going.force else {})}
    steps = (
        ("see the clean run", NextStep("show", {"run": made.run_id})),
        ("mend the notebook", NextStep("edit", mended)),
        ("run what is stale then", NextStep("exec", {**session, "cells": "stale"})),
        ("try again", NextStep("promote", {**session, **again})),
    )
    told = (f"  {n}. {what}: {as_tool(step)}" for n, (what, step) in enumerate(steps, 1))
    return ["next:", *told]


def _close(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    name = sessions.named(ws, _named(ws, given))
    sessions.close(ws, name)
    ws.engine.given.pop(name, None)
    ws.engine.promotions.pop(name, None)
    return Told(f"closed session {name}")


def _list(ws: Workspace, caller: Caller, given: dict[str, Any]) -> Told:
    lines = []
    for one in sessions.sessions(ws):
        idle = "" if one.idle is None else f"  idle {took(one.idle)}"
        state = f"{one.state}  epoch {one.epoch}  {one.ran} ran{idle}"
        lines.append(f"{one.name}  {state}  {mentioned(one.task)}")
        lines += [
            f"  {plain(note)}"
            for note in (one.warning, one.lost and f"its state is gone: {one.lost}")
            if note
        ]
    return Told("\n".join(lines) or "no session is open")


_Do = Callable[[Workspace, Caller, dict[str, Any]], Told]
# What each takes besides path and session, what of it it needs, and how it is done.
_ACTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], _Do]] = {
    "open": (("parameters",), (), _open),
    "exec": (("cells", "code", "parameters", "cell_timeout", "wait"), (), _exec),
    "wait": (("wait",), (), _wait),
    "vars": ((), (), _vars),
    "rewind": (("cell",), ("cell",), _rewind),
    "output": (("cell", "stream", "lines"), ("cell",), _output),
    "interrupt": ((), (), _interrupt),
    "restart": ((), (), _restart),
    "restore": (("wait",), (), _restore),
    "promote": (("to", "force", "wait"), (), _promote),
    "close": ((), (), _close),
    "list": ((), (), _list),
}
