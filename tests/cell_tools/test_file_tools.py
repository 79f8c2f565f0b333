from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quire.cell_tools import file_tools
from quire.cell_tools.allowed_paths import Places
from quire.cell_tools.file_search import search_files
from quire.errors import ConfigError, Refused, ToolError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


@pytest.fixture
def places(root: Path) -> Places:
    return Places([(str(root), True)])


def read(places: Places, root: Path, path: str, most: int = 1_000_000, **more: Any) -> Any:
    given = {"path": path, "cwd": str(root), **more}
    return file_tools.read_file(places, given, most, 60.0, lambda: False)


def write(places: Places, root: Path, path: str, content: str) -> Any:
    given = {"path": path, "cwd": str(root), "content": content}
    return file_tools.write_file(places, given, 1_000_000, 0o022)


def change(places: Places, root: Path, old: str, new: str, **more: Any) -> Any:
    given = {"path": "a.txt", "cwd": str(root), "old": old, "new": new, **more}
    return file_tools.patch(places, given, 1_000_000, 0o022)


@pytest.mark.parametrize(
    ("data", "more", "text", "told"),
    [
        (b"a\nb\nc\n", {}, "a\nb\nc\n", (1, 3, 3, None)),
        (b"a\nb\nc", {}, "a\nb\nc", (1, 3, 3, None)),
        (b"", {}, "", (1, 0, 0, None)),
        (b"\n", {}, "\n", (1, 1, 1, None)),
        (b"a\nb\nc\n", {"offset": 2}, "b\nc\n", (2, 2, 3, None)),
        (b"a\nb\nc\n", {"limit": 2}, "a\nb\n", (1, 2, 3, 3)),
        (b"a\nb\nc\n", {"offset": 2, "limit": 1}, "b\n", (2, 1, 3, 3)),
        (b"a\nb\nc\n", {"offset": 9}, "", (9, 0, 3, None)),
        (b"a\r\nb\rc\n", {"limit": 1}, "a\r\n", (1, 1, 2, 2)),
        (b"\xff\n", {}, "\ufffd\n", (1, 1, 1, None)),
    ],
)
def test_lines_of_a_file(
    root: Path, places: Places, data: bytes, more: Any, text: str, told: Any
) -> None:
    (root / "a.txt").write_bytes(data)
    found = read(places, root, "a.txt", **more)
    assert found["text"] == text
    assert told == tuple(found[k] for k in ("offset", "lines", "total_lines", "next_offset"))


def test_a_large_file_can_be_read_piece_by_piece(root: Path, places: Places) -> None:
    lines = [f"{n} {'x' * (n * 37 % 900)}\n" for n in range(6_000)]
    (root / "a.txt").write_text("".join(lines))
    pieces, offset = [], 1
    while offset is not None:
        found = read(places, root, "a.txt", most=300_000, offset=offset)
        assert 0 < len(found["text"]) <= 300_000
        pieces.append(found["text"])
        offset = found["next_offset"]
    assert "".join(pieces) == "".join(lines)
    assert len(pieces) > 5


@pytest.mark.parametrize("offset", [1, 700_000, 1_500_000])
def test_lines_far_into_a_large_file(root: Path, places: Places, offset: int) -> None:
    (root / "a.txt").write_bytes(b"a\n" * 1_500_000)
    found = read(places, root, "a.txt", offset=offset, limit=2)
    lines = min(2, 1_500_001 - offset)
    assert (found["text"], found["lines"]) == ("a\n" * lines, lines)
    assert found["total_lines"] == 1_500_000


def test_reading_is_called_off(root: Path, places: Places) -> None:
    (root / "a.txt").write_text("a\n")
    given = {"path": "a.txt", "cwd": str(root)}
    with pytest.raises(ToolError, match="called off"):
        file_tools.read_file(places, given, 1_000, 60.0, lambda: True)
    with pytest.raises(ToolError, match="took longer than 0 s"):
        file_tools.read_file(places, given, 1_000, 0.0, lambda: False)


