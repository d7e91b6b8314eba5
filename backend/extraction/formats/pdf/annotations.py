"""What lies on the pages of a PDF: comments, and forms with what was filled into them."""

from collections.abc import Callable, Iterator
from ctypes import c_ushort, c_void_p, cast
from typing import Any

import pypdfium2.raw
from pypdfium2 import PdfDocument

from backend.extraction.domain.blocks import Block, Note, Paragraph
from backend.extraction.formats.text import storable

raw: Any = pypdfium2.raw
"""The functions of the library, which have no types."""
Handle = Any
"""What the library gives for a page, the text of a page or an annotation."""


def pointer_to(what: Handle) -> int:
    """Return where a handle or function of the library lies: called with addresses, it takes half the time."""
    return cast(what, c_void_p).value or 0


_MAX_ANNOTATIONS = 10_000
_MAX_CHARACTERS = 100_000
_SILENT = (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET)
_BUTTONS = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)
_UNFILLED = (raw.FPDF_FORMFIELD_PUSHBUTTON, raw.FPDF_FORMFIELD_SIGNATURE)


class Annotations:
    """Reads the annotations of one document, each value of a form once."""

    def __init__(self, document: PdfDocument) -> None:
        self._document = document
        self._left = _MAX_ANNOTATIONS
        self._filled = set[str]()
        kind: int = raw.FPDF_GetFormType(document)
        self._is_xfa = kind == raw.FORMTYPE_XFA_FULL
        if kind == raw.FORMTYPE_ACRO_FORM:
            document.init_forms()  # pyright: ignore[reportUnknownMemberType]

    def of_page(self, page: Handle) -> Iterator[Block]:
        """Yield the comments on a page, and the fields that are filled, one a line."""
        filled = list[str]()
        for place in range(min(raw.FPDFPage_GetAnnotCount(page), self._left)):
            self._left -= 1
            annotation = raw.FPDFPage_GetAnnot(page, place)
            try:
                kind = raw.FPDFAnnot_GetSubtype(annotation)
                if kind == raw.FPDF_ANNOT_WIDGET:
                    filled += self._fields(annotation)
                elif kind not in _SILENT:
                    yield from _comment(annotation)
            finally:
                raw.FPDFPage_CloseAnnot(annotation)
        yield Paragraph(text="\n".join(filled))

    def leftovers(self) -> Iterator[Note]:
        """Say what of the document is not read."""
        if self._is_xfa:
            yield Note(text="The form is made with XFA, which is not read.")
        if self._left <= 0:
            yield Note(text=f"Comments and fields of forms beyond {_MAX_ANNOTATIONS} were left out.")
        count = raw.FPDFDoc_GetAttachmentCount(self._document)
        if count > 0:
            yield Note(text=f"Attached files that were not read: {count}.")

    def _fields(self, annotation: Handle) -> Iterator[str]:
        form = self._document.formenv
        kind = raw.FPDFAnnot_GetFormFieldType(form, annotation) if form else raw.FPDF_FORMFIELD_UNKNOWN
        if form is None or kind in _UNFILLED or (kind in _BUTTONS and not raw.FPDFAnnot_IsChecked(form, annotation)):
            return
        name = _text(raw.FPDFAnnot_GetFormFieldName, form, annotation)
        get_value = raw.FPDFAnnot_GetFormFieldExportValue if kind in _BUTTONS else raw.FPDFAnnot_GetFormFieldValue
        value = _text(get_value, form, annotation)
        said = f"{name}: {value}"
        if value and said not in self._filled:
            self._filled.add(said)
            yield said


def _comment(annotation: Handle) -> Iterator[Block]:
    text = _text(raw.FPDFAnnot_GetStringValue, annotation, b"Contents")
    if text:
        author = _text(raw.FPDFAnnot_GetStringValue, annotation, b"T")
        yield Paragraph(text=f"Comment{f' by {author}' if author else ''}: {text}")


def _text(write: Callable[..., int], *of: object) -> str:
    """Return a text that the library writes into a buffer, after it was asked how long that must be."""
    size = min(write(*of, None, 0), 2 * _MAX_CHARACTERS)
    buffer = (c_ushort * (size // 2 + 1))()
    write(*of, buffer, size)
    return storable(bytes(buffer)[: max(0, size - 2)].decode("utf-16-le", "replace").replace("\r", "\n")).strip()
