"""What an answer tells of its source: sentences of both that say the same by their meaning, and the budget of them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shared.models.knowledge_api import ToldFact

_END = re.compile(r"(?<=[.!?。！？;；])\s*|\n+")
_LETTER = re.compile(r"[^\W\d_]")


class ShownChunk(NamedTuple):
    """The text of a chunk that a search has shown, and its document."""

    document_id: str
    text: str


TOLD_BELOW = 0.1
"""So much farther than a retelling is what still tells something of a sentence."""


class Nearness(NamedTuple):
    """From which nearness on, -1 to 1, a sentence retells one of the source, and from which on it tells its fact."""

    retold: float
    told: float


KNOWN_NEARNESS = {"multilingual-e5-small": Nearness(retold=0.7, told=0.6)}
"""Of models whose curves are known; docs/how-the-gate-decides.md prints them. For another one the operator sets it."""


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [sentence for part in _END.split(text) if _LETTER.search(sentence := part.strip())]


def count_facts(facts: Iterable[ToldFact]) -> Counter[str]:
    """Return how many facts of each document these are."""
    return Counter(fact.document_id for fact in facts)


def is_overspent(told: Iterable[ToldFact], new: Sequence[ToldFact], most: int) -> bool:
    """Say whether new facts would be more of a document than may be told; what was told already is free."""
    known = frozenset(told)
    fresh = count_facts(frozenset(new) - known)
    before = count_facts(known)
    return any(before[document_id] + count > most for document_id, count in fresh.items())
