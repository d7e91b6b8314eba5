"""ZIP archives: the files in them that are documents, each under a heading of its name."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import PurePosixPath
from zipfile import ZipFile, ZipInfo

from backend.extraction.domain.blocks import Block, Heading, Note, Picture, under
from backend.extraction.domain.media_types import FORMATS, ZIP, media_type_of
from backend.extraction.formats.archives import MAX_UNPACKED_BYTES, read_archive
from backend.extraction.formats.text import decode, storable
from shared.errors import InvalidRequest, PayloadTooLarge, UnsupportedValue

MAX_DEPTH = 3
_UTF8_NAMES = 0x800
_HIDDEN = ("__MACOSX/", ".")

ReadBlocks = Callable[[bytes, str], Iterable[Block]]
"""Reads a document of a media type."""


def read_files(body: bytes, read_blocks: ReadBlocks, most_bytes: int = MAX_UNPACKED_BYTES) -> Iterator[Block]:
    """Yield the blocks of each file, and say which were left out; `read_blocks` reads what the archive holds.

    Raises:
        PayloadTooLarge: its files have more than `most_bytes` together, those of archives in it counted as well.
    """
    return _Files(read_blocks, most_bytes).of_archive(body, 1)


class _Files:
    """Reads one archive and those in it; it counts what they unpack to together."""

    def __init__(self, read_blocks: ReadBlocks, most_bytes: int) -> None:
        self._read_blocks = read_blocks
        self._most = self._left = most_bytes

    def of_archive(self, body: bytes, depth: int) -> Iterator[Block]:
        return read_archive(body, ZIP, lambda file: self._members(file, depth))

    def _members(self, file: BytesIO, depth: int) -> Iterator[Block]:
        unread = Counter[str]()
        with ZipFile(file) as archive:
            for member in archive.infolist():
                name = _name(member)
                if member.is_dir() or name.startswith(_HIDDEN):
                    continue
                content = self._unpack(archive, member)
                try:
                    media_type = media_type_of(None, name, content)
                except UnsupportedValue:
                    unread[PurePosixPath(name).suffix.lower() or "without an ending"] += 1
                    continue
                yield from self._file(name, content, media_type, depth)
        for ending, count in unread.items():
            yield Note(text=f"Files that were not read, for their kind: {count} ({ending}).")

    def _unpack(self, archive: ZipFile, member: ZipInfo) -> bytes:
        with archive.open(member) as opened:
            content = opened.read(self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise PayloadTooLarge(f"The ZIP unpacks to more than {self._most} bytes.", param="body")
        return content

    def _file(self, name: str, content: bytes, media_type: str, depth: int) -> Iterator[Block]:
        title = Heading(level=depth, text=name)
        try:
            if FORMATS[media_type].is_picture:
                yield from under(title, self._read_blocks(content, media_type))
                return
            yield title
            if media_type == ZIP and depth >= MAX_DEPTH:
                raise InvalidRequest(f"Archives lie more than {MAX_DEPTH} deep in each other.", param="body")
            read = self.of_archive(content, depth + 1) if media_type == ZIP else self._read_blocks(content, media_type)
            for block in read:
                yield _below(block, name, 0 if media_type == ZIP else depth)
        except InvalidRequest as error:
            yield Note(text=f"{name} was left out: {error.message}")


def _below(block: Block, name: str, depth: int) -> Block:
    """Put a block of a file under the heading of its name."""
    match block:
        case Heading(level=level):
            return replace(block, level=level + depth)
        case Note(text=text):
            return Note(text=f"{name}: {text}")
        case Picture(name=page) if page:
            return replace(block, name=f"{name}: {page}")
        case _:
            return block


def _name(member: ZipInfo) -> str:
    """Return the name of a file; programs of old write it in the encoding of their machine."""
    if not member.flag_bits & _UTF8_NAMES and not member.filename.isascii():
        try:
            return storable(decode(member.filename.encode("cp437"))[0])
        except (InvalidRequest, UnicodeEncodeError):
            pass
    return storable(member.filename)
