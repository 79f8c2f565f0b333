"""Signatures: DSSE envelopes around a statement, and seals on the steps of an archive's history."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..record.finding import Finding
from ..record.record_files import canonical
from . import strict_json
from .strict_json import brief
from .trust import Trust, Trusted, short

ATTESTATION = "attestation.json"
PAYLOAD = f"{ATTESTATION} payload"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
_KEYS = {"payload", "payloadType", "signatures"}


class Signer(Protocol):
    @property
    def id(self) -> str: ...

    def sign(self, data: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """What an envelope holds. `findings` says whether it may be believed."""

    findings: tuple[Finding, ...]
    payload: dict[str, Any] | None = None
    key: str = ""


def envelope(statement: Mapping[str, Any], key: Signer) -> bytes:
    """The statement, signed."""
    payload = canonical(statement)
    signature = key.sign(pae(PAYLOAD_TYPE, payload))
    return _written(
        {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": key.id, "sig": base64.b64encode(signature).decode()}],
        }
    )


def _written(envelope: Mapping[str, Any]) -> bytes:
    return json.dumps(envelope).encode() + b"\n"


def pae(kind: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: what is signed is the payload together with its type."""
    return b"DSSEv1 %d %b %d %b" % (len(kind.encode()), kind.encode(), len(payload), payload)


def opened(data: bytes, trust: Trust) -> Opened:
    """The payload is given also where the signature fails: what differs is worth knowing anyway."""
    found: list[Finding] = []

    def wrong(what: str, code: str = "envelope", where: str = ATTESTATION) -> None:
        found.append(Finding(where, what, code))

    told = loaded(data, ATTESTATION, found)
    if told is None:
        return Opened(tuple(found))
    for key in sorted(told.keys() - _KEYS):
        wrong(f"{brief(key)} does not belong in an envelope")
    for key in sorted(_KEYS - told.keys()):
        wrong(f"{key} is missing")
    kind = told.get("payloadType")
    if kind != PAYLOAD_TYPE:
        wrong(f"payloadType is {brief(kind)}, not {PAYLOAD_TYPE}")
    payload = _base64(told.get("payload"))
    id_, signature = _one_signature(told.get("signatures", []), wrong)
    if not found and data != _written(told):
        wrong("it is not written as it was: spaces, escapes or the order differ")
    if payload is None:
        wrong("its payload is not the base64 that was written")
        return Opened(tuple(found), None, id_)
    if signature is not None:
        signer = trust.keys.get(id_)
        if signer is None:
            wrong(unknown(id_, trust), "key")
        elif not signer.verify(pae(str(kind), payload), signature):
            wrong(f"the signature is not that of {named(signer)} on this text", "signature")
    return Opened(tuple(found), loaded(payload, PAYLOAD, found), id_)


def loaded(data: bytes, name: str, found: list[Finding]) -> dict[str, Any] | None:
    """The JSON object in a file; what is wrong with it goes to `found`."""
    try:
        value = strict_json.loads(data)
    except ValueError as error:
        found.append(Finding(name, str(error), "form"))
        return None
    if not isinstance(value, dict):
        found.append(Finding(name, f"it holds {brief(value)}, not an object", "form"))
        return None
    return value


def _one_signature(signatures: Any, wrong: Callable[[str], None]) -> tuple[str, bytes | None]:
    if not isinstance(signatures, list):
        wrong(f"signatures is {brief(signatures)}")
        return "", None
    if len(signatures) != 1:
        wrong(f"it has {len(signatures)} signatures, not one" if signatures else "it is not signed")
        return "", None
    one = signatures[0]
    if not isinstance(one, dict) or one.keys() != {"keyid", "sig"}:
        wrong("its signature is not a keyid and a sig")
        return "", None
    id_, signature = one["keyid"], _base64(one["sig"])
    if not isinstance(id_, str):
        wrong(f"keyid is {brief(id_)}")
        return "", None
    if signature is None:
        wrong("its signature is not the base64 that was written")
    return id_, signature


def _base64(text: Any) -> bytes | None:
    """Only the one way to write it: nothing hides in padding, line breaks and spare bits."""
    if not isinstance(text, str):
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None


def named(key: Trusted) -> str:
    return f"{key.name} ({short(key.id)})"


def unknown(id_: str, trust: Trust) -> str:
    where = "one of this machine's own keys" if trust.own else f"in {trust.where}"
    told = f"unknown key {brief(short(id_))[1:-1] or '(none)'}: it is not {where}"
    return f"{told}; if you know whose it is: quire key trust KEY --name NAME"


def seal(data: bytes, key: Signer) -> str:
    """`<key id>:<base64 of the signature>`, for a step of the archive's history."""
    return f"{key.id}:{base64.b64encode(key.sign(_sealing(data))).decode()}"


def _sealing(data: bytes) -> bytes:
    """The prefix keeps seals apart from attestations: neither can be taken for the other."""
    return b"quire seal v1\n" + data


def check_seal(data: bytes, sealed: str, trust: Trust, at: str = "") -> list[Finding]:
    """`at` is when the sealed run ended: a key that was over by then cannot have sealed it."""
    id_, _, text = sealed.partition(":")
    signature = _base64(text)
    signer = trust.keys.get(id_)
    if not sealed:
        return [Finding("seal", "there is none", "seal")]
    if signature is None:
        return [Finding("seal", f"{brief(sealed)} is not a seal", "seal")]
    if signer is None:
        return [Finding("seal", unknown(id_, trust), "key")]
    if not signer.verify(_sealing(data), signature):
        return [Finding("seal", f"that of {named(signer)} does not fit what is there", "seal")]
    # Who joined later may seal what ran before: it is the end of a key that counts.
    why = replace(signer, since="").objection(at) if at else ""
    return [Finding("seal", f"the key {named(signer)} {why}", "key")] if why else []
