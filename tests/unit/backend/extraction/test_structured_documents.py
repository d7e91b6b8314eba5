"""Reading presentations, spreadsheets, CSV, JSON and e-mail, all made by the libraries that read them."""

import json
from datetime import date, datetime, time, timedelta
from email.message import EmailMessage
from io import BytesIO

import openpyxl
import pptx
import pytest
from openpyxl.worksheet.worksheet import Worksheet
from pptx.util import Inches

from backend.extraction.domain.blocks import Block, Heading, Paragraph
from backend.extraction.domain.chunking import cut_into_pieces
from backend.extraction.domain.media_types import CSV, EMAIL, JSON, JSON_LINES, PPTX, RTF, XLSX
from backend.extraction.formats.chosen import read_blocks
from backend.extraction.formats.json_values import RECORD_CHARACTERS
from shared.errors import InvalidRequest
from tests.unit.backend.extraction.made_files import encrypted_office, sheet_of, with_dtd, xlsx_of


def read(body: bytes | str, media_type: str) -> list[Block]:
    """Return the blocks that have text, wherever they stand."""
    blocks = [block for block in placed(body, media_type) if block.text.strip()]
    return [
        Heading(block.level, block.text) if isinstance(block, Heading) else type(block)(block.text) for block in blocks
    ]


def placed(body: bytes | str, media_type: str) -> list[Heading | Paragraph]:
    raw = body.encode() if isinstance(body, str) else body
    return [block for block in read_blocks(raw, media_type) if isinstance(block, Heading | Paragraph)]


def texts(body: bytes | str, media_type: str) -> list[str]:
    return [block.text for block in read(body, media_type)]


def test_a_row_of_a_sheet_is_read_with_the_names_of_its_columns() -> None:
    def fill(book: openpyxl.Workbook, sheet: Worksheet) -> None:
        sheet.title = "Prices 价格"
        sheet.append(["Report of the autumn"])
        sheet.append([])
        sheet.append(["Name", "姓名", "Since", "At", "Took", "Price", "Sold"])
        moment = datetime(2026, 3, 4, 5, 6)  # noqa: DTZ001 (a sheet knows no time zone)
        sheet.append(["Ann\nLee", "李雷", date(2026, 1, 2), moment, timedelta(hours=30), 0.1 + 0.2, True])
        sheet.append([None, "韩梅梅", None, time(7, 8), None, 12, "", "beyond"])
        hidden = book.create_sheet("Hidden")
        hidden.sheet_state = "hidden"
        hidden["C5"] = "alone"
        book.create_sheet("Empty")

    assert read(xlsx_of(fill), XLSX) == [
        Heading(level=1, text="Prices 价格"),
        Paragraph(text="Report of the autumn"),
        Paragraph(
            text="Name: Ann Lee\n姓名: 李雷\nSince: 2026-01-02\nAt: 2026-03-04T05:06:00\nTook: PT30H0M0S\n"
            "Price: 0.3\nSold: TRUE"
        ),
        Paragraph(text="姓名: 韩梅梅\nAt: 07:08:00\nPrice: 12\nbeyond"),
        Heading(level=1, text="Hidden"),
        Paragraph(text="alone"),
        Paragraph(text="Sheets without text: Empty."),
    ]


def places(body: bytes | str, media_type: str) -> list[tuple[str, str]]:
    return [(piece.text, str(piece.place)) for piece in cut_into_pieces(placed(body, media_type))]


def test_a_passage_of_a_sheet_knows_its_sheet_and_rows() -> None:
    def fill(book: openpyxl.Workbook, sheet: Worksheet) -> None:
        sheet.title = "Q1"
        for row in (["Report"], [], ["Name", "Price"], ["Ann", 1], [], ["Bob", 2]):
            sheet.append(row)
        book.create_sheet("Q2")["B3"] = "alone"

    (first, at_first), (second, at_second) = places(xlsx_of(fill), XLSX)
    assert (first.split("\n")[0], at_first) == ("Report", "Q1, rows 1-6")
    assert (second, at_second) == ("alone", "Q2, row 3")


def test_a_passage_of_a_csv_knows_its_rows() -> None:
    long = [f"{number},{'word ' * 150}" for number in range(4)]
    found = places("\n".join(("id,said", *long[:2], "", *long[2:])), CSV)
    assert [(text.split("\n")[0], at) for text, at in found] == [("id: 0", "rows 2-3"), ("id: 2", "rows 5-6")]


def test_a_passage_of_a_presentation_knows_its_slide() -> None:
    shown = pptx.Presentation()
    for title in ("One", "Two"):
        slide = shown.slides.add_slide(shown.slide_layouts[6])
        slide.shapes.add_textbox(*[Inches(1)] * 4).text_frame.text = f"about {title}"
    shown.save(saved := BytesIO())
    assert places(saved.getvalue(), PPTX) == [("about One", "slide 1"), ("about Two", "slide 2")]


