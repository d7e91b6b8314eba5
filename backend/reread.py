"""`python -m backend reread`: read documents again that an earlier release has read less well, while replicas serve."""

import sys
from collections import Counter
from contextlib import AsyncExitStack, aclosing

from backend.embeddings.services.question_vectors import NO_MEANING
from backend.extraction.domain.pictures import OcrEngine
from backend.knowledge.services.rereading import Rereading, RereadOutcome
from backend.knowledge.sql.store import SqlKnowledgeStore
from backend.reaching import open_reader, reach_database, reach_engine
from backend.search.wiring import build_search
from backend.settings import ReadingSettings
from shared.clock import SystemClock


async def reread_documents(settings: ReadingSettings) -> None:
    """Read what is outdated, and print what became of it.

    Raises:
        WrongSetting: the database cannot be used at its address, or the engine for pictures is not installed.
    """
    clock, counts = SystemClock(), Counter[RereadOutcome]()
    async with AsyncExitStack() as stack, reach_database(settings) as database:
        search = build_search(database, clock, NO_MEANING, reach_engine(settings, stack))
        store = SqlKnowledgeStore(database, clock, search.index, on_change=search.note_change)
        reader = open_reader(settings, clock, stack)
        ocr = settings.ocr is not OcrEngine.OFF
        async with aclosing(Rereading(store, reader, reads_pictures=ocr).run()) as documents:
            async for one in documents:
                await search.let_changes_wait()
                counts[one.outcome] += 1
                reason = f": {one.reason}" if one.reason else ""
                _tell(f"{one.number} of {one.of}: {one.document_id} {one.outcome}{reason}")
    _tell(", ".join(f"{counts[outcome]} {outcome}" for outcome in RereadOutcome))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
