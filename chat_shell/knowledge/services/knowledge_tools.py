"""The knowledge tools, which read through the backend with the turn's ticket."""

import json
from typing import Annotated, Protocol

from pydantic import BaseModel, Field, StringConstraints

from chat_shell.knowledge.domain.user_words import last_user_message, user_words
from chat_shell.knowledge.ports import Knowledge, TurnCredentials
from chat_shell.sealed.outcome import SealedSearch
from chat_shell.sealed.verdicts import Released
from chat_shell.tools.domain.tool_answers import FoundDocument, ToolAnswer
from chat_shell.tools.domain.tool_calls import ArgumentsRejected, validate_arguments
from chat_shell.tools.ports.tools import Tool, ToolContext
from shared.models.events import ModelCard
from shared.models.execution import AccessMode
from shared.models.knowledge_api import KnowledgeChunk, KnowledgeDocument, KnowledgePage
from shared.models.values import JsonObject
from shared.prompts import knowledge_base as texts
from shared.prompts import knowledge_tools as definitions
from shared.prompts.read_file import READ_FILE_TOOL
from shared.prompts.tool_results import NOTICE_TOKENS, cut_to
from shared.tokens import estimate_tokens

BaseIds = tuple[str, ...] | None
NonBlankText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

WHOLE_BASE_WINDOW_SHARE = 10
"""A base that fits a tenth of the model's context window is returned whole; a page is at most as long."""


def bases_in_scope(wanted: BaseIds, context: ToolContext) -> tuple[str, ...]:
    """Return the bound bases, or those of them that the model named, in the turn's order.

    Raises:
        ArgumentsRejected: the model named a base that is not bound to the turn.
    """
    bound = tuple(base.id for base in context.request.knowledge.bases)
    if not wanted or not bound:
        return bound
    if not set(wanted) <= set(bound):
        raise ArgumentsRejected(texts.BASE_NOT_IN_SCOPE)
    return tuple(base_id for base_id in bound if base_id in wanted)


def credentials_of(context: ToolContext) -> TurnCredentials:
    """Return the credentials with which the backend is called for this turn."""
    return TurnCredentials(ticket=context.request.knowledge.ticket, request_id=context.request.request_id)


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
        restricted = _find_restricted_bases(context)
        sealed_ids = tuple(base_id for base_id in base_ids if base_id in restricted)
        if sealed_ids:
            separate_ids = tuple(base_id for base_id in base_ids if base_id not in restricted)
            return await self._summarise(_build_sealed_search(wanted.query, sealed_ids, context), separate_ids)
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


def _find_restricted_bases(context: ToolContext) -> frozenset[str]:
    """Return the bound bases of which only summaries may be shown.

    In a restricted turn whose bases are all marked as full, every base counts as restricted.
    """
    knowledge = context.request.knowledge
    marked = frozenset(base.id for base in knowledge.bases if base.access_mode is not AccessMode.FULL)
    if marked or knowledge.access_mode is AccessMode.FULL:
        return marked
    return frozenset(base.id for base in knowledge.bases)


def _build_sealed_search(query: str, base_ids: tuple[str, ...], context: ToolContext) -> SealedSearch:
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
        place=chunk.place,
        other_names=chunk.other_names,
    )


def build_knowledge_tools(knowledge: Knowledge, summaries: SafeSummaries) -> tuple[Tool, ...]:
    """Create the knowledge tools, sorted by name; restricted bases are searched through `summaries`."""
    return (
        KnowledgeBaseListDocuments(knowledge),
        KnowledgeBaseReadDocument(knowledge),
        KnowledgeBaseSearch(knowledge, summaries),
        ReadFile(knowledge),
    )


LISTED_DOCUMENTS = 200


class _ListArguments(BaseModel):
    knowledge_base_ids: BaseIds = None


class KnowledgeBaseListDocuments:
    """List the documents of knowledge bases."""

    definition = definitions.LIST_DOCUMENTS
    accepts_restricted = definitions.is_in_restricted_turns(definition)

    def __init__(self, knowledge: Knowledge):
        self._knowledge = knowledge

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """List the documents of the bound bases, or of the named ones among them."""
        base_ids = bases_in_scope(validate_arguments(_ListArguments, arguments).knowledge_base_ids, context)
        if not base_ids:
            return ToolAnswer(text=texts.NO_KNOWLEDGE_BASE)
        listed = await self._knowledge.list_documents(credentials_of(context), base_ids)
        if not listed:
            return ToolAnswer(text=texts.NO_DOCUMENTS)
        return ToolAnswer(text=_render_listing(listed, context.result_tokens - NOTICE_TOKENS))


