"""Opening the summaries that clients carry, for models that may read them."""

from dataclasses import replace

from backend.conversations.domain.carried_summaries import read_carried, with_messages
from backend.conversations.domain.conversation_log import WITHHELD
from backend.knowledge.domain.labels import Label, may_read
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.turn_draft import AskedTurn
from shared.errors import InvalidRequest
from shared.prompts.summary import frame_summary


class CarriedSummaries:
    """Puts messages in the places of items that carry summaries; who lost access to what one tells finds a notice."""

    def __init__(self, context: ContextSources, secret: str) -> None:
        self._context = context
        self._secret = secret

    async def open(self, asked: AskedTurn) -> AskedTurn:
        """Return a request whose input carries no summaries any more, with their labels.

        Raises:
            InvalidRequest: an item carries no summary of this caller's; `param` names it.
        """
        caller, given = asked.caller, asked.request.input
        carried = {} if isinstance(given, str) else read_carried(given, self._secret)
        if isinstance(given, str) or not carried:
            return asked
        for place, summary in carried.items():
            if (summary.tenant, summary.user_id) != (caller.tenant, caller.user_id):
                message = "This compaction is another user's; send the items that it stands for."
                raise InvalidRequest(message, param=f"input[{place}].encrypted_content")
        labels = {summary.item_id: summary.labels for summary in carried.values()}
        access = await self._context.access(caller, frozenset[Label]().union(*labels.values()))
        items = with_messages(
            given,
            carried,
            lambda summary: frame_summary(summary.text) if may_read(access, summary.labels) else WITHHELD,
        )
        request = asked.request.model_copy(update={"input": items})
        return replace(asked, request=request, labels={**asked.labels, **labels})
