"""Check `canary`: no token that was planted in the chunks; each one found is an alert."""

from collections.abc import Iterable

from shared.disclosure.folding import fold

_SHORTEST = 6


def fold_canaries(tokens: Iterable[str]) -> frozenset[str]:
    """Return tokens in the form in which they are looked for: letters and digits alone."""
    return frozenset(bare for token in tokens if len(bare := _bare(token)) >= _SHORTEST)


def canary_hits(texts: Iterable[str], canaries: frozenset[str]) -> int:
    """Count the tokens that stand in a text, forwards or backwards, whatever was put between their characters."""
    bare = [_bare(text) for text in texts]
    return sum(1 for token in canaries if any(token in text or token[::-1] in text for text in bare))


def _bare(text: str) -> str:
    return "".join(character for character in fold(text) if character.isalnum())
