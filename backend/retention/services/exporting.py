"""Reading all that belongs to a person, as far as they may read it."""

import base64
from collections.abc import AsyncGenerator
from contextlib import suppress

from backend.agents.services.agents import AgentCatalogue
from backend.conversations.services.conversations import CallerConversations, ItemQuery
from backend.conversations.services.withheld_turns import WithheldText
from backend.files.services import Files
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.retention.domain import Kept, Person
from backend.retention.ports import PersonStore
from backend.retention.services.user_erasure import caller_as
from backend.turns.services.responses import Responses
from shared.errors import NotFound
from shared.models.values import JsonObject

ITEMS_READ_AT_ONCE = 20
DOCUMENTS_READ_AT_ONCE = 20
BYTES_IN_A_LINE = 512 * 1024


class PersonTexts:
    """Reads what a person has said and stored as they may read it: what a reader may not see is withheld."""

    def __init__(
        self, conversations: CallerConversations, withheld: WithheldText, responses: Responses, files: Files
    ) -> None:
        self._conversations = conversations
        self._withheld = withheld
        self._responses = responses
        self._files = files
        self._reads = {
            Kept.CONVERSATIONS: self._conversation,
            Kept.RESPONSES: self._response,
            Kept.FILES: self._file,
        }

    def of(self, kind: Kept, person: Person, kept_id: str) -> AsyncGenerator[JsonObject]:
        """Yield a conversation, a response or a file.

        Raises:
            NotFound: it is gone.
        """
        return self._reads[kind](person, kept_id)

    async def _conversation(self, person: Person, conversation_id: str) -> AsyncGenerator[JsonObject]:
        caller = caller_as(person)
        found = await self._conversations.find(caller, conversation_id)
        made = int(found.created_at.timestamp())
        yield {"type": "conversation", "id": found.id, "created_at": made, "metadata": dict(found.metadata)}
        after, has_more = None, True
        while has_more:
            query = ItemQuery(limit=ITEMS_READ_AT_ONCE, descending=False, after=after)
            page = await self._conversations.items(caller, conversation_id, query)
            for body in await self._withheld.show_items(caller, conversation_id, page.items):
                yield {"type": "item", "conversation_id": conversation_id, "item": body}
            after, has_more = (page.items[-1].id if page.items else None), page.has_more

    async def _response(self, person: Person, response_id: str) -> AsyncGenerator[JsonObject]:
        caller, withheld = caller_as(person), self._withheld
        found = await self._responses.find(caller, response_id)
        shown = await withheld.show(caller, found)
        given = await withheld.show_input(caller, found, found.input_items)
        yield {"type": "response", "response": shown.body, "input_items": given}

    async def _file(self, person: Person, file_id: str) -> AsyncGenerator[JsonObject]:
        file = await self._files.find(caller_as(person), file_id)
        yield {"type": "file", **file.model_dump(mode="json", exclude={"tenant", "user_id"})}
        async for piece in self._files.pieces(file):
            yield _content("file", file_id, piece)


class PersonExport:
    """Exports persons."""

    def __init__(
        self, people: PersonStore, texts: PersonTexts, agents: AgentCatalogue, knowledge: KnowledgeStore
    ) -> None:
        self._people = people
        self._texts = texts
        self._agents = agents
        self._knowledge = knowledge

    async def lines(self, person: Person) -> AsyncGenerator[JsonObject]:
        """Yield objects with a `type`; the last one is `end`. What is deleted meanwhile may be missing.

        Raises:
            Unavailable: the database is away; then no `end` comes.
        """
        yield {"type": "user", "id": person.user_id, "tenant": person.tenant}
        for part in (
            self._roles(person),
            self._people.records(person),
            self._export_owned(person),
            self._export_kept(person),
        ):
            async for line in part:
                yield line
        yield {"type": "end"}

    async def _roles(self, person: Person) -> AsyncGenerator[JsonObject]:
        for base_id, role in (await self._people.bases_of(person)).items():
            yield {"type": "knowledge_membership", "knowledge_base_id": base_id, "role": role}
        for group_id, name in await self._people.groups_of(person):
            yield {"type": "group_membership", "group_id": group_id, "name": name}
        for bound in await self._knowledge.bindings(person.tenant, person.user_id, None):
            if bound.via is not None:
                by_group = {"knowledge_base_id": bound.base.id, "role": bound.role.value, "via": bound.via}
                yield {"type": "knowledge_membership", **by_group}
        for name, role in (await self._people.agents_of(person)).items():
            yield {"type": "agent_membership", "agent": name, "role": role}
        for conversation_id in await self._people.find_shared_with(person):
            yield {"type": "conversation_membership", "conversation_id": conversation_id}

    async def _export_kept(self, person: Person) -> AsyncGenerator[JsonObject]:
        for kind in (Kept.CONVERSATIONS, Kept.RESPONSES, Kept.FILES):
            async for each in self._people.ids(kind, person):
                with suppress(NotFound):
                    async for line in self._texts.of(kind, person, each):
                        yield line

    async def _export_owned(self, person: Person) -> AsyncGenerator[JsonObject]:
        """Yield what has no other owner, and goes with the person."""
        owned = await self._people.sole_ownership(person)
        for name in owned.agent_names:
            with suppress(NotFound):
                agent = (await self._agents.find(caller_as(person), name)).agent
                yield {"type": "agent", "name": name, "definition": agent.definition.model_dump(mode="json")}
        for binding in await self._knowledge.bindings(person.tenant, person.user_id, owned.base_ids):
            yield {"type": "knowledge_base", **binding.base.model_dump(mode="json", exclude={"tenant", "version"})}
            async for line in self._documents(binding.base.id):
                yield line

    async def _documents(self, base_id: str) -> AsyncGenerator[JsonObject]:
        knowledge, after, has_more = self._knowledge, None, True
        while has_more:
            page = await knowledge.documents(base_id, after=after, limit=DOCUMENTS_READ_AT_ONCE, descending=False)
            after, has_more = (page[-1].id if page else None), len(page) == DOCUMENTS_READ_AT_ONCE
            for document in page:
                yield {"type": "document", **document.model_dump(mode="json")}
                with suppress(NotFound):
                    body = await knowledge.document_body(document.id)
                    for start in range(0, len(body), BYTES_IN_A_LINE):
                        yield _content("document", document.id, body[start : start + BYTES_IN_A_LINE])


def _content(kind: str, of_id: str, piece: bytes) -> JsonObject:
    return {"type": f"{kind}_content", f"{kind}_id": of_id, "base64": base64.b64encode(piece).decode()}