def test_rtf_is_read_without_its_marks() -> None:
    body = rb"{\rtf1\ansi\ansicpg1251 \'ce\'f2\'e4\'e5\'eb\par{\pict 0102}{\*\bkmkstart x}\u26085?\par}"
    assert texts(body, RTF) == ["Отдел", "日"]
    with pytest.raises(InvalidRequest, match="is no RTF"):
        read("plain", RTF)


def test_a_formula_is_read_as_the_value_it_had() -> None:
    row = '<row r="1"><c r="A1"><f>6*7</f><v>42</v></c><c r="B1"><f>1/0</f></c></row>'
    assert texts(sheet_of(row, 1), XLSX) == ["Sheet", "42 | =1/0"]


def test_a_sheet_that_claims_to_be_huge_is_read_as_it_is() -> None:
    assert texts(sheet_of('<row r="3"><c r="B3"><v>7</v></c></row>', 1), XLSX) == ["Sheet", "7"]


def test_a_slide_is_read_with_its_tables_groups_and_notes() -> None:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    assert slide.shapes.title is not None
    slide.shapes.title.text = "The plan 计划"
    slide.placeholders[1].text_frame.text = "First\vand more"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    inch = Inches(1)
    table = slide.shapes.add_table(2, 2, inch, inch, inch, inch).table
    for place, text in enumerate(("City", "River", "Basel", "Rhine")):
        table.cell(place // 2, place % 2).text = text
    group = slide.shapes.add_group_shape().shapes.add_group_shape()
    group.shapes.add_textbox(inch, inch, inch, inch).text_frame.text = "in a group"
    notes = slide.notes_slide.notes_text_frame
    assert notes is not None
    notes.text = "Say it slowly."
    show.slides.add_slide(show.slide_layouts[6])
    file = BytesIO()
    show.save(file)
    assert read(file.getvalue(), PPTX) == [
        Heading(level=1, text="Slide 1: The plan 计划"),
        Paragraph(text="First\nand more"),
        Paragraph(text="City: Basel\nRiver: Rhine"),
        Paragraph(text="in a group"),
        Heading(level=2, text="Notes"),
        Paragraph(text="Say it slowly."),
        Heading(level=1, text="Slide 2"),
    ]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Name,City\nAnn,Köln\n", "utf-8"),
        ("Name;City\nAnn;Köln\n", "latin-1"),
        ("Name|City\nAnn|Köln\n", "utf-8-sig"),
        ("Name\tCity\r\nAnn\tKöln\r\n", "utf-16"),
        ("Name,City\nAnn,Köln\n", "utf-16-le"),
        ("Name,City\nAnn,Köln\n", "utf-16-be"),
    ],
)
def test_encoding_and_delimiter_are_found_out(text: str, encoding: str) -> None:
    assert texts(text.encode(encoding), CSV) == ["Name: Ann\nCity: Köln"]


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_chinese_tables_are_read(encoding: str) -> None:
    assert texts("姓名，全名,城市\n李雷,北京\n".encode(encoding), CSV) == ["姓名，全名: 李雷\n城市: 北京"]


def test_quoted_fields_keep_delimiters_quotes_and_line_ends() -> None:
    body = 'a,b\n"1, 2","say ""x""\nand y"\n'
    assert texts(body, CSV) == ['a: 1, 2\nb: say "x" and y']
    assert texts("a,b\n" + "x" * 300_000 + ",y\n", CSV) == [f"a: {'x' * 300_000}\nb: y"]


def test_numbers_are_no_header_and_a_header_alone_is_text() -> None:
    assert texts("2024,17\n2025,18\n", CSV) == ["2024 | 17", "2025 | 18"]
    assert texts("Name,City\n", CSV) == ["Name | City"]


def test_small_values_are_records_and_large_ones_lie_under_their_paths() -> None:
    long = "y" * RECORD_CHARACTERS
    value = {"id": 1, "name": "李雷", "tags": ["a", None], "orders": [{"item": {"sku": "A"}}, {"note": [long, "z"]}]}
    assert read(json.dumps(value), JSON) == [
        Paragraph(text="id: 1\nname: 李雷\ntags: a, null"),
        Heading(level=1, text="orders"),
        Heading(level=2, text="[0]"),
        Paragraph(text="item.sku: A"),
        Heading(level=2, text="[1]"),
        Heading(level=3, text="note"),
        Paragraph(text=f"{long}"),
        Paragraph(text="z"),
    ]


