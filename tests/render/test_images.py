"""Pictures for a model: small, and never a bomb."""

from __future__ import annotations

import base64
import io
import struct
import threading
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageDraw, ImageOps, ImageStat

from made_records import made, shown, stream
from quire.record.events import OutputAdded, ResultGlued
from quire.render import images
from quire.render.agent_outputs import Limits
from quire.render.agent_run import tell_run
from quire.render.images import BYTES, PIXELS, Shrinker, Shrunk, shrink


def encoded(image: Image.Image, kind: str) -> str:
    out = io.BytesIO()
    image.save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


def opened(payload: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(payload)))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_small_one_is_handed_on_as_it_is(kind: str) -> None:
    payload = encoded(Image.new("RGB", (321, 45), "red"), kind)
    made = shrink(f"image/{kind.lower()}", payload, 1_200)
    assert (made.payload, made.width, made.height) == (payload, 321, 45)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("size", [(4_000, 3_000), (50, 2_400), (1_201, 1)])
def test_no_side_is_longer_than_it_may_be(kind: str, size: tuple[int, int]) -> None:
    made = shrink(f"image/{kind.lower()}", encoded(Image.new("RGB", size, "blue"), kind), 1_200)
    shown = opened(made.payload)
    assert max(shown.size) == 1_200
    assert (made.width, made.height) == shown.size
    assert made.was == size
    assert made.mime == f"image/{shown.format.lower()}"  # type: ignore[union-attr]


