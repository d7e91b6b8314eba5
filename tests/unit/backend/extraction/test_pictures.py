"""Pages without text and pictures, read by an engine in the middle of their document."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from io import BytesIO
from typing import Any, cast
from zipfile import ZipFile

import docx
import openpyxl
import psutil
import pytest
from openpyxl.drawing.image import Image as SheetPicture
from openpyxl.worksheet.worksheet import Worksheet
from PIL import Image
from pptx import Presentation
from pptx.util import Emu

from backend.extraction.domain.media_types import DOCX, JPEG, PDF, PNG, PPTX, TIFF, WEBP, XLSX, ZIP
from backend.extraction.domain.pictures import PictureTime
from backend.extraction.formats.children import CHILD_MODULE, ChildLimits
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.extraction.ports import CutFile, PictureReader, ReadableFile
from backend.search.domain.chunks import Chunk
from shared.errors import InvalidRequest, ModelRequestRejected, PayloadTooLarge, Unavailable, UnsupportedValue
from shared.models.values import Place
from tests.fakes.pictures import FakePictureReader, file_of, picture_of, scan_of
from tests.unit.backend.extraction.made_files import changed

SCAN = picture_of("Dear reader", (620, 877))
SCAN_FILE = file_of(SCAN)
Open = Callable[..., LibraryDocumentReader]


@pytest.fixture
async def open_reader() -> AsyncIterator[Open]:
    opened: list[LibraryDocumentReader] = []

    def make(engine: PictureReader | None, time: PictureTime | None = None, **limits: float) -> LibraryDocumentReader:
        reader = LibraryDocumentReader(
            ChildLimits()._replace(**limits), engine=engine, picture_time=time or PictureTime()
        )
        opened.append(reader)
        return reader

    yield make
    for reader in opened:
        await reader.close()


async def read(
    reader: LibraryDocumentReader, body: bytes, media_type: str = PDF, *, reads_pictures: bool = True
) -> tuple[CutFile, list[Chunk]]:
    file = ReadableFile("t", "ann", "doc_1", media_type, body, reads_pictures=reads_pictures)
    async with reader.read(file) as cut:
        return cut, [chunk async for batch in cut.batches for chunk in batch]


def texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


async def test_a_page_without_text_is_read_at_its_place(open_reader: Open) -> None:
    engine = FakePictureReader("Second page.\n\nIts end.")
    cut, chunks = await read(open_reader(engine), scan_of("First page.", SCAN, "Third page."))
    assert "\n\n".join(texts(chunks)) == "First page.\n\nSecond page.\n\nIts end.\n\nThird page."
    assert [chunk.place for chunk in chunks] == [Place(page=1, last_page=3)]
    assert (cut.notes, cut.unread_pictures) == ((), 0)
    assert engine.sizes == [(2479, 3508)]


async def test_without_an_engine_or_the_wish_such_a_page_is_noted(open_reader: Open) -> None:
    engine = FakePictureReader(otherwise="Never.")
    body = scan_of("First page.", SCAN, ["Text.", SCAN])
    for reader, wanted in ((open_reader(None), True), (open_reader(engine), False)):
        cut, chunks = await read(reader, body, reads_pictures=wanted)
        assert "\n\n".join(texts(chunks)) == "First page.\n\nText."
        assert cut.notes == ("Page 2 of 3 has no text.", "Pictures that were not read: 1.")
        assert cut.unread_pictures == 2
        with pytest.raises(InvalidRequest, match="no text in it"):
            await read(reader, scan_of(SCAN), reads_pictures=wanted)
        with pytest.raises(UnsupportedValue, match="image/png"):
            await read(reader, file_of(SCAN), PNG, reads_pictures=wanted)
    assert not engine.pictures


async def test_what_an_engine_finds_no_text_in_has_none(open_reader: Open) -> None:
    cut, _ = await read(open_reader(FakePictureReader(otherwise=" \n")), scan_of("First page.", SCAN, ["Text.", SCAN]))
    assert (cut.notes, cut.unread_pictures) == (("Page 2 of 3 has no text.",), 0)
    with pytest.raises(InvalidRequest, match="no text in it"):
        await read(open_reader(FakePictureReader()), file_of(SCAN), PNG)


async def test_a_page_with_nothing_on_it_is_not_sent(open_reader: Open) -> None:
    engine = FakePictureReader(otherwise="Never.")
    cut, _ = await read(open_reader(engine), scan_of("First page.", []))
    assert (cut.notes, cut.unread_pictures, engine.pictures) == (("Page 2 of 2 has no text.",), 0, [])


async def test_pictures_beside_text_are_read_once_and_marks_are_not(open_reader: Open) -> None:
    engine = FakePictureReader("On a picture.", "On another.")
    other, mark = picture_of("Another", (900, 500)), picture_of("", (60, 10))
    body = scan_of(["Text.", SCAN, other], ["More.", SCAN, other], ["End.", mark])
    cut, chunks = await read(open_reader(engine), body)
    said = "\n\n".join(texts(chunks))
    assert said == "Text.\n\nOn a picture.\n\nOn another.\n\nMore.\n\nEnd."
    assert (cut.notes, len(engine.pictures)) == ((), 2)


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (PNG, file_of(picture_of("x", mode="RGBA"))),
        (PNG, file_of(picture_of("x", mode="1"))),
        (PNG, file_of(picture_of("x", mode="P"))),
        (PNG, file_of(Image.new("I;16", (1000, 300), 65_535))),
        (JPEG, file_of(picture_of("x", mode="CMYK"), form="JPEG")),
        (WEBP, file_of(picture_of("x", mode="RGB"), form="WEBP")),
        (TIFF, file_of(picture_of("x"), form="TIFF")),
    ],
)
async def test_pictures_are_files(open_reader: Open, media_type: str, body: bytes) -> None:
    engine = FakePictureReader("The text.")
    cut, chunks = await read(open_reader(engine), body, media_type)
    assert (texts(chunks), cut.notes, engine.sizes) == (["The text."], (), [(1000, 300)])
    with Image.open(BytesIO(engine.pictures[0])) as sent:
        assert sent.convert("L").tobytes()[0] > 200  # the ground is white


async def test_pages_of_a_picture_keep_their_numbers(open_reader: Open) -> None:
    engine = FakePictureReader("One.", "", "Three.")
    cut, chunks = await read(open_reader(engine), file_of(SCAN, SCAN.rotate(90), SCAN.rotate(9), form="TIFF"), TIFF)
    assert (texts(chunks), cut.notes) == (["One.\n\nThree."], ("Page 2 of 3 has no text.",))
    assert chunks[0].place == Place(page=1, last_page=3)


@pytest.mark.whole
async def test_a_large_picture_is_made_smaller_and_one_that_is_too_large_is_refused(open_reader: Open) -> None:
    engine = FakePictureReader("The text.")
    await read(open_reader(engine), file_of(Image.new("L", (6000, 4000), 255)), PNG)
    assert 8_900_000 < engine.sizes[0][0] * engine.sizes[0][1] <= 9_000_000
    with pytest.raises(PayloadTooLarge, match="pixels"):
        await read(open_reader(engine), file_of(Image.new("1", (10_000, 6_000))), PNG)
    with pytest.raises(InvalidRequest, match="damaged"):
        await read(open_reader(engine), file_of(SCAN)[:1000] + b"x" * 100, JPEG)


async def test_pictures_in_an_archive_stand_under_their_names(open_reader: Open) -> None:
    file = BytesIO()
    with ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "Text.")
        archive.writestr("scans/b.png", file_of(SCAN))
        archive.writestr("c.tiff", file_of(SCAN, SCAN.rotate(90), form="TIFF"))
        archive.writestr("broken.png", file_of(SCAN)[:300])
    cut, chunks = await read(open_reader(FakePictureReader("Of b.", "Of c.")), file.getvalue(), ZIP)
    assert [(chunk.heading_path, chunk.text) for chunk in chunks] == [
        (("a.txt",), "Text."),
        (("scans/b.png",), "Of b."),
        (("c.tiff",), "Of c."),
    ]
    assert cut.notes == ("c.tiff: Page 2 of 2 has no text.", "A picture was not read: it is damaged.")
    without, chunks = await read(open_reader(None), file.getvalue(), ZIP)
    assert (texts(chunks), without.unread_pictures) == (["Text."], 4)
    assert without.notes[-1] == "Pictures that were not read: 2."


def docx_with_pictures() -> bytes:
    document = docx.Document()
    logo = file_of(picture_of("Logo", (200, 60)))
    document.sections[0].header.paragraphs[0].add_run().add_picture(BytesIO(logo))
    document.add_paragraph("Before.").add_run().add_picture(BytesIO(file_of(SCAN)))
    document.add_paragraph("After.").add_run().add_picture(BytesIO(file_of(SCAN)))
    document.add_table(1, 2).cell(0, 1).paragraphs[0].add_run().add_picture(BytesIO(file_of(SCAN.rotate(90))))
    return saved(document)


def pptx_with_pictures() -> bytes:
    slides = Presentation()
    for picture in (picture_of("Logo", (200, 60)), SCAN, SCAN.rotate(90)):
        shapes = slides.slides.add_slide(slides.slide_layouts[6]).shapes
        shapes.add_textbox(Emu(0), Emu(0), Emu(99), Emu(99)).text_frame.text = "Text."
        shapes.add_picture(BytesIO(file_of(picture)), Emu(0), Emu(0))
    return saved(slides)


def xlsx_with_pictures() -> bytes:
    book = openpyxl.Workbook()
    sheet = cast(Worksheet, book.active)
    sheet.append(["Text."])
    for place, picture in enumerate((picture_of("Logo", (200, 60)), SCAN, SCAN.rotate(90)), 3):
        sheet.add_image(SheetPicture(BytesIO(file_of(picture))), f"A{place}")
    return saved(book)


def saved(document: Any) -> bytes:
    file = BytesIO()
    document.save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("media_type", "body", "there"),
    [
        (DOCX, docx_with_pictures, ["Of 1.", "Before.", "Of 2.", "After.", "Of 3."]),
        (PPTX, pptx_with_pictures, ["Text.", "Of 1.", "Text.", "Of 2.", "Text.", "Of 3."]),
        (XLSX, xlsx_with_pictures, ["Text.", "Of 1.", "Of 2.", "Of 3."]),
    ],
)
async def test_pictures_in_office_documents_are_read_where_they_stand(
    open_reader: Open, media_type: str, body: Callable[[], bytes], there: list[str]
) -> None:
    made = body()
    cut, chunks = await read(open_reader(FakePictureReader("Of 1.", "Of 2.", "Of 3.")), made, media_type)
    assert ("\n\n".join(texts(chunks)).split("\n\n"), cut.notes, cut.unread_pictures) == (there, (), 0)
    without, _ = await read(open_reader(None), made, media_type)
    assert (without.notes, without.unread_pictures) == (("Pictures that were not read: 3.",), 3)


async def test_what_no_engine_can_read_of_an_office_document_is_noted(open_reader: Open) -> None:
    made = changed(
        changed(docx_with_pictures(), "word/media/image2.png", b"EMF"), "word/media/image1.png", SCAN_FILE[:300]
    )
    cut, chunks = await read(open_reader(FakePictureReader("Of 3.")), made, DOCX)
    assert texts(chunks) == ["Before.\n\nAfter.\n\nOf 3."]
    assert cut.notes == (
        "A picture was not read: it is damaged.",
        "A picture was not read: The picture cannot be read; it may be damaged.",
    )
    assert cut.unread_pictures == 0


@pytest.mark.parametrize(
    ("failure", "asked"), [(Unavailable("the engine is away"), 1), (ModelRequestRejected("the engine is away"), 2)]
)
async def test_a_failure_is_a_note_and_refuses_nothing(open_reader: Open, failure: Exception, asked: int) -> None:
    engine = FakePictureReader(otherwise=failure)
    cut, chunks = await read(open_reader(engine), scan_of("First page.", SCAN, SCAN.rotate(90)))
    assert texts(chunks) == ["First page."]
    notes = ("Page 2 of 3 was not read: the engine is away.", "Page 3 of 3 was not read: the engine is away.")
    assert (cut.notes, cut.unread_pictures, len(engine.pictures)) == (notes, 2, asked)
    cut, chunks = await read(open_reader(engine), scan_of(SCAN))
    assert (cut.chunk_count, chunks, cut.unread_pictures) == (0, [], 1)


class SlowReader:
    """Never answers."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_asked = asyncio.Event()

    async def read_picture(self, picture: bytes) -> str:
        self.asked += 1
        self.is_asked.set()
        await asyncio.Event().wait()
        return ""


