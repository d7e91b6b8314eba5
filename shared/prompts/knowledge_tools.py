"""The definitions of the knowledge tools that a model is offered; they are constants."""

from collections.abc import Sequence

from shared.models.execution import AccessMode, ExecutionRequest, ServedTool, ToolDefinition
from shared.prompts import knowledge_base as texts
from shared.prompts.read_file import READ_FILE, READ_FILE_TOOL

SEARCH = ToolDefinition(
    name=texts.KNOWLEDGE_BASE_SEARCH,
    description=texts.SEARCH_DESCRIPTION,
    parameters=texts.SEARCH_PARAMETERS,
    strict=None,
)
LIST_DOCUMENTS = ToolDefinition(
    name=texts.KNOWLEDGE_BASE_LIST_DOCUMENTS,
    description=texts.LIST_DOCUMENTS_DESCRIPTION,
    parameters=texts.LIST_DOCUMENTS_PARAMETERS,
    strict=None,
)
READ_DOCUMENT = ToolDefinition(
    name=texts.KNOWLEDGE_BASE_READ_DOCUMENT,
    description=texts.READ_DOCUMENT_DESCRIPTION,
    parameters=texts.READ_DOCUMENT_PARAMETERS,
    strict=None,
)

_IN_FULL_TURNS = (LIST_DOCUMENTS, READ_DOCUMENT, SEARCH)
_IN_RESTRICTED_TURNS = (SEARCH,)

KNOWLEDGE_TOOLS = frozenset(definition.name for definition in _IN_FULL_TURNS)


def is_in_restricted_turns(definition: ToolDefinition) -> bool:
    """Return whether a knowledge tool is offered where access is restricted."""
    return definition in _IN_RESTRICTED_TURNS


def list_offered_tools(
    functions: Sequence[ToolDefinition], access_mode: AccessMode, *, reads_files: bool = False
) -> tuple[ToolDefinition, ...]:
    """Return the knowledge tools of a turn together with its other functions, sorted by name.

    The tools do not depend on the bases in scope, so that adding one later does not change the prompt. The tool that
    reads attached files is offered where the epoch has it, unless the client has a function of its name.
    """
    ours = _IN_FULL_TURNS if access_mode is AccessMode.FULL else _IN_RESTRICTED_TURNS
    reader = (READ_FILE_TOOL,) if reads_files and can_read_files(functions) else ()
    return tuple(sorted((*ours, *reader, *functions), key=lambda definition: definition.name))


def can_read_files(functions: Sequence[ToolDefinition]) -> bool:
    """Return whether the tool that reads attached files can be offered beside these functions of the client."""
    return all(function.name != READ_FILE for function in functions)


def tools_of_request(request: ExecutionRequest) -> tuple[ToolDefinition, ...]:
    """Return all tools that a turn offers to its model, sorted by name."""
    mode = request.knowledge.access_mode
    return list_offered_tools(functions_of_request(request), mode, reads_files=request.reads_files)


def functions_of_request(request: ExecutionRequest) -> tuple[ToolDefinition, ...]:
    """Return the tools that a request brings with it: those of tool servers, then the client's."""
    return (*select_served(request.served_tools, request.knowledge.access_mode), *request.tools)


def select_served(served: Sequence[ServedTool], access_mode: AccessMode) -> tuple[ToolDefinition, ...]:
    """Return the definitions of those tools of tool servers that are offered in turns of this access mode."""
    full = access_mode is AccessMode.FULL
    return tuple(tool.definition for tool in served if full or tool.accepts_restricted)
