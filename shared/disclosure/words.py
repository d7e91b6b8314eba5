"""The words that may leave: the user's own, everyday words, and general words that are not from here."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, filterfalse, groupby, pairwise, takewhile

from shared.disclosure import chinese, english
from shared.disclosure.canonical import CLAUSES, SENTENCES, Kind, Piece, parts_of
from shared.disclosure.names import RARE_NAME, familiar, find_turned_to, is_titled
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceReading, Term, words_of
from shared.disclosure.word_lists import idioms, members, ranks
from shared.models.safe_summary import GateCode

_LABEL_SHARE, PLAIN_SHARE = {True: 0.3, False: 1.0}, {True: 0.05, False: 0.1}
"""A word among so large a share of the everyday ones, the most frequent first, stays everyday though a label, or a
quotation, a definition or the like introduces it: in English, and in Chinese."""

PLAIN_CAPITAL_SHARE = 0.3
"""The share for a word that the source writes with a capital inside a sentence."""

FREE_CHARACTER_SHARE = 0.4
"""Two lone characters of the source are a phrase, and no name, where both are among this share of everyday words."""

LONE_RANK, LONE_CHARACTERS, LONE_MEAN = 1_001, 3, 3_000
"""Lone characters that are each rarer than this rank as a word are no words of the language: where more of them stand
in a row, and where so many have this rank in the geometric mean."""

_TWO = ("2", "two", "twice", "double", "half", "second")
"""What "twice as much" could stand for."""

_JOINING = (("and",), ("or",))
LONE_CLAUSES = 3
"""So many clauses of one word each are a list without a sentence."""

INITIALS_RANK = 2_000
"""The initials of a person may leave where they are a word more frequent than this, as "it" and "us" are."""

_LONGEST_NAME = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """A word or phrase that may not leave, and the check that says so."""

    code: GateCode
    phrase: str


@dataclass(frozen=True, slots=True)
class ProtectedWords:
    """The words of several chunks that may not leave though they be everyday, and all the words there are.

    `names` are the English names and the terms written as one word, which the source does not have as a word, and
    `initials` those of persons. `persons` are Chinese names and the parts that tell whose they are, `families` their
    first characters, and `characters` all that say something. `apart` are Chinese words that are told by their
    characters alone. `elements` are those that a chunk which was shown speaks of: no others are from here.
    """

    stems: frozenset[str]
    han: str
    han_words: frozenset[str]
    names: frozenset[str]
    initials: frozenset[str]
    persons: frozenset[str]
    families: frozenset[str]
    characters: frozenset[str]
    singles: frozenset[str]
    apart: frozenset[str]
    elements: frozenset[str]

    @classmethod
    def of(
        cls, readings: Sequence[SourceReading], own: OwnWords, siblings: Sequence[SourceReading] = ()
    ) -> "ProtectedWords":
        """Put the words of all chunks together; of `siblings`, which nobody was shown, too; no names of the user's."""
        both = (*readings, *siblings)
        plain = frozenset(english.stem_of(word) for reading in both for word in reading.names.plain)
        stems = {word: english.stem_of(word) for reading in both for word in reading.names.capital}
        capital = (word for word, stem in stems.items() if stem not in plain and rareness(stem) > PLAIN_CAPITAL_SHARE)
        terms = find_telling_terms(both)
        joined = {term.letters for term in terms}.difference(*(reading.words for reading in both))
        persons = [name for reading in both for name in reading.persons if not own.holds_han(name)]
        unnamed = "\n".join(reading.unnamed for reading in both)
        singles = frozenset(term.content[0] for term in terms if len(term.content) == 1)
        han_words = frozenset[str]().union(*(reading.han_words for reading in both))
        unread = (term.han for term in terms if not any(len(word) > 1 for word in term.content))
        made = frozenset(unread).union(*(reading.rare for reading in both))
        return cls(
            stems=frozenset[str]().union(*(reading.stems for reading in both)),
            han="\n".join(reading.han for reading in readings),
            han_words=han_words,
            names=frozenset(capital).union(joined, *(reading.names.certain for reading in both)),
            initials=frozenset[str]().union(*(reading.names.initials for reading in both)),
            persons=frozenset(part for name in persons for part in (name, *_find_telling_parts(name, unnamed, own))),
            families=frozenset(name[0] for name in persons),
            characters=frozenset(filterfalse(chinese.is_function_han, chain.from_iterable(persons))),
            singles=singles,
            apart=frozenset(word for word in (*made, *persons, *singles) if _is_told_apart(word)),
            elements=frozenset[str]().union(*(reading.elements for reading in readings)),
        )


