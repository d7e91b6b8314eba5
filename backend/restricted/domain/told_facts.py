"""What an answer tells of its source: sentences of both that say the same by their meaning, and the budget of them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shared.models.knowledge_api import ToldFact

_END = re.compile(r"(?<=[.!?。！？;；])\s*|\n+")
_CLAUSE = re.compile(r"[,，、:：;；.。!?！？]|\b(?:and|so|because|but|while)\b")
_LETTERS = re.compile(r"[^\W\d_].*[^\W\d_]", re.DOTALL)

RETOLD, TOLD = 0.08, -0.05
"""So much nearer to a sentence of the source than to any general finding is what retells it, and what tells its fact.

As cosines; `python -m tests.leaks.meaning` prints the curve.
"""


class ChunkShown(NamedTuple):
    """The text of a chunk that a search has shown, and its document."""

    document_id: str
    text: str


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return _with_letters(_END.split(text))


def split_clauses(sentence: str) -> list[str]:
    """Return a sentence and its clauses, each of which may tell a fact of its own."""
    clauses = _with_letters(_CLAUSE.split(sentence))
    return [sentence, *dict.fromkeys(clauses)] if len(clauses) > 1 else [sentence]


def _with_letters(parts: Iterable[str]) -> list[str]:
    return [part.strip() for part in parts if _LETTERS.search(part)]


def count_facts(facts: Iterable[ToldFact]) -> Counter[str]:
    """Return how many facts of each document these are."""
    return Counter(fact.document_id for fact in facts)


def is_overspent(told: Iterable[ToldFact], new: Sequence[ToldFact], most: int) -> bool:
    """Say whether new facts would be more of a document than may be told; what was told already is free."""
    known = frozenset(told)
    fresh = count_facts(frozenset(new) - known)
    before = count_facts(known)
    return any(before[document_id] + count > most for document_id, count in fresh.items())
