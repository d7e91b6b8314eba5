"""Combinations that may not leave though each of their words may: terms of several words, and most of a passage."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations

from shared.disclosure.canonical import SENTENCES, Piece, parts_of
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceReading, Term, bag_of, words_of, written_content_of
from shared.disclosure.words import Finding, rareness
from shared.models.safe_summary import GateCode

TERM_SLACK, PAIR_SLACK = 1, 1
"""Other words of content that may stand among those of a term of three and more, and between those of a pair that is
defined, called or set off; the words of a label of two are neighbours."""

WHOLE_TERM, TERM_SHARE = 3, 0.75
"""Terms of up to three words count where all of them stand together, longer ones where three quarters of them do."""

SCATTERED_SHARE = 0.05
"""A term of three and more words, none among so large a share of the everyday ones, counts wherever its words stand."""

CONTAINED = ((0.6, 5), (0.8, 4))
"""An answer contains a sentence if it has such a share of its weight, and so many of its words of content."""

CHUNK_SHARE, CHUNK_WORDS = 0.5, 14
"""An answer contains a chunk if so much of the answer's weight, and so many of its words, are the chunk's."""

RETOLD, LONGER = 0.85, 4.0
"""A sentence of an answer retells one of a source if it has such a share of its words, in any order, among at most so
many times its number of words; words are compared by their stems, Chinese by single characters."""

SHORTEST_RETOLD = {True: 6, False: 9}
"""Different words, or Chinese characters, of the shortest sentence of a source that counts: in English, and not."""

ALIKE = 0.7
"""Two items are alike if they share so much of the shorter one's words."""

_STEEPNESS = 10_000


@dataclass(frozen=True, slots=True)
class Combinations:
    """The terms and passages of several chunks."""

    terms: tuple[tuple[Term, int], ...]
    sentences: tuple[Mapping[str, float], ...]
    chunks: tuple[frozenset[str], ...]
    bags: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, readings: Sequence[SourceReading], siblings: Iterable[SourceReading], own: OwnWords) -> "Combinations":
        """Put together what chunks say, and what they and `siblings` introduce, without the user's own words."""
        both = (*readings, *siblings)
        labels = ((term, 0) for reading in both for term in reading.labels)
        introduced = ((term, PAIR_SLACK) for reading in both for term in reading.introduced)
        kept = {
            term: slack for term, slack in (*labels, *introduced) if len(term.content) > 1 and not _is_own(term, own)
        }
        sentences = (_weighed(sentence, own) for reading in readings for sentence in reading.sentences)
        return cls(
            terms=tuple(kept.items()),
            sentences=tuple(sentence for sentence in sentences if len(sentence) >= CONTAINED[-1][1]),
            chunks=tuple(frozenset(chain.from_iterable(reading.sentences)) for reading in readings),
            bags=tuple({bag for reading in readings for bag in reading.bags if len(bag) >= _shortest(bag)}),
        )


def term_findings(field: str, known: Combinations) -> Iterator[Finding]:
    """Yield the terms of several words that stand in a text in any order."""
    written = list(written_content_of(field))
    places: dict[str, list[int]] = {}
    for place, (content, _) in enumerate(written):
        places.setdefault(content, []).append(place)
    for term, slack in known.terms:
        if places.keys().isdisjoint(term.content):
            continue
        needed = len(term.content) if len(term.content) <= WHOLE_TERM else math.ceil(TERM_SHARE * len(term.content))
        found = sorted((place, word) for word in term.content for place in places.get(word, ()))
        is_scattered = (
            len(term.content) > 2
            and len({word for _, word in found}) == len(term.content)
            and all(rareness(word) > SCATTERED_SHARE for word in term.content)
        )
        window = len(term.content) + (TERM_SLACK if len(term.content) > 2 else slack)
        if is_scattered or _are_together(found, needed, window) or (len(term.han) > 2 and term.han in field):
            yield Finding(GateCode.IDENTIFIERS, " ".join(dict.fromkeys(written[place][1] for place, _ in found)))


def containment_findings(answer: str, known: Combinations, own: OwnWords) -> Iterator[Finding]:
    """Yield sentences and chunks of which an answer holds most, in whatever order."""
    said = dict(written_content_of(answer))
    for sentence in known.sentences:
        shared = sorted(said.keys() & sentence.keys())
        weight = sum(sentence[word] for word in shared)
        if any(len(shared) >= words and weight >= share * sum(sentence.values()) for share, words in CONTAINED):
            yield Finding(GateCode.CONTAINMENT, " ".join(said[word] for word in shared))
    weights = _weighed(said, own)
    for chunk in known.chunks:
        shared = sorted(chunk & weights.keys())
        if len(shared) >= CHUNK_WORDS and sum(weights[word] for word in shared) >= CHUNK_SHARE * sum(weights.values()):
            yield Finding(GateCode.CONTAINMENT, " ".join(said[word] for word in shared))


def retelling_findings(fields: Iterable[Sequence[Piece]], known: Combinations) -> Iterator[Finding]:
    """Yield sentences of an answer that have nearly all the words of a sentence of the source, in whatever order."""
    for bag in (bag_of(part) for field in fields for part in parts_of(field, SENTENCES)):
        longest = len(bag) / RETOLD
        alike = (source for source in known.bags if len(source) <= longest and len(bag) <= LONGER * len(source))
        if any(len(bag & source) >= RETOLD * len(source) for source in alike):
            yield Finding(GateCode.CONTAINMENT, "")


def _shortest(bag: frozenset[str]) -> int:
    return SHORTEST_RETOLD[all(map(str.isascii, bag))]


def alike_findings(fields: Sequence[Sequence[Piece]]) -> Iterator[Finding]:
    """Yield items of a list that say what another says, but for a word: a pattern to be filled in, and no advice."""
    words = [frozenset(words_of(chain.from_iterable(parts_of(field, SENTENCES)))) for field in fields]
    for first, second in combinations(words, 2):
        if len(first & second) >= ALIKE * min(len(first), len(second)):
            yield Finding(GateCode.DECODERS, " ".join(sorted(first & second)))


def _is_own(term: Term, own: OwnWords) -> bool:
    return all(word in own.stems or own.holds_han(word) for word in term.content)


def _weighed(words: Iterable[str], own: OwnWords) -> dict[str, float]:
    return {word: _weight(word) for word in words if word not in own.stems and not own.holds_han(word)}


@lru_cache(maxsize=32_768)
def _weight(word: str) -> float:
    """Return how much a word tells: by its rank, from 0 for the most frequent to 1."""
    return math.log(1 + _STEEPNESS * min(1.0, rareness(word))) / math.log(1 + _STEEPNESS)


def _are_together(found: Sequence[tuple[int, str]], needed: int, window: int) -> bool:
    for start, (place, _) in enumerate(found):
        words = {word for other, word in found[start:] if other < place + window}
        if len(words) >= needed:
            return True
    return False
