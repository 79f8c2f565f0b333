"""Keys: made once whoever asks first, kept for their owner alone, ended without a gap."""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quire.errors import ConfigError, QuireError, StorageError, UsageError
from quire.proof.key_store import FILE, Key, Keys, folder, own
from quire.proof.trust import Trusted, parse, public_key

NOW = datetime(2026, 11, 16, 15, 55, 1, 250000, tzinfo=UTC)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"QUIRE_KEYS": str(tmp_path / "keys")}


@pytest.fixture
def keys(tmp_path: Path, env: dict[str, str]) -> Keys:
    (tmp_path / "repo").mkdir()
    return Keys(env, tmp_path / "repo", lambda: NOW, tracked=True)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# One's own key


def test_the_key_is_made_on_first_use_for_its_owner_alone(keys: Keys, env: dict[str, str]) -> None:
    before = os.umask(0)
    try:
        made = keys.own()
    finally:
        os.umask(before)
    assert (mode(keys.path), mode(keys.path.parent)) == (0o600, 0o700)
    assert own(env).id == made.id == keys.own().id
    assert os.listdir(keys.path.parent) == [FILE]
    assert made.id == Trusted(made.public, "x").id
    assert Trusted(made.public, "x").verify(b"text", made.sign(b"text"))
    assert not Trusted(made.public, "x").verify(b"test", made.sign(b"text"))


def test_the_private_half_does_not_show() -> None:
    key = Key(b"s" * 32)
    shown = f"{key!r} {key.public} {key.id}"
    assert "ssss" not in shown
    assert base64.b64encode(b"s" * 32).decode() not in shown


def _made(env: dict[str, str], start: object) -> str:
    start.wait()  # type: ignore[attr-defined]
    return own(env).id


def test_many_processes_at_once_make_one_key(env: dict[str, str]) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(8)
    told = context.SimpleQueue()
    workers = [
        context.Process(target=lambda: told.put(_made(env, barrier)), daemon=True) for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    found = {told.get() for _ in workers}
    for worker in workers:
        worker.join(20)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("env", "wanted"),
    [
        ({"QUIRE_KEYS": "/k", "HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/k"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/quire/keys"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config/quire/keys"),
        ({"HOME": "/h"}, "/h/.config/quire/keys"),
    ],
)
def test_where_keys_are_kept(env: dict[str, str], wanted: str) -> None:
    assert folder(env) == Path(wanted)


@pytest.mark.parametrize("env", [{}, {"QUIRE_KEYS": "keys"}, {"HOME": "relative"}])
def test_without_a_place_for_keys_the_next_step_is_said(env: dict[str, str]) -> None:
    with pytest.raises(UsageError) as error:
        folder(env)
    assert error.value.hint


def test_a_key_that_others_can_read_is_refused(keys: Keys) -> None:
    keys.own()
    keys.path.chmod(0o640)
    with pytest.raises(UsageError, match="others can read") as error:
        keys.own()
    assert error.value.hint == f"chmod 0600 {keys.path}"
    keys.path.chmod(0o600)
    keys.path.parent.chmod(0o770)
    with pytest.raises(UsageError, match="others can write to") as error:
        keys.own()
    assert error.value.hint == f"chmod 0700 {keys.path.parent}"


def test_a_link_is_not_followed(keys: Keys, tmp_path: Path) -> None:
    keys.own()
    elsewhere = keys.path.rename(tmp_path / "elsewhere")
    keys.path.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="cannot read the key"):
        keys.own()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', "\x00", '{"private": 1}'])
def test_a_damaged_key_is_not_replaced(keys: Keys, text: str) -> None:
    keys.own()
    keys.path.write_text(text)
    with pytest.raises(StorageError, match="damaged"):
        keys.own()
    assert keys.path.read_text() == text


def test_keys_do_not_lie_in_the_repository(tmp_path: Path) -> None:
    inside = tmp_path / "repo" / "keys"
    with pytest.raises(UsageError, match="inside the repository"):
        Keys({"QUIRE_KEYS": str(inside)}, tmp_path / "repo", tracked=True).own()
    assert not inside.exists()


# Rotation


def test_an_ended_key_verifies_and_signs_no_more(keys: Keys) -> None:
    old = keys.own()
    held = keys.rotate()
    assert keys.own().id == held.key.id != old.id
    trust = keys.own_trust()
    assert trust.own
    assert trust.keys[old.id].until == "2026-11-16T15:55:01.250000Z"
    assert trust.keys[held.key.id].until == ""
    assert base64.b64encode(old.seed).decode() not in keys.path.read_text()
    assert mode(keys.path) == 0o600


def test_rotation_before_the_first_use_just_makes_a_key(keys: Keys) -> None:
    assert keys.rotate().ended == ()
    assert len(keys.own_trust().keys) == 1


def test_rotation_brings_the_list_with_it(keys: Keys) -> None:
    old, bob = keys.own(), Key(b"b" * 32)
    keys.list_path.write_text(
        f"# people\ned25519 {old.public} ada  # her laptop\ned25519 {bob.public} bob\n"
    )
    new = keys.rotate().key
    assert keys.list_path.read_text() == (
        "# people\n"
        f"ed25519 {old.public} ada until=2026-11-16T15:55:01.250000Z  # her laptop\n"
        f"ed25519 {bob.public} bob\n"
        f"ed25519 {new.public} ada\n"
    )


def test_rotation_adds_nothing_to_a_list_without_the_old_key(keys: Keys) -> None:
    keys.own()
    text = f"ed25519 {Key(b'b' * 32).public} bob\n"
    keys.list_path.write_text(text)
    keys.rotate()
    assert keys.list_path.read_text() == text


