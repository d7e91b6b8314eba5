"""Model calls for tests of adapters and directories."""

from datetime import UTC, datetime, timedelta
from typing import Any

from chat_shell.models.ports import ModelCall
from shared.models.execution import ModelParameters, ToolDefinition
from shared.models.messages import UserMessage
from tests.fakes.chat_shell_requests import PLAIN


def asked(**changes: Any) -> ModelParameters:
    """Parameters of a request; name what shall differ from none."""
    return PLAIN.model_copy(update=changes)


def tool(name: str, parameters: dict[str, Any] | None = None) -> ToolDefinition:
    """A tool with a description of its own."""
    return ToolDefinition(name=name, description=f"The tool {name}.", parameters=parameters, strict=None)


def model_call(**changes: Any) -> ModelCall:
    """A call with one user message; name what shall differ."""
    fields: dict[str, Any] = {
        "model": "fake-model",
        "messages": (UserMessage(content="Hello"),),
        "tools": (),
        "parameters": PLAIN,
        "cache_key": "key_1",
    }
    return ModelCall(**{**fields, **changes})


class StandingClock:
    """Always shows the same instant."""

    def __init__(self) -> None:
        self.instant = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)

    def now(self) -> datetime:
        return self.instant


FAR = StandingClock().instant + timedelta(minutes=10)
"""A deadline that no test reaches."""
