"""Files made to be costly: each is refused with what it exceeds, in a child process, and others are read meanwhile."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from backend.extraction.domain.media_types import (
    CSV,
    DOCX,
    EMAIL,
    FORMATS,
    HTML,
    JSON,
    JSON_LINES,
    MARKDOWN,
    PDF,
    PPTX,
    READABLE,
    TEXT,
    XLSX,
)
from backend.extraction.formats.archives import MAX_UNPACKED_BYTES
from backend.extraction.formats.children import ChildLimits
from backend.extraction.formats.cutting import ContentLimits
from backend.extraction.formats.reader import QUEUE_LENGTH, LibraryDocumentReader
from backend.extraction.ports import ReadableFile
from shared.errors import InvalidRequest, PayloadTooLarge, Unavailable, UnsupportedValue
from tests.patience import PATIENCE_SECONDS
from tests.unit.backend.extraction.made_files import encrypted_office, pdf_of, sheet_of, with_dtd, zip_of

LOW = ChildLimits(
    memory_bytes=256 * 1024**2,
    cpu_seconds=1,
    heavy_cpu_seconds=1,
    wall_seconds=PATIENCE_SECONDS,  # on a busy machine too, another limit is met before
    content=ContentLimits(blocks=20_000, text_characters=2_000_000, chunks=2_000),
)
PATIENT = LOW._replace(cpu_seconds=200, heavy_cpu_seconds=200)
"""For files that exceed something before their time is up, however slow the machine is."""

MEGABYTE = 1024 * 1024


@pytest.fixture
async def reader() -> AsyncIterator[LibraryDocumentReader]:
    opened = LibraryDocumentReader(LOW)
    yield opened
    await opened.close()


async def read(
    reader: LibraryDocumentReader, body: bytes | str, media_type: str, user_id: str = "ann"
) -> list[tuple[tuple[str, ...], str]]:
    raw = body.encode() if isinstance(body, str) else body
    async with reader.read(ReadableFile("acme", user_id, "doc_a", media_type, bytearray(raw))) as cut:
        chunks = [chunk async for batch in cut.batches for chunk in batch]
    assert [chunk.ordinal for chunk in chunks] == list(range(cut.chunk_count))
    return [(chunk.heading_path, chunk.text) for chunk in chunks]


def nested_mail(depth: int) -> str:
    return "Subject: x\n" + "".join(
        f"Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n" for level in range(depth)
    )


def flat_mail(count: int) -> str:
    return "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + "--b\n\nx\n" * count


HOSTILE: dict[str, tuple[Callable[[], bytes | str], str, str]] = {
    "one line": (lambda: "x" * 3 * MEGABYTE, TEXT, "at most 2000000 characters"),
    "combining marks": (lambda: "a\u0301" * MEGABYTE, TEXT, "at most 2000000 characters"),
    "ideographs": (lambda: "\u6f22" * MEGABYTE, TEXT, "at most 2000 pieces"),
    "letters that unfold": (lambda: "\ufdfa" * 1_900_000, TEXT, "at most 2000 pieces"),
    "invalid text": (lambda: bytes(range(128, 256)) * (MEGABYTE // 128), TEXT, "encoding is uncertain"),
    "headings": (lambda: "# a\n" * 21_000, MARKDOWN, "at most 20000 headings|computing time"),
    "cells": (lambda: "|a|b|\n|-|-|\n" + "|c|d|\n" * 80_000, MARKDOWN, "MB of memory|computing time"),
    "nested elements": (lambda: "<div>" * 200_000, HTML, "nested more than"),
    "attributes": (lambda: "<p " + "a=b " * 500_000 + ">x", HTML, "too many attributes"),
    "quoted attributes": (lambda: "<p " + "a=\">\"b='>'" * 100_000 + ">x", HTML, "too many attributes"),
    "attributes everywhere": (lambda: ("<p " + "a " * 3_000 + ">x") * 300, HTML, "too many attributes"),
    "unpacks to too much": (lambda: zip_of("word/document.xml", MAX_UNPACKED_BYTES), DOCX, "unpacks to more"),
    "unpacks to much": (lambda: zip_of("word/document.xml", MAX_UNPACKED_BYTES // 2), DOCX, "cannot be read|memory"),
    "slides that unpack to too much": (
        lambda: zip_of("ppt/presentation.xml", MAX_UNPACKED_BYTES),
        PPTX,
        "unpacks to more",
    ),
    "a document as a sheet": (lambda: zip_of("word/document.xml", 1_000), XLSX, "is no XLSX, but a DOCX"),
    "a picture as a sheet": (lambda: b"\x89PNG\r\n" + b"x" * MEGABYTE, XLSX, "is no XLSX"),
    "encrypted sheet": (encrypted_office, XLSX, "is encrypted"),
    "entities": (lambda: with_dtd("xl/sharedStrings.xml"), XLSX, "holds a DTD"),
    "empty cells": (lambda: sheet_of("<row>" + "<c/>" * 16_384 + "</row>", 200), XLSX, "2000000 cells|computing time"),
    "rows beyond any sheet": (
        lambda: sheet_of('<row r="999999999"><c r="A999999999"/></row>', 1),
        XLSX,
        "cells|computing",
    ),
    "one field": (lambda: '"' + "x" * 3 * MEGABYTE, CSV, "at most 2000000 characters"),
    "one row": (lambda: "x," * 20 * MEGABYTE, CSV, "more than 2000000 cells|MB of memory"),
    "picture as table": (
        lambda: b"\x89PNG\r\n\x1a\n\x00\x00\x00\r" + bytes(range(256)) * 99,
        CSV,
        "is uncertain",
    ),
    "NULs in a table": (lambda: "a,b\n" * 17_000 + "c,\x00\n", CSV, "NUL"),
    "nested lists": (lambda: "[" * MEGABYTE, JSON, "nested more than"),
    "nested objects": (lambda: '{"a":' * 500 + "1" + "}" * 500, JSON, "nested more than"),
    "empty lists": (
        lambda: "[" + "[]," * 8 * MEGABYTE + "[]]",
        JSON,
        "MB of memory|computing time|at most 20000 headings",
    ),
    "a broken line": (lambda: '{"a": 1}\n' * 9_000 + "{", JSON_LINES, "Line 9001: The JSON is malformed"),
    "nested parts": (lambda: nested_mail(10_000), EMAIL, "lie more than 30 deep|computing time"),
    "parts": (lambda: flat_mail(10_000), EMAIL, "more than 1000 parts"),
    "no base64": (
        lambda: "Subject: x\nContent-Transfer-Encoding: base64\n\n!" + "?" * MEGABYTE,
        EMAIL,
        "said to be base64",
    ),
    "no mail": (lambda: "x" * MEGABYTE, EMAIL, "is no e-mail"),
}


@pytest.mark.whole
@pytest.mark.parametrize("shape", HOSTILE)
async def test_a_costly_file_is_refused_with_what_it_exceeds(shape: str) -> None:
    body, media_type, complaint = HOSTILE[shape]
    reader = LibraryDocumentReader(LOW if "computing" in complaint else PATIENT)
    with pytest.raises(InvalidRequest, match=complaint) as caught:
        await read(reader, body(), media_type)
    assert caught.value.param == "body"
    await reader.close()


async def test_another_file_is_read_while_a_costly_one_is(reader: LibraryDocumentReader) -> None:
    costly = asyncio.create_task(read(reader, "|a|b|\n|-|-|\n" + "|c|d|\n" * 80_000, MARKDOWN, "eve"))
    assert await read(reader, "<h1>Rivers</h1><p>The Rhine", HTML) == [(("Rivers",), "The Rhine")]
    assert not costly.done()
    costly.cancel()
    await asyncio.gather(costly, return_exceptions=True)


async def test_large_files_are_read_whole(reader: LibraryDocumentReader) -> None:
    text = "\n\n".join(f"Barrel {number} holds wine of the year {number % 97}." for number in range(10_000))
    found = await read(reader, text, TEXT)
    assert len(found) > 256
    assert "\n\n".join(part for _, part in found) == text
    assert len(await read(reader, pdf_of(("The river rises",)), PDF)) == 1


async def test_who_leaves_ends_the_work_of_their_child() -> None:
    lone, before = LibraryDocumentReader(LOW, children=1), children_here()
    text = "\n\n".join(f"Barrel {number} holds wine." for number in range(19_000))
    async with lone.read(ReadableFile("acme", "ann", "doc_a", TEXT, text.encode())) as cut:
        await anext(aiter(cut.batches))
        (pid,) = children_here() - before
    assert pid not in children_here()
    assert await read(lone, "<p>x", HTML) == [((), "x")]
    await lone.close()


def children_here() -> set[int]:
    """Return the living children of this process."""
    found = set[int]()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(parent) == os.getpid() and state != "Z":
                found.add(int(entry.name))
    return found


async def test_a_full_queue_refuses_its_own_tenant_for_a_while() -> None:
    lone = LibraryDocumentReader(LOW, children=1)
    slow = "|a|b|\n|-|-|\n" + "|c|d|\n" * 80_000
    waiting = [asyncio.create_task(read(lone, slow, MARKDOWN, f"user-{number}")) for number in range(QUEUE_LENGTH + 1)]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable) as caught:
        await read(lone, slow, MARKDOWN)
    assert caught.value.retry_after_seconds
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await read(lone, "<p>x", HTML) == [((), "x")]
    await lone.close()


@pytest.mark.parametrize("media_type", READABLE)
@pytest.mark.parametrize("body", [b"", b"\xff\xfe\x00ba"])
async def test_a_broken_or_empty_document_names_the_body(
    reader: LibraryDocumentReader, media_type: str, body: bytes
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await read(reader, body, media_type)
    # without an engine that reads pictures none is looked into
    assert caught.value.param == ("Content-Type" if FORMATS[media_type].is_picture else "body")


async def test_an_archive_beyond_its_limit_is_too_large(reader: LibraryDocumentReader) -> None:
    with pytest.raises(PayloadTooLarge):
        await read(reader, zip_of("word/document.xml", MAX_UNPACKED_BYTES), DOCX)


async def test_other_types_are_not_read(reader: LibraryDocumentReader) -> None:
    with pytest.raises(UnsupportedValue) as caught:
        await read(reader, "x", "image/png")
    assert caught.value.param == "Content-Type"
