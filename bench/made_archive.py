"""An archive of many runs as a team's would be, made without running anything.

Some forty tasks, each in several versions, run with other parameters, results, outputs and failures
every time. The files have the layout and about the size of real ones; they are not signed.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from quire.archive.history import ROOT
from quire.archive.layout import run_folder
from quire.record.events import (
    CellError,
    CellFinished,
    CellStarted,
    Event,
    NoteAdded,
    OriginNoted,
    OutputAdded,
    ResultGlued,
    RunFinished,
    RunStarted,
)
from quire.record.plan import Plan
from quire.record.record import fold
from quire.record.record_files import archive_files
from quire.task import formats, params

START = datetime(2025, 1, 6, tzinfo=UTC)
PER_COMMIT = 500
VERSIONS = 5
_SUBJECTS = """orders customers invoices payments refunds sessions clicks impressions sensors
turbines grids prompts completions embeddings tokens transcripts reviews tickets patients trials
samples images tiles forecasts budgets positions trades quotes routes parcels shipments inventory"""
_DEEDS = """load clean merge evaluate train score forecast reconcile audit deduplicate sample
validate export summarise cluster rank backfill monitor calibrate annotate"""
SUBJECTS, DEEDS = _SUBJECTS.split(), _DEEDS.split()
REGIONS = ("eu", "us", "apac", "latam", "africa")
PEOPLE = ("ada", "grace", "linus", "margaret", "ci-bot", "agent-7", "agent-12")
FAILURES = (
    ("KeyError", "'{column}'"),
    (
        "FileNotFoundError",
        "[Errno 2] No such file or directory: '/data/{subject}/{number}.parquet'",
    ),
    ("ValueError", "could not convert string to float: '{word}'"),
    ("TimeoutError", "the read of {subject} did not end within {number} s"),
    ("ZeroDivisionError", "division by zero"),
    ("ConnectionError", "HTTPSConnectionPool(host='api.{word}.example', port=443): Max retries"),
    ("AssertionError", "expected {number} rows, got {other}"),
    ("MemoryError", "Unable to allocate {number}. MiB for an array"),
)
_HOLE = re.compile(rb"@@(\w+?)@@")


@dataclass(frozen=True, slots=True)
class Words:
    """Words with the frequencies of a language: few are common, most are rare."""

    all: tuple[str, ...]
    weights: tuple[float, ...]

    @classmethod
    def made(cls, seed: int, count: int = 20_000) -> Words:
        draw = random.Random(seed)
        heads = (*"bcdfghklmnprstv", "st", "tr", "pl")
        tails = (*"aeiou", "ai", "ou", "en", "ar")

        def word() -> str:
            return "".join(
                draw.choice(heads) + draw.choice(tails) for _ in range(draw.randint(2, 4))
            )

        return cls(
            tuple(word() for _ in range(count)),
            tuple(accumulate(1 / (rank + 3) for rank in range(count))),
        )

    def some(self, draw: random.Random, count: int) -> str:
        return " ".join(draw.choices(self.all, cum_weights=self.weights, k=count))


@dataclass(frozen=True, slots=True)
class Template:
    """The files of one version of a task, once as it passes and once as it fails."""

    stem: str
    subject: str
    ok: dict[str, bytes]
    failed: dict[str, bytes]


def templates(words: Words, seed: int = 1) -> list[Template]:
    draw = random.Random(seed)
    pairs = [(deed, subject) for deed in DEEDS for subject in SUBJECTS]
    found = []
    for deed, subject in draw.sample(pairs, 40):
        for version in range(VERSIONS):
            source = _source(draw, words, deed, subject, version)
            stem = f"{deed}_{subject}"
            found.append(
                Template(stem, subject, _files(stem, source, False), _files(stem, source, True))
            )
    return found


def _source(draw: random.Random, words: Words, deed: str, subject: str, version: int) -> str:
    column = f"{subject[:-1]}_id"
    lines = [
        f"# %% [markdown]\n# # {deed.title()} {subject}\n#\n# {words.some(draw, 30)}",
        '# %% tags=["parameters"]\nregion: str = "eu"\nlimit: int = 1000\nseed: int = 0',
        "# %% load\nimport pandas as pd\nfrom pathlib import Path\n\n"
        f'frame = pd.read_csv(Path("/data/{subject}") / f"{{region}}.csv", nrows=limit)\n'
        f'frame = frame.rename(columns={{"{column}_{version}": "{column}"}})',
    ]
    for number in range(draw.randint(3, 7)):
        names = words.some(draw, 8).split()
        body = "\n".join(
            f'{names[n]}_{names[n + 1]} = frame["{column}"].map({names[n]}).fillna({n})'
            for n in range(5)
        )
        lines.append(
            f"# %% [markdown]\n# ## {names[0].title()} {names[1]}\n#\n# {words.some(draw, 25)}"
        )
        lines.append(
            f"# %% {names[2]} {number}\n# {words.some(draw, 10)}\n{body}\nprint({names[3]})"
        )
    lines.append('# %% report\nfrom quire.runtime import glue, note\nglue("score", score)\n'
                 'glue("rows", len(frame))\nnote(text)')  # fmt: skip
    return "\n\n".join(lines) + "\n"


def _files(stem: str, source: str, fails: bool) -> dict[str, bytes]:
    """With holes where a run puts its own."""
    values = {"region": "@@region@@", "limit": 777001, "seed": 777002}
    document = params.inject(formats.loads(source, ".py"), values)
    path = f"notebooks/{stem}.py"
    plan = Plan("@@run@@", "@@uuid@@", path, Path(path), document, source, values,
                {"region": "eu", "limit": 1000, "seed": 0})  # fmt: skip
    told = plan.as_json({"kind": "native", "language": "python", "name": "python3"})
    events: list[Event] = [
        RunStarted("@@run@@", "@@uuid@@", "@@at@@", path, document.title,
                   plan.cells_as_json(), told),
        OriginNoted({"interpreter": {"version": "3.11"}, "platform": "Linux", "packages": PACKAGES},
                    {"name": "quire", "version": "1"}, {"commit": "ab" * 20, "branch": "main"},
                    {"by": "@@by@@"}),
    ]  # fmt: skip
    code = [cell for cell in document.cells if cell.kind == "code"]
    stop = len(code) // 2 if fails else len(code)
    for at, cell in enumerate(code[: stop + 1]):
        events.append(CellStarted(cell.id, "@@at@@"))
        if at > 1 and at < stop:
            output = {"output_type": "stream", "name": "stdout", "text": f"@@out{at}@@"}
            events.append(OutputAdded(cell.id, output))
        if at == stop:
            trace = ("Traceback (most recent call last)", f"----> 1 {cell.source[:60]}",
                     "@@error@@: @@value@@")  # fmt: skip
            error = CellError("@@error@@", "@@value@@", trace)
            events.append(CellFinished(cell.id, "failed", "@@end@@", 0.25, at + 1, error))
            break
        events.append(CellFinished(cell.id, "ok", "@@end@@", 0.25, at + 1))
    if not fails:
        events.append(ResultGlued(code[-1].id, "score", "json", 777003))
        events.append(ResultGlued(code[-1].id, "rows", "json", 777004))
        events.append(NoteAdded(code[-1].id, "@@note@@", "@@end@@"))
    events.append(RunFinished("failed" if fails else "ok", "@@end@@", 777005))
    made = archive_files(fold(events), source.encode(), ".py", version="1")
    numbers = {b"777001": b"@@limit@@", b"777002": b"@@seed@@", b"777003": b"@@score@@",
               b"777004": b"@@rows@@", b"777005": b"@@took@@"}  # fmt: skip
    for number, hole in numbers.items():
        made = {name: data.replace(number, hole) for name, data in made.items()}
    return made


PACKAGES = {f"package-{n}": f"{n % 7}.{n % 11}.{n % 5}" for n in range(60)}


def runs(count: int, seed: int = 1) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Oldest first."""
    words = Words.made(seed)
    made = templates(words, seed)
    draw = random.Random(seed + 1)
    at = START
    for number in range(count):
        at += timedelta(seconds=draw.randint(40, 400))
        template = made[min(int(draw.expovariate(1 / 40)), len(made) - 1)]
        run_id = f"{at:%Y-%m-%d-%H%M%S}-{template.stem.replace('_', '-')}-{number % 65536:04x}"
        fails = draw.random() < 0.15
        values = _values(draw, words, template, run_id, at)
        yield (
            run_id,
            {
                name: _HOLE.sub(lambda hole: values[hole[1]], data)  # noqa: B023 - used at once
                for name, data in (template.failed if fails else template.ok).items()
            },
        )