def test_a_line_longer_than_the_limit_is_cut(root: Path, places: Places) -> None:
    (root / "a.txt").write_text("x" * 3_000_000 + "\nnext\n")
    found = read(places, root, "a.txt", most=1_000)
    assert (found["text"], found["next_offset"], found["truncated"]) == ("x" * 1_000, 2, True)
    (root / "one.txt").write_text("x" * 3_000_000)
    found = read(places, root, "one.txt", most=1_000)
    assert (found["next_offset"], found["truncated"]) == (None, True), "it is not all of it"
    assert read(places, root, "one.txt", most=3_000_000)["truncated"] is False
    assert read(places, root, "a.txt", offset=2)["text"] == "next\n"


def test_write_makes_folders_and_keeps_the_mode(root: Path, places: Places) -> None:
    told = write(places, root, "a/b/c.txt", "é")
    assert (told["bytes"], told["created"]) == (2, True)
    path = root / "a" / "b" / "c.txt"
    assert path.read_text() == "é"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o750)
    assert write(places, root, "a/b/c.txt", "new")["created"] is False
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert os.listdir(path.parent) == ["c.txt"], "nothing is left behind"


def test_a_write_that_fails_leaves_the_old_file(root: Path, places: Places) -> None:
    (root / "a.txt").write_text("old")
    with pytest.raises(Refused, match="at most 2 are written"):
        file_tools.write_file(places, {"path": "a.txt", "cwd": str(root), "content": "new"}, 2, 0)
    with pytest.raises(ToolError, match="half of a character"):
        write(places, root, "a.txt", "\ud800")
    assert (root / "a.txt").read_text() == "old"
    assert os.listdir(root) == ["a.txt"]


def test_links_within_the_workspace_are_followed(root: Path, places: Places) -> None:
    (root / "data").mkdir()
    (root / "data" / "a.txt").write_text("here")
    (root / "link").symlink_to("data")
    (root / "absolute").symlink_to(root / "data" / "a.txt")
    (root / "data" / "up").symlink_to("../link/a.txt")
    for path in ("link/a.txt", "absolute", "data/up", str(root / "link" / "up")):
        assert read(places, root, path)["text"] == "here"
    write(places, root, "absolute", "there")
    assert (root / "data" / "a.txt").read_text() == "there"
    assert (root / "absolute").is_symlink()


