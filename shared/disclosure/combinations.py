"""Combinations that may not leave though each of their words may: terms of several words, and most of a passage."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, filterfalse, islice, pairwise, repeat
from operator import itemgetter

from shared.disclosure import chinese, english
from shared.disclosure.alignment import Positions, group_by_key, positions_of
from shared.disclosure.canonical import Kind, Piece, pieces, sentences_of
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceReading, Term, all_of, find_telling_stems, list_written, words_of
from shared.disclosure.words import Finding, rareness
from shared.models.safe_summary import GateCode

TERM_SLACK, PAIR_SLACK = 1, 1
"""Other words of content that may stand among those of a term of three and more, and between those of a pair that is
defined, called or set off; the words of a label of two are neighbours."""

WHOLE_TERM, TERM_SHARE = 3, 0.75
"""Terms of up to three words count where all of them stand together, longer ones where three quarters of them do."""

SCATTERED_SHARE, SCATTERED_WORDS = 0.05, 3
"""A term, none of whose words is among so large a share of the everyday ones, counts wherever its words stand, if so
many of them are not the user's."""

RARE_PAIR_SHARE = 0.2
"""Two words that are introduced together, neither of which is among so large a share of the everyday ones, are told
wherever they stand in a field."""

CONTAINED = ((0.6, 5), (0.8, 4))
"""An answer contains a sentence if it has such a share of its weight, and so many of its words of content."""

WHOLE, SHORTEST_WHOLE = 0.9, {True: 7, False: 10}
"""A sentence of an answer is one of a source in another order if each has such a share of the other's words, or Chinese
characters, those counted that join others and that the user has said, too; so many different ones of the source's."""

CHUNK_SHARE, CHUNK_WORDS = 0.5, 14
"""An answer contains a chunk if so much of the answer's weight, and so many of its words, are the chunk's."""

STATED, STATED_WEIGHT = 0.8, 1.7
"""A sentence of an answer states one of a source, or an item of its lists, if it has such a share of its weight,
however short the one and long the other is; what weighs less than two rare words is anybody's."""

STATED_BARE = 0.9
"""The share of a sentence without its figures and names. These leave in no answer, and a sentence that has many of them
could else be told without them as if that were but a part of it."""

TAKEN, SHORTEST_TAKEN = {True: 0.9, False: 0.8}, {True: 4, False: 9}
"""A stretch of a sentence of an answer is a piece of one of a source, in any order, if that has such a share of its
weight; the different words or Chinese characters of content that both have to have, in English and not."""

MOST_RETOLD = 10
"""Sentences of a source that one of an answer is said to retell: more tell a rewrite nothing."""

SHORTEST_RETOLD = {True: 4, False: 7}
"""Different words of content, or Chinese characters of such, of the shortest sentence of a source that counts: in
English, and not; the user's words are left out."""

ALIKE = 0.7
"""Two items are alike if they share so much of the shorter one's words."""

_STEEPNESS = 10_000
Written = tuple[str, str]
"""A stem or Chinese word of content, and the word as it is written."""


@dataclass(frozen=True, slots=True)
class Combinations:
    """The terms and passages of several chunks; `frequent` are terms of two words that say little by themselves.

    `holders` are their sentences and clauses by each word of content, `statements` their sentences, each with the
    weight that is too much of it, and `stating` these by each word of content; `wholes` are all words of sentences.
    """

    terms: tuple[tuple[Term, int], ...]
    frequent: frozenset[frozenset[str]]
    sentences: tuple[Mapping[str, float], ...]
    chunks: tuple[frozenset[str], ...]
    holders: Mapping[str, Sequence[frozenset[str]]]
    statements: Mapping[frozenset[str], float]
    stating: Mapping[str, Sequence[frozenset[str]]]
    wholes: Sequence[frozenset[str]]

    @classmethod
    def of(
        cls, shown: SourceReading, both: SourceReading, chunks: Iterable[SourceReading], own: OwnWords
    ) -> "Combinations":
        """Put together what `chunks` say, which were shown, and what they and their siblings (`both`) introduce."""
        sentences = [_weigh(sentence, own) for sentence in shown.sentences]
        statements = _statements(sentences)
        bags = frozenset(filter(None, (_bag_of(part, own) for part in shown.parts)))
        return cls(
            terms=tuple(_list_terms(both, own).items()),
            frequent=frozenset(term.frequent for term in both.introduced if len(term.frequent) > 1),
            sentences=tuple(sentence for sentence in sentences if len(sentence) >= CONTAINED[-1][1]),
            chunks=tuple(frozenset(chain(*chunk.sentences)) for chunk in chunks),
            holders=_group_by_member(bags),
            statements=statements,
            stating=_group_by_member(statements),
            wholes=tuple(filter(_is_long, shown.wholes)),
        )


