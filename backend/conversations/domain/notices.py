"""Fixed words that stand in a log where other words were, or say that some are gone."""

from shared.models.messages import AssistantMessage, HistoryMessage, ToolMessage

WITHHELD = "[This text came from knowledge that may no longer be read here, and was taken out.]"
COMPACTED = "[The earlier part of this conversation was left out: it no longer fits.]"


def emptied_message(message: HistoryMessage | None) -> HistoryMessage | None:
    """Put a notice in place of what a model or a tool said; each call keeps its result, users keep their words."""
    match message:
        case ToolMessage():
            return ToolMessage(call_id=message.call_id, content=WITHHELD)
        case AssistantMessage():
            calls = tuple(call.model_copy(update={"arguments": "{}"}) for call in message.tool_calls)
            return AssistantMessage(text=WITHHELD if message.text else "", tool_calls=calls)
        case _:
            return message
