"""Look at a proposal: what it says and changes, what its runs show, whether they verify."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..errors import ForgeError, QuireError, UsageError
from ..git import commit_files
from ..git.repository import Repository, branch_name
from ..host.person_only import refuse_from_kernel
from ..proof import strict_json
from ..proof.coverage import Coverage, coded
from ..proof.executed_notebooks_in_git import EXEMPT
from ..proof.keys import trust_of
from ..proof.trust import LIST
from ..proof.verify import Verdict as Proof
from ..record.compare import Comparison, compare
from ..record.summary import one_line
from ..task import formats
from ..task.text_diff import unified
from ..task.waiting_cells import told as cells_wait
from ..workspace import Workspace
from . import branches, change_set, notebook_pairs
from .change_set import Difference, File, Ran
from .proposal_body import pointer
from .proposal_rules import fit_commit, fit_number, must_be_open
from .protocol import Comment, Forge, Proposal, State, Verdict
from .push import exchange
from .run_for_source import backing, best, ended

FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
FETCH_TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A task of the change: the run of the proposed version, and the one of the base's."""

    file: File
    ran: Ran | None = None
    proof: Proof | None = None
    before: Ran | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()  # what other runs of this version say
    executed: bool = False  # a notebook with outputs: `Notebook` says whether a run covers them

    @property
    def lacks_run(self) -> bool:
        """Whether there should be a run of this version and is none."""
        return self.ran is None and self.file.new is not None and not self.executed

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.file.path,
            "change": self.file.kind,
            "run_id": self.ran.run_id if self.ran else None,
            "outcome": self.ran.record.outcome if self.ran else None,
            "proof": self.proof.as_dict() if self.proof else None,
            "before": self.before.run_id if self.before else None,
            "comparison": self.comparison.as_dict() if self.comparison else None,
            "notes": list(self.notes),
            "waiting": [cell.name for cell in self.file.waiting],
        }


@dataclass(frozen=True, slots=True)
class Notebook:
    """An `.ipynb` that shows what no run covers, or does not say what its `.py` says."""

    path: str
    uncovered: tuple[str, ...] = ()
    wrong: str = ""  # with the pair

    @property
    def in_step(self) -> bool:
        return not self.wrong

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "uncovered": list(self.uncovered),
            "in_step": self.in_step,
        }


@dataclass(frozen=True, slots=True)
class Review:
    proposal: Proposal
    change: Difference
    diff: str
    tasks: tuple[Reviewed, ...]
    notebooks: tuple[Notebook, ...]
    problems: tuple[str, ...] = ()  # what speaks against believing what the proposal shows
    warnings: tuple[str, ...] = ()

    @property
    def described(self) -> str:
        """The earlier commit that the proposal's text describes; empty where it is this one."""
        told = pointer(self.proposal.body)
        return "" if told is None or told.head == self.proposal.head else told.head

    def is_of_another_version(self, comment: Comment) -> bool:
        """Whether somebody's verdict was on another commit than this one."""
        said = comment.verdict in ("approve", "request_changes")
        return said and comment.commit not in ("", self.proposal.head)

    def as_dict(self) -> dict[str, Any]:
        return {
            **as_dict(self.proposal),
            "body": self.proposal.body,
            "described": self.described or None,
            "comments": [
                {
                    "author": c.author,
                    "at": c.at,
                    "verdict": c.verdict,
                    "text": c.text,
                    "commit": c.commit,
                }
                for c in self.proposal.comments
            ],
            "checks": [
                {
                    "context": c.context,
                    "state": c.state,
                    "description": c.description,
                    "url": c.url,
                    "at": c.at,
                }
                for c in self.proposal.checks
            ],
            "diff": self.diff,
            "tasks": [task.as_dict() for task in self.tasks],
            "notebooks": [nb.as_dict() for nb in self.notebooks],
            "problems": list(self.problems),
            "warnings": list(self.warnings),
        }


def as_dict(found: Proposal) -> dict[str, Any]:
    """A proposal as a list shows it."""
    return {
        "number": found.number,
        "title": found.title,
        "branch": found.branch,
        "base": found.base,
        "head": found.head,
        "state": found.state,
        "author": found.author,
        "at": found.at,
        "url": found.url,
        "merged": found.merged,
    }


