"""How every git that Quire starts is called: which program, with which settings, in which world.

A repository's own configuration is a file that any cell may write, and much of it names programs.
What is one setting is overridden by another one that comes later. What has a name of its own, such
as a filter, is overridden by that name once somebody has written it. What a person has set for
themselves, outside of the repository, stays as it is.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import GitError

# What a caller's environment may say of another repository, or of how git is to talk.
_FOREIGN = re.compile(
    r"^GIT_(DIR|WORK_TREE|IMPLICIT_WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|COMMON_DIR|CONFIG"
    r"|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|PREFIX|QUARANTINE_PATH|INTERNAL_.*|REFLOG_ACTION"
    r"|GRAFT_FILE|SHALLOW_FILE|REPLACE_REF_BASE|ATTR_SOURCE|EXEC_PATH|TEMPLATE_DIR"
    r"|(SEQUENCE_)?EDITOR|EXTERNAL_DIFF|PAGER.*|TRACE.*"
    r"|LITERAL_PATHSPECS|GLOB_PATHSPECS|NOGLOB_PATHSPECS|ICASE_PATHSPECS)$"
)
_BARE = (("safe.bareRepository", "explicit"),)
_PLAIN = (
    *_BARE,
    # What a person may have set for themselves and a program cannot do with.
    ("color.ui", "false"),
    ("core.quotePath", "false"),
    ("core.fsync", "all"),
    ("core.fsyncMethod", "fsync"),
    ("fastimport.unpackLimit", "1"),
    ("log.showSignature", "false"),
    ("advice.detachedHead", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    # What starts a program, or leads to another repository.
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("diff.external", ""),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
)
_NO_HOOKS = ("core.hooksPath", os.devnull)
_DRIVERS = ("--no-ext-diff", "--no-textconv")
_OWN_TREE = "--ignore-submodules=dirty"  # git would start another one in each, which obeys that one
_OPTIONS = {
    "diff": (*_DRIVERS, _OWN_TREE),
    "diff-files": (*_DRIVERS, _OWN_TREE),
    "diff-index": (*_DRIVERS, _OWN_TREE),
    "diff-tree": _DRIVERS,
    "fetch": ("--upload-pack=git-upload-pack",),
    "log": _DRIVERS,
    "ls-remote": ("--upload-pack=git-upload-pack",),
    "push": ("--receive-pack=git-receive-pack",),
    "show": _DRIVERS,
    "status": (_OWN_TREE,),
}

# Settings that start a program, and what stands for them where only the repository has them.
_PROGRAMS = (
    (re.compile(r"core\.sshcommand"), "ssh"),
    (re.compile(r"core\.askpass"), ""),
    (re.compile(r"core\.alternaterefscommand"), "true"),
    (re.compile(r"gpg(\.openpgp)?\.program"), "gpg"),
    (re.compile(r"gpg\.x509\.program"), "gpgsm"),
    (re.compile(r"gpg\.ssh\.program"), "ssh-keygen"),
    (re.compile(r"gpg\.ssh\.defaultkeycommand"), "false"),
    (re.compile(r"filter\..*\.(clean|smudge|process)", re.DOTALL), ""),
    (re.compile(r"merge\..*\.driver", re.DOTALL), "false"),  # a conflict, for a person to decide
)
_HELPER = re.compile(r"credential\.(.*\.)?helper", re.DOTALL)
_OTHER_END = re.compile(r"remote\..*\.uploadpack", re.DOTALL)
_FILTER = re.compile(r"filter\.(.*)\.(clean|smudge|process)", re.DOTALL)
# A configuration without any of these words sets none of them. `include`: there is more to read.
_WORDS = re.compile(
    rb"include|filter|driver|sshcommand|askpass|gitproxy|alternaterefs|program|defaultkeycommand"
    rb"|helper|uploadpack",
    re.IGNORECASE,
)
# As `quire init` has git write it; a line that goes on in the next one is not taken for it.
_OURS = re.compile(
    rb'^\[(?:filter|diff|merge) "quire"\]\n'
    rb"(?:\t(?:clean|smudge|process|required|textconv|command|name|driver) = [^\n]*(?<!\\)\n)*",
    re.MULTILINE,
)
_PERSONS = ("system", "global", "command")

Settings = Sequence[tuple[str, str]]


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """A caller's environment, without what would make another repository or git of it."""
    kept = {key: value for key, value in env.items() if not _FOREIGN.match(key)}
    if "GIT_ALLOW_PROTOCOL" in kept:  # comes before all configuration
        allowed = kept["GIT_ALLOW_PROTOCOL"].split(":")
        kept["GIT_ALLOW_PROTOCOL"] = ":".join(name for name in allowed if name != "ext")
    return kept | {
        "LC_ALL": "C.UTF-8",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }


