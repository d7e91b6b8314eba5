"""Documents as programs write them, and as attackers do."""

import zipfile
from collections.abc import Callable
from functools import cache
from io import BytesIO

import openpyxl
from openpyxl.worksheet.worksheet import Worksheet
from reportlab.pdfgen.canvas import Canvas

SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'


def pdf_of(*pages: tuple[str, ...]) -> bytes:
    file = BytesIO()
    canvas = Canvas(file)
    for lines in pages:
        text = canvas.beginText(72, 720)
        for line in lines:
            text.textLine(line)
        canvas.drawText(text)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


@cache
def zip_of(name: str, size_bytes: int) -> bytes:
    file = BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(name, "w", force_zip64=True) as entry,
    ):
        block = b" " * 1_000_000
        for _ in range(size_bytes // len(block) + 1):
            entry.write(block)
    return file.getvalue()


def xlsx_of(fill: Callable[[openpyxl.Workbook, Worksheet], None]) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    fill(book, sheet)
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def changed(archive: bytes, name: str, content: bytes) -> bytes:
    """Return an archive with another content of one part."""
    file = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(archive)) as source,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for part in source.namelist():
            if part != name:
                target.writestr(part, source.read(part))
        target.writestr(name, content)
    return file.getvalue()


def sheet_of(row: str, count: int) -> bytes:
    """Return a spreadsheet of the same row many times, which claims to be as large as a sheet can be."""
    whole = f'{SHEET}<dimension ref="A1:XFD1048576"/><sheetData>{row * count}</sheetData></worksheet>'
    return changed(xlsx_of(lambda _, sheet: sheet.append(["x"])), "xl/worksheets/sheet1.xml", whole.encode())


def with_dtd(part: str) -> bytes:
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>'
    return changed(xlsx_of(lambda _, sheet: sheet.append(["x"])), part, bomb.encode())


def encrypted_office() -> bytes:
    """Return what begins and is named like an encrypted document; its rest is never looked at."""
    return bytes.fromhex("d0cf11e0a1b11ae1") + b"\x00" * 512 + "EncryptedPackage".encode("utf-16-le")