def test_another_root_can_be_read_or_written(tmp_path: Path, root: Path) -> None:
    for name in ("shared", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    places = Places(
        [(str(root), True), (str(tmp_path / "shared"), False), (str(tmp_path / "out"), True)]
    )
    assert read(places, root, "../shared/a.txt")["text"] == "shared"
    assert read(places, root, str(tmp_path / "out" / "a.txt"))["text"] == "out"
    with pytest.raises(Refused, match="may write"):
        write(places, root, "../shared/a.txt", "x")
    write(places, root, "../out/b.txt", "x")
    (root / "link").symlink_to(tmp_path / "shared")
    assert read(places, root, "link/a.txt")["text"] == "shared"
    with pytest.raises(Refused, match="may write"):
        write(places, root, "link/a.txt", "x")


def test_a_root_that_was_exchanged_is_not_entered(tmp_path: Path, root: Path) -> None:
    places = Places([(str(root), True)])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret").write_text("x")
    root.rename(tmp_path / "away")
    (tmp_path / "other").rename(root)
    with pytest.raises(Refused, match="not the folder it was"):
        read(places, root, "secret")


def test_the_folder_with_the_keys_is_closed(tmp_path: Path, root: Path) -> None:
    keys = root / "mine"
    keys.mkdir()
    (keys / "key").write_text("x")
    places = Places([(str(root), True)], closed=[str(keys)])
    with pytest.raises(Refused, match="protected"):
        read(places, root, "mine/key")


@pytest.mark.parametrize(
    "path",
    [
        ".quire-keys",
        ".gitattributes",
        ".githooks/pre-commit",
        "below/.githooks/pre-commit",
        ".mcp.json",
        ".claude/settings.json",
        ".CODEX/config.toml",
        ".cursor/mcp.json",
        "opencode.json",
        ".github/workflows/ci.yml",
        ".gitea/workflows/ci.yml",
        "quire.toml",
    ],
)
def test_what_decides_what_others_run_is_read_and_not_written(
    root: Path, places: Places, path: str
) -> None:
    with pytest.raises(Refused, match="protected"):
        write(places, root, path, "x")
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("there\n")
    (root / "link").symlink_to(path)
    for name in (path, "link"):
        assert read(places, root, name)["text"] == "there\n"
        with pytest.raises(Refused, match="protected"):
            write(places, root, name, "x")
        with pytest.raises(Refused, match="protected"):
            file_tools.patch(
                places, {"path": name, "cwd": str(root), "old": "there", "new": "x"}, 1_000, 0
            )
    assert (root / path).read_text() == "there\n"
    assert [match["path"] for match in search(places, root / path / "..", "there")["matches"]]


def test_other_files_beside_workflows_may_be_written(root: Path, places: Places) -> None:
    for path in (".github/CODEOWNERS", "workflows/ci.yml", "docs/quire.toml.md"):
        assert write(places, root, path, "x")["created"]


def test_the_name_of_a_link_counts_too(root: Path, places: Places) -> None:
    (root / "values.txt").write_text("TOKEN=x")
    (root / ".env").symlink_to("values.txt")
    with pytest.raises(Refused, match="protected"):
        read(places, root, ".env")


@pytest.mark.parametrize("swapped", ["a", "a/here"])
@pytest.mark.parametrize("use", [read, lambda *given: write(*given, "x")], ids=["read", "write"])
def test_a_folder_exchanged_for_a_link_is_not_entered(
    tmp_path: Path, root: Path, places: Places, monkeypatch: Any, swapped: str, use: Any
) -> None:
    """After its path was looked at, and before it is opened."""
    outside = tmp_path / "outside"
    for folder in (root / "a" / "here", outside / "here"):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("old")
    (outside / "a.txt").write_text("old")
    resolve = os.path.realpath

    def exchanged(path: Any, **more: Any) -> str:
        found = resolve(path, **more)
        (root / swapped).rename(root / "there")
        (root / swapped).symlink_to(outside)
        return str(found)

    monkeypatch.setattr(os.path, "realpath", exchanged)
    with pytest.raises((Refused, ToolError)):
        use(places, root, "a/here/a.txt")
    assert [path.read_text() for path in outside.rglob("*.txt")] == ["old", "old"]


def test_an_example_of_an_env_file_may_be_read(root: Path, places: Places) -> None:
    (root / ".env.example").write_text("TOKEN=")
    assert read(places, root, ".env.example")["text"] == "TOKEN="


def test_what_the_workspace_protects_is_protected(root: Path) -> None:
    (root / ".env.example").write_text("KEY=real\n")
    places = Places([(str(root), True)], [".ENV.*"])
    with pytest.raises(Refused, match="protected"):
        read(places, root, ".env.example")
    assert search(places, root, "KEY")["matches"] == []


@pytest.mark.parametrize(
    ("opened", "name"),
    [
        ("home/.ssh", ".ssh"),
        ("home/.SSH/sub", ".SSH"),
        ("workspace/x/.git", ".git"),
        ("home/link", ".ssh"),
        ("home/payroll", "payroll"),
        ("keys", "keys"),
        ("keys/deep", "keys"),
    ],
)
def test_a_root_that_is_protected_is_not_opened(
    tmp_path: Path, root: Path, opened: str, name: str
) -> None:
    for folder in ("home/.ssh", "home/.SSH/sub", "workspace/x/.git", "home/payroll", "keys/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "home" / "link").symlink_to(".ssh")
    roots = [(str(root), True), (str(tmp_path / opened), False)]
    with pytest.raises(ConfigError, match=f"{name} is protected"):
        Places(roots, ["payroll"], [str(tmp_path / "keys")])


def test_what_lies_above_the_workspace_protects_no_root(tmp_path: Path) -> None:
    """A workspace may be somewhere in such a folder, and open its neighbours; not the folder."""
    workspace, other = tmp_path / ".quire" / "workspace", tmp_path / ".quire" / "other"
    workspace.mkdir(parents=True)
    other.mkdir()
    (other / "a.txt").write_text("a\n")
    places = Places([(str(workspace), True), (str(other), False)])
    assert read(places, workspace, str(other / "a.txt"))["text"] == "a\n"
    with pytest.raises(ConfigError, match=r"\.quire is protected"):
        Places([(str(workspace), True), (str(other.parent), False)])


def test_a_refusal_says_what_is_open(tmp_path: Path, root: Path) -> None:
    for name in ("shared", "gone"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "gone").rmdir()
    more = [(str(tmp_path / name), False) for name in ("shared", "gone", "file")]
    places = Places([(str(root), True), *more])
    with pytest.raises(Refused) as told:
        read(places, root, "/etc/passwd")
    assert f"is open, and {tmp_path}/shared; read_roots" in told.value.hint
    assert f"no folder {tmp_path}/gone, {tmp_path}/file" in told.value.hint
    with pytest.raises(Refused) as told:
        write(places, root, f"{tmp_path}/shared/x", "x")
    assert "only the workspace is open; write_roots" in told.value.hint


def test_patch_replaces_what_is_there_once(root: Path, places: Places) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\ntwo\n")
    told = change(places, root, "one", "1")
    assert told["replacements"] == 1
    assert "-one" in told["diff"]
    assert "+1" in told["diff"]
    assert (root / "a.txt").read_bytes() == b"1\r\ntwo\ntwo\n"
    with pytest.raises(ToolError, match="stands 2 times"):
        change(places, root, "two", "2")
    with pytest.raises(ToolError, match="does not stand"):
        change(places, root, "three", "3")
    with pytest.raises(ToolError, match="is empty"):
        change(places, root, "", "3")
    assert (root / "a.txt").read_bytes() == b"1\r\ntwo\ntwo\n"
    assert change(places, root, "two", "2", replace_all=True)["replacements"] == 2
    assert (root / "a.txt").read_bytes() == b"1\r\n2\n2\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [("here", "there\nand on"), ("here\n", ""), ("7\nhere", "8\nthere"), ("line 1\n", "1\n")],
)
def test_a_diff_gives_the_new_file_when_applied(
    root: Path, places: Places, old: str, new: str
) -> None:
    lines = [f"line {number}" for number in range(1, 3_001)]
    lines[7] = lines[9] = lines[1_499] = lines[1_504] = lines[2_999] = "here"
    text = "\n".join(lines) + "\n"
    (root / "a.txt").write_text(text)
    told = change(places, root, old, new, replace_all=True)
    after = (root / "a.txt").read_text()
    assert after == text.replace(old, new)
    (root / "a.txt").write_text(text)
    apply = ["git", "apply", "-p0", "-"]
    subprocess.run(apply, cwd=root, input=told["diff"] + "\n", text=True, check=True)
    assert (root / "a.txt").read_text() == after


def test_a_diff_has_bounds(root: Path, places: Places) -> None:
    """Lines that are like each other are what comparing takes longest for."""
    lines = [text for number in range(9_000) for text in (f"l{number % 100}", "X")]
    (root / "a.txt").write_text("\n".join(lines))
    told = change(places, root, "X", "Y", replace_all=True)
    assert told["replacements"] == 9_000
    assert len(told["diff"].split("\n")) < file_tools.DIFF_LINES + 10
    lines = [text for number in range(9_000) for text in (f"l{number}", *"abcdefg", "X")]
    (root / "a.txt").write_text("\n".join(lines))
    told = change(places, root, "X", "Y", replace_all=True)
    assert len(told["diff"].split("\n")) < file_tools.DIFF_LINES + 20
    assert told["diff"].endswith("more replacements")


def test_a_diff_of_one_long_line(root: Path, places: Places) -> None:
    (root / "a.txt").write_text("b" + "a" * 900_000 + "b")
    told = change(places, root, "a" * 900_000, "c")
    assert len(told["diff"]) < 10_000
    assert told["diff"].endswith("\n+bcb")


@pytest.mark.parametrize(("there", "old"), [("a\r\nb\r\n", "a\nb"), ("a\nb\n", "a\r\nb")])
def test_patch_says_that_only_the_ends_of_lines_differ(
    root: Path, places: Places, there: str, old: str
) -> None:
    (root / "a.txt").write_bytes(there.encode())
    with pytest.raises(ToolError, match="does not stand") as told:
        change(places, root, old, "x")
    assert "ends of lines" in told.value.hint
    with pytest.raises(ToolError) as told:
        change(places, root, "c", "x")
    assert "ends of lines" not in told.value.hint


def test_patch_does_not_spoil_what_is_not_utf8(root: Path, places: Places) -> None:
    (root / "a.txt").write_bytes(b"one\xff")
    with pytest.raises(ToolError, match="not UTF-8"):
        change(places, root, "one", "1")
    assert (root / "a.txt").read_bytes() == b"one\xff"


def test_a_change_in_between_is_not_lost(root: Path, places: Places) -> None:
    (root / "a.txt").write_text("one")
    with places.at("a.txt", str(root), write=True) as spot:
        (root / "a.txt").write_text("somebody else's")
        with pytest.raises(ToolError, match="changed by somebody else"):
            file_tools._replace(spot, b"mine", 0o022)
    assert (root / "a.txt").read_text() == "somebody else's"


POLICY = '[tool.quire.tools]\nterminal = "deny"\n'
PROJECT = '[project]\nname = "x"\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, '[tool.quire.tools]\nterminal = "allow"\n'),
        (None, 'tool.quire.tools.terminal = "allow"\n'),
        (None, 'tool = {quire = {tools = {terminal = "allow"}}}\n'),
        (PROJECT, PROJECT + "[tool.quire]\n"),
        (POLICY, POLICY.replace("deny", "allow")),
        (POLICY, POLICY + 'write_roots = ["/"]\n'),
        (POLICY, ""),
        (None, "# [tool.quire]\n"),
        ("no TOML", POLICY),
    ],
)
def test_the_policy_in_a_pyproject_stays_as_it_is(
    root: Path, places: Places, before: str | None, after: str
) -> None:
    path = root / "pyproject.toml"
    if before is not None:
        path.write_text(before)
    for name in ("pyproject.toml", "./sub/../pyproject.toml"):
        (root / "sub").mkdir(exist_ok=True)
        with pytest.raises(Refused, match="protected"):
            write(places, root, name, after)
    given = {"path": str(path), "cwd": str(root), "old": before, "new": after}
    if before is not None:
        with pytest.raises(Refused, match="protected"):
            file_tools.patch(places, given, 1_000_000, 0o022)
    assert (path.read_text() if path.exists() else None) == before