def find_withheld(of: Sequence[Piece], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield each word of a text that may not leave."""
    spared = _idiomatic(of)
    for place, piece in enumerate(of):
        if piece.kind is Kind.WORD and place not in spared:
            code = _english_code(piece.text, own, protected)
            if code is not None and _is_comparison(of, place, protected):
                code = None
            if code is None and _is_measured(of, place, protected) and not own.holds(piece.text):
                code = GateCode.FIGURES
            if code is not None:
                yield Finding(code, piece.text)
        elif piece.kind is Kind.HAN and place not in spared:
            yield from _chinese_findings(piece.text, own, protected)
    yield from _find_split_words(of, own, protected)


def _english_code(word: str, own: OwnWords, protected: ProtectedWords) -> GateCode | None:
    bare = english.parts_of_word(word.removesuffix("'s").removesuffix("s'"))[-1]
    if own.holds(word) or own.holds(bare) or english.is_contraction(word):
        return None
    if any(character.isdigit() for character in word) or english.is_quantity(bare):
        return GateCode.FIGURES
    stem = english.stem_of(bare)
    if bare in members("elements") and bare not in protected.elements:
        return GateCode.FIGURES
    if not protected.names.isdisjoint((bare, bare.removesuffix("s"))) or stem in protected.singles:
        return GateCode.IDENTIFIERS
    if bare in protected.initials and english.stem_rank(stem) > INITIALS_RANK:
        return GateCode.IDENTIFIERS
    if english.is_everyday(bare):
        return None
    if english.is_known(bare):
        return GateCode.IDENTIFIERS if stem in protected.stems else None
    return GateCode.DECODERS if word.isascii() else GateCode.UNICODE


def _is_measured(of: Sequence[Piece], place: int, protected: ProtectedWords) -> bool:
    """Whether a word is a span of time and the words before it make a quantity of it.

    A time that comes again is none where the source does not have that span.
    """
    if not english.is_span(of[place].text) or not place:
        return False
    before = [piece.text for piece in of[max(0, place - 2) : place]]
    again = english.find_recurring_stems(of[place].text, before[-1])
    if again and again.isdisjoint(protected.stems):
        return False
    return english.is_measuring(before[-1]) or (before[-1] == "the" and english.is_measuring(before[0]))


def _is_comparison(of: Sequence[Piece], place: int, protected: ProtectedWords) -> bool:
    """Whether a word compares extents ("twice as often"), and the source has nothing that it could stand for."""
    behind = of[place + 1].text if place + 1 < len(of) else ""
    return of[place].text == "twice" and behind == "as" and protected.stems.isdisjoint(map(english.stem_of, _TWO))


def _idiomatic(of: Sequence[Piece]) -> frozenset[int]:
    """Return the places of the words of English idioms with a numeral; a full stop stands at both ends of a text."""
    words = [".", *(piece.text for piece in of), "."]
    return frozenset(
        place
        for length in english.idiom_lengths()
        for start in range(len(words) - length + 1)
        if " ".join(words[start : start + length]) in idioms()
        for place in range(start - 1, start + length - 1)
    )


def _chinese_findings(han: str, own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    words = chinese.segment(han)
    spans = filterfalse(own.holds_han, chinese.pairs_of_spans(han))
    yield from (Finding(GateCode.FIGURES, span) for span in spans)
    yield from _persons(han, words, own, protected)
    for first, second in pairwise(words):
        if is_titled(first, second) and not own.holds_han(first + second):
            yield Finding(GateCode.IDENTIFIERS, first + second)
    for before, word in zip(("", *words), words, strict=False):
        code = None if own.holds_han(word) else _chinese_code(word, protected)
        if code is not None and not _is_from_elsewhere(word, before, protected):
            yield Finding(code, word)
    yield from _find_joined_characters(words, own, protected)


def _is_from_elsewhere(word: str, before: str, protected: ProtectedWords) -> bool:
    """Whether a word with the one before it is a time that comes again, and the source does not have that."""
    if not chinese.comes_again(word, before):
        return False
    forms = [lead + word for lead in chinese.RECURRING]
    return not any(form in protected.han or form in protected.han_words for form in forms)


def find_repeated(of: Sequence[Piece]) -> Iterator[Finding]:
    """Yield words and clauses that stand twice in a row, characters thrice, and rows of one-word clauses: a code."""
    words = list(words_of(of))
    for word, row in groupby(words):
        if word.isalnum() and sum(1 for _ in row) > 1 + (len(word) == 1):
            yield Finding(GateCode.DECODERS, word)
    for row in chinese.rows(words, LONE_RANK):
        product = math.prod(map(chinese.han_rank, row))
        if len(row) > LONE_CHARACTERS or (len(row) == LONE_CHARACTERS and product > LONE_MEAN**LONE_CHARACTERS):
            yield Finding(GateCode.DECODERS, row)
    clauses = [tuple(words_of(clause)) for clause in parts_of(of, CLAUSES)]
    yield from (Finding(GateCode.DECODERS, " ".join(clause)) for clause, other in pairwise(clauses) if clause == other)
    yield from (Finding(GateCode.DECODERS, ", ".join(row)) for row in _bare_lists(of, clauses))


def _bare_lists(of: Sequence[Piece], clauses: Sequence[tuple[str, ...]]) -> Iterator[Sequence[str]]:
    """Yield the longest row of clauses of one word, if it is a list, and each with which a sentence begins."""
    rows = [[word for (word,) in row] for length, row in groupby(clauses, key=len) if length == 1]
    longest = max(rows, key=len, default=list[str]())
    if len(longest) >= LONE_CLAUSES:
        yield longest
    for _, sentence in groupby(of, key=lambda piece: piece.kind in SENTENCES):
        told = [tuple(words_of(clause)) for clause in parts_of(sentence, CLAUSES)]
        lone = list(chain(*takewhile(lambda clause: len(clause) == 1, told)))
        behind = told[len(lone)][:1] if len(lone) < len(told) else ()
        # "a, b, and c" says what "a, b and c" says, where the last comma is not written
        if len(lone) > (2 if behind in _JOINING else 1):
            yield lone


def find_rejoined(fields: Sequence[Sequence[Piece]], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield neighbours in a sentence, and words that begin neighbouring fields, that joined are a name or rare word."""
    parts = [part for field in fields for part in parts_of(field, SENTENCES)]
    neighbours = chain(*map(pairwise, parts), pairwise([field[0] for field in fields if field]))
    for first, second in ((before.text, behind.text) for before, behind in neighbours):
        joined = first + second
        if own.holds(joined) or (own.holds(first) and own.holds(second)):
            continue
        stem = english.stem_of(joined)
        is_rare = stem in protected.stems and not english.is_everyday(joined)
        if is_rare or stem in protected.singles or joined in protected.names:
            yield Finding(GateCode.IDENTIFIERS, f"{first} {second}")


def _chinese_code(word: str, protected: ProtectedWords) -> GateCode | None:
    if word in members("elements") and word not in protected.elements:
        return GateCode.FIGURES
    if chinese.is_everyday_han(word):
        return GateCode.IDENTIFIERS if word in protected.singles else None
    if chinese.is_known_han(word):
        return GateCode.IDENTIFIERS if word in protected.han_words else None
    if word in protected.families or word in protected.persons:
        return GateCode.IDENTIFIERS
    return GateCode.FIGURES if chinese.is_withheld_han(word) else GateCode.DECODERS


def _find_joined_characters(words: Sequence[str], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield rows of lone characters that stand so in the source and are no words: what names and codes are made of."""
    for pair in ("".join(two) for row in chinese.rows(words) for two in pairwise(row)):
        is_phrase = max(map(rareness, pair)) <= FREE_CHARACTER_SHARE
        if not is_phrase and not own.holds_han(pair) and pair in protected.han:
            yield Finding(GateCode.IDENTIFIERS, pair)


def _is_told_apart(word: str) -> bool:
    """Whether the characters of a Chinese word, each by itself, tell it: some of them are no frequent words."""
    is_han = not word.isascii() and word.isalpha() and 1 < len(word) <= _LONGEST_NAME
    return is_han and max(map(chinese.han_rank, word)) >= LONE_RANK


def _find_split_words(of: Sequence[Piece], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield words of the source whose characters a text has one by one, and other words between them.

    Whether they may stand side by side, as a phrase does, is decided elsewhere.
    """
    texts = [piece.text for piece in of if piece.kind is Kind.HAN]
    lone = frozenset(word for han in texts for word in chinese.segment(han) if len(word) == 1)
    for word in protected.apart:
        if lone.issuperset(word) and not own.holds_han(word) and not any(word in han for han in texts):
            yield Finding(GateCode.IDENTIFIERS, "".join(dict.fromkeys(word)))


def _persons(han: str, words: Sequence[str], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield names of persons, given parts that are whole words, and forms of address that the user does not use."""
    rows = (words[start : start + count] for start in range(len(words)) for count in range(1, _LONGEST_NAME + 1))
    within = (han[start : start + count] for start in range(len(han)) for count in (3, 4))
    named = protected.persons.intersection(chain(map("".join, rows), within))
    forms = chain(familiar(han, protected.families, protected.characters), find_turned_to(words, protected.families))
    called = filterfalse(own.holds_han, forms)
    yield from (Finding(GateCode.IDENTIFIERS, phrase) for phrase in chain(named, called))


def _find_telling_parts(name: str, unnamed: str, own: OwnWords) -> Iterator[str]:
    """Yield the given name of a person, and a family name of two characters, where they are rare as words.

    A given name that the source has in names alone tells whose it is, however frequent a word it is.
    """
    parts = (name[:2], name[2:]) if name[:2] in members("chinese_surnames") else (name[1:],)
    is_family, is_plain = name[0] in members("chinese_families"), chinese.is_function_han(name[0])
    for part in filterfalse(own.holds_han, parts):
        rank, is_name_alone = chinese.han_rank(part), part not in unnamed
        is_rare = rank > RARE_NAME or (is_name_alone and not is_plain)
        if is_rare if len(part) > 1 else is_name_alone and is_family and rank > LONE_RANK:
            yield part


def find_telling_terms(readings: Sequence[SourceReading]) -> list[Term]:
    """Return the terms of a source but single words that stay everyday though they are labels, or set off in a text."""
    labels = (term for each in readings for term in each.labels if not _is_plain(term, _LABEL_SHARE))
    introduced = (term for each in readings for term in each.introduced if not _is_plain(term, PLAIN_SHARE))
    return [term for term in (*labels, *introduced) if term.content]


def _is_plain(term: Term, share: Mapping[bool, float]) -> bool:
    return len(term.content) == 1 and rareness(term.content[0]) <= share[term.content[0].isascii()]


def rareness(content: str) -> float:
    """Return the rank of a stem or a Chinese word as a share of the everyday words; above 1 for one that is none."""
    if content.isascii():
        return english.stem_rank(content) / len(ranks("english_everyday"))
    return chinese.han_rank(content) / len(ranks("chinese_everyday"))
