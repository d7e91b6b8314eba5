"""Reading attached files for chat_shell: the ticket of a turn names them, and they must be its user's own."""

from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.file_indexes import FileIndexState
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.document_text import TextPage, text_page
from backend.restricted.services.ticket_access import TicketAccess
from backend.vector_stores.services.uploads_by_id import UploadsById
from shared.errors import NotFound, Unavailable

WAIT_SECONDS = 5.0
"""How long a page waits for a file that is being read."""


class TicketedFiles:
    """Pages of the files that a user has attached to their messages."""

    def __init__(self, uploads: UploadsById, store: KnowledgeStore, access: TicketAccess) -> None:
        self._uploads = uploads
        self._store = store
        self._access = access

    async def read(self, ticket_text: str, file_id: str, offset: int, limit: int) -> TextPage:
        """Return up to `limit` characters from `offset` of the text of a file.

        Raises:
            Unauthenticated: the ticket is forged or expired.
            NotFound: the ticket does not name it, its user has deleted it, or it has no text.
            Unavailable: it is still being read. Retryable.
        """
        ticket = await self._access.verified(ticket_text)
        caller = Caller(user_id=ticket.user_id, tenant=ticket.tenant, role=KeyRole.USER)
        is_named = file_id in ticket.file_ids
        file = (await self._uploads.find(caller, [file_id], WAIT_SECONDS)).get(file_id) if is_named else None
        if file is None:
            raise NotFound("There is no such file.", param="file_id")
        if file.state is FileIndexState.BEING_READ:
            raise Unavailable("The file is still being read.")
        if file.document is None:
            raise NotFound("The file has no text.", param="file_id")
        return await text_page(self._store, file.document, offset, limit)
