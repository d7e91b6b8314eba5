"""Reading all that is a person's, as he himself may read it."""

import base64
from collections.abc import AsyncGenerator
from contextlib import suppress

from backend.conversations.services.conversations import ConversationServices, ItemQuery
from backend.files.services import Files
from backend.retention.domain import Kept, Person
from backend.retention.ports import PersonStore
from backend.retention.services.leaving import caller_as
from backend.turns.services.responses import Responses
from shared.errors import NotFound
from shared.models.values import JsonObject

ITEMS_READ_AT_ONCE = 20


class PersonExport:
    """Exports persons. Texts come through the reads of users, which withhold what a reader may not see."""

    def __init__(
        self, people: PersonStore, conversations: ConversationServices, responses: Responses, files: Files
    ) -> None:
        self._people = people
        self._conversations = conversations
        self._responses = responses
        self._files = files

    async def lines(self, person: Person) -> AsyncGenerator[JsonObject]:
        """Yield objects with a `type`; the last one is `end`. What is deleted meanwhile may be missing.

        Raises:
            Unavailable: the database is away; then no `end` comes.
        """
        yield {"type": "user", "id": person.user_id, "tenant": person.tenant}
        for base_id, role in (await self._people.bases_of(person)).items():
            yield {"type": "knowledge_membership", "knowledge_base_id": base_id, "role": role}
        for name, role in (await self._people.agents_of(person)).items():
            yield {"type": "agent_membership", "agent": name, "role": role}
        for conversation_id in await self._people.shared_with(person):
            yield {"type": "conversation_membership", "conversation_id": conversation_id}
        for kind, read in (
            (Kept.CONVERSATIONS, self._conversation),
            (Kept.RESPONSES, self._response),
            (Kept.FILES, self._file),
        ):
            async for each in self._people.ids(kind, person):
                with suppress(NotFound):
                    async for line in read(person, each):
                        yield line
        yield {"type": "end"}

    async def _conversation(self, person: Person, conversation_id: str) -> AsyncGenerator[JsonObject]:
        caller, services = caller_as(person), self._conversations
        found = await services.conversations.find(caller, conversation_id)
        made = int(found.created_at.timestamp())
        yield {"type": "conversation", "id": found.id, "created_at": made, "metadata": dict(found.metadata)}
        after, has_more = None, True
        while has_more:
            query = ItemQuery(limit=ITEMS_READ_AT_ONCE, descending=False, after=after)
            page = await services.conversations.items(caller, conversation_id, query)
            for body in await services.withheld.shown_items(caller, conversation_id, page.items):
                yield {"type": "item", "conversation_id": conversation_id, "item": body}
            after, has_more = (page.items[-1].id if page.items else None), page.has_more

    async def _response(self, person: Person, response_id: str) -> AsyncGenerator[JsonObject]:
        caller, withheld = caller_as(person), self._conversations.withheld
        found = await self._responses.find(caller, response_id)
        shown = await withheld.shown(caller, found)
        given = await withheld.shown_input(caller, found, found.input_items)
        yield {"type": "response", "response": shown.body, "input_items": given}

    async def _file(self, person: Person, file_id: str) -> AsyncGenerator[JsonObject]:
        file = await self._files.find(caller_as(person), file_id)
        yield {"type": "file", **file.model_dump(mode="json", exclude={"tenant", "user_id"})}
        async for piece in self._files.pieces(file):
            yield {"type": "file_content", "file_id": file_id, "base64": base64.b64encode(piece).decode()}