def arguments(place: Sequence[str], args: Sequence[str], *, hooks: bool = False) -> list[str]:
    """Of one call, without the program. `place` says which repository it is about."""
    at = _command_at(args)
    plain: Settings = _PLAIN if hooks else (*_PLAIN, _NO_HOOKS)
    if args[at] == "config":  # is to say what others set
        plain = _BARE
    settings = [word for key, value in plain for word in ("-c", f"{key}={value}")]
    return [
        *place, "--no-pager", *settings,
        *args[: at + 1], *_OPTIONS.get(args[at], ()), *args[at + 1 :],
    ]  # fmt: skip


def name_of(command: Sequence[str]) -> str:
    """Of git's command, for messages."""
    words = iter(command[1:])
    for word in words:
        if word == "-c":
            next(words, "")
        elif not word.startswith("-"):
            return word
    return ""


def _command_at(args: Sequence[str]) -> int:
    """Where the name of git's command is: options of git itself may stand before it."""
    at = 0
    while args[at] == "-c":
        at += 2
    return at


def needs_filters(args: Sequence[str]) -> bool:
    """Whether what is stored would be wrong without the filters that its path asks for. Notebooks
    have been stripped before they get there."""
    at = _command_at(args)
    return args[at] == "hash-object" and not any(
        word.startswith("--path=") and word.lower().endswith(".ipynb") for word in args
    )


# Which git.


def program(env: Mapping[str, str], top: Path | None) -> str:
    return _program(env.get("PATH", os.defpath), _inner(env, top))


@functools.lru_cache(maxsize=64)
def _program(path: str, inner: str) -> str:
    """git's absolute path. One that lies in the working tree only where there is no other."""
    for places in (_places(path, inner), _places(path, "")):
        for place in places:
            found = os.path.join(place, "git")
            if os.path.isfile(found) and os.access(found, os.X_OK):
                return found
    raise GitError("git is not installed", hint="install git 2.38 or newer")


def forget_program() -> None:
    """It was not where it had been found."""
    _program.cache_clear()


def search_path(env: Mapping[str, str], top: Path | None) -> str:
    """Where git may look for programs such as ssh: nowhere that depends on where it is started,
    and not in the working tree."""
    return os.pathsep.join(_places(env.get("PATH", os.defpath), _inner(env, top)))


@functools.lru_cache(maxsize=64)
def _places(path: str, inner: str) -> tuple[str, ...]:
    places = [place for place in path.split(os.pathsep) if os.path.isabs(place)]
    return tuple(place for place in places if not (inner and _lies_in(place, inner)))


def _lies_in(place: str, folder: str) -> bool:
    return f"{os.path.realpath(place)}/".startswith(f"{folder}/")


def _inner(env: Mapping[str, str], top: Path | None) -> str:
    """The working tree; empty where a person's home is in it, with the programs they have there."""
    if top is None:
        return ""
    inner = os.path.realpath(top)
    home = env.get("HOME", "")
    return "" if inner == "/" or (home and _lies_in(home, inner)) else inner


# What only this repository's configuration says.