def test_the_rest_of_a_pyproject_may_be_changed(root: Path, places: Places) -> None:
    assert write(places, root, "pyproject.toml", PROJECT)["created"]
    (root / "pyproject.toml").write_text(PROJECT + POLICY)
    other = PROJECT.replace('"x"', '"y"')
    write(places, root, "pyproject.toml", other + POLICY + "# said\n")
    with pytest.raises(ToolError, match="would not be TOML"):
        write(places, root, "pyproject.toml", other + POLICY + "[")
    assert (root / "pyproject.toml").read_text() == other + POLICY + "# said\n"
    (root / "pyproject.toml").write_text("no TOML")
    write(places, root, "pyproject.toml", PROJECT)


def test_a_read_only_file_stays(root: Path, places: Places) -> None:
    path = root / "a.txt"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        write(places, root, "a.txt", "new")
    with pytest.raises(ToolError, match="read-only"):
        change(places, root, "old", "new")
    assert path.read_text() == "old"


@pytest.mark.parametrize("path", ["/proc/self/mem", "/proc/self/attr/exec"])
def test_what_cannot_be_read_after_all_says_so(path: str) -> None:
    with pytest.raises(ToolError, match=f"{os.path.basename(path)}: "):
        read(Places([("/proc", False)]), Path("/proc"), path)


