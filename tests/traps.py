"""A repository in which every setting that names a program names one that leaves a mark."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from scratch import Scratch

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout",
    "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
    "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase",
    "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
    "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
# What a person's commit, and the push after it, do call, as git does.
OF_A_COMMIT = {
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push",
    "reference-transaction",
}  # fmt: skip


@dataclass
class Traps:
    repo: Scratch

    @property
    def marks(self) -> Path:
        return self.repo.root / ".git" / "marks"

    def sprung(self) -> set[str]:
        found = {path.name for path in self.marks.iterdir()}
        for path in self.marks.iterdir():
            path.unlink()
        return found

    def program(self, name: str, then: str = "exit 1") -> str:
        path = self.repo.root / ".git" / "traps" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{self.marks}/{name}'\n{then}\n")
        path.chmod(0o755)
        return str(path)


def plant(repo: Scratch) -> Traps:
    """In `.git`, as any cell of a run may. git itself falls into them: a test says so."""
    traps = Traps(repo)
    traps.marks.mkdir(exist_ok=True)
    hooks = repo.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{traps.marks}/{name}'\n")
        (hooks / name).chmod(0o755)
    program = traps.program
    cat = "cat"
    more = {
        "core.fsmonitor": program("fsmonitor"),
        "core.sshCommand": program("ssh"),
        "core.gitProxy": program("proxy"),
        "core.askPass": program("askpass"),
        "core.editor": program("editor"),
        "core.pager": program("pager"),
        "core.alternateRefsCommand": program("alternates"),
        "credential.helper": program("helper"),
        "credential.http://127.0.0.1.helper": program("helper-of-url"),
        "diff.external": program("external"),
        "diff.quire.textconv": program("textconv-quire", cat),
        "diff.trap.command": program("command"),
        "diff.trap.textconv": program("textconv", cat),
        "filter.trap.clean": program("clean", cat),
        "filter.trap.smudge": program("smudge", cat),
        "merge.trap.driver": program("driver"),
        "merge.default": "trap",
        "merge.verifySignatures": "true",
        "gpg.program": program("gpg"),
        "gpg.ssh.program": program("gpg-ssh"),
        "gpg.ssh.defaultKeyCommand": program("gpg-key"),
        "log.showSignature": "true",
        "push.gpgSign": "if-asked",
        "uploadpack.packObjectsHook": program("pack-objects"),
        "remote.origin.uploadpack": program("upload-pack"),
        "remote.origin.receivepack": program("receive-pack"),
        "protocol.ext.allow": "always",
        "submodule.recurse": "true",
        "gc.auto": "1",
        "pager.log": program("pager-log"),
        "trace2.normalTarget": str(traps.marks / "trace2"),
        "extensions.worktreeConfig": "true",
    }
    for key, value in more.items():
        repo.git("config", key, value)
    # Written over what `quire init` has said.
    for key in ("filter.quire.clean", "filter.quire.process", "merge.quire.driver"):
        repo.git("config", key, program(f"quire-{key.split('.')[-1]}"))
    own = repo.root / ".git" / "config.worktree"
    own.write_text(f'[filter "tree"]\n\tclean = {program("clean-of-worktree", cat)}\n')
    (repo.root / ".git" / "included").write_text(
        f'[filter "deep"]\n\tclean = {program("clean-included", cat)}\n'
    )
    repo.git("config", "include.path", "included")
    attributes = repo.root / ".git" / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    with attributes.open("a") as file:
        file.write("*.py filter=trap diff=trap merge=trap\n")
        file.write("*.txt filter=tree diff=trap merge=trap\n*.csv filter=deep\n")
    return traps


def touch_all(repo: Scratch) -> None:
    """git has to look into every file to know whether it was changed."""
    for path in repo.root.rglob("*"):
        if path.is_file() and ".git" not in path.parts and ".quire" not in path.parts:
            os.utime(path)
