"""What a clone has to be told before git calls Quire: filter, drivers, attributes, hooks.

All of it lies in the git folder of the clone, so it does not travel; `quire init` says it again in
every clone. Here it is worked out, as values; `git/init_repository.py` and `git/doctor.py` use it.

A clone outlives the environment that Quire was installed in. So every line for git is a piece of
shell that does what git would do by itself where Quire is not there, or does not start.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .hooks import HOOKS
from .merge_driver import CONFLICT
from .repository import Repository

MARK = "# quire: written by `quire init`"
# `-diff`: whoever has no driver, such as a forge, is told that there is something, and no JSON.
ATTRIBUTES = {
    "filter": "filter=quire",
    "merge": "merge=quire",
    "diff": "-diff",
    "linguist-generated": "linguist-generated=true",
}
PATTERN = "*.[iI][pP][yY][nN][bB]"  # what one system calls x.IPYNB is a notebook on all
ATTRIBUTE_LINE = f"{PATTERN} {' '.join(ATTRIBUTES.values())}"
LOCAL_ATTRIBUTE = f"{PATTERN} diff=quire"
_EARLIER = "*.ipynb diff=quire"  # what Quire wrote before it knew of x.IPYNB
_SET = {"filter": "quire", "merge": "quire", "diff": "unset", "linguist-generated": "true"}
# Every hook that git may call, but for those whose mere presence changes what git does: such a one
# is passed on only where a person has it.
_PASSED_ON = (
    "applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit",
    "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "pre-push", "pre-receive",
    "update", "post-receive", "post-update", "pre-auto-gc", "sendemail-validate",
)  # fmt: skip
_ONLY_IF_THERE = ("push-to-checkout", "proc-receive", "reference-transaction", "post-index-change")

_OWN_HOOK = """#!/bin/sh
{mark}; delete this file to be rid of it
# Brings the .ipynb of tasks up to date. Never fails what it follows.
name=${{0##*/}}
{follow}
exit 0
"""
_CHAINED_HOOK = """#!/bin/sh
{mark}
# Your own hook comes first, with the same arguments and input; its exit status counts.
name=${{0##*/}}
here=${{0%/*}}
own=
while read -r key path; do
  test "$path" = "$here" || own=$path
done <<END
$(git config --type=path --get-regexp '^(core|quire)\\.hookspath$')
END
test -n "$own" || own=${{here%/quire/hooks}}/hooks
status=0
if test -f "$own/$name" && test -x "$own/$name"; then
  "$own/$name" "$@"
  status=$?
fi
case $name in
{ours})
{follow}
  ;;
esac
exit $status
"""
# What it says is shown when it is through: a program that breaks says much, and is worth one line.
_FOLLOW = """\
{q}
said=$(q git hook "$name" "$@" 2>&1 </dev/null) || said=$(no 'no notebook was regenerated' 2>&1)
test -z "$said" || printf '%s\\n' "$said" >&2"""

# Git dies when a filter that stays leaves before it has said what it can do. This one can nothing.
_NO_FILTER = r"printf '0016git-filter-server\n000eversion=2\n00000000'; exec cat >/dev/null"
_PROCESS = (
    'exec 3>&1; test "$(q git process --to 3)" = ready && exit; '
    f"no 'notebooks pass as they are'; {_NO_FILTER}"
)
# Filters: 126 and 127 are the shell's own, and nothing has been read by then.
_CLEAN = (
    "q git clean %f; s=$?; test $s = 126 || test $s = 127 || exit $s; "
    "no 'notebooks pass as they are'; exec cat"
)
_TEXTCONV = """f() { q git diff "$1" || { no 'notebooks are shown as JSON'; cat <"$1"; }; }; f"""
_COMPARE = (
    "f() { q git diff --external \"$@\" && return; no 'notebooks are shown as JSON'; "
    'git diff --no-index --no-ext-diff --no-textconv --text -- "$2" "$5"; return 0; }; f'
)
# {conflict}: the exit status by which Quire says so. Any other is a program that broke.
_MERGE = (
    "q git merge %O %A %B %P; s=$?; test $s = 0 || test $s = {conflict} && exit $s; "
    "no 'notebooks are merged line by line'; "
    "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"
)


@dataclass(frozen=True, slots=True)
class Program:
    """How to call the Quire that this is, from anywhere; the one on the PATH where it is gone."""

    words: tuple[str, ...]

    @classmethod
    def here(cls, python: str = sys.executable) -> Program:
        beside = Path(python).with_name("quire")
        if beside.is_file() and os.access(beside, os.X_OK):
            return cls((str(beside),))
        return cls((python, "-P", "-m", "quire"))  # -P: no module of the repository's comes first

    @property
    def functions(self) -> str:
        """In shell: `q` calls Quire, status 127 where there is none; `no` says that it failed."""
        path, call = shlex.quote(self.words[0]), shlex.join(self.words)
        failed = shlex.quote(f"quire: {self.words[0]} does not run:")
        return (
            f'q() {{ test -x {path} && {{ {call} "$@"; return; }}; '
            'command -v quire >/dev/null && { quire "$@"; return; }; return 127; }; '
            f'no() {{ echo {failed} "$1; to mend it: quire init" >&2; }}'
        )

    def command(self, text: str) -> str:
        return f"{self.functions}; {text}"

    def expanded(self, text: str) -> str:
        """Where git fills in what follows a %."""
        return f"{self.functions.replace('%', '%%')}; {text}"


def wanted_config(program: Program, *, external: bool) -> dict[str, str]:
    """Keys and values for the configuration of this clone.

    `external`: the user has a program of their own for diffs. It would be shown the JSON, were it
    not for a driver's own command, which comes before it.
    """
    values = {
        "filter.quire.clean": program.expanded(_CLEAN),
        "filter.quire.smudge": "cat",
        "filter.quire.process": program.command(_PROCESS),
        # What is required and missing makes git refuse every checkout that brings a notebook.
        "filter.quire.required": "false",
        "diff.quire.textconv": program.command(_TEXTCONV),
        "merge.quire.name": "notebooks by their source, else cell by cell",
        "merge.quire.driver": program.expanded(_MERGE.format(conflict=CONFLICT)),
    }
    if external:
        values["diff.quire.command"] = program.command(_COMPARE)
    return values


def local_config(repository: Repository) -> dict[str, str]:
    """What the configuration of this clone says; of several values the last."""
    said = repository.ask("config", "--local", "--null", "--list")
    entries = said.out.decode("utf-8", "surrogateescape").split("\0")
    pairs = (entry.partition("\n") for entry in entries if entry)
    return {key: value for key, _, value in pairs}


def has_external_diff(repository: Repository) -> bool:
    return bool(repository.config("diff.external"))


@dataclass(frozen=True, slots=True)
class Hooks:
    """Where hooks are to be, what they say, and what else has to change for that."""

    files: Mapping[Path, str]
    config: Mapping[str, str]
    chained: bool
    surplus: tuple[Path, ...] = ()  # of ours, no longer called for
    blocked: str = ""  # why there can be none


def wanted_hooks(repository: Repository, program: Program) -> Hooks:
    """In git's own folder if nobody else is there; else in one of ours that calls the others."""
    ours, plain = repository.common / "quire" / "hooks", repository.common / "hooks"
    scope, path = _hooks_path(repository)
    if path and scope in ("worktree", "command"):
        return Hooks({}, {}, False, blocked=f"core.hooksPath is set for this {scope} to {path}")
    elsewhere = path not in ("", str(ours))
    foreign = [name for name in HOOKS if _exists(plain / name) and not is_ours(plain / name)]
    if not path and not foreign:
        return Hooks({plain / name: _own(program) for name in HOOKS}, {}, False)
    if path == str(ours):
        saved = local_config(repository).get("quire.hookspath", "")
        own = repository.here / saved if saved else _other_path(repository, str(ours)) or plain
    else:
        own = repository.here / path if path else plain
    extra = tuple(name for name in _ONLY_IF_THERE if os.access(own / name, os.X_OK))
    text = _chained(program)
    config = {"core.hooksPath": str(ours)}
    if elsewhere and scope == "local":
        config["quire.hooksPath"] = path
    surplus = tuple(plain / name for name in HOOKS if is_ours(plain / name))
    return Hooks(
        {ours / name: text for name in (*HOOKS, *_PASSED_ON, *extra)}, config, True, surplus
    )


def _hooks_path(repository: Repository) -> tuple[str, str]:
    """The scope and the value of `core.hooksPath` as git takes it; empty where it is not set."""
    said = repository.ask("config", "--type=path", "--show-scope", "--get", "core.hooksPath")
    scope, _, path = said.text.partition("\t")
    return (scope, path) if said.code == 0 else ("", "")


def _other_path(repository: Repository, ours: str) -> Path | None:
    said = repository.ask("config", "--type=path", "--get-all", "core.hooksPath")
    others = [path for path in said.text.split("\n") if path and path != ours]
    return repository.here / others[-1] if others else None


def _own(program: Program) -> str:
    return _OWN_HOOK.format(mark=MARK, follow=_FOLLOW.format(q=program.functions))


def _chained(program: Program) -> str:
    follow = _FOLLOW.format(q=program.functions)
    return _CHAINED_HOOK.format(mark=MARK, follow=follow, ours="|".join(HOOKS))


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def is_set_up(repository: Repository) -> bool:
    """Whether notebooks are made again after a merge."""
    folders = (repository.common / "hooks", repository.common / "quire" / "hooks")
    return any(is_ours(folder / "post-merge") for folder in folders)


def is_ours(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(1000)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Attributes:
    line: str  # to add to .gitattributes; empty: nothing
    local: str  # to add to info/attributes
    kept: tuple[str, ...]  # what the repository says otherwise, and keeps


def wanted_attributes(repository: Repository, local: str, notebook: str) -> Attributes:
    """`local` is info/attributes as it is; `notebook` a name to ask for."""
    lines = local.splitlines()
    added = LOCAL_ATTRIBUTE in lines
    said = _attributes(repository, notebook, of_the_user=False)
    if added or _EARLIER in lines:
        said["diff"] = "unset"  # by .gitattributes; what is local overrides it
    free = [name for name in ATTRIBUTES if said.get(name, "unspecified") == "unspecified"]
    kept = tuple(
        f"{name}: {said[name]}"
        for name in ATTRIBUTES
        if name not in free and said[name] != _SET[name]
    )
    ours = "diff" in free or said.get("diff") == "unset"
    if not free and not kept and not _covers_all(repository, notebook):
        free = list(ATTRIBUTES)
    line = f"{PATTERN} {' '.join(ATTRIBUTES[name] for name in free)}" if free else ""
    return Attributes(line, LOCAL_ATTRIBUTE if ours and not added else "", kept)


def _covers_all(repository: Repository, notebook: str) -> bool:
    """Whether a name in capitals is filtered too."""
    said = _attributes(repository, notebook.removesuffix("ipynb") + "IPYNB", of_the_user=False)
    return said.get("filter") == _SET["filter"]


def effective_attributes(repository: Repository, notebook: str) -> dict[str, str]:
    return _attributes(repository, notebook, of_the_user=True)


def _attributes(repository: Repository, notebook: str, *, of_the_user: bool) -> dict[str, str]:
    """What git takes to be set for a notebook, with or without a person's own settings."""
    alone = () if of_the_user else ("-c", f"core.attributesFile={os.devnull}")
    system = "0" if of_the_user else "1"
    question = ("check-attr", "-z", *ATTRIBUTES, "--", notebook)
    said = repository.ask(*alone, *question, GIT_ATTR_NOSYSTEM=system)
    words = said.out.decode("utf-8", "surrogateescape").split("\0")
    return dict(zip(words[1::3], words[2::3], strict=False))