def search(places: Places, root: Path, pattern: str, **more: Any) -> Any:
    given = {"pattern": pattern, "cwd": str(root), **more}
    return search_files(places, given, 20.0, lambda: False)


@pytest.fixture
def filled(root: Path) -> Path:
    for name, text in {
        "a.py": "import os\nx = 1\n",
        "sub/b.py": "x = 2\ny = x\n",
        "sub/notes.md": "x marks\n",
        ".env": "x = secret\n",
        ".git/config": "x = 3\n",
        ".hidden/a.py": "x = 4\n",
        "node_modules/m.py": "x = 5\n",
        "key.pem": "x = 6\n",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    (root / "binary").write_bytes(b"x = \0")
    (root / "out").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    return root


def test_search_by_content(filled: Path, places: Places) -> None:
    found = search(places, filled, r"^x\b")
    assert [(m["path"], m["line"], m["text"]) for m in found["matches"]] == [
        ("a.py", 2, "x = 1"),
        ("sub/b.py", 1, "x = 2"),
        ("sub/notes.md", 1, "x marks"),
    ]
    assert (found["total"], found["truncated"]) == (3, False)


def test_search_narrowed_down(filled: Path, places: Places) -> None:
    def paths(pattern: str, **more: Any) -> list[str]:
        return [m["path"] for m in search(places, filled, pattern, **more)["matches"]]

    assert paths("x", glob="*.py") == ["a.py", "sub/b.py", "sub/b.py"]
    assert paths("x", path="sub", glob="*.md") == ["sub/notes.md"]
    for glob in ("sub/*.md", "./sub/*.md", "sub/**/*.md", "**/sub/*.md", "**/sub/**/notes.md"):
        assert paths("x", glob=glob) == ["sub/notes.md"], glob
        assert paths(glob, target="files") == ["sub/notes.md"], glob
    assert paths("**/*.py", target="files") == ["a.py", "sub/b.py"]
    assert paths("x", path="sub/b.py") == ["sub/b.py", "sub/b.py"]
    assert paths("*.py", target="files") == ["a.py", "sub/b.py"]
    assert paths("*", target="files", path="sub") == ["sub/b.py", "sub/notes.md"]
    assert paths("x", limit=1, offset=1) == ["sub/b.py"]
    assert search(places, filled, "x", limit=1)["truncated"] is True
    (match,) = search(places, filled, "y = x", context=1)["matches"]
    assert (match["before"], match["after"]) == (["x = 2"], [""])


def test_a_long_pattern_and_a_long_glob(filled: Path, places: Places) -> None:
    """As arguments of a program the two would be too long."""
    told = search(places, filled, "\U0001f600" * 10_000, glob="\U0001f600" * 10_000)
    assert told["matches"] == []


def test_a_search_is_called_off_or_given_up(filled: Path, places: Places) -> None:
    (filled / "a.py").write_text("a" * 60)
    given = {"pattern": "(a+)+$b", "cwd": str(filled)}
    with pytest.raises(ToolError, match="called off"):
        search_files(places, given, 20.0, lambda: True)
    with pytest.raises(ToolError, match="took longer"):
        search_files(places, given, 0.2, lambda: False)
