"""Token counts before a provider has counted: an estimate that needs no vocabulary and no network."""

ASCII_CHARACTERS_PER_TOKEN = 4
"""English prose in the vocabularies of current models, rounded down."""

OTHER_CHARACTERS_PER_TOKEN = 1
"""Chinese, Japanese, Korean: about one token a character."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text; 0 only for the empty one."""
    ascii_count = sum(1 for character in text if character < "\x80") if not text.isascii() else len(text)
    other_count = len(text) - ascii_count
    return -(-ascii_count // ASCII_CHARACTERS_PER_TOKEN) + other_count // OTHER_CHARACTERS_PER_TOKEN
