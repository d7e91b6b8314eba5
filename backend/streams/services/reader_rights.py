"""The rights of a reader to a response, looked up again while its events are streamed to them."""

import asyncio

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.withheld_turns import WithheldText
from backend.identity.domain import Caller
from shared.errors import PermissionDenied, Unavailable
from shared.models.error_reports import report_of
from shared.models.events import ErrorReport

RIGHTS_SECONDS = 3.0
"""How old the last look at a reader's rights may be when events are passed on to them."""

RIGHTS_LOST = report_of(
    PermissionDenied(
        "Your rights to this conversation or its knowledge have changed, and you may not read this response any more; "
        "its turn goes on."
    )
)


class RightsOfReaders:
    """Looks up whether callers may read on."""

    def __init__(
        self, access: ConversationAccess, withheld: WithheldText, seconds_between: float = RIGHTS_SECONDS
    ) -> None:
        self._access = access
        self._withheld = withheld
        self.seconds_between = seconds_between

    async def still_there(self, caller: Caller, response: StoredResponse, *, reads_text: bool) -> bool:
        """Return whether a caller may read a response; while the database is away, nobody's rights change."""
        try:
            if response.body["store"] and not await self._access.may_read(caller, response):
                return False
            return not (reads_text and response.label and await self._withheld.concerns(caller, response))
        except Unavailable:
            return True


class ReaderRights:
    """Watches the rights of one reader to one response; `reads_text` says that they get more than its state.

    Its maker has just found that the reader has these rights, or found so at `looked_at`.
    """

    def __init__(
        self,
        rights: RightsOfReaders,
        caller: Caller,
        response: StoredResponse,
        *,
        reads_text: bool = True,
        looked_at: float | None = None,
    ) -> None:
        self._rights = rights
        self._caller = caller
        self._response = response
        self._reads_text = reads_text
        self._time = asyncio.get_running_loop().time
        self._looked_at = self._time() if looked_at is None else looked_at
        self._report: ErrorReport | None = None

    def after_waiting(self, response: StoredResponse, *, reads_text: bool) -> "ReaderRights":
        """Return the rights to the response as it is now, which were looked up as long ago as these."""
        return ReaderRights(self._rights, self._caller, response, reads_text=reads_text, looked_at=self._looked_at)

    async def check(self) -> None:
        """Check the rights before an answer that was long in coming is given.

        Raises:
            PermissionDenied: the reader has lost them.
        """
        if report := await self.find_loss():
            raise PermissionDenied(report.message)

    @property
    def is_look_due(self) -> bool:
        """Whether the rights may have changed by now, or are known to be lost: ask `lost`."""
        return self._report is not None or self._time() - self._looked_at >= self._rights.seconds_between

    async def find_loss(self) -> ErrorReport | None:
        """Return why the reader may read no further, once and for all; None while they may."""
        if self._report is None and self.is_look_due:
            self._looked_at = self._time()
            is_there = await self._rights.still_there(self._caller, self._response, reads_text=self._reads_text)
            self._report = None if is_there else RIGHTS_LOST
        return self._report
