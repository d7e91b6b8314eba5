"""Reading DOCX: every word that a reader sees, once and in its place, and notes of what is left out."""

import zipfile
from io import BytesIO

import pytest

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph
from backend.extraction.formats.docx.document import read_docx
from backend.extraction.formats.pictures.texts import PictureTexts
from shared.errors import InvalidRequest

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SPACES = {
    "w": W,
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "v": "urn:schemas-microsoft-com:vml",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
}
STRICT = {"w": "http://purl.oclc.org/ooxml/wordprocessingml/main"}


def docx_of(body: str, *, is_strict: bool = False, **parts: str) -> bytes:
    """Return a document of this XML; each further part is named by its kind, with a digit behind that of a header."""
    spaces = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in (STRICT if is_strict else SPACES).items())
    kinds = {name: name.rstrip("0123456789") for name in parts}
    related = "".join(
        f'<Relationship Id="{name}" Type="x/{kind}" Target="{name}.xml"/>' for name, kind in kinds.items()
    )
    roots = {"header": "hdr", "footer": "ftr"}
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("_rels/.rels", '<R><Relationship Type="x/officeDocument" Target="/word/document.xml"/></R>')
        archive.writestr("word/_rels/document.xml.rels", f"<R>{related}</R>")
        archive.writestr("word/document.xml", f"<w:document {spaces}><w:body>{body}</w:body></w:document>")
        for name, content in parts.items():
            root = roots.get(kinds[name], kinds[name])
            archive.writestr(f"word/{name}.xml", f"<w:{root} {spaces}>{content}</w:{root}>")
    return file.getvalue()


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def p(inside: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{inside}</w:p>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(run(text))}</w:tc>"


def cell_of(*inside: str) -> str:
    return f"<w:tc>{''.join(inside)}</w:tc>"


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(cells)}</w:tr>"


def control(inside: str) -> str:
    return f"<w:sdt><w:sdtPr><w:alias w:val='x'/></w:sdtPr><w:sdtContent>{inside}</w:sdtContent></w:sdt>"


def read(body: str, **parts: str) -> list[Block]:
    blocks = PictureTexts().put_into(read_docx(docx_of(body, is_strict=False, **parts)))
    return [block for block in blocks if block.text.strip()]


def texts(body: str, **parts: str) -> list[str]:
    return [block.text for block in read(body, **parts)]


def test_content_controls_are_read_at_every_level() -> None:
    table = f"<w:tbl>{row(cell('Date'), cell('Who'))}{control(row(control(cell('1 May')), cell('Ann')))}</w:tbl>"
    assert texts(control(p(run("Block"))) + p(run("Name: ") + control(run("Bo"))) + control(table)) == [
        "Block",
        "Name: Bo",
        "Date: 1 May\nWho: Ann",
    ]


def test_what_revisions_insert_is_text_and_what_they_delete_is_not() -> None:
    moved = f"<w:moveFrom>{run('old')}</w:moveFrom><w:moveTo>{run('new')}</w:moveTo>"
    deleted = "<w:del><w:r><w:delText>thirty</w:delText></w:r></w:del>"
    gone = f"<w:tr><w:trPr><w:del/></w:trPr>{cell('c')}{cell('d')}</w:tr>"
    table = f"<w:tbl>{row(cell('a'), cell('b'))}{gone}</w:tbl>"
    assert texts(p(f"{deleted}<w:ins>{run('ninety')}</w:ins>{moved}") + table) == ["ninetynew", "a | b"]


