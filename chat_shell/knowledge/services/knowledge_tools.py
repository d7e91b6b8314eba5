"""The three knowledge tools: search, list, read, all through the backend with the turn's ticket.

Of restricted bases this module sees what the sealed room has released, and nothing else.
"""

import json
from typing import Annotated, Protocol

from pydantic import BaseModel, Field, StringConstraints

from chat_shell.knowledge.domain.user_words import last_user_message, user_words
from chat_shell.knowledge.ports import Claim, Knowledge, KnowledgeChunk, KnowledgeDocument, KnowledgePage
from chat_shell.sealed.outcome import SealedSearch
from chat_shell.sealed.released import Released
from chat_shell.tools.domain.documents import FoundDocument
from chat_shell.tools.domain.tool_calls import ArgumentsRejected, checked
from chat_shell.tools.ports import Tool, ToolAnswer, ToolContext
from shared.models.events import ModelCard
from shared.models.execution import AccessMode
from shared.models.values import JsonObject
from shared.prompts import knowledge_base as texts
from shared.prompts import knowledge_tools as definitions

SEARCH_CHUNKS = 10
"""A chunk measures 200 to 400 tokens: some 3,000 tokens a search."""

WHOLE_BASE_WINDOW_SHARE = 10
"""A base that fits a tenth of the window comes whole."""

LISTED_DOCUMENTS = 200

MIN_PAGE_CHARACTERS = 2_000
MAX_PAGE_CHARACTERS = 20_000

_BaseIds = tuple[str, ...] | None
_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _SearchArguments(BaseModel):
    query: _Words
    knowledge_base_ids: _BaseIds = None


class _ListArguments(BaseModel):
    knowledge_base_ids: _BaseIds = None


class _ReadArguments(BaseModel):
    document: _Words
    offset: Annotated[int, Field(ge=0)] = 0


class SafeSummaries(Protocol):
    """The sealed room, as the search sees it."""

    async def summarise(self, search: SealedSearch) -> Released | None:
        """Return a summary that may be shown, or None, whatever the cause."""
        ...


class KnowledgeBaseSearch:
    """Finds passages; restricted bases answer with a released summary, or with one constant text."""

    definition = definitions.SEARCH
    accepts_restricted = definitions.is_in_restricted_turns(definition)

    def __init__(self, knowledge: Knowledge, summaries: SafeSummaries):
        self._knowledge = knowledge
        self._summaries = summaries

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Search the bound bases, or the named ones among them; the restricted ones first, and then alone."""
        wanted = checked(_SearchArguments, arguments)
        base_ids = _bases_in_scope(wanted.knowledge_base_ids, context)
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
        return ToolAnswer(text="\n\n".join(shown))

    async def _search(self, query: str, base_ids: tuple[str, ...], context: ToolContext) -> ToolAnswer:
        answer = await self._knowledge.search(
            _claim(context),
            query,
            base_ids,
            limit=SEARCH_CHUNKS,
            whole_below_tokens=context.card.context_window_tokens // WHOLE_BASE_WINDOW_SHARE,
        )
        if answer.access_mode is not AccessMode.FULL:
            return ToolAnswer(text=texts.CANNOT_ANSWER)
        if not answer.chunks:
            return ToolAnswer(text=texts.NOTHING_FOUND)
        return ToolAnswer(documents=tuple(map(_document_of_chunk, answer.chunks)))


class KnowledgeBaseListDocuments:
    """Lists documents."""

    definition = definitions.LIST_DOCUMENTS
    accepts_restricted = definitions.is_in_restricted_turns(definition)

    def __init__(self, knowledge: Knowledge):
        self._knowledge = knowledge

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """List the documents of the bound bases, or of the named ones among them."""
        base_ids = _bases_in_scope(checked(_ListArguments, arguments).knowledge_base_ids, context)
        if not base_ids:
            return ToolAnswer(text=texts.NO_KNOWLEDGE_BASE)
        listed = await self._knowledge.list_documents(_claim(context), base_ids)
        if not listed:
            return ToolAnswer(text=texts.NO_DOCUMENTS)
        return ToolAnswer(text=_render_listing(listed))


class KnowledgeBaseReadDocument:
    """Reads a document page by page."""

    definition = definitions.READ_DOCUMENT
    accepts_restricted = definitions.is_in_restricted_turns(definition)

    def __init__(self, knowledge: Knowledge):
        self._knowledge = knowledge

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Read one page of a document of the bound bases."""
        wanted = checked(_ReadArguments, arguments)
        base_ids = _bases_in_scope(None, context)
        if not base_ids:
            return ToolAnswer(text=texts.NO_KNOWLEDGE_BASE)
        named = _named(wanted.document, await self._knowledge.list_documents(_claim(context), base_ids))
        if len(named) == 0:
            return ToolAnswer(text=texts.NO_SUCH_DOCUMENT, failed=True)
        if len(named) > 1:
            file_ids = ", ".join(document.file_id for document in named)
            return ToolAnswer(text=texts.SEVERAL_SUCH_DOCUMENTS + file_ids, failed=True)
        page = await self._knowledge.read_document(
            _claim(context), named[0].file_id, offset=wanted.offset, limit=_page_characters(context.card)
        )
        return ToolAnswer(documents=(_document_of_page(page),))


