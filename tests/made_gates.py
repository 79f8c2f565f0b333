"""Results of gates built by hand, with a stranger's text wherever one may stand."""

from __future__ import annotations

from quire.ci.gate_report import CellLine, GateResult, LeftOut, TaskRun

AT = "2026-11-16T15:55:01+00:00"
ARCHIVED = {"archive": "git branch reports", "place": "runs/2026/11/16/x"}
# Each would be something in Markdown, HTML, XML or a terminal, if it were let through.
HOSTILE = [
    "</testcase><testcase name='x'>",
    "]]> &amp; <!-- ",
    "<script>alert(1)</script>",
    "[click](https://example.org)",
    "https://example.org",
    "![x](https://example.org/x.png)",
    "a | b | c",
    "a \\| b `x` | c",
    "``` \n# Title\n```",
    "@octocat #12",
    "\x1b[31mred\x1b[0m\x00\x08",
    "\ud800 \ufffe \uffff",
    "\u202egnp.exe",
    "one\n\n| two | three |\n|---|---|\n",
    "`",
    "\\",
]


def hostile() -> GateResult:
    runs = [
        TaskRun(
            f"notebooks/{text}.py",
            "failed",
            text,
            "run-1",
            text,
            AT,
            1.5,
            (CellLine("c1", "code", "failed", 0.1, text),),
            {text: text},
            {},
            text,
            text,
            text,
            f"Traceback\n{text}\nend",
            text,
            text,
            archived=ARCHIVED,
        )
        for text in HOSTILE
    ]
    left = (LeftOut(HOSTILE[2], HOSTILE[3]),)
    return GateResult(tuple(runs), (), left, "", HOSTILE[2], AT, 3.0, warnings=(HOSTILE[3],))


OK = TaskRun(
    "notebooks/sub/sum.py",
    "ok",
    "it changed",
    "2026-11-16-155501-sum-ab12",
    "Add up",
    AT,
    0.5,
    (
        CellLine("c0", "markdown", "text", None, "Add up"),
        CellLine("c1", "code", "ok", 0.1, "load"),
        CellLine("c2", "code", "ok", 0.4),
    ),
    {"total": "6"},
    {"total": 6},
    notebook=".quire/ci/sub/sum.ipynb",
    archived=ARCHIVED,
)
FAILED = TaskRun(
    "notebooks/bad.py",
    "failed",
    "lib.py changed",
    "2026-11-16-155501-bad-ab12",
    duration=0.1,
    cells=(CellLine("c1", "code", "failed", 0.1, "divide"),),
    error="ZeroDivisionError: division by zero",
    error_type="ZeroDivisionError",
    where="cell c1 (divide)",
    traceback="Cell In[1], line 1\n----> 1 1 / 0",
    notebook=".quire/ci/bad.ipynb",
)
REFUSED = TaskRun(
    "notebooks/asks.py",
    "error",
    "it changed",
    error="region is required",
    error_type="ParameterError",
    hint="give it values",
)
GATE = GateResult((OK, FAILED, REFUSED), ("notebooks/other.py",), (), "a" * 40, "", AT, 0.75)
