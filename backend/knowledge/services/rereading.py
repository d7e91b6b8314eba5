"""Reading documents again whose text an earlier reader of their format has made.

What is read again replaces the document as a new upload of its bytes would: searches see the old text or the new one,
and texts that did not change keep their vectors. What was done is known from the documents alone, so that the next run
goes on where one was broken off, and several may run at once.
"""

from collections.abc import AsyncGenerator
from enum import StrEnum
from typing import NamedTuple

from backend.extraction.domain.media_types import READER_VERSIONS
from backend.extraction.ports import DocumentReader, ReadableFile
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import Conflict, InvalidRequest, NotFound, PayloadTooLarge, UnsupportedValue

_MORE_UNREAD = (
    "The text of pictures would be lost that were read before: does the engine for pictures answer (BACKEND_OCR)?"
)


class RereadOutcome(StrEnum):
    """What became of a document: read again, left because it is refused today, or changed by somebody meanwhile."""

    READ = "read"
    REFUSED = "refused"
    CHANGED = "changed"


class RereadDocument(NamedTuple):
    """A document that had its turn, the how-manieth of all, and why it keeps its text where it does."""

    number: int
    of: int
    document_id: str
    outcome: RereadOutcome
    reason: str = ""


class Rereading:
    """Reads what is outdated, one document after another."""

    def __init__(self, store: KnowledgeStore, reader: DocumentReader, *, reads_pictures: bool = False) -> None:
        self._store = store
        self._reader = reader
        self._reads_pictures = reads_pictures

    async def run(self) -> AsyncGenerator[RereadDocument]:
        """Yield each document when it has had its turn.

        Raises:
            Unavailable: the database is away.
        """
        outdated = await self._store.find_outdated(READER_VERSIONS, reads_pictures=self._reads_pictures)
        for number, document_id in enumerate(outdated, 1):
            outcome, reason = await self._reread(document_id)
            yield RereadDocument(number, len(outdated), document_id, outcome, reason)

    async def _reread(self, document_id: str) -> tuple[RereadOutcome, str]:
        found = await self._store.documents_from([document_id])
        document = next((one for one in found if one.id == document_id), None)
        if document is None:
            return RereadOutcome.CHANGED, ""
        try:
            await self._replace(document)
        except (Conflict, NotFound):
            return RereadOutcome.CHANGED, ""
        except (InvalidRequest, PayloadTooLarge, UnsupportedValue) as refused:
            return RereadOutcome.REFUSED, refused.message
        return RereadOutcome.READ, ""

    async def _replace(self, document: Document) -> None:
        body = await self._store.document_body(document.id)
        # Nobody waits for it: it shares the places of no user of this process.
        file = ReadableFile("", "", document.id, document.media_type, body, document.charset, reads_pictures=True)
        async with self._reader.read(file) as cut:
            if cut.unread_pictures > document.unread_pictures:
                raise InvalidRequest(_MORE_UNREAD, param="body")
            made: dict[str, object] = {
                "attributes": {},
                "chunk_count": cut.chunk_count,
                "notes": cut.notes,
                "unread_pictures": cut.unread_pictures,
                "reader_version": READER_VERSIONS[document.media_type],
            }
            await self._store.put_document(document.model_copy(update=made), body, cut.batches, instead_of=document)