def proposals(ws: Workspace, state: State | None = "open") -> list[Proposal]:
    """Newest first; None for all."""
    return ws.forge.proposals(state)


def review(ws: Workspace, number: int) -> Review:
    repository = branches.working(ws)
    forge = ws.forge
    found = forge.proposal(fit_number(number))
    warnings: list[str] = []
    base, head = _commits(repository, forge, found, warnings)
    change = change_set.difference(repository, base, head)
    tasks = tuple(_reviewed(ws, repository, change, found))
    notebooks = tuple(_notebooks(ws, repository, change))
    against = tuple(_problems(tasks, notebooks, shared=bool(repository.remotes())))
    seen = Review(found, change, _diff(repository, change), tasks, notebooks, against)
    return replace(seen, warnings=(*warnings, *_warned(seen)))


def say(
    ws: Workspace, number: int, verdict: Verdict, text: str
) -> tuple[Proposal, tuple[str, ...]]:
    """Approve, comment, or ask for changes; the proposal as it is then, and warnings."""
    if verdict != "comment":
        refuse_from_kernel(ws, "a verdict on a proposal")
    forge = ws.forge
    found = forge.proposal(fit_number(number))
    if verdict != "approve" and not text.strip():
        raise UsageError("nothing is said", hint="say what should change, or what you think of it")
    if verdict == "comment":
        forge.comment(number, text)
    else:
        must_be_open(found, "reviewed")
        forge.review(number, verdict, text)
    return _shared(ws, number)


def close_proposal(ws: Workspace, number: int) -> tuple[Proposal, tuple[str, ...]]:
    """Withdraw a proposal; as it is then, and warnings. The branch stays."""
    refuse_from_kernel(ws, "to withdraw a proposal")
    ws.forge.close(fit_number(number))
    return _shared(ws, number)


def _shared(ws: Workspace, number: int) -> tuple[Proposal, tuple[str, ...]]:
    """What changed is sent: whoever merges it elsewhere is to know."""
    done = exchange(ws)
    return ws.forge.proposal(done.number(number)), done.warnings


def _commits(
    repository: Repository, forge: Forge, found: Proposal, warnings: list[str]
) -> tuple[str, str]:
    """The base and the head of a proposal; what is on a server only is fetched."""
    head, base = fit_commit(found.head), branch_name(found.base)
    remote = repository.remote() if forge.kind != "local" else None
    if remote is not None:
        ref = f"+refs/heads/{base}:refs/remotes/{remote}/{base}"
        said = repository.ask("fetch", *FETCH, "--", remote, ref, timeout=FETCH_TIMEOUT)
        if said.code:
            warnings.append(f"{base} could not be fetched: it is shown as it was")
        for spec in (f"refs/heads/{found.branch}", f"refs/pull/{found.number}/head"):
            if repository.resolve(head) is None:
                repository.ask("fetch", *FETCH, "--", remote, spec, timeout=FETCH_TIMEOUT)
    if repository.resolve(head) is None:
        raise ForgeError(
            f"the commit {head[:12]} of proposal {found.number} is not here",
            hint="git fetch --all, then look again",
        )
    if found.state == "merged" and found.merged is not None:
        # Its base has it by now: what it changed is told against what that was before.
        before = repository.resolve(f"{fit_commit(found.merged)}^1")
        if before is not None:
            return before, head
    return branches.tip(repository, base, remote), head


def _reviewed(
    ws: Workspace, repository: Repository, change: Difference, found: Proposal
) -> Iterator[Reviewed]:
    # The base's list: a proposal must not be able to bring the key it is signed with.
    trust = trust_of(ws, revision=change.onto)
    told = pointer(found.body)
    proposed = told.runs if told else ()
    for file in change_set.tasks(repository, change):
        task = change_set.task_name(ws, repository, file.path)
        behind = backing(ws, task, file.new, trust, proposed=proposed)
        ran, notes = behind.ran, behind.notes
        # Main may have moved on since the branch left it.
        now = repository.blob(change.onto, file.path)
        base = backing(ws, task, now, trust)
        if base.ran is None and now is not None:
            others = (r for r in change_set.runs_of(ws, task) if _was_on(r, found.base))
            base = best(ws, (r for r in others if ran is None or r.run_id != ran.run_id), trust)
        if base.ran and base.proof and not base.proof.ok:
            notes += (f"the run it is compared with, {base.ran.run_id}, does not verify",)
        both = compare(base.ran.record, ran.record) if base.ran and ran else None
        yield Reviewed(file, ran, behind.proof, base.ran, both, notes, _is_executed(file))


