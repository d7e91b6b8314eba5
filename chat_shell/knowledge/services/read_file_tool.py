"""The tool `read_file`: the pages of a file that the user attached and that is not shown whole."""

from typing import Annotated

from pydantic import BaseModel, Field

from chat_shell.knowledge.ports import Knowledge
from chat_shell.knowledge.services.read_document_tool import document_of_page, page_characters
from chat_shell.knowledge.services.turn_knowledge import NonBlankText, credentials_of
from chat_shell.tools.domain.tool_answers import ToolAnswer
from chat_shell.tools.domain.tool_calls import validate_arguments
from chat_shell.tools.ports.tools import ToolContext
from shared.models.values import JsonObject
from shared.prompts.read_file import READ_FILE_TOOL


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
