"""Pages of a PDF, and the pictures on them, as pictures of their own for an engine that reads such."""

from collections.abc import Iterator
from ctypes import PYFUNCTYPE, byref, c_float, c_int, c_ubyte, c_uint, c_void_p
from functools import partial
from math import sqrt

from PIL import Image
from pypdfium2 import PdfDocument

from backend.extraction.domain.blocks import Picture
from backend.extraction.formats.pdf.annotations import Handle, pointer_to, raw
from backend.extraction.formats.pictures.files import MAX_PIXELS, as_jpeg
from shared.errors import InvalidRequest

_SCALE = 300 / 72
"""Pixels a point, of which 72 are an inch."""

_MIN_WIDTH, _MIN_HEIGHT = 72.0, 18.0
"""A smaller picture, in points, is a mark or a line."""

_MIN_WIDTH_PIXELS, _MIN_HEIGHT_PIXELS = 100, 20
_MAX_OBJECTS = 10_000
_CANNOT = "it cannot be drawn."
_WHITE = 0xFFFFFFFF
_object_on = PYFUNCTYPE(c_void_p, c_void_p, c_int)(pointer_to(raw.FPDFPage_GetObject))
_type_of = PYFUNCTYPE(c_int, c_void_p)(pointer_to(raw.FPDFPageObj_GetType))


def has_content(page: Handle) -> bool:
    """Say whether there is anything on a page."""
    return raw.FPDFPage_CountObjects(page) > 0


def draw_page(page: Handle) -> bytes:
    """Draw a page in shades of grey, with 300 dots an inch if that is not too large."""
    width, height = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
    scale = min(_SCALE, sqrt(MAX_PIXELS / max(1, width * height)))
    size = max(1, int(width * scale)), max(1, int(height * scale))
    bitmap = raw.FPDFBitmap_CreateEx(*size, raw.FPDFBitmap_Gray, None, 0)
    try:
        if not bitmap:
            raise InvalidRequest(_CANNOT, param="body")
        raw.FPDFBitmap_FillRect(bitmap, 0, 0, *size, _WHITE)
        raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, *size, 0, raw.FPDF_GRAYSCALE)
        return _jpeg_of(bitmap)
    finally:
        raw.FPDFBitmap_Destroy(bitmap)


def pictures_on(page: Handle, document: PdfDocument) -> Iterator[Picture]:
    """Yield the pictures that are large enough to have text on them."""
    address, count = pointer_to(page), min(raw.FPDFPage_CountObjects(page), _MAX_OBJECTS)
    for place in range(count):
        if _type_of(_object_on(address, place)) == raw.FPDF_PAGEOBJ_IMAGE:
            shown = raw.FPDFPage_GetObject(page, place)
            if _could_hold_text(shown):
                yield Picture(draw=partial(_draw_picture, shown, page, document))


def _could_hold_text(picture: Handle) -> bool:
    shown_width, shown_height = _measure_shown(picture)
    width, height = _measure_own(picture)
    is_large = shown_width >= _MIN_WIDTH and shown_height >= _MIN_HEIGHT
    return is_large and width >= _MIN_WIDTH_PIXELS and height >= _MIN_HEIGHT_PIXELS


def _measure_shown(picture: Handle) -> tuple[float, float]:
    left, bottom, right, top = (c_float() for _ in range(4))
    raw.FPDFPageObj_GetBounds(picture, *map(byref, (left, bottom, right, top)))
    return abs(right.value - left.value), abs(top.value - bottom.value)


def _measure_own(picture: Handle) -> tuple[int, int]:
    width, height = c_uint(), c_uint()
    raw.FPDFImageObj_GetImagePixelSize(picture, byref(width), byref(height))
    return width.value, height.value


def _draw_picture(picture: Handle, page: Handle, document: PdfDocument) -> bytes:
    """Draw one picture as it stands on its page, with its own pixels where these are not too many."""
    (shown_width, shown_height), (width, height) = _measure_shown(picture), _measure_own(picture)
    most = sqrt(MAX_PIXELS / (shown_width * shown_height))
    scale = min(_SCALE, most, max(width, height) / max(shown_width, shown_height))
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(picture, byref(matrix))
    raw.FPDFPageObj_SetMatrix(picture, byref(_scale(matrix, scale)))
    bitmap = raw.FPDFImageObj_GetRenderedBitmap(document, page, picture)
    try:
        raw.FPDFPageObj_SetMatrix(picture, byref(matrix))
        return _jpeg_of(bitmap)
    finally:
        raw.FPDFBitmap_Destroy(bitmap)


def _scale(matrix: Handle, scale: float) -> Handle:
    return raw.FS_MATRIX(*(getattr(matrix, name) * scale for name in "abcdef"))


def _jpeg_of(bitmap: Handle) -> bytes:
    """Encode a bitmap of the library, which has one byte or four for a pixel."""
    buffer = raw.FPDFBitmap_GetBuffer(bitmap) if bitmap else None
    if not buffer:
        raise InvalidRequest(_CANNOT, param="body")
    width, height = raw.FPDFBitmap_GetWidth(bitmap), raw.FPDFBitmap_GetHeight(bitmap)
    stride = raw.FPDFBitmap_GetStride(bitmap)
    pixels = (c_ubyte * (stride * height)).from_address(buffer)
    form = {raw.FPDFBitmap_Gray: ("L", "L"), raw.FPDFBitmap_BGRA: ("RGBA", "BGRA")}
    mode, raw_mode = form.get(raw.FPDFBitmap_GetFormat(bitmap), ("RGB", "BGRX"))
    return as_jpeg(Image.frombuffer(mode, (width, height), pixels, "raw", raw_mode, stride, 1))
