"""Which format a document has."""

import pytest

from backend.knowledge.domain.media_types import DOCX, HTML, MARKDOWN, PDF, TEXT, media_type_of
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
    ],
)
def test_the_header_decides_and_then_the_ending(header: str | None, name: str, media_type: str) -> None:
    assert media_type_of(header, name) == media_type


@pytest.mark.parametrize(
    ("header", "name"),
    [("image/png", "a.txt"), (None, "a"), (None, "md"), (None, "a.exe"), ("text/plain; charset=gbk", "a.txt")],
)
def test_anything_else_is_not_read(header: str | None, name: str) -> None:
    with pytest.raises(UnsupportedValue) as caught:
        media_type_of(header, name)
    assert caught.value.param == "Content-Type"
