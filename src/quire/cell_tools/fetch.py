"""Fetches one page over HTTP; run by `deadline_process.py`, which ends it when it takes too long.

The host's name is looked up once, every address is judged, and the connection goes to an address
that was judged. Each redirect is judged again.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin

from ..errors import QuireError, Refused, ToolError
from .web_addresses import Lookup, Target, resolve, target

if TYPE_CHECKING:
    import httpx2

REDIRECTS = 5
ACCEPT = "text/html, text/plain, application/json;q=0.9, */*;q=0.1"
_MOVED = (301, 302, 303, 307, 308)
_HEAD = 1024  # bytes in which a page says what it is, as in browsers
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_META = re.compile(rb"""<meta\s[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
# Decoding these takes a time that grows with the square, or hides text from who reads the bytes.
_NO_CHARSET = re.compile(r"utf.?7|idna|punycode|.*escape", re.IGNORECASE)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    known: Mapping[str, Sequence[str]] = request["addresses"]

    def lookup(host: str, port: int) -> Sequence[str]:
        return known.get(host) or resolve(host, port)

    try:
        limit, seconds = request["limit"], request["seconds"]
        page = fetch(request["url"], request["private"], limit, seconds, lookup)
        if request["read"] and "html" in page["kind"]:
            page["title"], page["text"] = page_text(page["text"], page["url"])
        return page
    except QuireError as error:
        return {"error": error.message, "hint": error.hint, "refused": isinstance(error, Refused)}


def fetch(
    url: str, private: Sequence[str], limit: int, seconds: float, lookup: Lookup = resolve
) -> dict[str, Any]:
    """`text` and `kind` of a page, its `url` in the end, and whether it was `cut` at the limit."""
    import ssl

    import httpx2

    context = ssl.create_default_context()
    for _ in range(REDIRECTS + 1):
        found = target(url, private, lookup)
        with httpx2.Client(
            verify=context, trust_env=False, timeout=min(seconds, 3_600.0)
        ) as client:
            try:
                response = _asked(client, found)
                moved = response.headers.get("location") if response.status_code in _MOVED else None
                if moved is None:
                    return _page(response, url, limit)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise ToolError(f"{url}: {error}", hint="check the address") from error
        try:
            url = urljoin(url, quote(moved.strip(), safe=string.punctuation))
        except ValueError as error:
            raise ToolError(f"{url} leads to what is no URL: {error}") from None
    raise Refused(f"{url} leads on more than {REDIRECTS} times")


def _asked(client: httpx2.Client, found: Target) -> httpx2.Response:
    """From the first address that answers."""
    import httpx2

    headers = {"Host": found.named, "User-Agent": "quire", "Accept": ACCEPT}
    for at, address in enumerate(found.addresses, 1):
        host = f"[{address}]" if ":" in address else address
        request = client.build_request(
            "GET",
            f"{found.url.scheme}://{host}:{found.port}{found.path}",
            headers={**headers, "Accept-Encoding": "identity"},
            extensions={"sni_hostname": found.host},  # the certificate is that of the name
        )
        try:
            return client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if at == len(found.addresses):
                raise
    raise AssertionError("a target has an address")


def _page(response: httpx2.Response, url: str, limit: int) -> dict[str, Any]:
    if response.status_code != 200:
        raise ToolError(f"{url} answered {response.status_code} {response.reason_phrase}")
    said = response.headers.get("content-type", "")
    kind = said.partition(";")[0].strip().lower()
    if kind and not (kind.startswith("text/") or kind.endswith(("json", "xml"))):
        raise ToolError(f"{url} is {kind}, not a text", hint="fetch it in Python")
    data = bytearray()
    for piece in response.iter_bytes():
        data += piece
        if len(data) > limit:
            break
    page = bytes(data[:limit])
    if not kind:
        kind = "text/html" if _HTML.match(page[:_HEAD]) else "text/plain"
    text = _decoded(page, response.charset_encoding, kind)
    if "\0" in text[:_HEAD]:
        raise ToolError(f"{url} is not a text", hint="fetch it in Python")
    cut = len(data) > limit
    return {"url": url, "title": "", "text": text, "kind": kind, "cut": cut}


def _decoded(data: bytes, named: str | None, kind: str) -> str:
    """By the mark at its beginning, what the server says, what the page says; in that order."""
    mark = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if not (mark or named) and "html" in kind and (said := _META.search(data[:_HEAD])):
        named = said[1].decode("ascii")
        # What is written in UTF-16 cannot say so in ASCII.
        named = "utf-8" if named.lower().startswith("utf-16") else named
    name = mark or named or "utf-8"
    if _NO_CHARSET.fullmatch(name):
        name = "utf-8"
    try:
        text = data.decode(name, "replace")
    except (LookupError, ValueError):
        text = data.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def page_text(html: str, url: str) -> tuple[str, str]:
    """The title of a page, and what a person reads of it, as Markdown."""
    try:
        import lxml.etree
        import lxml.html
        import trafilatura
        from trafilatura.settings import use_config
    except ImportError:
        raise ToolError(
            "reading pages of HTML is not set up",
            hint="pip install trafilatura where Quire is installed, or set extract_url or"
            " extract_command under [tools]",
        ) from None
    try:
        tree = lxml.html.document_fromstring(html.encode(), lxml.html.HTMLParser(encoding="utf-8"))
    except lxml.etree.ParserError:  # there is nothing in it
        return "", ""
    title = " ".join((tree.findtext(".//title") or "").split())
    plain = trafilatura.html2txt(tree)
    settings = use_config()
    for least in ("MIN_EXTRACTED_SIZE", "MIN_OUTPUT_SIZE"):
        settings["DEFAULT"][least] = "1"  # a short page is a page too
    text = trafilatura.extract(
        tree,
        url=url,
        output_format="markdown",
        include_links=True,
        favor_recall=True,
        config=settings,
    )
    return title, text or plain