@pytest.mark.parametrize("mode", ["P", "L", "LA", "RGBA", "I;16", "1", "CMYK"])
def test_every_mode(mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    made = shrink(f"image/{kind.lower()}", encoded(Image.new(mode, (2_000, 10)), kind), 100)
    assert opened(made.payload).size[0] == 100


def test_transparent_is_white() -> None:
    made = shrink("image/png", encoded(Image.new("RGBA", (2_000, 2_000), (0, 0, 0, 0)), "PNG"), 10)
    assert opened(made.payload).convert("RGB").getpixel((5, 5)) == (255, 255, 255)


def test_noise_becomes_small_enough() -> None:
    import os

    noise = Image.frombytes("RGB", (1_100, 1_100), os.urandom(1_100 * 1_100 * 3))
    made = shrink("image/png", encoded(noise, "PNG"), 1_200)
    assert len(base64.b64decode(made.payload)) <= BYTES


def test_few_colours_stay_crisp_and_many_become_a_photograph() -> None:
    drawing = Image.new("RGB", (2_400, 1_800), "white")
    ImageDraw.Draw(drawing).line((0, 0, 2_399, 1_799), "red", 9)
    assert shrink("image/png", encoded(drawing, "PNG"), 1_200).mime == "image/png"
    photograph = Image.merge("RGB", [Image.effect_noise((2_400, 1_800), 64) for _ in "RGB"])
    assert shrink("image/png", encoded(photograph, "PNG"), 1_200).mime == "image/jpeg"


BEGINNING = "iVBORw0KGgoAAAAN"  # of every PNG


@pytest.fixture
def shrunk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pictures that were made smaller, in order."""
    seen: list[str] = []

    def noted(mime: str, payload: str, side: int) -> Shrunk:
        seen.append(payload.removeprefix(BEGINNING))
        return Shrunk(mime, f"small {payload}", side, side, (2, 2))

    monkeypatch.setattr(images, "shrink", noted)
    return seen


def added(name: str) -> OutputAdded:
    return OutputAdded("c", shown(image__png=BEGINNING + name))


def asked(shrinker: Shrinker, name: str, side: int = 1_200) -> Shrunk:
    return shrinker("image/png", BEGINNING + name, side)


def test_a_picture_is_made_smaller_once_whoever_asks_and_when(shrunk: list[str]) -> None:
    shrinker = Shrinker(1_200, 2)
    shrinker.ahead(added("early"))
    for name in ("early", "late", "early", "late"):
        assert asked(shrinker, name).payload == f"small {BEGINNING}{name}"
    shrinker.over()
    assert shrunk == ["early", "late"]
    assert asked(shrinker, "early", 600).width == 600


def test_no_more_pictures_are_begun_ahead_than_are_told_of(shrunk: list[str]) -> None:
    shrinker = Shrinker(1_200, 2)
    shrinker.ahead(OutputAdded("c", shown(text__plain="no picture")))
    shrinker.ahead(OutputAdded("c", stream("no display")))
    for name in "abcdef":
        shrinker.ahead(added(name))
    for name in "ab":
        asked(shrinker, name)
    assert shrunk == ["a", "b"]
    shrinker.over()
    shrinker.ahead(added("g"))
    assert shrunk == ["a", "b"]


def test_where_no_thread_is_left_it_is_made_when_it_is_asked_for(
    shrunk: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    shrinker = Shrinker(1_200, 2)
    with monkeypatch.context() as without:
        without.setattr(threading.Thread, "start", refuse)
        shrinker.ahead(added("a"))
    assert asked(shrinker, "a").payload == f"small {BEGINNING}a"
    assert shrunk == ["a"]


def bomb(width: int, height: int) -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(10_000)))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("side", [60_000, 12_000, 8_000])
def test_a_picture_that_claims_to_be_enormous_is_not_decoded(
    side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "_smaller", lambda *_: pytest.fail("it was decoded"))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda _: pytest.fail("it was decoded"))
    made = shrink("image/png", bomb(side, side), 1_200)
    assert made.payload == ""
    assert f"{PIXELS // 1_000_000} million pixels" in made.why


def test_a_truncated_one_is_named_not_shown() -> None:
    whole = base64.b64decode(encoded(Image.new("RGB", (2_000, 2_000), "red"), "PNG"))
    made = shrink("image/png", base64.b64encode(whole[: len(whole) // 2]).decode(), 1_200)
    assert made.payload == ""
    assert made.why.startswith("it could not be read")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_small_one_that_is_broken_is_not_handed_on(kind: str) -> None:
    mime = f"image/{kind.lower()}"
    whole = base64.b64decode(encoded(Image.effect_noise((300, 200), 50).convert("RGB"), kind))
    half = base64.b64encode(whole[: len(whole) // 2]).decode()
    assert shrink(mime, half, 1_200).why == "it is broken"
    assert shrink(mime, base64.b64encode(whole).decode(), 1_200).why == ""


def test_a_png_with_a_wrong_byte_is_not_handed_on() -> None:
    data = bytearray(base64.b64decode(encoded(Image.new("RGB", (300, 200), "red"), "PNG")))
    data[len(data) // 2] ^= 1
    assert shrink("image/png", base64.b64encode(data).decode(), 1_200).why == "it is broken"


@pytest.mark.parametrize("held", range(1, 9))
def test_a_photograph_is_shown_as_the_camera_was_held(held: int) -> None:
    picture = Image.new("RGB", (2_400, 1_600), "white")
    picture.paste("black", (0, 0, 1_200, 800))
    exif = Image.Exif()
    exif[0x0112] = held
    out = io.BytesIO()
    picture.save(out, "JPEG", exif=exif)
    payload = base64.b64encode(out.getvalue()).decode()
    shown = opened(shrink("image/jpeg", payload, 1_200).payload)
    upright = ImageOps.exif_transpose(Image.open(out)).resize(shown.size)
    assert shown.size == ((1_200, 800) if held < 5 else (800, 1_200))
    difference = ImageChops.difference(shown.convert("L"), upright.convert("L"))
    assert ImageStat.Stat(difference).mean[0] < 3


@given(st.binary(max_size=200), st.sampled_from(["image/png", "image/jpeg", "image/webp", "x/y"]))
def test_any_bytes(data: bytes, mime: str) -> None:
    made = shrink(mime, base64.b64encode(data).decode(), 100)
    assert made.payload or made.why


def test_pictures_of_a_run_are_few_and_named() -> None:
    payload = encoded(Image.new("RGB", (2_400, 1_800), "red"), "PNG")
    told = tell_run(made(*(shown(image__png=payload, text__plain="<Figure size 1x1>"),) * 6))
    assert len(told.pictures) == Limits().pictures == 4
    caption = "picture 1: display of cell c0, 2,400 x 1,800 px png, shown at 1,200 x 900"
    assert told.pictures[0].caption == caption
    assert caption in told.text
    assert "only 4 pictures are shown at once" in told.text
    assert "Figure size" not in told.text


def test_a_picture_that_was_glued_can_be_asked_for() -> None:
    payload = encoded(Image.new("RGB", (20, 10), "red"), "PNG")
    glued = ResultGlued("c0", "chart", "display", {"image/png": payload})
    told = tell_run(made(results=(glued,)), result="chart")
    assert [one.data for one in told.pictures] == [payload]
    assert 'result "chart":\npicture 1: display of cell c0, 20 x 10 px png' in told.text


def test_svg_is_no_picture_for_a_model() -> None:
    told = tell_run(made(shown(**{"image__svg+xml": "<svg/>"}, text__plain="a drawing")))
    assert told.pictures == ()
    assert "| a drawing" in told.text
