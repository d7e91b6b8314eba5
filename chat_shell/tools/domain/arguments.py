"""Checking a tool's arguments, with errors that a model can act on."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from chat_shell.tools.domain.tool_calls import ArgumentsRejected
from shared.models.values import JsonObject
from shared.prompts.knowledge_base import ARGUMENTS_REJECTED

Arguments = TypeVar("Arguments", bound=BaseModel)


def checked(shape: type[Arguments], arguments: JsonObject) -> Arguments:
    """Read arguments into their shape.

    Raises:
        ArgumentsRejected: they do not fit; the message names each field and what is wrong with it.
    """
    try:
        return shape.model_validate(arguments)
    except ValidationError as error:
        complaints = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ArgumentsRejected(ARGUMENTS_REJECTED + "; ".join(complaints)) from error
