"""Write what is made from other texts: llms.txt, docs/house.md, and a section of AGENTS.md.

`--check` writes nothing and says with its exit status whether all of it is up to date.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from quire.agent import skill

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- made from the skill by `make docs`: -->"
END = "<!-- end of what is made -->"
ROOMS = {
    "": "What every room uses, and the public names.",
    "task": "Tasks: text to Document and back, parameters, edits, lint, what is stale.",
    "masking": "Secrets, and keeping them out of text.",
    "record": "What a run leaves: events, the record, its files, and comparing two of them.",
    "render": "A record as HTML, as Markdown, and as agents read it.",
    "kernel": "What runs code: our own Python kernel, and Jupyter's kernels.",
    "kernel.inside": "What runs in the kernel's own process: standard library and IPython only.",
    "git": "The git repository, and what git calls: filters, drivers and hooks.",
    "environments": "The packages a task declares, resolved and installed.",
    "archive": "Where records are kept for good.",
    "proof": "Keys, signatures, attestations, and their verification.",
    "search": "The index over all runs, and the questions put to it.",
    "host": "The process that keeps kernels warm, and how clients reach it.",
    "engine": "A run from its task to its last event.",
    "cell_tools": "The tools a cell can call: files, search, commands, the web.",
    "sessions": "Live kernels that are driven cell by cell, with a way back.",
    "logbooks": "The Markdown page of a logbook's run.",
    "authoring": "Tasks begun from a description, and edited on disk.",
    "review": "Commits and proposals, in the repository and on forges.",
    "ci": "The gate: the tasks that a change affects, run and reported.",
    "agent": "The tools that agents call.",
    "mcp": "The MCP server.",
    "cli": "The command line.",
}
HEAD = """# Where everything is

Each module of `src/quire` with what it is for. A room imports only from the rooms above it
(`tests/test_architecture.py`). Made by `make docs` from the first line of each module.
"""


def about(path: Path) -> tuple[str, str]:
    """The title of a page, and its first sentence."""
    title, _, rest = path.read_text("utf-8").partition("\n")
    plain = re.sub(r"<!--.*?-->|```.*?```", "", rest, flags=re.DOTALL).strip()
    first = " ".join(plain.split("\n\n", 1)[0].split())
    first = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first)
    return title.lstrip("# ").strip(), re.split(r"(?<=[.:])\s", first, maxsplit=1)[0].rstrip(":")


def llms() -> str:
    """As llmstxt.org has it: a title, a summary, how to, and lists of links."""
    description = re.search(r"^description: (.*)$", skill.show(), re.MULTILINE)
    assert description is not None
    pages = [("README.md", ROOT / "README.md")]
    pages += [(f"docs/{path.name}", path) for path in sorted((ROOT / "docs").glob("*.md"))]
    folder = skill.SOURCE.relative_to(ROOT).as_posix()
    parts = [(f"{folder}/{name}", skill.SOURCE / name) for name in skill.files()]
    section = re.sub(r"^(#+) ", r"#\1 ", skill.agents_section().partition("\n\n")[2], flags=re.M)
    lines = ["# Quire", "", f"> {description[1]}", "", section.replace("#### ", "### ").rstrip()]
    lines += ["", "## Docs", "", *rows(pages), "", "## Skill", "", *rows(parts)]
    return "\n".join(lines) + "\n"


def rows(pages: list[tuple[str, Path]]) -> Iterator[str]:
    for name, path in pages:
        if path.name == "SKILL.md":
            yield f"- [SKILL.md]({name}): all of it, with examples"
            continue
        title, first = about(path)
        yield f"- [{title}]({name})" + (f": {first}" if first else "")


def agents(text: str) -> str:
    """The text with its section made anew; as it is where it has none."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        return text
    return f"{head}{BEGIN}\n\n{skill.agents_section()}\n{END}{tail}"


def first_line(path: Path) -> str:
    """The first sentence of a module, over as many lines as it takes; `` where there is none."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph, maxsplit=1)[0]


def modules(tree: Path) -> Iterator[tuple[str, Path]]:
    source = tree / "src" / "quire"
    for path in sorted(source.rglob("*.py")):
        if path.name != "__init__.py" or path.parent == source:
            yield ".".join(path.parent.relative_to(source).parts), path


def house(tree: Path) -> str:
    by_room: dict[str, list[Path]] = {}
    for room, path in modules(tree):
        by_room.setdefault(room, []).append(path)
    order = [*[r for r in ROOMS if r in by_room], *sorted(set(by_room) - set(ROOMS))]
    said = [HEAD]
    for room in order:
        folder = f"src/quire/{room.replace('.', '/')}".rstrip("/") + "/"
        said += [f"## {room.replace('.', '/') or 'quire'}", "", ROOMS.get(room, ""), ""]
        said += [f"In `{folder}`:", "", "| module | what it is for |", "|---|---|"]
        for path in by_room[room]:
            line = first_line(path).replace("|", "\\|")
            said.append(f"| `{path.name}` | {line} |")
        said.append("")
    return "\n".join(said).rstrip() + "\n"


def made() -> dict[Path, str]:
    told, listed = ROOT / "AGENTS.md", ROOT / "docs" / "house.md"
    return {
        listed: house(ROOT),
        ROOT / "llms.txt": llms(),
        told: agents(told.read_text("utf-8")),
    }


def main(argv: list[str]) -> int:
    old = [p for p, text in made().items() if not p.exists() or p.read_text("utf-8") != text]
    for path in old:
        if "--check" in argv:
            print(f"{path.relative_to(ROOT)} is out of date: make docs")
        else:
            path.write_text(made()[path], "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if old and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
