"""The tool `knowledge_base_list_documents`."""

import json

from pydantic import BaseModel

from chat_shell.knowledge.ports import Knowledge
from chat_shell.knowledge.services.turn_knowledge import BaseIds, bases_in_scope, credentials_of
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.domain.tool_calls import validate_arguments
from chat_shell.tools.ports.tools import ToolContext
from shared.models.knowledge_api import KnowledgeDocument
from shared.models.values import JsonObject
from shared.prompts import knowledge_base as texts
from shared.prompts import knowledge_tools as definitions
from shared.prompts.tool_results import NOTICE_TOKENS
from shared.tokens import estimate_tokens

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
