"""Execution requests for tests of chat_shell."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from shared.models.execution import (
    AccessMode,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    ToolDefinition,
    TurnLimits,
    User,
)
from tests.fakes.chat_shell_requests import PLAIN
from tests.fakes.clock import FakeClock
from tests.fakes.model_scripted import MODEL_NAME

NOW = FakeClock().now()


def execution_request(**changes: Any) -> ExecutionRequest:
    """A plain request with no history and one question; name what shall differ."""
    fields: dict[str, Any] = {
        "request_id": "req_1",
        "conversation_id": "conv_1",
        "turn_id": "resp_1",
        "epoch": 0,
        "user": User(id="user_1", tenant="default", display_name="Ada"),
        "model": MODEL_NAME,
        "parameters": PLAIN,
        "system_prompt": "Be brief.",
        "history": (),
        "kb_meta_prompt": "",
        "dynamic_blocks": (),
        "prompt": "How long is the notice period?",
        "sent_at": NOW,
        "time_zone": "Europe/Berlin",
        "knowledge": knowledge(),
        "tools": (),
        "limits": TurnLimits(max_knowledge_calls=10, max_model_calls=None),
        "cache_key": "cache_1",
        "deadline": NOW + timedelta(seconds=600),
    }
    return ExecutionRequest(**{**fields, **changes})


def knowledge(*base_ids: str, mode: AccessMode = AccessMode.FULL) -> Knowledge:
    """Bound bases, all in one mode."""
    bases = tuple(KnowledgeBaseRef(id=base_id, name=base_id.upper(), access_mode=mode) for base_id in base_ids)
    return Knowledge(bases=bases, access_mode=mode, ticket="ticket_1", user_words="")


def client_functions(names: Sequence[str]) -> tuple[ToolDefinition, ...]:
    """Functions that the client runs itself."""
    return tuple(ToolDefinition(name=name, description=None, parameters=None, strict=None) for name in names)