def _values(
    draw: random.Random, words: Words, template: Template, run_id: str, at: datetime
) -> Any:
    name, text = draw.choice(FAILURES)
    value = text.format(column=f"{template.subject[:-1]}_id", subject=template.subject,
                        number=draw.randint(2, 900), other=draw.randint(2, 900),
                        word=words.some(draw, 1))  # fmt: skip
    rows = draw.randint(100, 90_000)
    told = {
        "run": run_id,
        "uuid": f"{draw.getrandbits(128):032x}",
        "at": at.isoformat(),
        "end": (at + timedelta(seconds=7)).isoformat(),
        "by": draw.choice(PEOPLE),
        "region": draw.choice(REGIONS),
        "error": name,
        "value": value,
        "note": f"{words.some(draw, 9)}; {template.subject} above {draw.randint(2, 99)} %",
    }
    found: dict[bytes, bytes] = {k.encode(): json.dumps(v)[1:-1].encode() for k, v in told.items()}
    found[b"limit"] = str(draw.choice((100, 1000, 5000))).encode()
    found[b"seed"] = str(draw.randint(0, 9)).encode()
    found[b"score"] = f"{draw.random():.4f}".encode()
    found[b"rows"] = str(rows).encode()
    found[b"took"] = f"{draw.random() * 90:.3f}".encode()
    return _Outputs(found, draw, words)


