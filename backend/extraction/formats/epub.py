"""EPUB: the chapters of a book in the order in which they are read (W3C EPUB 3)."""

import posixpath
from collections.abc import Iterator
from io import BytesIO
from urllib.parse import unquote
from zipfile import ZipFile

from backend.extraction.domain.blocks import Block, Note
from backend.extraction.domain.media_types import EPUB
from backend.extraction.formats.archives import read_archive
from backend.extraction.formats.html import read_html
from backend.extraction.formats.office_xml import DAMAGED, Package, is_named
from shared.errors import InvalidRequest

_CONTAINER = "META-INF/container.xml"


def read_epub(body: bytes) -> Iterator[Block]:
    """Yield the blocks of all chapters; one that is damaged costs itself alone."""
    return read_archive(body, EPUB, _read)


def _read(file: BytesIO) -> Iterator[Block]:
    with ZipFile(file) as archive:
        package = Package(archive)
        for part in _chapters(package):
            try:
                with package.open(part) as chapter:
                    yield from read_html(chapter.read())
            except (InvalidRequest, *DAMAGED):
                yield Note(text=f"A chapter is damaged or missing: {part[-100:]}.")


def _chapters(package: Package) -> list[str]:
    container = package.read(_CONTAINER)
    paths = (each.get("full-path") for each in (container.iter() if container is not None else ()))
    book = next(filter(None, paths), "")
    root = package.read(book)
    if root is None:
        raise ValueError("an EPUB without a list of its chapters")
    items = {each.get("id"): each.get("href", "") for each in root.iter() if is_named(each, "item")}
    order = (items.get(each.get("idref"), "") for each in root.iter() if is_named(each, "itemref"))
    folder = posixpath.dirname(book)
    return [posixpath.normpath(posixpath.join(folder, unquote(href))) for href in order if href]