def test_numbers_of_json_stay_as_they_were_written() -> None:
    assert texts('{"a": 1.10, "b": 1e400, "c": 12345678901234567890.5}', JSON) == [
        "a: 1.10\nb: 1e400\nc: 12345678901234567890.5"
    ]


@pytest.mark.parametrize("media_type", [JSON, JSON_LINES])
def test_each_line_of_json_lines_is_a_record(media_type: str) -> None:
    assert texts('{"a": 1}\n\n{"a": {"b": "二"}}\r\n', media_type) == ["a: 1", "a.b: 二"]


def test_malformed_json_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidRequest, match="line 2, column 6"):
        read('{"a": 1,\n"b": }', JSON)
    with pytest.raises(InvalidRequest, match="Line 3"):
        read("1\n2\n{\n", JSON_LINES)


def mail(subject: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "Jürgen <j@example.org>", "li@example.org"
    message["Subject"], message["Date"] = subject, "Mon, 02 Nov 2026 10:00:00 +0100"
    return message


def test_an_email_is_read_with_its_attachments_or_why_not() -> None:
    message = mail("预算 Budget")
    message.set_content("Dear Li,\n\nsee below. 你好")
    message.add_alternative("<p>not this one", subtype="html")
    message.add_attachment("a;b\n1;2\n".encode("utf-16"), maintype="text", subtype="csv", filename="t.csv")
    message.add_attachment("# Köln\n\nx", subtype="markdown", charset="latin-1", filename="k.md")
    message.add_attachment(b"GIF89a", maintype="image", subtype="gif", filename="p.gif")
    message.add_attachment(b"PK\x03\x04", maintype="application", subtype="octet-stream", filename="b.docx")
    forwarding = mail("Fwd: 预算")
    forwarding.set_content("<h1>Look</h1><p>at this", subtype="html")
    forwarding.make_mixed()
    forwarding.add_attachment(message)
    found = read(forwarding.as_bytes(), EMAIL)
    assert [block for block in found if isinstance(block, Heading)] == [
        Heading(level=1, text="Fwd: 预算"),
        Heading(level=2, text="Look"),
        Heading(level=2, text="预算 Budget"),
        Heading(level=3, text="Attachment: t.csv"),
        Heading(level=3, text="Attachment: k.md"),
        Heading(level=4, text="Köln"),
        Heading(level=3, text="Attachment: p.gif"),
        Heading(level=3, text="Attachment: b.docx"),
    ]
    paragraphs = [block.text.strip() for block in found if isinstance(block, Paragraph)]
    assert paragraphs[0] == (
        "From: Jürgen <j@example.org>\nTo: li@example.org\nSubject: Fwd: 预算\nDate: 2026-11-02T10:00:00+01:00"
    )
    assert paragraphs[3:7] == ["Dear Li,", "see below. 你好", "a: 1\nb: 2", "x"]
    assert paragraphs[7].startswith("p.gif is left out: Cannot read 'image/gif'")
    assert paragraphs[8] == "b.docx is left out: The DOCX cannot be read; it may be damaged or encrypted."


def test_headers_and_texts_of_any_encoding_are_read() -> None:
    raw = "From: Jürgen <j@x>\r\nSubject: Grüße\r\nDate: some day\r\n\r\nhallo 世界".encode()
    assert texts(raw, EMAIL) == ["Grüße", "From: Jürgen <j@x>\nSubject: Grüße\nDate: some day", "hallo 世界"]


@pytest.mark.parametrize("media_type", [XLSX, PPTX, EMAIL])
def test_a_damaged_file_is_refused_or_read_in_part(media_type: str) -> None:
    file = BytesIO()
    pptx.Presentation().save(file)
    message = mail("x")
    message.add_attachment(b"y" * 999, maintype="text", subtype="plain", filename="y.txt")
    makers = {XLSX: lambda: sheet_of("<row/>", 1), PPTX: file.getvalue, EMAIL: message.as_bytes}
    whole = makers[media_type]()
    for end in range(0, len(whole), len(whole) // 17):
        for body in (whole[:end], whole[:end] + b"\x00garbage\xff" + whole[end + 9 :]):
            try:
                read(body, media_type)
            except InvalidRequest as error:
                assert error.param == "body"


def test_a_document_says_what_it_is_instead() -> None:
    with pytest.raises(InvalidRequest, match="is no PPTX, but a XLSX"):
        read(sheet_of("<row/>", 1), PPTX)
    with pytest.raises(InvalidRequest, match="The XLSX is encrypted"):
        read(encrypted_office(), XLSX)
    with pytest.raises(InvalidRequest, match=r"holds a DTD in 'xl/workbook\.xml'"):
        read(with_dtd("xl/workbook.xml"), XLSX)
