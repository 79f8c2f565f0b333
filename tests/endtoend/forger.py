"""Somebody who may write to the repository and wants an archive to say something else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quire.archive.layout import run_folder, sealed
from quire.proof.key_store import Key
from quire.proof.signatures import seal

BRANCH = "refs/heads/reports"
Tree = dict[str, tuple[str, bytes]]  # path to mode and content


@dataclass(frozen=True)
class Step:
    """A commit of the branch: what it leaves there, and what it says."""

    tree: Tree
    message: str


@dataclass
class Forger:
    root: Path

    def git(self, *args: str, given: bytes | None = None, **env: str) -> bytes:
        who = {f"GIT_{w}_{k}": v for w in ("AUTHOR", "COMMITTER") for k, v in _EVE.items()}
        done = subprocess.run(
            ["git", *args],
            cwd=self.root,
            input=given,
            env={**os.environ, **who, **env},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    # Reading

    def commits(self) -> list[str]:
        """Oldest first."""
        return self.git("rev-list", "--reverse", BRANCH).decode().split()

    def tree(self, commit: str) -> Tree:
        out: Tree = {}
        for line in self.git("ls-tree", "-r", "-z", commit).split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, blob = facts.decode().split(" ")
            out[path.decode()] = mode, self.git("cat-file", "blob", blob)
        return out

    def steps(self) -> list[Step]:
        return [
            Step(self.tree(commit), self.git("log", "-1", "--format=%B", commit).decode())
            for commit in self.commits()
        ]

    def files(self, run_id: str) -> dict[str, bytes]:
        folder = run_folder(run_id) + "/"
        tree = self.tree(BRANCH)
        return {path[len(folder) :]: d for path, (_, d) in tree.items() if path.startswith(folder)}

    # Writing

    def commit(self, tree: Mapping[str, tuple[str, bytes]], message: str, *parents: str) -> str:
        index = str(self.root / ".git" / "forged-index")
        lines = []
        for path, (mode, data) in tree.items():
            blob = self.git("hash-object", "-w", "--stdin", given=data).decode().strip()
            lines.append(f"{mode} {blob}\t{path}".encode())
        Path(index).unlink(missing_ok=True)
        self.git(
            "update-index", "-z", "--index-info", given=b"\0".join(lines) + b"\0",
            GIT_INDEX_FILE=index,
        )  # fmt: skip
        made = self.git("write-tree", GIT_INDEX_FILE=index).decode().strip()
        asked = [word for parent in parents for word in ("-p", parent)]
        return self.git("commit-tree", *asked, made, given=message.encode()).decode().strip()

    def point(self, commit: str) -> None:
        self.git("update-ref", BRANCH, commit)

    def on_top(self, change: Callable[[Tree], None], message: str = "Tidy up\n") -> None:
        """One more commit."""
        tip = self.commits()[-1]
        tree = self.tree(tip)
        change(tree)
        self.point(self.commit(tree, message, tip))

    def rewrite(self, steps: Sequence[Step], *, root: str | None = None) -> None:
        """The branch anew, from these steps, each with the message that it had."""
        last = root
        for step in steps:
            last = self.commit(step.tree, step.message, *([last] if last else []))
        assert last is not None
        self.point(last)

    def add_run(self, run_id: str, files: Mapping[str, bytes], key: Key) -> None:
        """As the engine does it, with a key of one's own."""
        tip = self.commits()[-1]
        tree = self.tree(tip) | {
            f"{run_folder(run_id)}/{name}": ("100644", data) for name, data in files.items()
        }
        made = seal(sealed(run_id, tip, files), key)
        message = f"Run {run_id}\n\nQuire-Run: {run_id}\nQuire-Seal: {made}\n"
        self.point(self.commit(tree, message, tip))


_EVE = {"NAME": "Eve", "EMAIL": "eve@example.org", "DATE": "1700000000 +0000"}
