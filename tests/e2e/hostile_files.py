"""Files that are made to be costly or endless, each of some kilobytes, and none with a text that anybody would miss."""

import zlib
from collections.abc import Callable
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_OPEN = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in (("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"))
)
_LINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
_CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
_CELL = "<w:tc>{}<w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>"


def _zip(parts: dict[str, str | bytes]) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def _docx(body: str) -> bytes:
    return _zip({"word/document.xml": f"<w:document {_WORD}><w:body>{body}</w:body></w:document>"})


def _odt(body: str, **parts: str | bytes) -> bytes:
    content = f"<office:body><office:text>{body}</office:text></office:body>"
    root = f"<office:document-content {_OPEN} {_LINK}>{content}</office:document-content>"
    kind = "application/vnd.oasis.opendocument.text"
    return _zip({"mimetype": kind, "content.xml": root, **parts})


def _pdf(*objects: bytes) -> bytes:
    made, places = b"%PDF-1.7\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return made + b"xref\n0 %d\n0000000000 65535 f \n%btrailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        *(size, table, size, len(made)),
    )


def _stream(content: bytes, options: bytes = b"") -> bytes:
    return b"<<%b/Length %d>>stream\n%b\nendstream" % (options, len(content), content)


def _packed(content: bytes) -> bytes:
    return _stream(zlib.compress(content, 9), b"/Filter/FlateDecode")


def _page(contents: bytes, *others: bytes, resources: bytes = b"") -> bytes:
    font = b"/Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<<%b%b>>>>" % (font, resources)
    return _pdf(_CATALOG, b"<</Type/Pages/Kids[3 0 R]/Count 1>>", page, contents, *others)


def _form_in_itself() -> bytes:
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 1 1]/Resources<</XObject<</X 5 0 R>>>>"
    return _page(_stream(b"/X Do " * 1000), _stream(b"/X Do /X Do", form), resources=b"/XObject<</X 5 0 R>>")


def _many_glyphs() -> bytes:
    return _page(_packed(b"BT /F1 1 Tf " + b"1 0 Td (abcdefgh) Tj " * 400_000 + b"ET"))


def _spans() -> bytes:
    wide = _CELL.format('<w:tcPr><w:gridSpan w:val="99999999"/></w:tcPr>')
    return _docx("<w:tbl>" + ("<w:tr>" + wide * 50 + "</w:tr>") * 500 + "</w:tbl>")


def _repeats() -> bytes:
    cell = '<table:table-cell table:number-columns-repeated="1000000"><text:p>x</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1000000">{cell}</table:table-row>'
    return _odt(f"<table:table>{row * 50}</table:table>")


def _object_in_itself() -> bytes:
    inner = '<draw:object xlink:href="./A"/>'
    outer = f'<draw:object xlink:href="."/>{inner}'
    return _odt(outer, **{"A/content.xml": f"<d {_OPEN} {_LINK}>{inner * 2}<text:p>x</text:p></d>"})


def _book() -> bytes:
    package = '<p><item id="a" href="c"/>' + '<itemref idref="a"/>' * 100_000 + "</p>"
    container = '<c><rootfile full-path="o"/></c>'
    kind = "application/epub+zip"
    return _zip({"mimetype": kind, "META-INF/container.xml": container, "o": package, "c": "<p>" + "chapter " * 2000})


HOSTILE: dict[str, Callable[[], bytes]] = {
    "pages-in-themselves.pdf": lambda: _pdf(_CATALOG, b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000>>"),
    "bomb.pdf": lambda: _page(_packed(b" " * 300_000_000)),
    "form-in-itself.pdf": _form_in_itself,
    "glyphs.pdf": _many_glyphs,
    "cut.pdf": lambda: _page(_stream(zlib.compress(b"BT (words) Tj ET " * 9000)[:200], b"/Filter/FlateDecode")),
    "arrays.pdf": lambda: _pdf(_CATALOG, b"[" * 200_000),
    "tables.docx": lambda: _docx("<w:tbl><w:tr><w:tc>" * 3000 + "x" + "</w:tc></w:tr></w:tbl>" * 3000),
    "spans.docx": _spans,
    "runs.docx": lambda: _docx("<w:p>" + "<w:r><w:t>x</w:t></w:r>" * 600_000 + "</w:p>"),
    "signs.docx": lambda: _docx('<w:p><w:r><w:sym w:char="FFFFFFFFFF"/><w:t>x</w:t></w:r></w:p>'),
    "repeats.odt": _repeats,
    "objects.odt": _object_in_itself,
    "spaces.odt": lambda: _odt("<text:p>" + '<text:s text:c="99999999"/>' * 50_000 + "x</text:p>"),
    "letters-for-numbers.odt": lambda: _odt('<text:p>a<text:s text:c="many"/>b</text:p>'),
    "groups.rtf": lambda: b"{\\rtf1 " + b"{" * 4_000_000,
    "notes.rtf": lambda: b"{\\rtf1 " + b"{\\footnote " * 300_000 + b"x",
    "binary.rtf": lambda: b"{\\rtf1 a\\bin9999999999 b}",
    "cells.rtf": lambda: b"{\\rtf1 " + b"\\cell " * 3_000_000 + b"\\row\\par}",
    "empty.xlsx": lambda: _zip({"xl/workbook.xml": "<workbook/>", "[Content_Types].xml": "<Types/>"}),
    "spans.html": lambda: b"<table>" + (b"<tr>" + b"<td colspan=1000 rowspan=1000>x" * 200) * 200,
    "pictures.html": lambda: (b'<img alt="' + b"x" * 1000 + b'">') * 30_000,
    "chapters.epub": _book,
    "archives.zip": lambda: _zip({f"{number}.zip": _zip({"a.txt": b" " * 9_000_000}) for number in range(30)}),
    "mails.eml": lambda: b"From: a@b.c\nContent-Type: message/rfc822\n\n" * 3000,
    "quotes.md": lambda: b"> " * 400_000 + b"x",
    "quotes.csv": lambda: b'"a""' * 2_000_000,
    "keys.json": lambda: b"{" + b",".join(b'"k%d":"%d"' % (number, number) for number in range(600_000)) + b"}",
}
