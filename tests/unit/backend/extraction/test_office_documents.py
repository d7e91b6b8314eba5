from io import BytesIO
from typing import Any
from zipfile import ZipFile

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.worksheet.worksheet import Worksheet
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from backend.extraction.domain.blocks import Block, Heading, Note
from backend.extraction.domain.media_types import EPUB, ODP, ODS, ODT, PPTX, XLSX, ZIP, media_type_of
from backend.extraction.formats.chosen import read_blocks
from backend.extraction.formats.number_formats import show_number
from backend.extraction.formats.zipped import read_files
from shared.errors import InvalidRequest, PayloadTooLarge
from tests.unit.backend.extraction.made_files import changed, pdf_of, xlsx_of

ODF = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
    ' xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"><office:body>'
)


def zip_with(**parts: str | bytes) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def open_document(media_type: str, content: str) -> bytes:
    return zip_with(
        **{"mimetype": media_type, "content.xml": f"{ODF}{content}</office:body></office:document-content>"}
    )


def texts(body: bytes, media_type: str) -> list[str]:
    return [block.text.strip() for block in read_blocks(body, media_type) if block.text.strip()]


def notes_of(blocks: list[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, Note)]


@pytest.mark.parametrize(
    ("number", "form", "shown"),
    [
        (0.075, "0.0%", "7.5% (0.075)"),
        (1234.5, '#,##0.00 "EUR"', "1,234.50 EUR"),
        (1234.5, "#,##0.00\\ [$€-407]", "1,234.50 €"),
        (-5.25, "0.00;[Red]-0.00", "-5.25"),
        (-5, "#,##0_);(#,##0)", "(5)"),
        (1_500_000, '0.0,,"M"', "1.5M (1500000)"),
        (42, "000000", "000042"),
        (3.14159, "0.00", "3.14 (3.14159)"),
        (1e300, "0", None),
        (12, "General", None),
        (0.5, "# ?/?", None),
    ],
)
def test_numbers_are_read_as_they_are_seen(number: float, form: str, shown: str | None) -> None:
    assert show_number(number, form) == shown


def test_merged_cells_of_a_sheet_are_filled_and_comments_read() -> None:
    def fill(_: openpyxl.Workbook, sheet: Worksheet) -> None:
        for row in (["Site", "Plan", None], [None, "units", "value"], ["Bremen", 10, 100], [None, 11, 110]):
            sheet.append(row)
        for area in ("A1:A2", "B1:C1", "A3:A4"):
            sheet.merge_cells(area)
        sheet["C3"].comment = Comment("recall of lot 9", "Ada")

    assert texts(xlsx_of(fill), XLSX) == [
        "Sheet",
        "Site: Bremen\nPlan units: 10\nPlan value: 100",
        "Site: Bremen\nPlan units: 11\nPlan value: 110",
        "Comment on C3: recall of lot 9",
    ]


def test_a_chart_is_read_by_its_categories() -> None:
    presentation = Presentation()
    shapes: Any = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
    values: Any = CategoryChartData()
    values.categories = ["North", "South"]
    values.add_series("2024", (12.5, 7))
    chart = shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 9, 9, values).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Sales"
    file = BytesIO()
    presentation.save(file)
    assert texts(file.getvalue(), PPTX) == [
        "Slide 1", "Chart: Sales", "Category: North\n2024: 12.5", "Category: South\n2024: 7",
    ]  # fmt: skip


def test_open_document_texts_are_read() -> None:
    body = open_document(
        ODT,
        "<office:text><text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
        '<text:h text:outline-level="2">Duties</text:h><text:p>The vault<text:s/>opens<text:note><text:note-citation>1'
        "</text:note-citation><text:note-body><text:p>at nine</text:p></text:note-body></text:note> late.</text:p>"
        "<text:list><text:list-item><text:p>First</text:p></text:list-item></text:list></office:text>",
    )
    assert media_type_of(None, "file", body) == ODT
    assert next(iter(read_blocks(body, ODT))) == Heading(level=2, text="Duties")
    assert texts(body, ODT)[1:] == ["The vault opens late.", "Footnote: at nine", "- First"]