def test_with_a_list_that_cannot_be_read_nothing_is_rotated(keys: Keys) -> None:
    old = keys.own()
    keys.list_path.write_text("what is this\n")
    with pytest.raises(ConfigError, match=r"\.quire-keys:1: this is not a key"):
        keys.rotate()
    assert keys.own().id == old.id


def test_whoever_reads_a_key_reads_one_that_counts(keys: Keys) -> None:
    """Between reading and rotating: what is signed is by a key that has not ended before."""
    clock = iter(range(1, 100_000))
    keys.now = lambda: NOW.replace(microsecond=next(clock))

    def sign() -> tuple[str, datetime]:
        finished = keys.now()  # a run ends first, then its key is read
        return keys.own().id, finished

    with ThreadPoolExecutor(4) as pool:
        signing = [pool.submit(sign) for _ in range(40)]
        turning = [pool.submit(keys.rotate) for _ in range(5)]
        for turn in turning:
            turn.result(30)
        done = [one.result(30) for one in signing]
    trust = keys.own_trust()
    assert [trust.keys[id_].objection(at.isoformat()) for id_, at in done] == [""] * 40


# The list


ADA, BOB = Key(b"a" * 32).public, Key(b"b" * 32).public


def test_the_list() -> None:
    trust = parse(
        f"# who\n\ned25519 {ADA} ada@example.org since=2026-01-01T00:00:00Z # x\r\n"
        f"  ed25519 {BOB} böb until=2027-01-01T00:00:00+01:00".encode()
    )
    assert [(k.name, k.since, k.until) for k in trust.keys.values()] == [
        ("ada@example.org", "2026-01-01T00:00:00Z", ""),
        ("böb", "", "2027-01-01T00:00:00+01:00"),
    ]
    for key in trust.keys.values():
        assert parse(key.line().encode()).keys == {key.id: key}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("hello", "this is not a key"),
        (f"rsa {ADA} ada", "this is not a key"),
        (f"ed25519 {ADA}", "this is not a key"),
        ("ed25519 AAAA ada", "is not the base64 of 32 bytes"),
        (f"ed25519 {ADA[:-1]} ada", "is not base64"),
        (f"ed25519 {ADA[:-2]}1= ada", "is not the base64 of 32 bytes"),
        (f"ed25519 {ADA} a/b", "cannot be the name of a key"),
        (f"ed25519 {ADA} a\x1b[31m", "cannot be the name of a key"),
        (f"ed25519 {ADA} ada bob", "'bob' has no place here"),
        (f"ed25519 {ADA} ada until=soon", "'soon' is not a time with its zone"),
        (f"ed25519 {ADA} ada until=2027-01-01", "is not a time with its zone"),
        (f"ed25519 {ADA} ada until=2027-13-01T00:00:00Z", "is not a time with its zone"),
        (f"ed25519 {ADA} ada until=2027-01-01T00:00:00Z until=", "has no place here"),
        (
            f"ed25519 {ADA} ada since=2027-01-01T00:00:00Z until=2026-01-01T00:00:00Z",
            "ends before it begins",
        ),
        (f"ed25519 {BOB} again", "the key of line 1 again"),
        ("\udcff", "this is not UTF-8 text"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, wanted: str) -> None:
    data = f"ed25519 {BOB} bob\n# fine\n{line}\n".encode("utf-8", "surrogateescape")
    with pytest.raises(ConfigError, match=r"^\.quire-keys:3: ") as error:
        parse(data)
    assert wanted in error.value.message
    assert error.value.hint


def test_points_under_which_anybody_can_sign_are_no_keys() -> None:
    """Under such a key this signature fits every text, and nobody needs a private half."""
    weak = base64.b64encode(b"\x01" + bytes(31)).decode()
    anybody = b"\x01" + bytes(63)
    assert Trusted(weak, "x").verify(b"whatever", anybody)
    assert Trusted(weak, "x").verify(b"or this", anybody)
    for point in (weak, base64.b64encode(b"\x01" + bytes(30) + b"\x80").decode()):
        with pytest.raises(UsageError, match="anybody can sign"):
            public_key(point)


def test_adding_keeps_what_is_there_and_is_all_or_nothing(keys: Keys) -> None:
    keys.list_path.write_text(f"# mine\ned25519 {ADA} ada")
    keys.list_path.chmod(0o664)
    keys.trust(Trusted(BOB, "bob", until="2027-01-01T00:00:00Z"))
    text = keys.list_path.read_text()
    assert text == f"# mine\ned25519 {ADA} ada\ned25519 {BOB} bob until=2027-01-01T00:00:00Z\n"
    assert mode(keys.list_path) == 0o664
    with pytest.raises(QuireError):
        keys.trust(Trusted(Key(b"c" * 32).public, "eve"), Trusted(BOB, "bob"))
    assert keys.list_path.read_text() == text


def test_many_at_once_lose_no_line(keys: Keys) -> None:
    public = [Key(bytes([n]) * 32).public for n in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: keys.trust(Trusted(key, "x")), public))
    trust = keys.listed()
    assert trust is not None
    assert {key.public for key in trust.keys.values()} == set(public)


def test_a_list_that_is_a_link_is_refused(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(f"ed25519 {ADA} ada\n")
    keys.list_path.symlink_to(tmp_path / "other")
    with pytest.raises(UsageError, match="cannot read the list"):
        keys.listed()


def test_the_library_is_loaded_only_to_sign() -> None:
    code = "import quire.proof.key_store, quire.proof.attestation, sys\n"
    code += "print('cryptography' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_file_says_what_it_is(keys: Keys) -> None:
    keys.own()
    keys.rotate()
    told = json.loads(keys.path.read_bytes())
    assert told.keys() == {"format", "private", "made", "ended"}
    assert told["ended"][0].keys() == {"public", "until"}