@pytest.mark.whole
async def test_the_time_of_a_picture_and_of_a_document_is_limited(open_reader: Open) -> None:
    engine = SlowReader()
    body = scan_of("First page.", SCAN, SCAN.rotate(90), SCAN.rotate(180))
    cut, chunks = await read(open_reader(engine, PictureTime(0.05, 0.08)), body)
    assert (texts(chunks), cut.unread_pictures, engine.asked) == (["First page."], 3, 2)
    assert cut.notes[0] == "Page 2 of 4 was not read: reading it takes more than 0.05 seconds."
    assert "a document's pictures takes more than 0.08 seconds" in cut.notes[2]


class FatalReader:
    """Ends the child that asks, as memory does where a page takes too much."""

    async def read_picture(self, picture: bytes) -> str:
        for child in psutil.Process().children():
            if CHILD_MODULE in child.cmdline():
                child.kill()
        return ""


async def test_pictures_that_end_their_child_cost_the_document_nothing_else(open_reader: Open) -> None:
    cut, chunks = await read(open_reader(FatalReader()), scan_of("First page.", SCAN))
    assert (texts(chunks), cut.unread_pictures) == (["First page."], 1)
    assert cut.notes[1] == "Pictures were not read: to draw them takes too much memory or computing time."


@pytest.mark.whole
async def test_drawing_has_a_time_of_its_own(open_reader: Open) -> None:
    engine = FakePictureReader(otherwise="Read.")
    pages = [SCAN.rotate(turn) for turn in range(0, 360, 20)]
    cut, chunks = await read(open_reader(engine, drawing_seconds=1, heavy_cpu_seconds=30), scan_of("First.", *pages))
    assert texts(chunks)[0].startswith("First.")
    assert cut.unread_pictures + len(engine.pictures) == len(pages)


async def test_who_leaves_while_a_picture_is_read_ends_the_child(open_reader: Open) -> None:
    engine = SlowReader()
    reader = open_reader(engine)
    task = asyncio.ensure_future(read(reader, scan_of(SCAN)))
    await engine.is_asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    cut, _ = await read(reader, scan_of("Text."), reads_pictures=False)
    assert cut.chunk_count == 1
