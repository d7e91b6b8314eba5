"""Logs of conversations, turn by turn, as the services would have written them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from backend.conversations.domain.conversation_log import ContextState, Entry, EntryKind, EpochState
from backend.conversations.domain.responses import Conversation, ConversationSettings
from backend.knowledge.domain.tickets import SearchOptions
from shared.models.events import ModelCard
from shared.models.messages import AssistantMessage, HistoryMessage, ToolCall, ToolMessage, UserMessage

T0 = datetime(2026, 11, 22, tzinfo=UTC)
SETTINGS = ConversationSettings(
    model="demo-model", instructions="Be kind.", functions=(), knowledge_base_ids=(), search=SearchOptions()
)
NO_CONTEXT = ContextState(bases=(), blocks=())

Said = tuple[EntryKind, HistoryMessage | None]


def user(text: str = "Go on.") -> Said:
    """Say something as the user."""
    return EntryKind.USER, UserMessage(content=text)


def context(text: str = "Knowledge bases in scope are now: some.") -> Said:
    """Say what is in scope."""
    return EntryKind.DYNAMIC_CONTEXT, UserMessage(content=text)


def notice(text: str = "Some is left out.") -> Said:
    """Say that something is left out."""
    return EntryKind.NOTICE, UserMessage(content=text)


def answer(text: str = "Well.", *call_ids: str) -> Said:
    """Answer, or call tools."""
    calls = tuple(ToolCall(call_id=call_id, name="look", arguments="{}") for call_id in call_ids)
    return EntryKind.ASSISTANT, AssistantMessage(text=text, tool_calls=calls)


def result(call_id: str, text: str = "Found.") -> Said:
    """Answer a call."""
    return EntryKind.TOOL_RESULT, ToolMessage(call_id=call_id, content=text)


def void() -> Said:
    """Say nothing at all."""
    return EntryKind.VOID, None


def log_of(
    *turns: Sequence[Said], epoch: int = 0, reset: EpochState | None = None, after: Sequence[Entry] = ()
) -> tuple[Entry, ...]:
    """Write turns of one epoch behind a log, the first one with `reset`; the n-th of them all is `turn_n`, from 0."""
    before = len({entry.turn_id for entry in after})
    said = [(f"turn_{number}", one) for number, turn in enumerate(turns, before) for one in turn]
    entries = [_entry(place, epoch, turn_id, *one) for place, (turn_id, one) in enumerate(said, len(after))]
    if reset is not None:
        entries[0] = entries[0].model_copy(update={"reset": reset})
    return (*after, *entries)


def _entry(position: int, epoch: int, turn_id: str, kind: EntryKind, message: HistoryMessage | None) -> Entry:
    return Entry(
        position=position,
        epoch=epoch,
        turn_id=turn_id,
        kind=kind,
        message=message,
        created_at=T0,
        context=NO_CONTEXT if kind is EntryKind.DYNAMIC_CONTEXT else None,
    )


def conversation(**changes: Any) -> Conversation:
    """Return a conversation that has had turns with `SETTINGS`."""
    fields: dict[str, Any] = {
        "id": "conv_1",
        "tenant": "acme",
        "user_id": "ada",
        "created_at": T0,
        "metadata": {},
        "log_length": 2,
        "epoch": 3,
        **SETTINGS.model_dump(include={"model", "instructions", "functions", "knowledge_base_ids"}),
        "cache_key": "key",
        "running_response_id": None,
        "latest_response_id": "turn_0",
    }
    return Conversation(**{**fields, **changes})


def card(window_tokens: int = 4_000, output_tokens: int = 800) -> ModelCard:
    """Describe a model; by default a request may carry 3,000 tokens."""
    return ModelCard(name="demo-model", context_window_tokens=window_tokens, max_output_tokens=output_tokens)
