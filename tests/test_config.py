from __future__ import annotations

from dataclasses import Field, fields, replace
from pathlib import Path

import pytest

from quire.config import Archive, Config, Forge, Model, Tools, parse, read
from quire.errors import ConfigError

# What a key of each type may hold: in TOML, and in Python.
SAMPLES = {
    "tuple[str, ...]": ('["pandas", "MY_*"]', ("pandas", "MY_*")),
    "str": ('"ir"', "ir"),
    "int": ("3", 3),
    "float": ("600.5", 600.5),
    "float | None": ("60", 60),
    "bool": ("true", True),
    "Archive": ('{branch = "runs", push = true}', Archive(branch="runs", push=True)),
    "Forge": ('{kind = "local"}', Forge(kind="local")),
    "Mode": ('"allow"', "allow"),
    "Tools": ('{terminal = "ask", calls = 5}', Tools(terminal="ask", calls=5)),
    "Model": ('{model = "small"}', Model(model="small")),
}
# Keys that take a few words only.
CHOICES: dict[str, tuple[str, object]] = {"approval": ('"skip"', "skip")}
# Texts of `tools` that have to make sense.
RULES: dict[str, tuple[str, object]] = {
    "search_url": ('"http://[::1]:8888/?q={query}"', "http://[::1]:8888/?q={query}"),
    "extract_url": ('"https://x.example/{url}"', "https://x.example/{url}"),
    "search_command": ('"find {query}"', "find {query}"),
    "extract_command": ('"read {url}"', "read {url}"),
    "read_roots": ('["~/x", "../y"]', ("~/x", "../y")),
    "write_roots": ('["~", "/"]', ("~", "/")),
    "commands": ('["git log *", "echo \'a b\'"]', ("git log *", "echo 'a b'")),
}


def test_a_word_that_is_no_choice_is_refused() -> None:
    with pytest.raises(ConfigError, match="approval must be one of pause, skip, fail, not 'ask'"):
        parse({"approval": "ask"}, "x")


def test_nothing_is_said() -> None:
    assert parse({}, "x") == Config()


@pytest.mark.parametrize("field", fields(Config), ids=lambda field: field.name)
def test_every_key(tmp_path: Path, field: Field[object]) -> None:
    text, value = CHOICES.get(field.name) or SAMPLES[str(field.type)]
    (tmp_path / "quire.toml").write_text(f"{field.name} = {text}\n")
    assert read(tmp_path) == replace(Config(), **{field.name: value})


@pytest.mark.parametrize("table", [Archive, Forge, Model, Tools], ids=lambda table: table.__name__)
def test_every_key_of_a_table(tmp_path: Path, table: type[Archive | Forge | Model | Tools]) -> None:
    name = table.__name__.lower()
    for field in fields(table):
        text, value = RULES.get(field.name) or SAMPLES[str(field.type)]
        (tmp_path / "quire.toml").write_text(f"[{name}]\n{field.name} = {text}\n")
        assert getattr(read(tmp_path), name) == replace(table(), **{field.name: value})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("archive = 3", "archive must be a table"),
        ("[archive]\npush = 1", "archive: push must be true or false"),
        ("[archive]\nbrnch = 'x'", "archive: unknown key 'brnch'"),
        ("[forge]\nkind = true", "forge: kind must be a string"),
        ("[tools]\nterminal = 'yes'", "tools: terminal is 'yes'"),
        ("[tools]\nterminal = true", "tools: terminal is True"),
        ("[tools]\nunattended = 'ask'", "tools: unattended is 'ask'"),
        ("[tools]\ncalls = 0", "tools: calls must be a positive whole number"),
        ("[tools]\nterminl = 'deny'", "tools: unknown key 'terminl'"),
        # Each of these would keep nothing out, or let nothing be found, and say nothing of it.
        ('[tools]\nrefuse_commands = ["rm \'x"]', 'refuse_commands: "rm \'x" cannot be read'),
        ('[tools]\nrefuse_commands = [""]', "refuse_commands: '' is no command"),
        ('[tools]\ncommands = ["ls", " "]', "commands: ' ' is no command"),
        ('[tools]\nprotect = ["data/private"]', "protect: 'data/private' is not a name"),
        ('[tools]\nprotect = ["private/"]', "protect: 'private/' is not a name"),
        ('[tools]\nprotect = [""]', "protect: '' is not a name"),
        ('[tools]\nprotect = [" payroll"]', "protect: ' payroll' is not a name"),
        ('[tools]\nprotect = ["payroll\\n"]', "protect: .* is not a name"),
        ('[tools]\nprotect = [".."]', r"protect: '\.\.' is not a name"),
        ('[tools]\nrefuse_commands = ["rm;"]', "refuse_commands: 'rm;' has ';' in it"),
        ('[tools]\nrefuse_commands = ["a | sh"]', "refuse_commands: 'a | sh' has '|' in it"),
        ('[tools]\nrefuse_commands = ["FOO=1 rm"]', "refuse_commands: .* begins with a variable"),
        ('[tools]\ncommands = ["cd x && make"]', "commands: 'cd x && make' has '&' in it"),
        ("[tools]\nsearch_command = 'x'", r"search_command: 'x' has no \{query\} in it"),
        ("[tools]\nextract_command = 'x'", r"extract_command: 'x' has no \{url\} in it"),
        ('[tools]\nread_roots = ["$HOME/x"]', r"read_roots: '\$HOME/x' has a variable in it"),
        ('[tools]\nwrite_roots = ["a/${B}"]', r"write_roots: 'a/\$\{B\}' has a variable in it"),
        ('[tools]\nread_roots = ["~bob/x"]', "read_roots: '~bob/x' begins with a ~ of somebody"),
        ('[tools]\nread_roots = [""]', "read_roots: '' is not a folder"),
        ('[tools]\nread_roots = ["x "]', "read_roots: 'x ' is not a folder"),
        ('[tools]\nread_roots = ["data/*"]', r"read_roots: 'data/\*' has a \* in it"),
        ('[tools]\nprivate_hosts = ["http://a.example"]', "private_hosts: 'http://a.example' is"),
        ('[tools]\nsearch_command = "find \'x"', "search_command: .* cannot be read"),
        ("[tools]\nextract_command = ' '", "extract_command: ' ' is no command"),
        ("[tools]\nsearch_url = '127.0.0.1:8888'", "search_url: '127.0.0.1:8888' is no http"),
        ("[tools]\nsearch_url = 'http://[::1'", "search_url: .* is no http"),
        ("[tools]\nsearch_url = 'http://x:99999'", "search_url: .* is no http"),
        ("[tools]\nextract_url = 'https://r.example/'", r"extract_url: .* has no \{url\} in it"),
        (
            "[tools]\nsearch_url = 'http://x/'\nsearch_command = 'x {query}'",
            "tools: both search_url and search_command are set",
        ),
    ],
)
def test_a_table_that_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "quire.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        read(tmp_path)


