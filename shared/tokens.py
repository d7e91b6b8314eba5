"""Estimate numbers of tokens before a provider reports them, without a vocabulary and without the network."""

from shared.models.messages import ImagePart, Message

ASCII_CHARACTERS_PER_TOKEN = 4
"""The average of English prose in the vocabularies of current models, rounded down."""

OTHER_CHARACTERS_PER_TOKEN = 1
"""The approximate average of Chinese, Japanese and Korean text."""

IMAGE_TOKENS = 1_000
"""The number that OpenAI counts for an image of 1024 by 1024 pixels in high detail (765), rounded up."""


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of a text; it is 0 only for the empty text."""
    if text.isascii():
        return -(-len(text) // ASCII_CHARACTERS_PER_TOKEN)
    ascii_count = len(text.encode("ascii", "ignore"))
    other_count = len(text) - ascii_count
    return -(-ascii_count // ASCII_CHARACTERS_PER_TOKEN) + other_count // OTHER_CHARACTERS_PER_TOKEN


def message_tokens(message: Message) -> int:
    """Estimate the number of tokens of one message."""
    if message.role == "assistant":
        calls = sum([estimate_tokens(call.name) + estimate_tokens(call.arguments) for call in message.tool_calls])
        kept = message.reasoning.items if message.reasoning is not None else ()
        return estimate_tokens(message.text) + calls + sum([estimate_tokens(item.content) for item in kept])
    if isinstance(message.content, str):
        return estimate_tokens(message.content)
    return sum(IMAGE_TOKENS if isinstance(part, ImagePart) else estimate_tokens(part.text) for part in message.content)