def _render_listing(documents: tuple[KnowledgeDocument, ...], limit_tokens: int) -> str:
    listed: list[JsonObject] = []
    for document in documents[:LISTED_DOCUMENTS]:
        entry: JsonObject = {
            "title": document.filename,
            "file_id": document.file_id,
            "knowledge_base_id": document.knowledge_base_id,
            "size_bytes": document.size_bytes,
        }
        limit_tokens -= estimate_tokens(json.dumps(entry, ensure_ascii=False)) + 1
        if limit_tokens < 0:
            break
        listed.append(entry)
    text = json.dumps({"total": len(documents), "files": listed}, ensure_ascii=False)
    return text if len(listed) == len(documents) else f"{text}\n\n{texts.LISTING_INCOMPLETE}"


class _ReadFileArguments(BaseModel):
    file_id: NonBlankText
    offset: Annotated[int, Field(ge=0)] = 0


class ReadFile:
    """Read an attached file page by page.

    It is the user's own and may be read in restricted turns too; the files of an agent are no such files.
    """

    definition = READ_FILE_TOOL
    accepts_restricted = True

    def __init__(self, knowledge: Knowledge):
        self._knowledge = knowledge

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Read one page of a file that the turn's ticket names."""
        wanted = validate_arguments(_ReadFileArguments, arguments)
        page = await self._knowledge.read_file(
            credentials_of(context), wanted.file_id, offset=wanted.offset, limit=page_characters(context.card)
        )
        return ToolAnswer(documents=(document_of_page(page, context.result_tokens),))


MIN_PAGE_CHARACTERS = 2_000
MAX_PAGE_CHARACTERS = 20_000


class _ReadArguments(BaseModel):
    document: NonBlankText
    offset: Annotated[int, Field(ge=0)] = 0


class KnowledgeBaseReadDocument:
    """Read a document page by page."""

    definition = definitions.READ_DOCUMENT
    accepts_restricted = definitions.is_in_restricted_turns(definition)

    def __init__(self, knowledge: Knowledge):
        self._knowledge = knowledge

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolAnswer:
        """Read one page of a document of the bound bases."""
        wanted = validate_arguments(_ReadArguments, arguments)
        base_ids = bases_in_scope(None, context)
        if not base_ids:
            return ToolAnswer(text=texts.NO_KNOWLEDGE_BASE)
        named = _find_matching(wanted.document, await self._knowledge.list_documents(credentials_of(context), base_ids))
        if len(named) == 0:
            return ToolAnswer(text=texts.NO_SUCH_DOCUMENT, failed=True)
        if len(named) > 1:
            file_ids = ", ".join(document.file_id for document in named)
            return ToolAnswer(text=texts.SEVERAL_SUCH_DOCUMENTS + file_ids, failed=True)
        page = await self._knowledge.read_document(
            credentials_of(context), named[0].file_id, offset=wanted.offset, limit=page_characters(context.card)
        )
        return ToolAnswer(documents=(document_of_page(page, context.result_tokens),))


def _find_matching(wanted: str, documents: tuple[KnowledgeDocument, ...]) -> tuple[KnowledgeDocument, ...]:
    """Return the documents with this id; else those with this title; else those whose title differs in case only."""
    by_id = tuple(document for document in documents if document.file_id == wanted)
    by_title = tuple(document for document in documents if document.filename == wanted)
    folded = wanted.casefold()
    return by_id or by_title or tuple(document for document in documents if document.filename.casefold() == folded)


def page_characters(card: ModelCard) -> int:
    """Return the length of a page: at most a tenth of the window, even where every character is a token."""
    return min(MAX_PAGE_CHARACTERS, max(MIN_PAGE_CHARACTERS, card.context_window_tokens // WHOLE_BASE_WINDOW_SHARE))


def document_of_page(page: KnowledgePage, result_tokens: int) -> FoundDocument:
    """Return a page as a model sees it: it fits a tool's result, and the next one begins where it ends."""
    text = cut_to(page.text, result_tokens * 3 // 4)
    is_whole = len(text) == len(page.text)
    return FoundDocument(
        file_id=page.file_id,
        title=page.filename,
        metadata={
            "offset": page.offset,
            "next_offset": page.next_offset if is_whole else page.offset + len(text),
            "total_characters": page.total_characters,
        },
        content=text,
    )