def test_what_a_shell_would_need_may_stand_in_quotes(tmp_path: Path) -> None:
    text = """[tools]
commands = ["echo ';'", 'echo "a|b" *', 'printf \\$ [ab]', "git log --format=%h"]
refuse_commands = ["git * --output*", "* 'a && b'"]
read_roots = ["~", "~/", "~/x", "/", ".", "../cash$", "a b"]
protect = ["payroll*", "[x]y", ".hidden", "..."]
"""
    (tmp_path / "quire.toml").write_text(text)
    assert len(read(tmp_path).tools.commands) == 4


def test_a_table_in_pyproject(tmp_path: Path) -> None:
    assert read(tmp_path) == Config()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert read(tmp_path) == Config()
    (tmp_path / "pyproject.toml").write_text("[tool.quire]\ndepth = 2\n")
    assert read(tmp_path).depth == 2
    (tmp_path / "quire.toml").write_text("depth = 5\n")
    assert read(tmp_path).depth == 5


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("preloaded = []", "unknown key 'preloaded'", "did you mean 'preload'?"),
        ("zzz = 1", "unknown key 'zzz'", "known keys: preload"),
        ("preload = 'pandas'", "preload must be a list of strings", 'preload = ["a", "b"]'),
        ("mask = [1]", "mask must be a list of strings", "mask"),
        ("python = 3", "python must be a string", "python"),
        ("timeout = 0", "timeout must be a positive number", "timeout = 60"),
        ("timeout = -1", "timeout must be a positive number", ""),
        ("timeout = true", "timeout must be a positive number", ""),
        ("timeout = '5'", "timeout must be a positive number", ""),
        ("timeout = nan", "timeout must be a positive number", ""),
        ("depth = 1.5", "depth must be a positive whole number", ""),
        ("depth = ", "is not valid TOML", ""),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str, hint: str) -> None:
    (tmp_path / "quire.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(tmp_path)
    assert said in caught.value.message
    assert str(tmp_path / "quire.toml") in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.hint


@pytest.mark.parametrize("text", ["tool = 3", "tool = []", "[tool]\nother = 1"])
def test_somebody_elses_pyproject_may_hold_anything(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert read(tmp_path) == Config()


def test_our_own_table_must_be_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nquire = 3")
    with pytest.raises(ConfigError, match=r"tool\.quire must be a table"):
        read(tmp_path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read(tmp_path)
    (tmp_path / "quire.toml").unlink()
    (tmp_path / "quire.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot read"):
        read(tmp_path)
