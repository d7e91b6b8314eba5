"""Reading attached files for chat_shell: the ticket of a turn names them, and they must be its user's own."""

from backend.files.services import Files
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.file_indexes import FileIndexState, file_index_of_user
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.document_text import TextPage, text_page
from backend.restricted.services.restricted_audit import RestrictedAudit
from backend.restricted.services.ticket_access import TicketAccess
from backend.vector_stores.services.file_indexes import FileIndexes
from shared.errors import NotFound, Unavailable

WAIT_SECONDS = 5.0
"""How long a page waits for a file that is being read."""


class TicketedFiles:
    """Pages of the files that a user has attached to their messages."""

    def __init__(
        self,
        files: Files,
        file_indexes: FileIndexes,
        store: KnowledgeStore,
        access: TicketAccess,
        audit: RestrictedAudit,
    ) -> None:
        self._files = files
        self._file_indexes = file_indexes
        self._store = store
        self._access = access
        self._audit = audit

    async def read(self, ticket_text: str, file_id: str, offset: int, limit: int) -> TextPage:
        """Return up to `limit` characters from `offset` of the text of a file.

        Raises:
            Unauthenticated: the ticket is forged or expired.
            NotFound: the ticket does not name it, its user has deleted it, or it has no text.
            Unavailable: it is still being read. Retryable.
        """
        ticket = await self._audit.verified(self._access, ticket_text)
        if file_id not in ticket.file_ids:
            raise NotFound("There is no such file.", param="file_id")
        caller = Caller(user_id=ticket.user_id, tenant=ticket.tenant, role=KeyRole.USER)
        await self._files.find(caller, file_id)
        (file,) = await self._file_indexes.files(
            file_index_of_user(caller.tenant, caller.user_id), [file_id], WAIT_SECONDS
        )
        if file.state is FileIndexState.BEING_READ:
            raise Unavailable("The file is still being read.")
        if file.document is None:
            raise NotFound("The file has no text.", param="file_id")
        return await text_page(self._store, file.document, offset, limit)