def written(git_dir: Path, common: Path) -> bytes:
    """The configuration that lies in the repository, as it is."""
    return b"\n".join(map(_bytes, (common / "config", git_dir / "config.worktree")))


def _bytes(path: Path) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError:
        return b"include"  # git may be able to read it


def names_programs(text: bytes) -> bool:
    """Whether somebody but Quire has written of programs there, or may have."""
    return _WORDS.search(_OURS.sub(b"", text)) is not None


def parsed(listed: bytes) -> list[tuple[str, str, str]]:
    """Scope, key and value of each setting, in their order: `git config --list -z --show-scope`."""
    parts = listed.decode("utf-8", "surrogateescape").split("\0")[:-1]
    found = []
    for scope, entry in zip(parts[::2], parts[1::2], strict=False):
        key, _, value = entry.partition("\n")
        found.append((scope, key, value))
    return found


def overrides(
    text: bytes, listed: Sequence[tuple[str, str, str]], *, needed: bool
) -> tuple[Settings, dict[str, str]]:
    """Settings and variables in which programs are named by nobody but the person and Quire.

    `needed`: git is to refuse rather than to leave out a filter.
    """
    persons = {key: value for scope, key, value in listed if scope in _PERSONS}
    # Keys by the name they have in the repository only.
    local = dict.fromkeys(key for scope, key, _ in listed if scope not in _PERSONS)
    found, world = list[tuple[str, str]](), dict[str, str]()
    for key in local:
        neutral = next((value for known, value in _PROGRAMS if known.fullmatch(key)), None)
        if neutral is not None:
            found.append((key, persons.get(key, neutral)))
        named = _FILTER.fullmatch(key)
        if named and key not in persons:
            found.append((f"filter.{named[1]}.required", "true" if needed else "false"))
        if _OTHER_END.fullmatch(key):
            # Of several git takes the first. Where it is asked to fetch, an option says another.
            world["GIT_NO_LAZY_FETCH"] = "1"
        if key == "core.gitproxy":
            world["GIT_PROXY_COMMAND"] = ""
    if any(_HELPER.fullmatch(key) for key in local):
        found += _helpers(listed)
    if b'"quire"' in text or any(
        key.startswith(("filter.quire.", "merge.quire.")) for key in local
    ):
        found += _own_drivers()
    return found, world


def left_out(listed: Sequence[tuple[str, str, str]]) -> frozenset[str]:
    """Filters that only the repository's configuration has a program for."""
    persons = {key for scope, key, _ in listed if scope in _PERSONS}
    local = (key for scope, key, _ in listed if scope not in _PERSONS and key not in persons)
    names = {found[1] for key in local if (found := _FILTER.fullmatch(key))}
    return frozenset(names - {"quire"})


def _helpers(listed: Sequence[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    yield "credential.helper", ""  # ends the list of those that were named so far
    for scope, key, value in listed:
        if scope in _PERSONS and _HELPER.fullmatch(key):
            yield key, value


def _own_drivers() -> Settings:
    """Quire's, whatever stands in the configuration under that name."""
    call = shlex.join([sys.executable, "-P", "-m", "quire", "git"])
    named = call.replace("%", "%%")  # git fills in what follows a %
    return (
        ("filter.quire.clean", f"{named} clean %f"),
        ("filter.quire.smudge", "cat"),
        ("filter.quire.process", f"{call} process"),
        ("filter.quire.required", "true"),
        ("merge.quire.driver", f"{named} merge %O %A %B %P"),
    )


def with_settings(env: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """As variables: what they say is no affair of whoever lists the machine's processes."""
    world = dict(env)
    try:
        count = int(world.get("GIT_CONFIG_COUNT") or 0)
    except ValueError:
        count = 0  # git itself would refuse it
    for at, (key, value) in enumerate(settings, count):
        world[f"GIT_CONFIG_KEY_{at}"], world[f"GIT_CONFIG_VALUE_{at}"] = key, value
    return world | {"GIT_CONFIG_COUNT": str(count + len(settings))} if settings else world
