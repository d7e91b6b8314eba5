"""Reading text, Markdown, HTML, PDF and DOCX."""

from io import BytesIO

import docx
import orjson
import pytest
from pydantic import ValidationError
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, NameObject
from reportlab.pdfgen.canvas import Canvas

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph, Picture
from backend.extraction.domain.chunking import cut_into_pieces
from backend.extraction.domain.media_types import DOCX, HTML, MARKDOWN, PDF, TEXT
from backend.extraction.formats.archives import MAX_UNPACKED_BYTES
from backend.extraction.formats.chosen import read_blocks
from backend.extraction.formats.cutting import ContentLimits, cut_file
from backend.extraction.formats.docx.document import read_docx
from backend.extraction.formats.frames import ANSWER
from backend.extraction.formats.pdf.document import read_pdf
from backend.search.domain.chunks import CHUNKS_AT_ONCE
from shared.errors import InvalidRequest, PayloadTooLarge
from shared.models.values import Place
from tests.unit.backend.extraction.made_files import pdf_of, zip_of


async def read(body: bytes | str, media_type: str) -> list[Block]:
    raw = body.encode() if isinstance(body, str) else body
    return [block for block in read_blocks(raw, media_type) if block.text.strip()]


def texts(blocks: list[Block]) -> list[str]:
    return [block.text for block in blocks]


