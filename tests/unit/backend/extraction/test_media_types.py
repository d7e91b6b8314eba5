"""Which format a document has."""

import pytest

from backend.extraction.domain.media_types import (
    CSV,
    DOCX,
    EMAIL,
    HTML,
    JSON,
    JSON_LINES,
    MARKDOWN,
    PDF,
    PPTX,
    RTF,
    TEXT,
    XLSX,
    media_type_of,
)
from shared.errors import UnsupportedValue


@pytest.mark.parametrize(
    ("header", "name", "media_type"),
    [
        ("text/plain", "a.md", TEXT),
        ("text/markdown; charset=utf-8", "a", MARKDOWN),
        ('TEXT/HTML; Charset="UTF-8"', "a.txt", HTML),
        ("application/pdf", "a", PDF),
        (DOCX, "a", DOCX),
        (None, "notes/a.MD", MARKDOWN),
        ("", "a.html", HTML),
        ("application/octet-stream", "a.docx", DOCX),
        ("application/x-www-form-urlencoded", "a.txt", TEXT),
        ("application/vnd.ms-excel", "a.csv", CSV),
        ("text/csv; charset=gbk", "a", CSV),
        ("application/zip", "a.xlsx", XLSX),
        (None, "a.pptx", PPTX),
        (None, "a.tsv", CSV),
        ("application/json", "a", JSON),
        (None, "a.ndjson", JSON_LINES),
        (None, "a.eml", EMAIL),
    ],
)
def test_the_header_decides_and_then_the_ending(header: str | None, name: str, media_type: str) -> None:
    assert media_type_of(header, name) == media_type


@pytest.mark.parametrize(
    ("header", "name"),
    [("image/gif", "a.txt"), (None, "a"), (None, "md"), (None, "a.exe")],
)
def test_anything_else_is_not_read(header: str | None, name: str) -> None:
    with pytest.raises(UnsupportedValue) as caught:
        media_type_of(header, name)
    assert caught.value.param == "Content-Type"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (b"%PDF-1.7\n", PDF),
        (b"PK\x03\x04" + b"x" * 99 + b"xl/workbook.xml", XLSX),
        (b"PK\x03\x04" + b"x" * 99 + b"word/document.xml", DOCX),
        (b"PK\x03\x04" + b"x" * 99 + b"ppt/presentation.xml", PPTX),
        (b"\xef\xbb\xbf \n<!DOCTYPE html><p>x", HTML),
        (b"Received: from a by b\r\n", EMAIL),
        (b"{\\rtf1 x}", RTF),
    ],
)
def test_without_header_and_ending_the_first_bytes_decide(body: bytes, media_type: str) -> None:
    assert media_type_of("application/octet-stream", "upload", body) == media_type
    assert media_type_of(None, "a.md", body) == MARKDOWN


@pytest.mark.parametrize("name", ["a.py", "Makefile", "a.yaml", "notes.2026"])
def test_what_is_text_is_read_whatever_its_name(name: str) -> None:
    for body in (b"limit: 30 volts", "Отдел".encode("cp1251"), "limit".encode("utf-16")):
        assert media_type_of("application/octet-stream", name, body) == TEXT
        assert media_type_of("application/x-yaml", name, body) == TEXT
    for body in (b"\x00\x01\x02\x03", b""):
        with pytest.raises(UnsupportedValue):
            media_type_of(None, name, body)
    with pytest.raises(UnsupportedValue):
        media_type_of("image/gif", name, b"limit")


def test_an_unnamed_picture_is_not_read() -> None:
    for body in (b"\x89PNG\r\n\x1a\n\x00\x00", b""):
        with pytest.raises(UnsupportedValue, match="Cannot read the type of 'upload'"):
            media_type_of(None, "upload", body)


def test_who_sends_an_old_format_is_told_the_new_one() -> None:
    with pytest.raises(UnsupportedValue, match="before 2007: save the file as XLSX"):
        media_type_of("application/vnd.ms-excel", "a.xls")