class _Outputs(dict[bytes, bytes]):
    """What cells print is drawn when it is asked for."""

    def __init__(self, found: dict[bytes, bytes], draw: random.Random, words: Words) -> None:
        super().__init__(found)
        self._draw, self._words = draw, words

    def __missing__(self, key: bytes) -> bytes:
        lines = [
            f"{self._words.some(self._draw, 5)} {self._draw.randint(1, 10**6)} "
            f"{self._draw.random():.5f}"
            for _ in range(self._draw.randint(2, 9))
        ]
        self[key] = json.dumps("\n".join(lines))[1:-1].encode()
        return self[key]


def write(repository: Path, count: int, seed: int = 1, branch: str = "reports") -> int:
    """Into a repository's branch, by one `git fast-import`; the bytes of all files."""
    total = 0
    with subprocess.Popen(
        ["git", "-c", "core.compression=1", "-c", "fastimport.unpackLimit=1", "fast-import",
         "--quiet", "--done", "--depth=0"],
        cwd=repository, stdin=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        out = process.stdin

        def commit(message: bytes) -> None:
            out.write(b"commit refs/heads/%b\n" % branch.encode())
            out.write(b"committer bench <bench@example.org> 1700000000 +0000\n")
            out.write(b"data %d\n%b\n" % (len(message), message))

        def put(path: str, data: bytes) -> None:
            out.write(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(data), data))

        commit(b"Begin")
        for path, data in ROOT.files.items():
            assert data is not None
            put(path, data)
        for at, (run_id, files) in enumerate(runs(count, seed)):
            if at % PER_COMMIT == 0:
                commit(b"Runs")
            for name, data in files.items():
                total += len(data) * (name != "source.py")
                put(f"{run_folder(run_id)}/{name}", data)
        out.write(b"done\n")
    if process.returncode:
        raise OSError("git fast-import failed")
    return total