def _list_terms(both: SourceReading, own: OwnWords) -> dict[Term, int]:
    """Return the terms of several words that are not the user's, each with its slack as a pair."""
    slack = dict.fromkeys(both.labels, 0) | dict.fromkeys(both.introduced, PAIR_SLACK)
    return {
        term: slack[term] for term in slack if len(term.content) > 1 and not all(map(own.holds_content, term.content))
    }


def _statements(sentences: Sequence[Mapping[str, float]]) -> dict[frozenset[str], float]:
    """Return what sentences state, without their figures and names and with them, by the weight that is too much."""
    stated = chain(zip(map(_without_withheld, sentences), repeat(STATED_BARE)), zip(sentences, repeat(STATED)))
    return dict(_statement(each, share) for each, share in stated if sum(each.values()) >= STATED_WEIGHT)


def _group_by_member(sets: Iterable[frozenset[str]]) -> Mapping[str, Sequence[frozenset[str]]]:
    return group_by_key((member, each) for each in sets for member in each)


def term_findings(field: str, known: Combinations, own: OwnWords) -> Iterator[Finding]:
    """Yield the terms of several words that stand in a text in any order; of two frequent ones, side by side."""
    written = pieces(field)
    said = tuple(list_written(written))
    places = positions_of(map(itemgetter(0), said))
    for term, slack in known.terms:
        present = {word: places[word] for word in term.content if word in places}
        if present and _is_told(present, len(term.content), slack, own):
            yield Finding(GateCode.IDENTIFIERS, _phrase(said, present))
    yield from _find_frequent_pairs(written, known, own)


def _find_frequent_pairs(said: Iterable[Piece], known: Combinations, own: OwnWords) -> Iterator[Finding]:
    pairs = filter(known.frequent.__contains__, map(frozenset, pairwise(find_telling_stems(said))))
    foreign = (two for two in pairs if not all(map(own.holds_content, two)))
    return (Finding(GateCode.IDENTIFIERS, " ".join(sorted(two))) for two in foreign)


def _phrase(said: Iterable[Written], present: Collection[str]) -> str:
    return " ".join(dict.fromkeys(written for content, written in said if content in present))


def _is_told(places: Positions, length: int, slack: int, own: OwnWords) -> bool:
    """Whether enough of so many words of a term stand together, or all of them anywhere where they are rare."""
    needed = length if length <= WHOLE_TERM else math.ceil(TERM_SHARE * length)
    if len(places) < needed:
        return False
    if len(places) == length and _is_rare(places, slack, own):
        return True
    found = sorted((place, word) for word in places for place in places[word])
    return _are_together(found, needed, length + (TERM_SLACK if length > 2 else slack))


def _is_rare(words: Collection[str], slack: int, own: OwnWords) -> bool:
    """Whether all words of a term are so rare that they tell it wherever they stand."""
    rarest = min(map(rareness, words))
    is_scattered = rarest > SCATTERED_SHARE and len([*filterfalse(own.holds_content, words)]) >= SCATTERED_WORDS
    return is_scattered or (len(words) == 2 and slack > 0 and rarest > RARE_PAIR_SHARE)


def containment_findings(answer: str, known: Combinations, own: OwnWords) -> Iterator[Finding]:
    """Yield sentences and chunks of which an answer holds most, in whatever order."""
    said = dict(list_written(pieces(answer)))
    weights = _weigh(said, own)
    contained = (
        shared for sentence in known.sentences if _holds_most(shared := said.keys() & sentence.keys(), sentence)
    )
    taken = (shared for chunk in known.chunks if _is_mostly(shared := chunk & weights.keys(), weights))
    for shared in chain(contained, taken):
        yield Finding(GateCode.CONTAINMENT, " ".join(said[word] for word in sorted(shared)))


def _is_mostly(shared: Collection[str], weights: Mapping[str, float]) -> bool:
    is_long = len(shared) >= CHUNK_WORDS
    return is_long and sum(map(weights.__getitem__, shared)) >= CHUNK_SHARE * sum(weights.values())


def _holds_most(shared: Collection[str], sentence: Mapping[str, float]) -> bool:
    if len(shared) < CONTAINED[-1][1]:
        return False
    weight, whole = sum(map(sentence.__getitem__, shared)), sum(sentence.values())
    return any(len(shared) >= words and weight >= least * whole for least, words in CONTAINED)


def find_retellings(fields: Iterable[Sequence[Piece]], known: Combinations, own: OwnWords) -> Iterator[Finding]:
    """Yield what of a sentence of an answer is most of what a sentence of the source says, in any order."""
    for part in sentences_of(fields):
        written = dict(list_written(part))
        for source in islice(_find_retold(part, written, known, own), MOST_RETOLD):
            told = (word for content, word in written.items() if not source.isdisjoint(_atoms(content)))
            yield Finding(GateCode.CONTAINMENT, " ".join(told))


