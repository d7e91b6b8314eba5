"""Pictures as files, page by page, made ready for an engine that finds text in them."""

from collections.abc import Callable, Iterator
from functools import partial
from io import BytesIO
from math import sqrt

from PIL import Image, ImageOps

from backend.extraction.domain.blocks import Picture
from backend.extraction.formats.text import MALFORMED
from shared.errors import InvalidRequest, PayloadTooLarge
from shared.models.values import Place

MAX_PIXELS = 9_000_000
"""Those of an A4 page with 300 dots an inch; a larger picture is made smaller before it is read."""

MAX_FILE_PIXELS = 50_000_000
"""In colours they take 150 MB of the child's memory."""

MAX_PAGES = 1000
_JPEG_QUALITY = 90
_DRAFT_SIDE = 3500
"""A JPEG with twice as long sides is made smaller while it is unpacked."""
_KINDS = ("PNG", "JPEG", "TIFF", "WEBP")
_MALFORMED = (*MALFORMED, OSError, SyntaxError, EOFError)
"""What the library raises for files that are no pictures, or broken ones."""


def read_picture(body: bytes) -> Iterator[Picture]:
    """Yield a picture, of a file with several pages one for each.

    Raises:
        InvalidRequest: the file is damaged, or no picture of these kinds.
        PayloadTooLarge: it has too many pages, or one has too many pixels.
    """
    Image.MAX_IMAGE_PIXELS = None  # what is too large is told apart from what is damaged
    try:
        with Image.open(BytesIO(body), formats=_KINDS) as opened:
            count: int = getattr(opened, "n_frames", 1)
            if count > MAX_PAGES:
                raise PayloadTooLarge(f"The picture must have at most {MAX_PAGES} pages.", param="body")
            for number in range(1, count + 1):
                opened.seek(number - 1)
                _check_size(opened)
                name, place = (f"Page {number} of {count}", Place(page=number)) if count > 1 else ("", None)
                yield Picture(draw=partial(_draw, opened), name=name, place=place)
    except _MALFORMED as error:
        raise InvalidRequest("The picture cannot be read; it may be damaged.", param="body") from error


def picture_in_document(open_file: Callable[[], bytes]) -> Picture:
    """Return a picture that lies as a file in a document; it is unpacked when it is drawn, and its first page alone."""
    return Picture(draw=partial(_draw_file, open_file))


def _draw_file(open_file: Callable[[], bytes]) -> bytes:
    try:
        pages = read_picture(open_file())  # it holds the file open that is drawn
        return next(pages).draw()
    except (KeyError, *_MALFORMED) as error:
        raise InvalidRequest("it is damaged.", param="body") from error


def _check_size(opened: Image.Image) -> None:
    if opened.width * opened.height > MAX_FILE_PIXELS:
        raise PayloadTooLarge(f"The picture must have at most {MAX_FILE_PIXELS} pixels.", param="body")


def _draw(opened: Image.Image) -> bytes:
    try:
        opened.draft(None, (_DRAFT_SIDE, _DRAFT_SIDE))
        return as_jpeg(ImageOps.exif_transpose(opened))
    except MemoryError:
        raise InvalidRequest("it takes too much memory.", param="body") from None
    except _MALFORMED as error:
        raise InvalidRequest("it is damaged.", param="body") from error


def as_jpeg(picture: Image.Image) -> bytes:
    """Encode a picture on white ground, with at most `MAX_PIXELS` pixels."""
    plain = _without_palette(picture)
    scale = sqrt(MAX_PIXELS / (plain.width * plain.height))
    if scale < 1:
        plain = plain.resize((max(1, int(plain.width * scale)), max(1, int(plain.height * scale))))
    encoded = BytesIO()
    plain.save(encoded, "JPEG", quality=_JPEG_QUALITY)
    return encoded.getvalue()


def _without_palette(picture: Image.Image) -> Image.Image:
    """Return the picture in shades of grey or in three colours, with white where it is transparent."""
    if picture.mode in ("L", "RGB") and not picture.has_transparency_data:
        return picture
    if picture.has_transparency_data:
        seen = picture.convert("RGBA")
        ground = Image.new("RGB", seen.size, "white")
        ground.paste(seen, mask=seen.getchannel("A"))
        return ground
    if picture.mode.startswith("I;16"):
        return picture.convert("I").point(lambda shade: shade * (1 / 256)).convert("L")
    return picture.convert("L" if picture.mode == "1" else "RGB")
