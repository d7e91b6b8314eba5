"""Words that no text holds by chance."""

import secrets

_ALPHABET = "bcdfghjklmpqrvwx"
"""Without vowels: no word of a language looks like one."""

_LETTERS = 20
"""80 random bits."""


def new_token() -> str:
    """Make a word of lower-case letters."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LETTERS))