def _find_retold(
    part: Sequence[Piece], written: Mapping[str, str], known: Combinations, own: OwnWords
) -> Iterator[frozenset[str]]:
    bag = _bag_of(written, own)
    shared = Counter(chain(*(known.holders.get(atom, ()) for atom in bag)))
    taken = _find_taken([*filter(bag.__contains__, chain(*map(_atoms, written)))], shared)
    return chain(taken, _find_stated(part, known), _find_reordered(part, written, known, own))


def _find_taken(said: Sequence[str], shared: Mapping[frozenset[str], int]) -> Iterator[frozenset[str]]:
    """Yield the sentences of the source of which a piece stands in a sentence, between other words or among them."""
    is_english = all(map(str.isascii, said))
    share, shortest = TAKEN[is_english], SHORTEST_TAKEN[is_english]
    for source in (source for source, count in shared.items() if count >= shortest):
        places = [place for place, atom in enumerate(said) if atom in source]
        piece = frozenset(said[places[0] : places[-1] + 1])
        if sum(map(_weight, piece & source)) >= share * sum(map(_weight, piece)):
            yield source


def _find_stated(said: Iterable[Piece], known: Combinations) -> Iterator[frozenset[str]]:
    """Yield the statements of the source that a sentence makes; of Chinese each character counts, whatever its word."""
    weights: defaultdict[frozenset[str], float] = defaultdict(float)
    for atom in {atom for piece in said for atom in _atoms_of(piece)}:
        for statement in known.stating.get(atom, ()):
            weights[statement] += _weight(atom)
    return (statement for statement, weight in weights.items() if weight >= known.statements[statement])


def _find_reordered(
    said: Sequence[Piece], contents: Iterable[str], known: Combinations, own: OwnWords
) -> Iterator[frozenset[str]]:
    """Yield the sentences of the source that a sentence is in another order, unless all its content is the user's."""
    if not all(map(own.holds_content, contents)):
        words = frozenset(all_of(said))
        yield from (whole for whole in known.wholes if len(words & whole) >= WHOLE * max(len(words), len(whole)))


def _is_long(whole: frozenset[str]) -> bool:
    return len(whole) >= SHORTEST_WHOLE[all(map(str.isascii, whole))]


def _atoms_of(piece: Piece) -> Iterable[str]:
    return piece.text if piece.kind is Kind.HAN else (english.stem_of(piece.text),)


def _statement(words: Iterable[str], share: float) -> tuple[frozenset[str], float]:
    atoms = frozenset(chain.from_iterable(map(_atoms, words)))
    return atoms, share * sum(map(_weight, atoms))


def _without_withheld(sentence: Mapping[str, float]) -> Mapping[str, float]:
    return {word: weight for word, weight in sentence.items() if rareness(word) <= 1 and not _is_figure(word)}


def _is_figure(content: str) -> bool:
    return any(map(str.isdigit, content)) or english.is_quantity(content) or chinese.is_withheld_han(content)


def _bag_of(contents: Iterable[str], own: OwnWords) -> frozenset[str]:
    """Return the stems and Chinese characters of content that are not the user's; none of a part that is too short."""
    bag = frozenset(chain.from_iterable(_atoms(content) for content in contents if not own.holds_content(content)))
    return bag if len(bag) >= SHORTEST_RETOLD[all(map(str.isascii, bag))] else frozenset()


def _atoms(content: str) -> Iterable[str]:
    return (content,) if content.isascii() else content


def alike_findings(fields: Sequence[Sequence[Piece]]) -> Iterator[Finding]:
    """Yield items of a list that say what another says, but for a word: a pattern to be filled in, and no advice."""
    words = [frozenset(words_of(chain(*sentences_of([field])))) for field in fields]
    for first, second in combinations(words, 2):
        if len(first & second) >= ALIKE * min(len(first), len(second)):
            yield Finding(GateCode.DECODERS, " ".join(sorted(first & second)))


def _weigh(words: Iterable[str], own: OwnWords) -> dict[str, float]:
    return {word: _weight(word) for word in words if not own.holds_content(word)}


@lru_cache(maxsize=32_768)
def _weight(word: str) -> float:
    """Return how much a word tells: by its rank, from 0 for the most frequent to 1."""
    return math.log(1 + _STEEPNESS * min(1.0, rareness(word))) / math.log(1 + _STEEPNESS)


def _are_together(found: Sequence[tuple[int, str]], needed: int, window: int) -> bool:
    """Whether so many different words stand within so many places, each of which holds one word."""
    return any(
        len({word for other, word in found[start : start + window] if other < place + window}) >= needed
        for start, (place, _) in enumerate(found)
    )
