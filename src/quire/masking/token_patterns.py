"""Texts that are secrets by their look: the tokens of well-known services, keys, passwords in URLs.

A shape is found by one of its literals and judged by its pattern, within `bound` characters. All
patterns are greedy and stop at the first character outside `run`, so that a stream can tell from
`run` alone whether more text may change the judgement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_ALNUM = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_WORD = _ALNUM | frozenset("_-")
# What may stand before a token and only looks like a part of it: escapes, ANSI colours.
_ESCAPE_BEFORE = re.compile(
    r"(?:\\[nrtbfv]|%[0-9A-Fa-f]{2}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}"
    r"|(?:\x1b|\\x1b|\\033|\\u001b|\\e)\[[0-9;]{0,12}m)\Z"
)
_ESCAPE_LENGTH = 24

_WORDS = r"[A-Za-z0-9_.-]*"
_CRED = r"[A-Za-z0-9._~+/=:-]"
_QUOTES = r"[\"'\\]{0,4}"
_AUTHORITY = r"[^\s/?#\"'<>`\\]"
_AWS_NAME = (
    r"(?:secret[_-]access[_-]key|SECRET_ACCESS_KEY|ecretAccessKey|aws_secret_key|AWS_SECRET_KEY)"
)
_PEM_GAP = r"(?:[\s\"',]|\\+[nrt])"
_PEM_FIELD = r"[A-Z][A-Za-z-]{2,20}: [^\n\\]{0,200}(?:\n|\\+[nr])"


@dataclass(frozen=True)
class Shape:
    label: str
    literals: tuple[str, ...]
    # Matched at the literal. The group `secret`, where there is one, is what is hidden.
    source: str
    # What a beginning of a match may look like, from the literal on.
    run_source: str = _WORDS
    # What goes on being hidden behind `bound`.
    rest_source: str = _WORDS
    bound: int = 512
    not_after: frozenset[str] = frozenset()

    # Compiled on first use: most runs never see a token.
    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)

    @cached_property
    def run(self) -> re.Pattern[str]:
        return re.compile(self.run_source)

    @cached_property
    def run_is_uniform(self) -> bool:
        """Whether every part of a run is one: then a run is measured once for all tokens in it."""
        return re.fullmatch(r"\[[^]]*\]\*", self.run_source) is not None

    @cached_property
    def rest(self) -> re.Pattern[str]:
        return re.compile(self.rest_source)

    def may_start(self, text: str, at: int) -> bool:
        if not at or text[at - 1] not in self.not_after:
            return True
        return _ESCAPE_BEFORE.search(text, max(0, at - _ESCAPE_LENGTH), at) is not None


SHAPES = (
    Shape(
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"gh[pousr]_[A-Za-z0-9]{36}[A-Za-z0-9_.-]*(?<![.-])|github_pat_[A-Za-z0-9_]{30,}",
    ),
    Shape(
        "gitlab-token",
        (
            *("glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-"),
            *("glagent-", "gloas-", "glsoat-", "glffct-", "glwt-", "GR1348941"),
        ),
        r"gl[a-z]{2,5}-(?=[A-Za-z_-]*[0-9A-Z])[A-Za-z0-9_-]{20}[A-Za-z0-9_.-]*(?<!\.)"
        r"|GR1348941[A-Za-z0-9_-]{20,}",
        not_after=_ALNUM,
    ),
    Shape(
        "aws-access-key-id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"A[KSBC][IC]A[A-Z0-9]{16,}",
        not_after=_ALNUM,
    ),
    Shape(
        "aws-secret-key",
        (
            "secret_access_key",
            "SECRET_ACCESS_KEY",
            "ecretAccessKey",
            "secret-access-key",
            "aws_secret_key",
            "AWS_SECRET_KEY",
        ),
        rf"{_AWS_NAME}{_QUOTES}[ \t]{{0,8}}(?:=>|[:=]){{1,2}}[ \t]{{0,8}}{_QUOTES}"
        r"(?P<secret>[A-Za-z0-9/+]{40,})",
        run_source=rf"{_AWS_NAME}(?:[ \t\"'\\:=>]+[A-Za-z0-9/+]*)?",
        rest_source=r"[A-Za-z0-9/+]*",
    ),
    Shape("google-api-key", ("AIza",), r"AIza[A-Za-z0-9_-]{35,}", not_after=_ALNUM | {"+"}),
    Shape("google-oauth-token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20}[A-Za-z0-9_.-]*(?<!\.)"),
    Shape("google-client-secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    Shape(
        "api-key",
        ("sk-",),
        r"sk-(?:(?:proj|svcacct|admin|None|ant-[a-z]{3,8}[0-9]{0,3}|ant|or-v[0-9]|lf)"
        r"-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24}[A-Za-z0-9_-]*)",
        not_after=_WORD,
    ),
    Shape(
        "slack-token",
        (
            *("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
            *("xoxe.xox", "xapp-"),
        ),
        r"(?:xox[a-z]|xapp|xoxe\.xox[a-z])-(?:[0-9]|[A-Za-z0-9%]{20})[A-Za-z0-9%-]{10,}",
        run_source=r"[A-Za-z0-9.%-]*",
        rest_source=r"[A-Za-z0-9.%-]*",
    ),
    Shape(
        "slack-webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9/_-]{20,})",
        run_source=r"[A-Za-z0-9/._-]*",
        rest_source=r"[A-Za-z0-9/_-]*",
    ),
    Shape("npm-token", ("npm_",), r"npm_[A-Za-z0-9]{36,}"),
    Shape("pypi-token", ("pypi-AgE",), r"pypi-[A-Za-z0-9_-]{50,}", not_after=_ALNUM),
    Shape("huggingface-token", ("hf_",), r"hf_[A-Za-z0-9]{30,}", not_after=_ALNUM),
    Shape(
        "stripe-key",
        ("sk_live_", "rk_live_"),
        r"[sr]k_live_[A-Za-z0-9]{16,}",
        not_after=_ALNUM,
    ),
    Shape(
        "jwt",
        ("eyJ",),
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)*"
        # The five parts of an encrypted one, of which the second may be empty.
        r"|eyJ[A-Za-z0-9_-]{8,}\.\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        bound=8192,
        not_after=_WORD,
    ),
    Shape(
        "private-key",
        ("-----BEGIN ",),
        r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        rf"{_PEM_GAP}*(?:{_PEM_FIELD}{_PEM_GAP}*){{0,6}}[A-Za-z0-9+/=]{{40,}}"
        r"(?:[A-Za-z0-9+/=\s\"',]+|\\+[nrt])*"
        r"(?:-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?",
        run_source=r"-----BEGIN[A-Z0-9 ]{0,60}(?:(?<=PRIVATE KEY|E KEY BLOCK)-{1,5}"
        rf"{_PEM_GAP}*(?:{_PEM_FIELD}{_PEM_GAP}*){{0,6}}"
        r"(?:[A-Z][A-Za-z-]{2,20}(?::[^\n\\]{0,201}\\*)?\Z)?[A-Za-z0-9+/=\s\"',\\]*"
        r"(?:-{1,5}(?:E(?:N(?:D[A-Z0-9 ]{0,60}-{0,5})?)?)?)?)?",
        rest_source=r"[A-Za-z0-9+/=\s\"',\\]*",
        bound=16384,
    ),
    Shape(
        "authorization",
        ("uthorization", "UTHORIZATION"),
        rf"(?i:uthorization){_QUOTES}[ \t]{{0,4}}[:=,][ \t]{{0,4}}b?{_QUOTES}"
        rf"(?i:bearer|basic|token|bot|apikey) {{1,4}}"
        rf"(?P<secret>(?:(?={_CRED}*?(?:[0-9=]|[a-z][A-Z])){_CRED}{{8}}|{_CRED}{{24}}){_CRED}*)",
        run_source=r"(?i:uthorization)(?:[ \t\"'\\:=,]+b?[\"'\\]*[A-Za-z]{0,10}"
        rf"(?: +{_CRED}*)?)?",
        rest_source=rf"{_CRED}*",
        bound=8192,
    ),
    Shape(
        "bearer-token",
        ("Bearer ", "BEARER "),
        rf"(?:Bearer|BEARER) {{1,4}}(?P<secret>(?={_CRED}*?[0-9]){_CRED}{{20,}})",
        run_source=rf"(?:Bearer|BEARER) +{_CRED}*",
        rest_source=rf"{_CRED}*",
        bound=8192,
    ),
    Shape(
        "url-password",
        ("://",),
        r"://(?:\[masked:[^\s\]]{1,96}\]|(?!\[masked:)[^\s/?#\"'<>`\\:@]){0,128}:"
        # Placeholders, and what is masked already.
        rf"(?!\$\{{|\$[A-Z_]+@|\{{|%s|\*+@|{_AUTHORITY}*?\[masked:)"
        # An image reference (name:tag@digest) reads the same.
        rf"(?P<secret>{_AUTHORITY}+)@(?!sha(?:256|512):)",
        run_source=rf"://(?:{_AUTHORITY})*",
        rest_source="",
    ),
)
