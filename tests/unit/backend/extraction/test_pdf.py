from collections.abc import Sequence
from io import BytesIO

import pytest
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont  # pyright: ignore[reportUnknownVariableType]
from reportlab.pdfgen.canvas import Canvas

from backend.extraction.domain.blocks import Block, Note
from backend.extraction.formats.pdf.document import read_pdf

LINE = 14.0


def page_of(*texts: tuple[float, float, str], size: float = 11, font: str = "Helvetica") -> list[Block]:
    """Read a page with texts at places, counted from its upper left corner."""
    file = BytesIO()
    canvas = Canvas(file, pagesize=(600, 800))
    canvas.setFont(font, size)
    for x, y, text in texts:
        canvas.drawString(x, 800 - y, text)
    canvas.save()
    return list(read_pdf(file.getvalue()))


def texts_of(blocks: Sequence[Block]) -> list[str]:
    return [block.text for block in blocks if block.text.strip() and not isinstance(block, Note)]


def pdf_of_objects(*objects: bytes) -> bytes:
    """Return a file of objects, the first of which is its catalog; its cross references are for the reader to find."""
    written = (b"%d 0 obj\n%b\nendobj\n" % (place, each) for place, each in enumerate(objects, 1))
    return b"%PDF-1.7\n" + b"".join(written) + b"trailer<</Root 1 0 R>>\n%%EOF"


def page_objects(content: bytes, font: bytes, annotations: bytes = b"") -> list[bytes]:
    return [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>%b>>"
        % annotations,
        b"<</Length %d>>stream\n%b\nendstream" % (len(content), content),
        font,
    ]


HELVETICA = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"


def test_columns_that_are_written_line_by_line_are_read_one_after_the_other() -> None:
    left = [f"The first column goes on in line {line} of" for line in range(6)]
    right = [f"the second column has its own line {line} in" for line in range(6)]
    lines = ((x, 100 + place * LINE, both[place]) for place in range(6) for x, both in ((50, left), (330, right)))
    assert texts_of(page_of(*lines)) == [" ".join(left), " ".join(right)]


def test_rows_of_a_table_stay_apart() -> None:
    rows = [("Item", "Price", "Site"), ("Bolt M8", "12.50", "Bremen"), ("Nut", "9.10", "Kiel"), ("Pump", "99", "Jena")]
    places = ((50 + 150 * x, 100 + LINE * y, cell) for y, row in enumerate(rows) for x, cell in enumerate(row))
    assert texts_of(page_of(*places)) == ["\n".join("  ".join(row) for row in rows)]


def test_lines_that_end_early_and_more_space_part_texts() -> None:
    lines = [
        "Delivery is free of charge in all the countries of",
        "the union.",
        "It takes a week, and in some of the islands two.",
    ]
    found = page_of(
        *((50, 100 + LINE * place, line) for place, line in enumerate(lines)), (50, 200, "Returns are free.")
    )
    assert texts_of(found) == [f"{lines[0]} {lines[1]}\n{lines[2]}", "Returns are free."]


def test_chinese_lines_are_joined_without_a_space() -> None:
    registerFont(UnicodeCIDFont("STSong-Light"))
    assert texts_of(page_of((50, 100, "员工每年有十二天"), (50, 114, "年假。"), font="STSong-Light")) == [
        "员工每年有十二天年假。"
    ]


@pytest.mark.parametrize(
    ("cmap", "ordering", "encoding"),
    [("EUC-H", "Japan1", "euc-jp"), ("90ms-RKSJ-H", "Japan1", "shift-jis"), ("ETen-B5-H", "CNS1", "big5")],
)
def test_predefined_encodings_of_chinese_and_japanese_fonts_are_known(cmap: str, ordering: str, encoding: str) -> None:
    text = "年十二"
    font = (
        f"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/{cmap}/DescendantFonts[<</Type/Font/Subtype/CIDFontType0/BaseFont/X"
        f"/CIDSystemInfo<</Registry(Adobe)/Ordering({ordering})/Supplement 2>>>>]>>"
    )
    content = b"BT /F1 11 Tf 72 700 Td <%b> Tj ET" % text.encode(encoding).hex().encode()
    assert texts_of(list(read_pdf(pdf_of_objects(*page_objects(content, font.encode()))))) == [text]


def test_comments_are_text_and_what_is_attached_is_noted() -> None:
    comment = b"/Annots[<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/T(Ada)/Contents(struck in March)>>]"
    objects = page_objects(b"BT /F1 11 Tf 72 700 Td (Clause 4) Tj ET", HELVETICA, comment)
    objects[0] = b"<</Type/Catalog/Pages 2 0 R/Names<</EmbeddedFiles<</Names[(a.txt) 6 0 R]>>>>>>"
    found = list(read_pdf(pdf_of_objects(*objects, b"<</Type/Filespec/F(a.txt)>>")))
    assert texts_of(found) == ["Clause 4", "Comment by Ada: struck in March"]
    assert [each.text for each in found if isinstance(each, Note)] == ["Attached files that were not read: 1."]


def test_a_font_that_does_not_say_its_characters_is_noted() -> None:
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>"
    table = b"1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <00> <ff> <e000> endbfrange"
    objects = page_objects(b"BT /F1 11 Tf 72 700 Td (Clause 4) Tj ET", font)
    found = list(read_pdf(pdf_of_objects(*objects, b"<</Length %d>>stream\n%b\nendstream" % (len(table), table))))
    assert any("does not say which characters" in each.text for each in found if isinstance(each, Note))


def test_arabic_ligatures_and_brackets_are_turned_into_the_order_of_reading() -> None:
    """The glyphs are drawn from left to right, one of them being two letters."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>"
    table = b"1 begincodespacerange <00> <ff> endcodespacerange 4 beginbfchar <41> <06440627> <42> <062e>"
    table += b" <28> <0028> <29> <0029> endbfchar"
    objects = page_objects(b"BT /F1 11 Tf 72 700 Td (\\(AB\\)) Tj ET", font)
    found = list(read_pdf(pdf_of_objects(*objects, b"<</Length %d>>stream\n%b\nendstream" % (len(table), table))))
    assert texts_of(found) == ["(\u062e\u0644\u0627)"]
