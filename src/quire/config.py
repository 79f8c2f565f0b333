"""What a workspace says of itself: `quire.toml`, or `[tool.quire]` in pyproject.toml."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

from .errors import ConfigError

FILES = ("quire.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Archive:
    enabled: bool = True  # keep a signed record of every run
    branch: str = "reports"  # where in git
    push: bool = False  # after each run; `quire push` does it by hand
    remote: str = ""  # where to; empty: the remote of the current branch, else the only one
    large: int = 1_000_000  # bytes of one output above which git holds only a pointer to it
    digest: bool = True  # a host keeps DIGEST.md in the archive up to date
    objects: str = ""  # where those outputs go: a folder or an fsspec URL; empty: .quire/objects


@dataclass(frozen=True, slots=True)
class Forge:
    kind: str = ""  # local, gitea or github; empty: by the remote's address, else local
    url: str = ""  # of the server; empty: from the remote
    repository: str = ""  # owner/name there; empty: from the remote
    base: str = ""  # the branch proposals go to; empty: the repository's main branch
    push: bool = True  # `quire commit` pushes the branch where there is a remote


Mode = Literal["allow", "ask", "deny"]
MODES = ("allow", "ask", "deny")


@dataclass(frozen=True, slots=True)
class Tools:
    """What cells may do through `quire.runtime`."""

    read_file: Mode = "allow"  # within the workspace and the roots below, as the next three
    search_files: Mode = "allow"
    write_file: Mode = "allow"
    patch: Mode = "allow"
    terminal: Mode = "deny"
    web_search: Mode = "deny"
    web_extract: Mode = "deny"
    run: Mode = "allow"
    ask: Mode = "allow"
    note: Mode = "allow"
    unattended: Mode = "deny"  # what "ask" means where nobody can be asked: allow or deny
    ask_default: str = ""  # what ask() answers where nobody can be asked; empty: its own default
    ask_seconds: float = 3600.0  # for which a person is waited for
    read_roots: tuple[str, ...] = ()  # folders besides the workspace that may be read
    write_roots: tuple[str, ...] = ()  # and written; those may be read too
    protect: tuple[str, ...] = ()  # names no file tool touches, besides those of keys and of git
    commands: tuple[str, ...] = ()  # the only commands terminal runs; empty: any
    refuse_commands: tuple[str, ...] = ()  # commands it never runs
    calls: int = 1000  # in one run, or in one call of a session
    read_limit: int = 1_000_000  # bytes that one call reads
    write_limit: int = 10_000_000  # bytes that one call writes
    output_limit: int = 100_000  # characters of a command's output, and of a page's text
    page_limit: int = 5_000_000  # bytes of a web page
    seconds: float = 60.0  # a command, a search or a page may take
    search_url: str = ""  # of a SearXNG, or any with {query} in it
    search_command: str = ""  # a command that prints results as JSON, with {query} in it
    extract_url: str = ""  # of a service that gives a page as text, with {url} in it
    extract_command: str = ""  # a command that prints a page as text, with {url} in it
    private_hosts: tuple[str, ...] = ()  # hosts that may be reached although they are not public


@dataclass(frozen=True, slots=True)
class Model:
    url: str = ""  # of an OpenAI-compatible endpoint, with /v1; empty: there is none
    model: str = ""  # which of its models
    key_env: str = ""  # the environment variable that holds the key; empty: it wants none
    timeout: float = 60.0  # seconds for a whole answer
    max_size: int = 100_000  # characters of an answer that is taken


@dataclass(frozen=True, slots=True)
class Config:
    preload: tuple[str, ...] = ()  # modules the warm parent imports once for all kernels
    python: str = ""  # the interpreter tasks run in; empty: the one Quire runs in
    # What tasks need that declare nothing themselves; empty: they run in that interpreter as it is.
    dependencies: tuple[str, ...] = ()
    kernel: str = ""  # a Jupyter kernel to use instead of the native one
    cell_timeout: float | None = None
    timeout: float | None = None
    mask: tuple[str, ...] = ()  # names of environment variables to mask besides the obvious ones
    host_idle: float = 1800.0  # seconds after which an unused host goes
    session_idle: float = 1800.0  # seconds after which the kernel of an unused session is ended
    snapshots: int = 32  # states a session, or a run that may be resumed, sets aside
    snapshot_memory: float = 0.25  # share of the machine's memory they may take together
    resume_for: float = 1800.0  # seconds for which a failed run can be resumed
    answer_within: float = 45.0  # seconds after which an agent's call answers though work goes on
    pictures: int = 4  # in one answer to an agent
    depth: int = 8  # how deep tasks may run tasks
    stream_limit: int = 4_000_000  # characters of one stream of one cell a record keeps
    display_limit: int = 2_000  # displays of one cell a record keeps
    notebooks: str = "notebooks"  # the folder with the tasks of this repository
    logbooks: str = "logbooks"  # the folder with logbook templates and the records of their runs
    approval: str = "pause"  # steps that wait for a person where nobody is: pause, skip or fail
    sql: str = ""  # the database that SQL steps talk to; empty: what QUIRE_SQL says
    archive: Archive = Archive()
    forge: Forge = Forge()
    model: Model = Model()
    tools: Tools = Tools()


_TABLES = {"Archive": Archive, "Forge": Forge, "Model": Model, "Tools": Tools}
_CHOICES = {"approval": ("pause", "skip", "fail")}


def _command(text: str) -> str:
    import shlex

    try:
        words = shlex.split(text)
    except ValueError as error:
        return f"cannot be read as a command: {error}"
    return "" if words and words[0] else "is no command"


def _template(text: str, name: str) -> str:
    return _command(text) or ("" if f"{{{name}}}" in text else f"has no {{{name}}} in it")


# What is in quotes, or behind a backslash, is a letter like any other.
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_OF_A_SHELL = re.compile(r"[;&|<>()$`\n\r]")
_ASSIGNED = re.compile(r"\s*\w+=")


def _pattern(text: str) -> str:
    """Where patterns decide no command that runs has such a sign in it."""
    if found := _OF_A_SHELL.search(_QUOTED.sub("", text)):
        return f"has {found[0]!r} in it, which needs a shell, and none is used"
    if _ASSIGNED.match(text):
        return "begins with a variable, which needs a shell, and none is used"
    return _command(text)


def _root(text: str) -> str:
    if not text or text != text.strip() or "\0" in text:
        return "is not a folder"
    if text.startswith("~") and text[1:2] not in ("", "/"):
        return "begins with a ~ of somebody else, which is not looked up"
    if re.search(r"\$[\w{]", text):
        return "has a variable in it, which is not looked up"
    return "has a * in it, and no pattern is looked for" if "*" in text else ""


def _address(text: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    return "" if fits else "is no http or https address"


def _page_address(text: str) -> str:
    return _address(text) or ("" if "{url}" in text else "has no {url} in it")


def _name(text: str) -> str:
    fits = text == text.strip() and text.isprintable() and text not in ("", ".", "..")
    return "" if fits and "/" not in text else "is not a name"


# A rule that nobody can follow would keep nothing out, and nobody would know. Keys of `tools`, what
# is wrong with a text under them, and what is right.
_RULES: Mapping[str, tuple[Callable[[str], str], str]] = {
    "read_roots": (_root, 'read_roots = ["~/shared", "../data"]'),
    "write_roots": (_root, 'write_roots = ["~/shared", "../data"]'),
    "commands": (_pattern, 'commands = ["git log *"]'),
    "refuse_commands": (_pattern, 'refuse_commands = ["git * --output*"]'),
    "search_command": (
        partial(_template, name="query"),
        'search_command = "my-search --json {query}"',
    ),
    "extract_command": (partial(_template, name="url"), 'extract_command = "my-reader {url}"'),
    "search_url": (_address, 'search_url = "http://127.0.0.1:8888"'),
    "extract_url": (_page_address, 'extract_url = "https://reader.example/{url}"'),
    "protect": (
        _name,
        "a name protects what is called so in every folder, and all in it: "
        'protect = ["payroll*", "private"]',
    ),
    "private_hosts": (_name, 'private_hosts = ["wiki.internal", "10.0.0.5:8080"]'),
}
_EITHER = (("search_url", "search_command"), ("extract_url", "extract_command"))


def _checked(tools: Tools, name: str) -> Tools:
    for key, (wrong, right) in _RULES.items():
        said = getattr(tools, key)
        for text in said if isinstance(said, tuple) else (said,) if said else ():
            if why := wrong(text):
                raise ConfigError(f"{name}: {key}: {text!r} {why}", hint=right)
    for one, other in _EITHER:
        if getattr(tools, one) and getattr(tools, other):
            raise ConfigError(
                f"{name}: both {one} and {other} are set", hint="leave one of them out"
            )
    return tools


def parse(table: Mapping[str, Any], name: str) -> Config:
    return Config(**_values(Config, table, name))


def _values(kind: type[Any], table: Mapping[str, Any], name: str) -> dict[str, Any]:
    known = {f.name: f for f in fields(kind)}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            raise ConfigError(f"{name}: unknown key {key!r}", hint=hint)
        values[key] = _fitted(key, str(known[key].type), value, name, known[key].default)
    return values


def _fitted(key: str, kind: str, value: Any, name: str, sample: Any) -> Any:
    if kind in _TABLES:
        if not isinstance(value, dict):
            raise ConfigError(f"{name}: {key} must be a table", hint=f"[tool.quire.{key}]")
        made = _TABLES[kind](**_values(_TABLES[kind], value, f"{name}: {key}"))
        return _checked(made, f"{name}: {key}") if isinstance(made, Tools) else made
    if kind == "Mode":
        if value in MODES and not (key == "unattended" and value == "ask"):
            return value
        modes = [mode for mode in MODES if key != "unattended" or mode != "ask"]
        raise ConfigError(
            f"{name}: {key} is {value!r}", hint=f'it is one of {", ".join(modes)}: {key} = "deny"'
        )
    if kind == "bool":
        if isinstance(value, bool):
            return value
        raise ConfigError(f"{name}: {key} must be true or false", hint=f"{key} = true")
    if kind.startswith("tuple"):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise ConfigError(f"{name}: {key} must be a list of strings", hint=f'{key} = ["a", "b"]')
    if kind == "str":
        if isinstance(value, str):
            if value not in _CHOICES.get(key, (value,)):
                raise ConfigError(
                    f"{name}: {key} must be one of {', '.join(_CHOICES[key])}, not {value!r}",
                    hint=f'{key} = "{sample}"',
                )
            return value
        raise ConfigError(f"{name}: {key} must be a string", hint=f'{key} = "…"')
    number = not isinstance(value, bool) and isinstance(value, int | float) and value > 0
    if not number or (kind == "int" and not isinstance(value, int)):
        wanted = "a positive whole number" if kind == "int" else "a positive number"
        raise ConfigError(f"{name}: {key} must be {wanted}", hint=f"{key} = {sample or 60}")
    return value


def read(root: Path) -> Config:
    def content(file: str) -> bytes | None:
        try:
            return (root / file).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(
                f"cannot read {root / file}: {error.strerror}", hint="check its permissions"
            ) from error

    return read_from(content, str(root))


def read_from(content: Callable[[str], bytes | None], place: str) -> Config:
    """The configuration of a folder. `content` is that of a file in it, None if there is none."""
    import tomllib

    for file in FILES:
        path, found = f"{place}/{file}", content(file)
        if found is None:
            continue
        try:
            data: Any = tomllib.loads(found.decode("utf-8").replace("\r\n", "\n"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{path} is not valid TOML: {error}", hint="mend that line"
            ) from error
        if file != "quire.toml":
            tools = data.get("tool")
            data = tools.get("quire") if isinstance(tools, dict) else None
        if data is not None and not isinstance(data, dict):
            raise ConfigError(f"{path}: tool.quire must be a table", hint="[tool.quire]")
        if data is not None:
            return parse(data, path)
    return Config()
