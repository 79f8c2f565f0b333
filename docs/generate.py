"""Write what is made from other texts: llms.txt, and the section on Quire in AGENTS.md.

`--check` writes nothing and says with its exit status whether all of it is up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from quire.agent import skill

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- made from the skill by `make docs`: -->"
END = "<!-- end of what is made -->"


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


def made() -> dict[Path, str]:
    told = ROOT / "AGENTS.md"
    return {ROOT / "llms.txt": llms(), told: agents(told.read_text("utf-8"))}


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