def _is_executed(file: File) -> bool:
    """Whether it is a notebook that says it was executed; then its outputs are what counts."""
    if file.suffix != ".ipynb" or file.new is None:
        return False
    try:
        return any(cell.claims for cell in coded(strict_json.loads(file.new)))
    except (ValueError, RecursionError):
        return False


def _was_on(ran: Ran, branch: str) -> bool:
    git = ran.record.origin.get("git")
    return isinstance(git, dict) and git.get("branch") == branch


def _notebooks(ws: Workspace, repository: Repository, change: Difference) -> Iterator[Notebook]:
    coverage = Coverage(ws, trust_of(ws, revision=change.onto))
    files = {f.path: f.new for f in change.files if f.suffix == ".ipynb" and f.new is not None}
    wrong = notebook_pairs.touched(repository, change.head, (f.path for f in change.files))
    # As the base has it: a proposal must not be able to excuse itself.
    exempt = commit_files.attribute(repository, change.onto, "quire", list(files))
    for path in sorted({*files, *wrong}):
        cells: tuple[str, ...] = ()
        if path in files and exempt.get(path) != EXEMPT:
            cells = tuple(str(found) for found in coverage.uncovered(files[path]))
        if cells or path in wrong:
            yield Notebook(path, cells, wrong.get(path, ""))


def _problems(
    tasks: tuple[Reviewed, ...], notebooks: tuple[Notebook, ...], *, shared: bool
) -> Iterator[str]:
    for nb in notebooks:
        if nb.wrong:
            yield f"{one_line(nb.path)}: {one_line(nb.wrong)}"
    bring = "; quire push also brings the runs of others" if shared else ""
    for task in tasks:
        path = one_line(task.file.path)
        if left := task.file.waiting:
            yield f"{path} is a draft: {one_line(cells_wait(left))}"
        if task.lacks_run:
            yield f"there is no archived run of this version of {path}{bring}"
        elif task.ran is None or task.proof is None:
            continue
        elif not task.proof.ok:
            yield f"the run {task.ran.run_id} of {path} does not verify"
        elif not task.ran.record.ok:
            yield f"the run {task.ran.run_id} of {path} {ended(task.ran.record)}"
    for nb in notebooks:
        if nb.uncovered:
            yield f"{one_line(nb.path)} shows what no archived run covers"


def _warned(seen: Review) -> Iterator[str]:
    if LIST in seen.change.others:
        yield f"the change edits {LIST}: it says whom this repository trusts"
    if seen.described:
        yield (
            f"the proposal's text describes an earlier version ({seen.described[:10]}): "
            "quire propose brings it up to date"
        )
    last = {c.author: c for c in seen.proposal.comments if c.verdict not in (None, "comment")}
    for author, comment in last.items():
        if comment.verdict == "approve" and seen.is_of_another_version(comment):
            version = one_line(comment.commit)[:10]
            yield f"{one_line(author)} approved an earlier version ({version}), not this one"


def _diff(repository: Repository, change: Difference) -> str:
    """Git's own, without notebooks; those that are the source themselves are told as text."""
    raw = repository.raw(
        "diff-tree",
        "-p",
        "-r",
        "-M",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        change.since,
        change.head,
        "--",
        ":(top)",
        ":(top,exclude,icase)*.ipynb",
    )
    parts = [raw.decode("utf-8", "replace")]
    for file in change_set.tasks(repository, change):
        if file.suffix == ".ipynb":
            old, new = (_as_text(data, file.path) for data in (file.old, file.new))
            parts.append(unified(old, new, one_line(file.path)))
    return "".join(parts)


def _as_text(data: bytes | None, path: str) -> list[str]:
    try:
        return formats.dumps(change_set.document(data, path), ".py").splitlines(keepends=True)
    except QuireError:
        return ["(this notebook cannot be read)\n"]
