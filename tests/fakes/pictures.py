"""An engine for pictures, pictures of text, and scanned documents, for tests."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

PAGE = (595.0, 842.0)


class FakePictureReader:
    """Implements `backend.extraction.ports.PictureReader`: says the texts in turn, then `otherwise`."""

    def __init__(self, *texts: str | Exception, otherwise: str | Exception = "") -> None:
        self.pictures: list[bytes] = []
        self.sizes: list[tuple[int, int]] = []
        self._texts = list(texts)
        self._otherwise = otherwise

    async def read_picture(self, picture: bytes) -> str:
        """Take the next text, and raise it if it is an error."""
        self.pictures.append(picture)
        with Image.open(BytesIO(picture)) as opened:
            self.sizes.append(opened.size)
        said = self._texts.pop(0) if self._texts else self._otherwise
        if isinstance(said, Exception):
            raise said
        return said


def picture_of(text: str, size: tuple[int, int] = (1000, 300), mode: str = "L") -> Image.Image:
    """Draw a text in black on white."""
    drawn = Image.new("RGB", size, "white")
    ImageDraw.Draw(drawn).multiline_text((40, 40), text, "black", ImageFont.load_default(48))
    return drawn.convert(mode)


def file_of(first: Image.Image, *others: Image.Image, form: str = "PNG") -> bytes:
    """Encode a picture, in formats that have pages several."""
    file = BytesIO()
    further: dict[str, object] = {"save_all": True, "append_images": others} if others else {}
    first.save(file, form, **further)
    return file.getvalue()


def scan_of(*pages: Image.Image | str | Sequence[Image.Image | str]) -> bytes:
    """Make a PDF with a page for each: a picture that fills it, a text, or several of both below each other."""
    file = BytesIO()
    canvas: Any = Canvas(file, pagesize=PAGE)
    for page in pages:
        parts = page if isinstance(page, list | tuple) else [page]
        height = PAGE[1] / max(1, len(parts))
        for place, part in enumerate(parts):
            bottom = PAGE[1] - (place + 1) * height
            if isinstance(part, str):
                canvas.drawString(72, bottom + height - 72, part)
            elif isinstance(part, Image.Image):
                canvas.drawImage(ImageReader(part), 0, bottom, PAGE[0], height)
        canvas.showPage()
    canvas.save()
    return file.getvalue()
