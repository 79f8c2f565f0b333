"""A picture small enough to be shown to a model: never more than so many pixels on a side.

The size is read from the file's first bytes before anything is decoded, so that a small file which
claims to be enormous costs nothing.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..record.events import Event, OutputAdded
from .images import raster

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from PIL.Image import Image

PIXELS = 60_000_000  # that are decoded at most
BYTES = 1_500_000  # of a picture that is handed over
STRIP = 64  # rows of what is made
SAMPLED = 16  # rows in one piece of a sample
ORIENTATION = 0x0112  # what EXIF calls it


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
    """The picture itself where it is small enough, or a smaller one. Never raises for its data."""
    try:
        data = base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        return _none(mime, (0, 0), "it is not base64")
    size = dimensions(mime, data)
    if size is None:
        return _none(mime, (0, 0), "it is broken")
    width, height = size
    if max(width, height) <= side and len(data) <= BYTES:
        if not is_whole(mime, data):
            return _none(mime, size, "it is broken")
        return Shrunk(mime, payload, width, height, size)
    if width * height > PIXELS:
        return _none(mime, size, f"it has more than {PIXELS // 1_000_000} million pixels")
    return _smaller(mime, data, size, side)


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


def _none(mime: str, size: tuple[int, int], why: str) -> Shrunk:
    return Shrunk(mime, "", 0, 0, size, why)


def dimensions(mime: str, data: bytes) -> tuple[int, int] | None:
    """Width and height, from the header alone; None where there is no sound one."""
    try:
        if mime == "image/png":
            if data[12:16] != b"IHDR":
                return None
            width, height = struct.unpack(">II", data[16:24])
        elif mime == "image/gif":
            width, height = struct.unpack("<HH", data[6:10])
        elif mime == "image/jpeg":
            width, height = _of_jpeg(data)
        elif mime == "image/webp":
            width, height = _of_webp(data)
        else:
            return None
    except (struct.error, IndexError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def is_whole(mime: str, data: bytes) -> bool:
    """Whether a picture has its end, and a PNG all that it says it has. Whoever hands one on that
    is broken may see the whole answer refused."""
    match mime:
        case "image/png":
            return _is_whole_png(data)
        case "image/jpeg":
            return data.rstrip(b"\0").endswith(b"\xff\xd9")
        case "image/gif":
            return data.endswith(b";")
        case _:
            return len(data) >= 8 + int.from_bytes(data[4:8], "little")


def _is_whole_png(data: bytes) -> bool:
    import zlib

    at, kinds = 8, []
    while at + 12 <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        if int.from_bytes(data[end : end + 4], "big") != zlib.crc32(data[at + 4 : end]):
            return False
        kinds.append(data[at + 4 : at + 8])
        at = end + 4
    return b"IDAT" in kinds and kinds[-1] == b"IEND"


def _of_jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while True:
        if data[at] != 0xFF:
            raise ValueError("not at a marker")
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        (length,) = struct.unpack(">H", data[at + 2 : at + 4])
        if length < 2:
            raise ValueError("a segment without length")
        at += 2 + length


def _of_webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _smaller(mime: str, data: bytes, size: tuple[int, int], side: int) -> Shrunk:
    import io

    try:
        from PIL import Image

        with Image.open(io.BytesIO(data), formats=["PNG", "JPEG", "GIF", "WEBP"]) as opened:
            if opened.width * opened.height > PIXELS:
                return _none(mime, size, "its header is not true")
            # A JPEG can be decoded at a fraction of its size: quicker, and it takes less memory.
            opened.draft("RGB", (side, side))
            # Most of the way in one whole step, which is quick; the filter has little left to do.
            image = _reduced(opened, max(1, max(opened.size) // side))
            image.thumbnail((side, side), Image.Resampling.HAMMING)
            image = _upright(image, opened)
            kind, made = _encoded(image, mime)
    except Exception as error:  # noqa: BLE001 - a stranger's file may break a decoder in any way
        return _none(mime, size, f"it could not be read: {type(error).__name__}")
    return Shrunk(kind, base64.b64encode(made).decode(), image.width, image.height, size)


def _upright(image: Image, taken: Image) -> Image:
    """As a camera says that it was held: what is made does not say it any more."""
    from PIL.Image import Transpose

    turns = (
        Transpose.FLIP_LEFT_RIGHT,
        Transpose.ROTATE_180,
        Transpose.FLIP_TOP_BOTTOM,
        Transpose.TRANSPOSE,
        Transpose.ROTATE_270,
        Transpose.TRANSVERSE,
        Transpose.ROTATE_90,
    )
    held = 1
    with contextlib.suppress(Exception):  # what it says of itself may be as broken as anything
        held = taken.getexif().get(ORIENTATION, 1)
    return image.transpose(turns[held - 2]) if held in range(2, 9) else image


def _reduced(image: Image, whole: int) -> Image:
    """On white, and so many times smaller. A strip at a time: a large picture is in memory once."""
    from PIL.Image import new

    width, height = image.size
    size = (-(-width // whole), -(-height // whole))
    made = new("L" if image.mode == "L" else "RGB", size)
    for top in range(0, size[1], STRIP):
        bottom = min(height, (top + STRIP) * whole)
        strip = _on_white(image.crop((0, top * whole, width, bottom)))
        made.paste(strip.reduce(whole) if whole > 1 else strip, (0, top))
    return made


def _on_white(image: Image) -> Image:
    """As a notebook shows it: some readers see black where a picture is transparent. First of all,
    because what follows is quicker without transparency."""
    from PIL.Image import new
    from PIL.ImageChops import invert

    if image.mode in ("RGB", "L"):
        return image
    image = image if image.mode == "RGBA" else image.convert("RGBA")
    alpha = image.getchannel("A")
    if invert(alpha).getbbox() is None:  # opaque everywhere; the extrema take much longer to find
        return image.convert("RGB")
    paper = new("RGB", image.size, "white")
    paper.paste(image, mask=alpha)
    return paper


def _encoded(image: Image, mime: str) -> tuple[str, bytes]:
    """In the kind that is likely to be smaller, by some rows from all over the picture."""
    if mime == "image/jpeg":
        return mime, _as_jpeg(image)
    some = _sample(image)
    if len(_as_png(some)) <= len(_as_jpeg(some)):
        return "image/png", _as_png(image)
    return "image/jpeg", _as_jpeg(image)


def _sample(image: Image) -> Image:
    """An eighth of a large picture."""
    from PIL.Image import new

    width, height = image.size
    tops = range(0, height - SAMPLED, 8 * SAMPLED)
    if len(tops) < 2:
        return image
    made = new(image.mode, (width, len(tops) * SAMPLED))
    for at, top in enumerate(tops):
        made.paste(image.crop((0, top, width, top + SAMPLED)), (0, at * SAMPLED))
    return made


def _as_png(image: Image) -> bytes:
    """With a palette, which keeps the few colours of a diagram crisp."""
    import io

    from PIL.Image import Dither, Quantize

    out = io.BytesIO()
    image.quantize(256, method=Quantize.FASTOCTREE, dither=Dither.NONE).save(out, "PNG")
    return out.getvalue()


def _as_jpeg(image: Image) -> bytes:
    """Suits what is not a diagram."""
    import io

    out = io.BytesIO()
    image.save(out, "JPEG", quality=85)
    return out.getvalue()