def test_fields_show_their_result_and_elements_that_are_not_known_what_they_hold() -> None:
    def mark(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    inner = f"{mark('begin')}<w:r><w:instrText>PAGE</w:instrText></w:r>{mark('separate')}{run('unseen')}{mark('end')}"
    field = f"{mark('begin')}{inner}{run('unseen')}{mark('separate')}{run('4.2')}{mark('end')}"
    simple = f'<w:fldSimple w:instr="REF x">{run("Quarantine")}</w:fldSimple>'
    assert texts(p(f"See {field}{simple}<smartTag>{run(' in Rome')}</smartTag>")) == ["4.2Quarantine in Rome"]
    assert texts(p(mark("begin") + run("never shown")) + p(run("what follows a damaged field"))) == [
        "what follows a damaged field"
    ]


def test_ruby_readings_stand_behind_the_word() -> None:
    def ruby(base: str, reading: str) -> str:
        return f"<w:r><w:ruby><w:rt>{run(reading)}</w:rt><w:rubyBase>{run(base)}</w:rubyBase></w:ruby></w:r>"

    assert texts(p(ruby("東", "とう") + ruby("京", "きょう") + run("に行く"))) == ["東京(とうきょう)に行く"]


def test_hyphens_of_typesetting_part_no_word() -> None:
    broken = (
        "<w:r><w:t>co</w:t><w:softHyphen/><w:t>operation by E</w:t><w:noBreakHyphen/><w:t>mail in\u00adfor</w:t></w:r>"
    )
    assert texts(p(broken)) == ["cooperation by E-mail infor"]


def test_text_boxes_and_notes_stand_behind_their_paragraph_once() -> None:
    box = f"<w:txbxContent>{p(run('Valve seven'))}</w:txbxContent>"
    both = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    references = '<w:r><w:footnoteReference w:id="2"/><w:commentReference w:id="1"/></w:r>'
    found = texts(
        p(run("Body.") + f"<w:r>{both}</w:r>{references}{references}"),
        footnotes=f'<w:footnote w:id="2">{p(run("Eleven days") + references)}</w:footnote>',
        comments=f'<w:comment w:id="1" w:author="Bo">{p(run("until 2027"))}</w:comment>',
    )
    assert found == ["Body.", "Valve seven", "Footnote: Eleven days", "Comment by Bo: until 2027"]


def test_headers_and_footers_stand_once() -> None:
    header = p(run("Project Halcyon"))
    found = texts(p(run("Body.")), header1=header, header2=header, footer1=p(run("QM-0815")))
    assert found == ["Project Halcyon", "Body.", "QM-0815"]


def test_formulas_are_read_in_a_line() -> None:
    def said(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    power = f"<m:sSup><m:e>{said('b')}</m:e><m:sup>{said('2')}</m:sup></m:sSup>"
    root = f"<m:rad><m:deg/><m:e>{power}{said('-4ac')}</m:e></m:rad>"
    fraction = f"<m:f><m:num>{said('-b±')}{root}</m:num><m:den>{said('2a')}</m:den></m:f>"
    assert texts(p(f"<m:oMath>{said('x=')}{fraction}</m:oMath>")) == ["x=(-b±√(b^2-4ac))/2a"]


def test_a_style_is_a_heading_by_what_it_is_based_on() -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="H"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="K"><w:name w:val="Kapitel"/><w:basedOn w:val="H"/></w:style>'
        '<w:style w:styleId="L"><w:name w:val="Loop"/><w:basedOn w:val="L"/></w:style>'
    )
    body = p(run("Pumps"), '<w:pStyle w:val="K"/>') + p(run("Text"), '<w:pStyle w:val="L"/>')
    outlined = p(run("Outline"), '<w:outlineLvl w:val="0"/>')
    assert read(body + outlined, styles=styles) == [
        Heading(level=2, text="Pumps"),
        Paragraph(text="Text"),
        Heading(level=1, text="Outline"),
    ]


def test_numbers_of_lists_are_text() -> None:
    def level(place: int, form: str, text: str) -> str:
        return f'<w:lvl w:ilvl="{place}"><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'

    def item(text: str, place: int, list_id: int = 1) -> str:
        return p(run(text), f'<w:numPr><w:ilvl w:val="{place}"/><w:numId w:val="{list_id}"/></w:numPr>')

    levels = level(0, "upperRoman", "%1.") + level(1, "lowerLetter", "%1.%2)") + level(2, "bullet", "\uf0b7")
    restart = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride>'
    numbering = (
        f'<w:abstractNum w:abstractNumId="5">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num>'
        f'<w:num w:numId="2"><w:abstractNumId w:val="5"/>{restart}</w:num>'
    )
    body = item("a", 0) + item("b", 1) + item("c", 1) + item("d", 2) + item("e", 0) + item("f", 1) + item("g", 0, 2)
    found = texts(body + item("h", 0, 2) + item("none", 0, 0), numbering=numbering)
    assert found == ["I. a", "I.a) b", "I.b) c", "- d", "II. e", "II.a) f", "VII. g", "VIII. h", "none"]


def test_merged_cells_are_read_once_but_where_a_row_needs_them() -> None:
    title = row(cell("Hours", '<w:gridSpan w:val="3"/>'))
    names = row(cell("Site"), cell("Mon"), cell("Tue"))
    first = row(cell("Bremen", '<w:vMerge w:val="restart"/>'), cell("8"), cell("9"))
    second = row(cell("", "<w:vMerge/>"), cell("10"), cell("closed"))
    assert texts(f"<w:tbl>{title}{names}{first}{second}</w:tbl>") == [
        "Hours",
        "Site: Bremen\nMon: 8\nTue: 9",
        "Site: Bremen\nMon: 10\nTue: closed",
    ]


def test_two_rows_of_names_are_joined_and_years_are_names() -> None:
    top = row(cell(""), cell("Plan", '<w:gridSpan w:val="2"/>'), cell("2025"))
    below = row(cell("Site"), cell("units"), cell("value"), cell(""))
    table = f"<w:tbl>{top}{below}{row(cell('North'), cell('10'), cell('100'), cell('7'))}</w:tbl>"
    assert texts(table) == ["Site: North\nPlan units: 10\nPlan value: 100\n2025: 7"]


def test_nested_tables_follow_theirs_and_frames_are_no_tables() -> None:
    nested = f"<w:tbl>{row(cell('Pressure'), cell('42 bar'))}</w:tbl>"
    outer = f"<w:tbl>{row(cell('a'), cell_of(p(run('b')), nested))}</w:tbl>"
    heading = p(run("Framed"), '<w:outlineLvl w:val="0"/>')
    frame = f"<w:tbl>{row(cell_of(heading, p(run('text'))))}</w:tbl>"
    assert read(outer + frame) == [
        Paragraph(text="a | b"),
        Paragraph(text="Pressure | 42 bar"),
        Heading(level=1, text="Framed"),
        Paragraph(text="text"),
    ]


def test_formulas_beside_each_other_stay_apart() -> None:
    one, other = (f"<m:oMath><m:r><m:t>{text}</m:t></m:r></m:oMath>" for text in ("a=b", "c=d"))
    assert texts(p(run("If ") + one + other + run("."))) == ["If a=b c=d."]


def test_what_is_hidden_and_what_is_a_picture_is_noted() -> None:
    styles = '<w:style w:styleId="S" w:type="character"><w:rPr><w:vanish/></w:rPr></w:style>'
    hidden = run("one", "<w:vanish/>") + run("two", '<w:rStyle w:val="S"/>') + run("three", '<w:color w:val="FFFFFF"/>')
    shown = run("seen", '<w:rStyle w:val="S"/><w:vanish w:val="0"/>')
    picture = "<w:r><w:drawing><pic:pic/></w:drawing></w:r>"
    assert read(p(hidden + shown + picture), styles=styles) == [
        Paragraph(text="seen"),
        Note(text="Hidden texts that were left out: 3."),
        Note(text="Pictures that were not read: 1."),
    ]


def test_white_text_in_a_table_is_seen() -> None:
    white = cell_of(p(run("Name", '<w:color w:val="FFFFFF"/>')))
    assert texts(f"<w:tbl>{row(white, cell('Age'))}{row(cell('Ann'), cell('7'))}</w:tbl>") == ["Name: Ann\nAge: 7"]


def test_strict_documents_are_read() -> None:
    found = read_docx(docx_of(p(run("Saved by Word")), is_strict=True))
    assert [block.text for block in found] == ["Saved by Word"]


@pytest.mark.parametrize("width", ["x", "1000000000"])
def test_a_damaged_table_costs_the_table_alone(width: str) -> None:
    wide = cell("a", f'<w:gridSpan w:val="{width}"/>')
    broken = f"<w:tbl>{row(wide, cell('b'))}</w:tbl>"
    found = texts(p(run("Before")) + broken + p(run("After")))
    assert (found[0], "a" in found[1], "After" in found) == ("Before", True, True)


def test_what_stands_before_a_damaged_place_is_read() -> None:
    found = read(p(run("Before")) + "<w:p><w:r></w:p>" + p(run("After")))
    assert [type(block) for block in found] == [Paragraph, Note]
    with pytest.raises(InvalidRequest, match="damaged"):
        list(read_docx(docx_of("<w:p><w:r></w:p>")))


def test_notes_that_refer_to_each_other_end() -> None:
    references = "".join(f'<w:r><w:footnoteReference w:id="{place}"/></w:r>' for place in range(30)) * 2
    notes = "".join(
        f'<w:footnote w:id="{place}">{p(run(f"n{place}") + references)}</w:footnote>' for place in range(30)
    )
    assert sum(text.count("n29") for text in texts(p(run("x") + references), footnotes=notes)) == 1


def test_deep_nesting_is_read_as_its_bare_text() -> None:
    deep = 3000
    body = "<w:sdt>" * deep + p(run("deep")) + "</w:sdt>" * deep
    assert read(p(run("x")) + body) == [
        Paragraph(text="x"),
        Paragraph(text="deep"),
        Note(text="A damaged paragraph or table was read as plain text."),
    ]


def test_a_sign_beyond_all_signs_costs_its_paragraph_alone() -> None:
    body = p("<w:r><w:sym w:char='FFFFFFFFFF'/><w:t>damaged</w:t></w:r>") + p(run("whole"))
    assert [block.text for block in read_docx(docx_of(body))] == [
        "damaged",
        "A damaged paragraph or table was read as plain text.",
        "whole",
    ]