def test_open_document_margins_are_read_once_and_hidden_text_is_left_out() -> None:
    content = (
        '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
        ' xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
        ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    hidden = '<style:style style:name="h"><style:text-properties text:display="none"/></style:style>'
    lines = (
        '<text:p>Seen<text:span text:style-name="h"> not</text:span></text:p><text:p text:style-name="h">nor</text:p>'
        '<text:section text:display="none"><text:p>never</text:p></text:section>'
        '<draw:frame><draw:object xlink:href="./Object 1"/><draw:image/></draw:frame>'
    )
    margin = "<style:header><text:p>Port</text:p></style:header><style:footer><text:p>HR-7</text:p></style:footer>"
    end = "</office:document-content>"
    body = zip_with(
        **{
            "mimetype": ODT,
            "content.xml": f"{content}{hidden}<office:body><office:text>{lines}</office:text></office:body>{end}",
            "styles.xml": f"{content}<style:master-page>{margin}</style:master-page>"
            f"<style:master-page>{margin}</style:master-page>{end}",
            "Object 1/content.xml": f"{content}<office:body><text:p>Catch in tons</text:p></office:body>{end}",
        }
    )
    assert texts(body, ODT) == ["Port", "Seen", "Catch in tons", "HR-7", "Hidden texts that were left out: 3."]


def test_repeated_rows_count_as_often_as_they_are_repeated() -> None:
    cell = '<table:table-cell table:number-columns-repeated="1000"><text:p>x</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1000">{cell}</table:table-row>'
    with pytest.raises(PayloadTooLarge, match="cells"):
        texts(open_document(ODT, f"<office:text><table:table>{row * 3}</table:table></office:text>"), ODT)


def test_names_of_columns_in_which_nothing_stands_are_kept() -> None:
    def fill(_: openpyxl.Workbook, sheet: Worksheet) -> None:
        for row in (["Ship", "Tons", "Owner"], ["Aino", 31, None]):
            sheet.append(row)

    assert texts(xlsx_of(fill), XLSX) == ["Sheet", "Ship: Aino\nTons: 31", "Owner"]


def test_a_slide_whose_title_is_a_picture_or_is_damaged_costs_no_other() -> None:
    made = Presentation()
    for text in ("One", "Two", "Three"):
        shapes: Any = made.slides.add_slide(made.slide_layouts[5]).shapes
        shapes.title.text = text
    file = BytesIO()
    made.save(file)
    body = file.getvalue()
    for number, marks in ((1, (("p:sp>", "p:pic>"), ("vSpPr", "vPicPr"))), (2, (("p:nvSpPr", "p:nvX"),))):
        part = f"ppt/slides/slide{number}.xml"
        with ZipFile(BytesIO(body)) as archive:
            slide = archive.read(part).decode()
        for one, other in marks:
            slide = slide.replace(one, other)
        body = changed(body, part, slide.encode())
    found = texts(body, PPTX)
    assert [found[0], found[-1]] == ["Slide 1", "Slide 3: Three"]
    assert found[1:-1] == ["Slide 2: Two", "Slide 2 is damaged: what stood behind its last text here was left out."]


def test_sheets_without_text_are_named_and_one_that_is_a_chart_is_read() -> None:
    def fill(book: openpyxl.Workbook, sheet: Worksheet) -> None:
        sheet.append(["Month", "Sold"])
        sheet.append(["May", 7])
        chart: Any = BarChart()
        chart.title = "Sales of the year"
        chart.add_data(Reference(sheet, 2, 1, max_row=2), titles_from_data=True)
        drawn: Any = book.create_chartsheet("Drawn")
        drawn.add_chart(chart)
        book.create_sheet("Later")
        book.create_sheet("Never")

    read = texts(xlsx_of(fill), XLSX)
    assert read[:3] == ["Sheet", "Month: May\nSold: 7", "Drawn"]
    assert read[3].startswith("Chart: Sales of the year")
    assert read[-1] == "Sheets without text: Later, Never."
    (note,) = read_blocks(xlsx_of(lambda _, __: None), XLSX)
    assert note == Note(text="Sheets without text: Sheet.")


def test_a_damaged_sheet_costs_what_stands_behind_the_damage() -> None:
    def fill(book: openpyxl.Workbook, sheet: Worksheet) -> None:
        for number in range(300):
            sheet.append([f"row {number}"])
        book.create_sheet("Whole").append(["kept"])

    body = xlsx_of(fill)
    with ZipFile(BytesIO(body)) as archive:
        xml = archive.read("xl/worksheets/sheet1.xml")
    blocks = list(read_blocks(changed(body, "xl/worksheets/sheet1.xml", xml[: len(xml) // 2]), XLSX))
    assert [block.text for block in blocks][-2:] == ["Whole", "kept"]
    assert "row 9" in {block.text for block in blocks}
    assert notes_of(blocks) == ["Sheet Sheet is damaged: what stood behind its last row here was left out."]


def test_open_document_sheets_are_read_without_the_cells_that_fill_them() -> None:
    cells = "".join(f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in ("Item", "Price"))
    body = open_document(
        ODS,
        f'<office:spreadsheet><table:table table:name="Parts"><table:table-row>{cells}</table:table-row>'
        "<table:table-row>"
        f"{cells.replace('Item', 'Bolt').replace('Price', '12')}"
        '<table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/></table:table-row>'
        "</table:table></office:spreadsheet>",
    )
    assert texts(body, ODS) == ["Parts", "Item: Bolt\nPrice: 12"]


def test_open_document_slides_are_read_with_their_notes() -> None:
    body = open_document(
        ODP,
        "<office:presentation><draw:page><draw:frame><draw:text-box><text:p>Plan</text:p></draw:text-box></draw:frame>"
        "<draw:frame><draw:image/></draw:frame>"
        "<presentation:notes><text:p>Speak slowly</text:p></presentation:notes></draw:page></office:presentation>",
    )
    assert texts(body, ODP) == ["Slide 1", "Plan", "Notes", "Speak slowly", "Pictures that were not read: 1."]


def test_the_chapters_of_a_book_are_read_in_their_order() -> None:
    body = zip_with(
        mimetype=EPUB,
        **{
            "META-INF/container.xml": '<container><rootfile full-path="text/book.opf"/></container>',
            "text/book.opf": '<package><item id="a" href="a.xhtml"/><item id="b" href="b%20b.xhtml"/>'
            '<itemref idref="b"/>'
            '<itemref idref="a"/><itemref idref="gone"/><item id="c" href="c.xhtml"/><itemref idref="c"/></package>',
            "text/a.xhtml": "<html><body><p>Last.</p></body></html>",
            "text/b b.xhtml": "<!DOCTYPE html><html><body><h1>One</h1><p>First.</p></body></html>",
        },
    )
    assert media_type_of(None, "file", body) == EPUB
    assert texts(body, EPUB) == ["One", "First.", "Last.", "A chapter is damaged or missing: text/c.xhtml."]


def test_the_files_of_an_archive_are_read_under_their_names() -> None:
    inner = zip_with(**{"deep.txt": "deep down"})
    body = zip_with(
        **{
            "a/notes.md": "# Tea\n\nGreen.",
            "plan.pdf": pdf_of(("The river",)),
            "b.gif": b"GIF89a\x00",
            "c.zip": inner,
            "__MACOSX/x": "no",
        }
    )
    found = list(read_blocks(body, ZIP))
    assert [block.text.strip() for block in found if block.text.strip() and not isinstance(block, Note)] == [
        "a/notes.md", "Tea", "Green.", "plan.pdf", "The river", "c.zip", "deep.txt", "deep down",
    ]  # fmt: skip
    assert notes_of(found) == ["Files that were not read, for their kind: 1 (.gif)."]


def test_archives_in_archives_end_and_unpack_to_so_much() -> None:
    body = zip_with(**{"a.txt": "x"})
    for _ in range(5):
        body = zip_with(**{"a.zip": body})
    assert "deep in each other" in notes_of(list(read_blocks(body, ZIP)))[0]
    with pytest.raises(PayloadTooLarge):
        list(read_files(zip_with(**{"a.txt": "eleven char"}), read_blocks, 10))


_DEEP_ODF = "<text:section>" * 3000 + "</text:section>" * 3000


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (zip_with(**{"content.xml": "<x/>"}), ODT),
        (zip_with(**{"content.xml": "<!DOCTYPE x [<!ENTITY a 'a'>]><x>&a;</x>"}), ODT),
        (zip_with(**{"other.xml": "<x/>"}), ODS),
        (open_document(ODT, _DEEP_ODF), ODT),
        (
            open_document(ODS, "<table:table><table:table-row><table:table-cell table:number-columns-repeated='x'/>"),
            ODS,
        ),
        (zip_with(**{"META-INF/container.xml": '<c><r full-path="gone"/></c>'}), EPUB),
        (zip_with(**{"META-INF/container.xml": "<c>"}), EPUB),
        (b"PK\x03\x04" + b"\x00" * 40, ZIP),
        (b"PK\x03\x04" + b"\xff" * 4000, ODP),
        (b"no archive", ZIP),
    ],
)
def test_hostile_archives_are_refused_clearly(body: bytes, media_type: str) -> None:
    with pytest.raises(InvalidRequest, match=r"cannot be read|is no|holds a DTD"):
        list(read_blocks(body, media_type))
