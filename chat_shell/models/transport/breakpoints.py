"""Breakpoints of OpenAI's cache since GPT-5.6, which finds a prefix only where one stands.

Source: the types of openai 3.54 and https://developers.openai.com/api/docs/guides/prompt-caching. A request writes at
its newest four and reads at its newest 80, so each message that may carry one carries one, wherever it stands later:
what was sent stays byte for byte. An assistant's message may carry none, and of messages of users side by side the last
does: words of an agent that move stand before the newest question, and would take up the four. Without the implicit
breakpoint, which would stand behind a reminder, nothing is written that no later request begins with.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from shared.models.messages import Message
from shared.models.values import JsonObject, JsonValue

BREAKPOINT_TTLS: Mapping[int, str] = {1_800: "30m", 43_200: "12h"}
"""How long a prefix is kept at least, by seconds."""

OPTIONS = "prompt_cache_options"
BREAKPOINT = "prompt_cache_breakpoint"
COMPARISON = "comparison_response_id"


def breakpoint_places(messages: Sequence[Message]) -> frozenset[int]:
    """Return the indexes of the messages that end at a breakpoint."""
    followers = [*(message.role for message in messages[1:]), ""]
    return frozenset(
        index
        for index, (message, follower) in enumerate(zip(messages, followers, strict=True))
        if message.role != "assistant" and (message.role, follower) != ("user", "user")
    )


def breakpoint_options(ttl: str, compared_with: str = "") -> JsonObject:
    """Return the options of a request by which nothing but explicit breakpoints is written and found.

    Where it is `compared_with` an answer of before, by its id, the provider says why it has found less.
    """
    return {"mode": "explicit", "ttl": ttl, **({COMPARISON: compared_with} if compared_with else {})}


def with_breakpoint(content: JsonValue, text_type: str) -> JsonValue:
    """Return the content of a message with a breakpoint at the end of its last part; a text becomes a part.

    An empty content stays as it is: the API refuses an empty part.
    """
    parts = [{"type": text_type, "text": content}] if isinstance(content, str) and content else content
    if not isinstance(parts, list) or not parts:
        return content
    return [*parts[:-1], cast(JsonObject, parts[-1]) | {BREAKPOINT: {"mode": "explicit"}}]
