"""The Quire that git calls, in every state of repair, and walks through a repository without it.

A walk is made once in a repository that was set up, and once in one that knows nothing of Quire:
what plain git does is what nobody may be kept from.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quire.git import setup
from quire.git.setup import Program
from quire.task.notebook_twin import loads, notebook_text

PYTHON = sys.executable
# What stands at the path that git was told, if anything.
STATES = {
    "installed": f'#!/bin/sh\nexec {PYTHON} -P -m quire "$@"\n',
    "gone": "",
    "package gone": f"#!{PYTHON} -IS\nfrom quire_is_gone import main\n",
    "interpreter gone": "#!/nowhere/bin/python\n",
    "crashes": "#!/bin/sh\nkill -SEGV $$\n",
    # Promises everything, and is gone with the first notebook.
    "dies halfway": "#!/bin/sh\ntest \"$2\" = process || exit 9\necho ready\n"
    "printf '0016git-filter-server\\n000eversion=2\\n0000' >&3\n"
    "printf '0015capability=clean\\n0016capability=smudge\\n0000' >&3\nread -r x\nexit 9\n",
}  # fmt: skip
BROKEN = [state for state in STATES if state != "installed"]

TASK = "# %% [markdown]\n# # Count\n\n" + "\n".join(
    f"# %% part {n}\nvalue_{n} = 0\nmore_{n} = 0\n" for n in range(5)
)


def put(path: Path, state: str) -> None:
    """The program of this state at this path."""
    shutil.rmtree(path.parent.parent, ignore_errors=True)
    if STATES[state]:
        path.parent.mkdir(parents=True)
        path.write_text(STATES[state])
        path.chmod(0o755)


def environment(folder: Path) -> dict[str, str]:
    """No other Quire on the PATH, nobody's editor, and commits that are the same each time."""
    paths = [p for p in os.environ["PATH"].split(os.pathsep) if not Path(p, "quire").exists()]
    return {
        **os.environ,
        "PATH": os.pathsep.join(paths),
        "HOME": str(folder),
        "GIT_EDITOR": "true",
        "GIT_MERGE_AUTOEDIT": "no",
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip


@dataclass
class World:
    root: Path
    env: dict[str, str]

    def call(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *args],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def git(self, *args: str) -> str:
        done = self.call(*args)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout

    def path(self, name: str) -> Path:
        return self.root / "notebooks" / name

    def files(self, *suffixes: str) -> dict[str, str]:
        return {
            str(path.relative_to(self.root)): path.read_text()
            for path in sorted(self.root.rglob("*"))
            if ".git" not in path.parts and path.is_file() and path.suffix in suffixes
        }

    def copy(self, root: Path) -> World:
        shutil.copytree(self.root, root, symlinks=True)
        world = World(root, self.env)
        world.git("update-index", "-q", "--refresh")
        return world


def made(text: str) -> str:
    """The notebook of a task, the same for the same text."""
    return notebook_text(loads(text, ".py"), None)


def own_notebook() -> str:
    nb = json.loads(made(TASK))
    del nb["metadata"]["quire"]
    return json.dumps(nb, indent=1) + "\n"


def changed(text: str, old: str, token: str) -> str:
    """The text with a value changed; or with a line more where that value has gone."""
    for line in text.splitlines():
        if old in line:
            return text.replace(f"{old} = {line.split(' = ')[1][:1]}", f"{old} = {token}", 1)
    return text


def plain_world(folder: Path) -> World:
    """Branches that differ in all the ways that pairs can, and a remote that has gone on."""
    root = folder / "template"
    root.mkdir(parents=True)
    world = World(root, environment(folder))
    world.git("init", "-q", "-b", "main")
    (root / "readme.txt").write_text("read\n")
    (root / ".gitattributes").write_text(setup.ATTRIBUTE_LINE + "\n")
    (root / ".gitignore").write_text("/.quire/\n")
    (root / "quire.toml").write_text("")
    world.path("").mkdir()
    world.path("count.py").write_text(TASK)
    world.path("count.ipynb").write_text(made(TASK))
    world.path("own.ipynb").write_text(own_notebook())

    def commit(message: str) -> None:
        world.git("add", "-A")
        world.git("commit", "-q", "-m", message)

    def branch(name: str, *, text: str = "", notebook: bool = False) -> None:
        world.git("switch", "-q", "-c", name, "main")
        if text:
            task = TASK.replace("value_1 = 0", f"value_1 = {text}")
            world.path("count.py").write_text(task)
            if notebook:
                world.path("count.ipynb").write_text(made(task))

    commit("Begin")
    branch("text", text="'text'")
    commit("Text only")
    branch("both", text="'both'", notebook=True)
    commit("Text and notebook")
    world.path("count.py").write_text(world.path("count.py").read_text() + "last = 1\n")
    commit("And the text again")
    branch("own")
    world.path("own.ipynb").write_text(own_notebook().replace("value_3 = 0", "value_3 = 'own'"))
    commit("A notebook of its own")
    branch("ignoring", text="'ignoring'")
    (root / ".gitignore").write_text("/.quire/\n*.ipynb\n")
    world.git("rm", "-q", "--cached", "notebooks/count.ipynb")
    commit("Ignore notebooks")
    world.git("switch", "-q", "-f", "-c", "far", "main")
    task = TASK.replace("value_4 = 0", "value_4 = 'far'")
    world.path("count.py").write_text(task)
    commit("Far away")
    world.git("init", "-q", "--bare", str(folder / "far.git"))
    world.git("remote", "add", "origin", str(folder / "far.git"))
    world.git("push", "-q", "origin", "far:main")
    world.git("switch", "-q", "main")
    world.git("branch", "-q", "-D", "far")
    world.git("config", "branch.main.remote", "origin")
    world.git("config", "branch.main.merge", "refs/heads/main")
    world.git("config", "stash.showIncludeUntracked", "true")
    return world


def set_up(world: World, program: Path) -> None:
    """What `quire init` tells git, without the rest of it."""
    from quire.git.repository import Repository

    repository = Repository.find(world.root, world.env)
    assert repository is not None
    there = Program((str(program),))
    for key, value in setup.wanted_config(there, external=False).items():
        world.git("config", key, value)
    for path, text in setup.wanted_hooks(repository, there).files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    attributes = repository.common / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text(setup.LOCAL_ATTRIBUTE + "\n")


# Walks

Step = tuple[str, ...]
_BRANCHES = ("main", "text", "both", "own", "ignoring")
_MANY: tuple[tuple[str, int], ...] = (
    ("switch B", 8),
    ("checkout B", 3),
    ("edit py", 4),
    ("edit nb", 2),
    ("edit pair", 3),
    ("edit own", 2),
    ("edit new", 1),
    ("remove nb", 1),
    ("commit -qam Step", 4),
    ("add -A", 2),
    ("checkout -- notebooks", 2),
    ("checkout -- notebooks/count.ipynb", 2),
    ("restore --staged --worktree .", 1),
    ("checkout B -- notebooks", 1),
    ("stash", 3),
    ("stash -u", 1),
    ("stash pop", 4),
    ("stash apply", 1),
    ("merge B", 4),
    ("merge --no-ff B", 1),
    ("merge --squash B", 1),
    ("rebase B", 3),
    ("rebase --autostash B", 1),
    ("cherry-pick B", 3),
    ("revert --no-edit HEAD", 1),
    ("pull -q --no-rebase origin main", 1),
    ("pull -q --rebase origin main", 1),
    ("reset -q --hard HEAD~1", 1),
    ("reset -q HEAD~1", 1),
    ("switch -c N", 2),
    ("checkout --detach", 1),
    ("commit -q --amend -m Amended", 1),
    ("diff", 1),
    ("log -p -2", 1),
    ("status", 1),
)


def walk(seed: int, length: int = 7) -> Iterator[Step]:
    """The same for the same number."""
    chance = random.Random(seed)
    for n in range(length):
        (line,) = chance.choices([s for s, _ in _MANY], [weight for _, weight in _MANY])
        words = line.split(" ")
        words = [chance.choice(_BRANCHES) if word == "B" else word for word in words]
        words = [f"new-{n}" if word == "N" else word for word in words]
        if words[0] == "edit":
            who = "hand" if words[1] in ("nb", "own") else "text"
            words += [str(chance.randrange(5)), f"'{who}-{seed}-{n}'"]
        yield tuple(words)


def take(world: World, step: Step) -> subprocess.CompletedProcess[str]:
    """Do it: a person's edit, or a command of git's."""
    done = subprocess.CompletedProcess[str](step, 0, "", "")
    py, nb, own = (world.path(name) for name in ("count.py", "count.ipynb", "own.ipynb"))
    match step:
        case ("edit", what, place, token):
            world.path("").mkdir(exist_ok=True)
            if what in ("py", "pair") and py.exists():
                py.write_text(changed(py.read_text(), f"value_{place}", token))
            if what == "pair" and py.exists() and "<<<" not in py.read_text():
                nb.write_text(made(py.read_text()))
            if what == "nb" and nb.exists():
                nb.write_text(changed(nb.read_text(), f"more_{place}", token))
            if what == "own" and own.exists():
                own.write_text(changed(own.read_text(), f"value_{place}", token))
            if what == "new":
                world.path(f"new{place}.py").write_text(f"# %% new\nvalue = {token}\n")
        case ("remove", _):
            nb.unlink(missing_ok=True)
        case _:
            done = world.call(*step)
    return done


def way_back(world: World) -> Step | None:
    """How to leave what a command could not finish."""
    for name, words in (
        ("MERGE_HEAD", ("merge", "--abort")),
        ("rebase-merge", ("rebase", "--abort")),
        ("rebase-apply", ("rebase", "--abort")),
        ("CHERRY_PICK_HEAD", ("cherry-pick", "--abort")),
        ("REVERT_HEAD", ("revert", "--abort")),
    ):
        if (world.root / ".git" / name).exists():
            return words
    return ("reset", "-q", "--merge") if world.git("ls-files", "--unmerged") else None