def knowledge_tools(knowledge: Knowledge, summaries: SafeSummaries) -> tuple[Tool, ...]:
    """Make the knowledge tools, sorted by name; restricted bases are searched through `summaries`."""
    return (
        KnowledgeBaseListDocuments(knowledge),
        KnowledgeBaseReadDocument(knowledge),
        KnowledgeBaseSearch(knowledge, summaries),
    )


def _bases_in_scope(wanted: _BaseIds, context: ToolContext) -> tuple[str, ...]:
    """Return the bound bases, or those of them that the model named, in the turn's order."""
    bound = tuple(base.id for base in context.request.knowledge.bases)
    if not wanted or not bound:
        return bound
    if not set(wanted) <= set(bound):
        raise ArgumentsRejected(texts.BASE_NOT_IN_SCOPE)
    return tuple(base_id for base_id in bound if base_id in wanted)


def _restricted_bases(context: ToolContext) -> frozenset[str]:
    """Return the bound bases that only summaries may be had of; all, where the turn is restricted and none says so."""
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


def _named(wanted: str, documents: tuple[KnowledgeDocument, ...]) -> tuple[KnowledgeDocument, ...]:
    """Find documents by id, else by title, else by title in any case."""
    by_id = tuple(document for document in documents if document.file_id == wanted)
    by_title = tuple(document for document in documents if document.filename == wanted)
    folded = wanted.casefold()
    return by_id or by_title or tuple(document for document in documents if document.filename.casefold() == folded)


def _page_characters(card: ModelCard) -> int:
    """A tenth of the window even where each character is a token."""
    return min(MAX_PAGE_CHARACTERS, max(MIN_PAGE_CHARACTERS, card.context_window_tokens // WHOLE_BASE_WINDOW_SHARE))


def _document_of_chunk(chunk: KnowledgeChunk) -> FoundDocument:
    return FoundDocument(
        file_id=chunk.file_id,
        title=chunk.filename,
        metadata={"knowledge_base_id": chunk.knowledge_base_id, "heading_path": list(chunk.heading_path)},
        content=chunk.text,
        score=chunk.score,
    )


def _document_of_page(page: KnowledgePage) -> FoundDocument:
    return FoundDocument(
        file_id=page.file_id,
        title=page.filename,
        metadata={
            "offset": page.offset,
            "next_offset": page.next_offset,
            "total_characters": page.total_characters,
        },
        content=page.text,
    )


def _render_listing(documents: tuple[KnowledgeDocument, ...]) -> str:
    listed = [
        {
            "title": document.filename,
            "file_id": document.file_id,
            "knowledge_base_id": document.knowledge_base_id,
            "size_bytes": document.size_bytes,
        }
        for document in documents[:LISTED_DOCUMENTS]
    ]
    text = json.dumps({"total": len(documents), "files": listed}, ensure_ascii=False)
    return text if len(listed) == len(documents) else f"{text}\n\n{texts.LISTING_INCOMPLETE}"


def _claim(context: ToolContext) -> Claim:
    return Claim(ticket=context.request.knowledge.ticket, request_id=context.request.request_id)
