"""What a cell can ask of the engine that runs it: `from quire.runtime import ask, run, …`.

Standard library only, so that it works in any interpreter a task runs in. Nothing is done here:
each function asks the engine, which looks at the workspace's policy, does it and writes it down.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .engine_socket import ToolFailed, ToolRefused, call
from .glue import glue

__all__ = [
    "Reply",
    "RunResults",
    "TaskFailed",
    "ToolFailed",
    "ToolRefused",
    "ask",
    "glue",
    "json_parse",
    "note",
    "patch",
    "read_file",
    "retry",
    "run",
    "search_files",
    "shell_quote",
    "terminal",
    "web_extract",
    "web_search",
    "write_file",
]


class Reply(dict[str, Any]):
    """What a tool gives: a dict whose keys can be read as attributes too."""

    __module__ = "quire.runtime"

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no {name!r}; there are: {', '.join(self)}") from None


class TaskFailed(RuntimeError):
    """A task run from this one did not end well. `outcome`, `run_id` and `error` say how."""

    __module__ = "quire.runtime"

    def __init__(self, message: str, reply: dict[str, Any]) -> None:
        super().__init__(message)
        self.outcome = reply.get("outcome")
        self.run_id = reply.get("run_id")
        self.error = reply.get("error")


class RunResults(dict[str, Any]):
    """The results of a task, by name; `run_id`, `outcome`, `notebook` say where they are from."""

    __module__ = "quire.runtime"

    run_id: str = ""
    outcome: str = ""
    notebook: str = ""


def terminal(
    command: str,
    timeout: float | None = None,
    workdir: str | None = None,
    *,
    cwd: str | None = None,
) -> Reply:
    """Run a command. `output` has what it printed, `exit_code` how it ended."""
    folder = cwd or workdir
    return _tool("terminal", command=command, timeout=timeout, folder=folder and _path(folder))


def read_file(
    path: str | os.PathLike[str], offset: int | None = None, limit: int | None = None
) -> Reply:
    """Lines of a text file, from line `offset` on; 2,000 of them if no `limit` is given.

    `text` has them as they are, `content` with their numbers, `total_lines` says how many the file
    has, and `next_offset` where to go on if there are more.
    """
    reply = _tool("read_file", path=_path(path), offset=offset, limit=limit)
    rows = reply["text"].split("\n")
    if rows and rows[-1] == "":
        rows.pop()
    reply["content"] = "\n".join(f"{n}|{row}" for n, row in enumerate(rows, reply["offset"]))
    return reply


def write_file(path: str | os.PathLike[str], content: str) -> Reply:
    """Write a text file, whole or not at all; folders on the way are made."""
    return _tool("write_file", path=_path(path), content=content)


def patch(
    path: str | os.PathLike[str],
    old: str | None = None,
    new: str | None = None,
    replace_all: bool = False,
    *,
    old_string: str | None = None,
    new_string: str | None = None,
    mode: str = "replace",
) -> Reply:
    """Replace a piece of a text file. `old` must stand there exactly once, or give `replace_all`.

    `diff` shows what changed.
    """
    if mode != "replace":
        raise ValueError(f"mode={mode!r} is not known here: give the old and the new text")
    before = old if old is not None else old_string
    after = new if new is not None else new_string
    if before is None or after is None:
        raise TypeError("patch() takes a path, the old text and the new one")
    return _tool("patch", path=_path(path), old=before, new=after, replace_all=replace_all or None)


def search_files(
    pattern: str,
    target: str = "content",
    path: str | os.PathLike[str] = ".",
    glob: str | None = None,
    limit: int | None = None,
    offset: int | None = None,
    *,
    file_glob: str | None = None,
    context: int | None = None,
) -> Reply:
    """Find lines by a regular expression, or with `target="files"` files by a name like `*.py`.

    `matches` is a list of `{path, line, text}`, or of `{path, size}`; at most 50 of them if no
    `limit` is given.
    """
    if target not in ("content", "files"):  # search_files(pattern, path)
        target, path = ("files" if path == "files" else "content"), target
    return _tool(
        "search_files",
        pattern=pattern,
        target=target if target != "content" else None,
        path=_path(path) if path != "." else None,
        glob=glob or file_glob,
        limit=limit,
        offset=offset,
        context=context,
    )


def web_search(query: str, limit: int | None = None) -> Reply:
    """Search the web: 5 results if no `limit` is given.

    `results` is a list of `{title, url, description}`.
    """
    reply = _tool("web_search", query=query, limit=limit)
    reply["data"] = {"web": reply["results"]}
    return reply


def web_extract(urls: str | Sequence[str], char_limit: int | None = None) -> Reply:
    """The text of web pages. `results` is a list of `{url, title, content, error}`, in order."""
    wanted = [urls] if isinstance(urls, str) else list(urls)
    return _tool("web_extract", urls=wanted, char_limit=char_limit)


def ask(question: str, choices: Iterable[str] | None = None, *, default: str | None = None) -> str:
    """Ask the person behind the run. Where there is none, the workspace says what happens."""
    given = None if choices is None else [str(choice) for choice in choices]
    answer: str = call("ask", {"question": question, "choices": given, "default": default})
    return answer


def note(text: Any) -> None:
    """Leave a line in the record for whoever reads it later."""
    call("note", {"text": str(text)})


def run(path: str, parameters: dict[str, Any] | None = None, **more: Any) -> RunResults:
    """Run another task and return its results. Raises TaskFailed if it does not end well."""
    arguments = {
        "path": os.fspath(path),
        "cwd": os.getcwd(),
        "env": dict(os.environ),
        "parameters": {**(parameters or {}), **more},
    }
    reply = call("run", arguments)
    if reply["outcome"] != "ok":
        error = reply.get("error") or {}
        detail = f"{error.get('name', '')}: {error.get('value', '')}".strip(": ")
        raise TaskFailed(f"{path} ended {reply['outcome']}: {detail}", reply)
    results = RunResults(reply["results"])
    results.run_id, results.outcome = reply["run_id"], reply["outcome"]
    results.notebook = reply["notebook"]
    return results


def json_parse(text: str) -> Any:
    """JSON that may begin with a byte order mark and hold raw tabs and newlines."""
    return json.loads(text.removeprefix("\ufeff"), strict=False)


def shell_quote(text: str) -> str:
    """A text as one word of a command."""
    return shlex.quote(text)


def retry(attempt: Callable[[], Any], max_attempts: int = 3, delay: float = 2) -> Any:
    """Call until it does not raise; the wait doubles each time. A refusal is not tried again."""
    for n in range(max_attempts):
        try:
            return attempt()
        except ToolRefused:
            raise
        except Exception:  # whatever the caller's own code raises
            if n + 1 >= max_attempts:
                raise
            time.sleep(delay * 2**n)
    return None


def _tool(name: str, **arguments: Any) -> Reply:
    given = {key: value for key, value in arguments.items() if value is not None}
    return Reply(call(name, {"cwd": os.getcwd(), **given}))


def _path(path: str | os.PathLike[str]) -> str:
    found = os.fspath(path)
    return os.fsdecode(found) if isinstance(found, bytes) else found
