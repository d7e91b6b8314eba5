"""Blocks of text in one message."""

from collections.abc import Iterable

BLOCK_SEPARATOR = "\n\n"


def join_blocks(blocks: Iterable[str | None]) -> str:
    """Join texts with a blank line between them; a blank one adds nothing, not even a separator."""
    return BLOCK_SEPARATOR.join(block for block in blocks if block and not block.isspace())