def docx_of() -> bytes:
    document = docx.Document()
    document.add_heading("Travel", level=0)
    document.add_heading("Trains", level=2)
    document.add_paragraph("Book early. 早点订票。")
    table = document.add_table(rows=2, cols=2)
    for row, cells in zip(table.rows, (("Class", "Price"), ("First", "90")), strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.add_paragraph("The end.")
    file = BytesIO()
    document.save(file)
    return file.getvalue()


async def test_text_is_split_at_blank_lines() -> None:
    blocks = await read("\ufeffOne\r\nstill one\r\n\r\n  \r\nTwo\r三\n", TEXT)
    assert blocks == [Paragraph(text="One\nstill one"), Paragraph(text="Two\n三\n")]


async def test_markdown_keeps_its_source_and_knows_headings() -> None:
    source = """---
title: Trips
---
Before.

# **Travel** & [guide](http://x)

Text *as written*.
- a
- b

```python
# no heading
```

Under
-----
| a | b |
|---|---|
| 1 | 2 |

> # quoted

[ref]: http://example.com "A definition"
"""
    assert await read(source, MARKDOWN) == [
        Paragraph(text="title: Trips\n"),
        Paragraph(text="Before."),
        Heading(level=1, text="Travel & guide"),
        Paragraph(text="Text *as written*."),
        Paragraph(text="- a\n- b"),
        Paragraph(text="```python\n# no heading\n```"),
        Heading(level=2, text="Under"),
        Paragraph(text="a: 1\nb: 2"),
        Paragraph(text="> # quoted"),
        Paragraph(text='\n[ref]: http://example.com "A definition"\n'),
    ]


async def test_a_heading_made_to_be_slow_stays_as_it_was_written() -> None:
    endless = "![" * 500_000
    assert await read(f"# {endless}\n", MARKDOWN) == [Heading(level=1, text=endless)]


async def test_html_gives_what_a_reader_sees() -> None:
    page = """<!doctype html><html><head><title>Ignored here</title><style>p {}</style></head><body>
    <script>alert("no")</script><h1>Travel <em>guide</em></h1>
    <p>One   line<br>and <b>another</b>.</p>loose &amp; text
    <ul><li>first</li><li>second <p>inner</p> tail</li></ul>
    <table><tr><th>Class</th><th>Price</th></tr><tr><td>First</td><td>90</td></tr></table>
    <pre>a
  b</pre><h2>火车</h2><div><div>提前订票</div></div></body></html>"""
    assert await read(page, HTML) == [
        Heading(level=1, text="Travel guide"),
        Paragraph(text="One line\nand another."),
        Paragraph(text="loose & text"),
        Paragraph(text="first"),
        Paragraph(text="second"),
        Paragraph(text="inner"),
        Paragraph(text="tail"),
        Paragraph(text="Class: First\nPrice: 90"),
        Paragraph(text="a\n  b"),
        Heading(level=2, text="火车"),
        Paragraph(text="提前订票"),
    ]


async def test_a_table_of_a_page_is_read_by_its_columns_and_one_that_lays_it_out_is_not() -> None:
    head = "<thead><tr><th>Grade<th colspan=2>Limit</tr><tr><th><th>low<th>high</tr></thead>"
    rows = "<tr><td rowspan=2>S355</td><td>1</td><td>2<br>bar</td></tr><tr><td>340</td><td>4</td></tr>"
    assert texts(await read(f"<p>a</p><table>{head}{rows}</table>b", HTML)) == [
        "a",
        "Grade: S355\nLimit low: 1\nLimit high: 2 bar",
        "Grade: S355\nLimit low: 340\nLimit high: 4",
        "b",
    ]
    layout = "<table><tr><td><h2>News</h2></td><td><table><tr><td>x</td></tr></table></td></tr></table>"
    assert "".join(texts(await read(layout, HTML))).replace("|", "").split() == ["News", "x"]
    wide = "<table>" + "<tr>" + "<td colspan=1000>x</td>" * 1000 + "</tr>" * 2 + "<tr><td>y<td>z</tr></table>"
    assert await read(wide, HTML)
    with pytest.raises(PayloadTooLarge, match="cells"):
        await read("<table>" + ("<tr>" + "<td colspan=1000>x</td>" * 1000 + "</tr>") * 3 + "</table>", HTML)


async def test_what_a_page_hides_is_left_out_and_noted() -> None:
    page = '<p>Seen</p><div style="display: NONE">Ignore all</div><p hidden>Old <b hidden>price</b></p><i hidden></i>'
    assert await read(page, HTML) == [Paragraph(text="Seen"), Note(text="Hidden texts that were left out: 3.")]


async def test_a_page_without_a_first_heading_is_under_its_title() -> None:
    assert await read("<title> Trips\n</title><p>Text", HTML) == [
        Heading(level=1, text="Trips"),
        Paragraph(text="Text"),
    ]


async def test_nested_html_is_read_unless_it_is_an_attack() -> None:
    assert texts(await read("<div><b>" * 400 + "deep", HTML)) == ["deep"]
    with pytest.raises(InvalidRequest, match="nested"):
        await read("<div>" * 100_000, HTML)


async def test_pdf_lines_are_joined_page_by_page() -> None:
    body = pdf_of(("The river rises", "in spring."), ("Second page.",))
    assert [text.strip() for text in texts(await read(body, PDF))] == ["The river rises in spring.", "Second page."]


async def test_docx_gives_headings_paragraphs_and_tables_in_order() -> None:
    assert await read(docx_of(), DOCX) == [
        Heading(level=1, text="Travel"),
        Heading(level=2, text="Trains"),
        Paragraph(text="Book early. 早点订票。"),
        Paragraph(text="Class: First\nPrice: 90"),
        Paragraph(text="The end."),
    ]


@pytest.mark.parametrize("media_type", [PDF, DOCX])
def test_a_document_that_is_cut_or_damaged_is_refused_or_read_in_part(media_type: str) -> None:
    whole, read_it = (pdf_of(("The river",)), read_pdf) if media_type == PDF else (docx_of(), read_docx)
    for end in range(0, len(whole), len(whole) // 23):
        for body in (whole[:end], whole[:end] + b"\x00garbage\xff" + whole[end + 9 :]):
            try:
                list(read_it(body))
            except InvalidRequest as error:
                assert error.param == "body"


async def test_nul_is_no_text() -> None:
    with pytest.raises(InvalidRequest, match=r"U\+0000"):
        await read("a\x00b", TEXT)


async def test_a_passage_of_a_pdf_knows_its_pages() -> None:
    long = tuple("It is a long story about a river that rises in spring." for _ in range(30))
    blocks = await read(pdf_of(long, ("Second page.",), long), PDF)
    pieces = cut_into_pieces([block for block in blocks if not isinstance(block, Note | Picture)])
    assert [str(piece.place) for piece in pieces] == ["p. 1", "pp. 1-3", "p. 3"]
    assert pieces[1].place == Place(page=1, last_page=3)


async def test_words_that_a_line_parts_are_joined_and_pages_without_text_noted() -> None:
    body = pdf_of(("keep all ship-", "ments cool on the X-", "Ray"), (), ("End.",))
    cut = cut_file(body, PDF, ContentLimits())
    assert [text for batch in cut.batches for _, text, *_ in batch] == ["keep all shipments cool on the X-Ray\n\nEnd."]
    assert cut.notes == ("Page 2 of 3 has no text.",)


async def test_a_page_that_is_damaged_costs_itself_alone() -> None:
    writer = PdfWriter(PdfReader(BytesIO(pdf_of(("One.",), ("Two.",)))))
    stream = DecodedStreamObject()
    stream.set_data(b"x")
    stream[NameObject("/Filter")] = NameObject("/JBIG2Decode")
    writer.pages[0][NameObject("/Contents")] = stream
    file = BytesIO()
    writer.write(file)
    found = [block for block in read_pdf(file.getvalue()) if block.text.strip()]
    assert [type(block) for block in found] == [Note, Paragraph]
    assert found[1].text.strip() == "Two."


async def test_the_values_of_a_form_are_text() -> None:
    file = BytesIO()
    canvas = Canvas(file)
    canvas.drawString(72, 720, "Name:")
    canvas.acroForm.textfield(  # pyright: ignore[reportUnknownMemberType]  (the library has no types)
        name="applicant", value="Ottilie Brandt", x=72, y=600
    )
    canvas.save()
    assert "applicant: Ottilie Brandt" in [block.text for block in read_pdf(file.getvalue())]


async def test_a_pdf_that_only_its_owner_may_change_is_read() -> None:
    writer = PdfWriter(PdfReader(BytesIO(pdf_of(("open to read",)))))
    writer.encrypt("", "owner", algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    assert [text.strip() for text in texts(await read(file.getvalue(), PDF))] == ["open to read"]


async def test_an_encrypted_pdf_is_refused() -> None:
    writer = PdfWriter(PdfReader(BytesIO(pdf_of(("secret",)))))
    writer.encrypt("password", algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    with pytest.raises(InvalidRequest, match="encrypted"):
        await read(file.getvalue(), PDF)


def test_an_archive_that_unpacks_to_too_much_is_refused_unopened() -> None:
    with pytest.raises(PayloadTooLarge):
        list(read_docx(zip_of("word/document.xml", MAX_UNPACKED_BYTES)))


async def test_a_child_says_no_more_pieces_at_once_than_the_index_takes() -> None:
    def said(count: int) -> bytes:
        return orjson.dumps({"kind": "batch", "pieces": [[[], "wine", 1, None]] * count})

    assert ANSWER.validate_json(said(CHUNKS_AT_ONCE))
    with pytest.raises(ValidationError):
        ANSWER.validate_json(said(CHUNKS_AT_ONCE + 1))
