"""The tool `knowledge_base_search`.

Of restricted knowledge bases it receives only the summaries that the sealed room has released.
"""

from typing import Protocol

from pydantic import BaseModel

from chat_shell.knowledge.domain.user_words import last_user_message, user_words
from chat_shell.knowledge.ports import Knowledge
from chat_shell.knowledge.services.turn_knowledge import (
    WHOLE_BASE_WINDOW_SHARE,
    BaseIds,
    NonBlankText,
    bases_in_scope,
    credentials_of,
)
from chat_shell.sealed.outcome import SealedSearch
from chat_shell.sealed.released import Released
from chat_shell.tools.domain.tool_answers import FoundDocument, ToolAnswer
from chat_shell.tools.domain.tool_calls import validate_arguments
from chat_shell.tools.ports.tools import ToolContext
from shared.models.execution import AccessMode
from shared.models.knowledge_api import KnowledgeChunk
from shared.models.values import JsonObject
from shared.prompts import knowledge_base as texts
from shared.prompts import knowledge_tools as definitions

SEARCH_CHUNKS = 10
"""A chunk has 200 to 400 tokens, so a search returns about 3,000 tokens."""


class _SearchArguments(BaseModel):
    query: NonBlankText
    knowledge_base_ids: BaseIds = None


class SafeSummaries(Protocol):
    """The part of the sealed room that the search tool needs."""

    async def summarise(self, search: SealedSearch) -> Released | None:
        """Return a summary that may be shown, or None where there is none; the reason is not revealed."""
        ...


class KnowledgeBaseSearch:
    """Find passages; the result for a restricted base is a released summary, or one constant text."""

    definition = definitions.SEARCH
    accepts_restricted = definitions.is_in_restricted_turns(definition)

    def __init__(self, knowledge: Knowledge, summaries: SafeSummaries):
        self._knowledge = knowledge
        self._summaries = summaries

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Search the bound bases, or those of them that the model named.

        Where any of these is restricted, only the restricted ones are searched, and the answer asks the model to search
        the others separately.
        """
        wanted = validate_arguments(_SearchArguments, arguments)
        base_ids = bases_in_scope(wanted.knowledge_base_ids, context)
        if not base_ids:
            return ToolAnswer(text=texts.NO_KNOWLEDGE_BASE)
        restricted = _restricted_bases(context)
        sealed_ids = tuple(base_id for base_id in base_ids if base_id in restricted)
        if sealed_ids:
            separate_ids = tuple(base_id for base_id in base_ids if base_id not in restricted)
            return await self._summarise(_sealed_search(wanted.query, sealed_ids, context), separate_ids)
        return await self._search(wanted.query, base_ids, context)

    async def _summarise(self, search: SealedSearch, separate_ids: tuple[str, ...]) -> ToolAnswer:
        released = await self._summaries.summarise(search)
        shown = [texts.CANNOT_ANSWER] if released is None else [released.as_json(), texts.RELEASED_NOTE]
        if separate_ids:
            shown.append(texts.SEARCH_SEPARATELY + ", ".join(separate_ids))
        structured = None if released is None else released.as_object()
        return ToolAnswer(text="\n\n".join(shown), structured=structured)

    async def _search(self, query: str, base_ids: tuple[str, ...], context: ToolContext) -> ToolAnswer:
        answer = await self._knowledge.search(
            credentials_of(context),
            query,
            base_ids,
            limit=SEARCH_CHUNKS,
            whole_below_tokens=_whole_base_tokens(context),
        )
        if answer.access_mode is not AccessMode.FULL:
            return ToolAnswer(text=texts.CANNOT_ANSWER)
        if not answer.chunks:
            return ToolAnswer(text=texts.NOTHING_FOUND)
        return ToolAnswer(documents=tuple(map(_document_of_chunk, answer.chunks)))


def _whole_base_tokens(context: ToolContext) -> int:
    """Return how large a base may be that comes whole: titles and headings add up to half of its size."""
    return min(context.card.context_window_tokens // WHOLE_BASE_WINDOW_SHARE, context.result_tokens * 2 // 3)


def _restricted_bases(context: ToolContext) -> frozenset[str]:
    """Return the bound bases of which only summaries may be shown.

    In a restricted turn whose bases are all marked as full, every base counts as restricted.
    """
    knowledge = context.request.knowledge
    marked = frozenset(base.id for base in knowledge.bases if base.access_mode is not AccessMode.FULL)
    if marked or knowledge.access_mode is AccessMode.FULL:
        return marked
    return frozenset(base.id for base in knowledge.bases)


def _sealed_search(query: str, base_ids: tuple[str, ...], context: ToolContext) -> SealedSearch:
    request = context.request
    return SealedSearch(
        ticket=request.knowledge.ticket,
        request_id=request.request_id,
        query=query,
        last_message=last_user_message(request),
        user_words=user_words(request),
        knowledge_base_ids=base_ids,
        deadline=request.deadline,
    )


def _document_of_chunk(chunk: KnowledgeChunk) -> FoundDocument:
    return FoundDocument(
        file_id=chunk.file_id,
        title=chunk.filename,
        metadata={"knowledge_base_id": chunk.knowledge_base_id, "heading_path": list(chunk.heading_path)},
        content=chunk.text,
        score=chunk.score,
        attributes=chunk.attributes,
    )
