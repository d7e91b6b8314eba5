"""How many characters the engine on this machine finds: `python -m tests.bench.eval_documents --scans`.

The pages are those of a PDF, and go the way of every document: a child draws them, the engine reads them. A page is
right by the share of its characters, white space aside, that need no change to become those of its text.
"""

import asyncio
import resource
from collections.abc import Sequence
from typing import NamedTuple

from backend.extraction.domain.media_types import PDF
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.extraction.ocr.engine import LocalPictureReader, is_installed
from backend.extraction.ports import ReadableFile
from tests.bench.scanned_pages import TEXTS, scan_page
from tests.fakes.pictures import scan_of

PAGES = 5
BAR = 0.95


class ReadPages(NamedTuple):
    """The pages of one language: the share of characters right on each, and what reading them took."""

    language: str
    right: Sequence[float]
    cpu_seconds: float
    megabytes: int


def print_scans() -> None:
    """Print a row for each language, and whether the bar is reached."""
    if not is_installed():
        print("scans: no engine is installed (make setup-ocr)")
        return
    print("| scans | pages | right | worst page | CPU seconds a page | MB at most | bar |")
    print("|---|---|---|---|---|---|---|")
    for language in TEXTS:
        read = asyncio.run(read_pages(language))
        share = sum(read.right) / len(read.right)
        verdict = "reached" if share >= BAR else "missed"
        cells = (f"{share:.2%}", f"{min(read.right):.2%}", f"{read.cpu_seconds / PAGES:.1f}", str(read.megabytes))
        print(f"| {language} | {PAGES} | {' | '.join(cells)} | {verdict} |")


async def read_pages(language: str) -> ReadPages:
    """Read the pages of a language as documents of one page each."""
    engine, right = LocalPictureReader(), list[float]()
    reader = LibraryDocumentReader(engine=engine)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        for number in range(PAGES):
            text, picture = scan_page(language, number)
            file = ReadableFile("", "", "doc", PDF, scan_of(picture), reads_pictures=True)
            async with reader.read(file) as cut:
                found = "\n\n".join([chunk.text async for batch in cut.batches for chunk in batch])
            right.append(share_right(text, found))
    finally:
        await reader.close()
        await engine.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ReadPages(language, right, seconds, after.ru_maxrss // 1024)


def share_right(wanted: str, found: str) -> float:
    """Return 1 less the edits that `found` needs, for each character that is wanted; white space does not count."""
    wanted, found = "".join(wanted.split()), "".join(found.split())
    return max(0.0, 1 - _edits(wanted, found) / len(wanted))


def _edits(one: str, other: str) -> int:
    """Count the characters to insert, delete or replace (Levenshtein)."""
    above = list(range(len(other) + 1))
    for row, character in enumerate(one, 1):
        line = [row]
        for place, another in enumerate(other, 1):
            line.append(min(above[place] + 1, line[-1] + 1, above[place - 1] + (character != another)))
        above = line
    return above[-1]
