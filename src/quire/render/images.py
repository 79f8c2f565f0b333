"""Images: the one in a MIME bundle, checked, and made small enough to be shown to a model."""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..record.events import Event, OutputAdded
from ..text import scrubbed, text_of

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from PIL.Image import Image

PIXELS = 60_000_000  # that are decoded at most
BYTES = 1_500_000  # of an image that is handed over

BEGINNING = 16  # characters, which a picture has more of than any magic number needs
# SVG first: it is sharp at every size. As an image it cannot run the scripts it may hold.
_MAGIC = {
    "image/svg+xml": b"",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


def picture(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """MIME type and base64 payload of the best picture, or None."""
    for mime, magic in _MAGIC.items():
        if mime in data:
            payload = _payload(mime, text_of(data[mime]), magic)
            if payload:
                return mime, payload
    return None


def raster(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """The same, but only of pixels: what a reader who sees images can be given. Checks only
    its beginning: `shrink` opens it."""
    for mime in ("image/png", "image/jpeg", "image/webp", "image/gif"):
        if mime in data:
            joined = "".join(text_of(data[mime]).split())
            if _checked_base64(joined[:BEGINNING], _MAGIC[mime]):
                return mime, joined
    return None


def data_uri(mime: str, payload: str) -> str:
    return f"data:{mime};base64,{payload}"


def checked(uri: str) -> str | None:
    """A data URI as it may stand in a page, or None if it is no picture."""
    head, comma, payload = uri.strip().partition(",")
    mime = head.removeprefix("data:").removesuffix(";base64").lower()
    if not comma or head != f"data:{mime};base64" or mime not in _MAGIC:
        return None
    found = _checked_base64(payload, _MAGIC[mime])
    return data_uri(mime, found) if found else None


def _payload(mime: str, text: str, magic: bytes) -> str:
    if mime == "image/svg+xml" and "<" in text:
        return base64.b64encode(scrubbed(text).encode()).decode()
    return _checked_base64(text, magic)


def _checked_base64(text: str, magic: bytes) -> str:
    """The payload without its line breaks; empty if it is not base64 of such a picture."""
    joined = "".join(text.split())
    try:
        raw = base64.b64decode(joined, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return joined if raw and raw.startswith(magic) else ""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """`payload` is base64; empty where there is nothing to show, and then `why` says so."""

    mime: str
    payload: str
    width: int
    height: int
    was: tuple[int, int]
    why: str = ""


def shrink(mime: str, payload: str, side: int) -> Shrunk:
    """The image itself where it is small enough, or a smaller one. Never raises for its data."""
    size = (0, 0)
    why = "it is broken"
    try:
        data = base64.b64decode(payload, validate=True)
        with _opened(mime, data) as image:
            # Known from the header: a small file that claims to be enormous is not decoded.
            size = image.size
            if size[0] * size[1] > PIXELS:
                raise _TooLarge
            if max(size) <= side and len(data) <= BYTES:
                # A model's API refuses the whole answer for one broken image.
                image.verify() if image.format == "PNG" else image.load()
                return Shrunk(mime, payload, *size, size)
            why = "it could not be read"
            small = _smaller(image, side)
        kind, made = _encoded(small, mime)
    except Exception as error:  # noqa: BLE001 - a decoder may fail in any way on foreign data
        if type(error).__name__ == "DecompressionBombError" or isinstance(error, _TooLarge):
            why = f"it has more than {PIXELS // 1_000_000} million pixels"
        return Shrunk(mime, "", 0, 0, size, why)
    return Shrunk(kind, base64.b64encode(made).decode(), *small.size, size)


class _TooLarge(Exception):
    pass


def _opened(mime: str, data: bytes) -> Image:
    import warnings

    from PIL import Image

    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # PIXELS is the limit
    return Image.open(io.BytesIO(data), formats=[mime.removeprefix("image/").upper()])


def _smaller(image: Image, side: int) -> Image:
    """On white, as a notebook shows it: some readers see black where an image is transparent."""
    from PIL import Image, ImageOps

    # A JPEG can be decoded at a fraction of its size: quicker, and it takes less memory.
    image.draft("RGB", (side, side))
    with contextlib.suppress(Exception):  # EXIF may be as broken as anything
        ImageOps.exif_transpose(image, in_place=True)
    if image.mode not in ("RGB", "L"):
        image = image.convert("RGBA")
        paper = Image.new("RGB", image.size, "white")
        paper.paste(image, mask=image.getchannel("A"))
        image = paper
    image.thumbnail((side, side), Image.Resampling.HAMMING, reducing_gap=1.0)
    return image


def _encoded(image: Image, mime: str) -> tuple[str, bytes]:
    """As JPEG, or as PNG with a palette, which keeps the few colours of a diagram crisp, where
    that is smaller."""
    from PIL.Image import Dither, Quantize

    jpeg, png = io.BytesIO(), io.BytesIO()
    image.save(jpeg, "JPEG", quality=85)
    if mime != "image/jpeg":
        image.quantize(256, method=Quantize.FASTOCTREE, dither=Dither.NONE).save(png, "PNG")
        if png.tell() <= jpeg.tell():
            return "image/png", png.getvalue()
    return "image/jpeg", jpeg.getvalue()


class Shrinker:
    """Makes pictures smaller while what shows them goes on, one after another, and each once.

    Called as `shrink` is, by who tells of them; that may be often, while a long cell runs.
    """

    def __init__(self, side: int, most: int) -> None:
        """Only `most` are begun ahead, and so many kept: no more are told of at once."""
        self._side = side
        self._left = most
        self._pool: ThreadPoolExecutor | None = None
        self._made: deque[tuple[str, str, int, Future[Shrunk]]] = deque(maxlen=most)

    def ahead(self, event: Event) -> None:
        """Begin with a picture that will be asked for."""
        if not self._left or not isinstance(event, OutputAdded):
            return
        data = event.output.get("data")
        found = raster(data) if isinstance(data, Mapping) else None
        if found is None:
            return
        self._left -= 1
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1, "quire-pictures")
        with contextlib.suppress(RuntimeError):  # no thread is left for it: then when it is told of
            made = self._pool.submit(shrink, *found, self._side)
            self._made.append((*found, self._side, made))

    def over(self) -> None:
        """No more will come. What has begun is finished."""
        self._left = 0
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def __call__(self, mime: str, payload: str, side: int) -> Shrunk:
        from concurrent.futures import Future

        asked = (mime, payload, side)
        for *known, future in tuple(self._made):
            if (*known,) == asked:
                return future.result()
        made: Future[Shrunk] = Future()
        made.set_result(shrink(*asked))
        self._made.append((*asked, made))
        return made.result()
