"""The definitions of the knowledge tools that a model is offered; they are constants."""

from collections.abc import Sequence

from shared.models.execution import AccessMode, ToolDefinition
from shared.prompts import knowledge_base as texts

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


def offered_tools(functions: Sequence[ToolDefinition], access_mode: AccessMode) -> tuple[ToolDefinition, ...]:
    """Return the knowledge tools of a turn together with its other functions, sorted by name.

    The tools do not depend on the bases in scope, so that adding one later does not change the prompt.
    """
    ours = _IN_FULL_TURNS if access_mode is AccessMode.FULL else _IN_RESTRICTED_TURNS
    return tuple(sorted((*ours, *functions), key=lambda definition: definition.name))
