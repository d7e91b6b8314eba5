"""The words that may leave: the user's own, everyday words, and general words that are not from here."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, filterfalse, groupby, pairwise, takewhile
from typing import NamedTuple

from shared.disclosure import chinese, english
from shared.disclosure.canonical import CLAUSES, SENTENCES, Kind, Piece, han_in, parts_of, sentences_of
from shared.disclosure.names import RARE_NAME, EnglishNames, familiar, find_turned_to, is_titled
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


class Finding(NamedTuple):
    """A word or phrase that may not leave, and the check that says so."""

    code: GateCode
    phrase: str


@dataclass(frozen=True, slots=True)
class ProtectedWords:
    """The words of several chunks that may not leave though they be everyday, and all the words there are.

    `shown` are the chunks that were shown, and `both` these with their siblings, which nobody was shown. `names` are
    the English names and the terms written as one word, which the source does not have as a word. `persons` are Chinese
    names and the parts that tell whose they are, `families` their first characters, and `characters` all that say
    something. `apart` are Chinese words that are told by their characters alone.
    """

    shown: SourceReading
    both: SourceReading
    names: frozenset[str]
    persons: frozenset[str]
    families: frozenset[str]
    characters: frozenset[str]
    singles: frozenset[str]
    apart: frozenset[str]

    @classmethod
    def of(cls, shown: SourceReading, both: SourceReading, own: OwnWords) -> "ProtectedWords":
        """Put the words of all chunks together; no names of the user's."""
        terms = find_telling_terms(both)
        joined = {term.letters for term in terms} - both.words
        singles = frozenset(term.content[0] for term in terms if len(term.content) == 1)
        persons = frozenset(filterfalse(own.holds_han, both.persons))
        parts = chain.from_iterable(_find_telling_parts(name, both.unnamed, own) for name in persons)
        return cls(
            shown,
            both,
            names=both.names.certain.union(joined, _find_capital(both.names)),
            persons=persons.union(parts),
            families=frozenset(name[0] for name in persons),
            characters=frozenset(filterfalse(chinese.is_function_han, chain(*persons))),
            singles=singles,
            apart=frozenset(filter(_is_told_apart, (*_find_unread(terms), *both.rare, *persons, *singles))),
        )


def _find_capital(names: EnglishNames) -> Iterator[str]:
    """Yield rare words that have a capital, and no form of which has none."""
    plain = frozenset(map(english.stem_of, names.plain))
    stems = ((word, english.stem_of(word)) for word in names.capital)
    return (word for word, stem in stems if stem not in plain and rareness(stem) > PLAIN_CAPITAL_SHARE)


def _find_unread(terms: Iterable[Term]) -> Iterator[str]:
    """Yield the Chinese of terms that are cut into single characters."""
    return (term.han for term in terms if all(len(word) == 1 for word in term.content))


def find_withheld(of: Sequence[Piece], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield each word of a text that may not leave."""
    spared = _idiomatic(of)
    for place, piece in enumerate(of):
        if place in spared:
            continue
        if piece.kind is Kind.HAN:
            yield from _chinese_findings(piece.text, own, protected)
        elif piece.kind is Kind.WORD and (code := _code_at(of, place, own, protected)):
            yield Finding(code, piece.text)
    yield from _find_split_words(of, own, protected)


def _code_at(of: Sequence[Piece], place: int, own: OwnWords, protected: ProtectedWords) -> GateCode | None:
    is_own = all(own.holds(each.text) for each in of[max(0, place - 1) : place + 1])
    if not is_own and _is_measured(of, place, protected):
        return GateCode.FIGURES
    is_free = own.holds(of[place].text) or _is_comparison(of, place, protected)
    return None if is_free else _english_code(of[place].text, own, protected)


def _english_code(word: str, own: OwnWords, protected: ProtectedWords) -> GateCode | None:
    bare = english.parts_of_word(word.removesuffix("'s").removesuffix("s'"))[-1]
    if own.holds(bare) or english.is_contraction(word):
        return None
    if _is_figure(word, bare, protected):
        return GateCode.FIGURES
    if _is_name(bare, protected):
        return GateCode.IDENTIFIERS
    if english.is_everyday(bare):
        return None
    if english.is_known(bare):
        return GateCode.IDENTIFIERS if english.stem_of(bare) in protected.both.stems else None
    return GateCode.DECODERS if word.isascii() else GateCode.UNICODE


def _is_figure(word: str, bare: str, protected: ProtectedWords) -> bool:
    return any(map(str.isdigit, word)) or english.is_quantity(bare) or _is_foreign_element(bare, protected)


def _is_foreign_element(word: str, protected: ProtectedWords) -> bool:
    """Whether a word is a chemical element of which no chunk that was shown speaks: it stands for its number."""
    return word in members("elements") and word not in protected.shown.elements


def _is_name(bare: str, protected: ProtectedWords) -> bool:
    stem = english.stem_of(bare)
    is_initials = bare in protected.both.names.initials and english.stem_rank(stem) > INITIALS_RANK
    return is_initials or stem in protected.singles or not protected.names.isdisjoint((bare, bare.removesuffix("s")))


def _is_measured(of: Sequence[Piece], place: int, protected: ProtectedWords) -> bool:
    """Whether a word is a span of time and the words before it make a quantity of it.

    A time that comes again is none where the source does not have that span.
    """
    if not english.is_span(of[place].text) or not place:
        return False
    before = [piece.text for piece in of[max(0, place - 2) : place]]
    again = english.find_recurring_stems(of[place].text, before[-1])
    if again and again.isdisjoint(protected.both.stems):
        return False
    return english.is_measuring(before[-1]) or (before[-1] == "the" and english.is_measuring(before[0]))


def _is_comparison(of: Sequence[Piece], place: int, protected: ProtectedWords) -> bool:
    """Whether a word compares extents ("twice as often"), and the source has nothing that it could stand for."""
    behind = of[place + 1].text if place + 1 < len(of) else ""
    return of[place].text == "twice" and behind == "as" and protected.both.stems.isdisjoint(map(english.stem_of, _TWO))


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
    return not any(form in protected.shown.han or form in protected.both.han_words for form in forms)


def find_repeated(of: Sequence[Piece]) -> Iterator[Finding]:
    """Yield words and clauses that stand twice in a row, characters thrice, and rows of one-word clauses: a code."""
    words = list(words_of(of))
    clauses = [tuple(words_of(clause)) for clause in parts_of(of, CLAUSES)]
    again = (" ".join(clause) for clause, other in pairwise(clauses) if clause == other)
    lists = map(", ".join, _bare_lists(of, clauses))
    lone = filter(_is_no_language, chinese.rows(words, LONE_RANK))
    unlikely = (
        "".join(part) for part in map(list, map(words_of, parts_of(of, SENTENCES))) if chinese.is_unlikely(part)
    )
    yield from (
        Finding(GateCode.DECODERS, phrase) for phrase in chain(_find_doubled(words), lone, unlikely, again, lists)
    )


def _find_doubled(words: Iterable[str]) -> Iterator[str]:
    """Yield words that stand twice in a row, and characters that stand thrice."""
    return (word for word, row in groupby(words) if word.isalnum() and len([*row]) > 1 + (len(word) == 1))


def _is_no_language(row: str) -> bool:
    """Whether lone characters in a row are too many and too rare to be words."""
    is_rare = math.prod(map(chinese.han_rank, row)) > LONE_MEAN**LONE_CHARACTERS
    return len(row) > LONE_CHARACTERS or (len(row) == LONE_CHARACTERS and is_rare)


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
    beginnings = [field[0] for field in fields if field]
    for before, behind in chain(*map(pairwise, sentences_of(fields)), pairwise(beginnings)):
        joined = before.text + behind.text
        is_own = own.holds(joined) or (own.holds(before.text) and own.holds(behind.text))
        if not is_own and _is_told_joined(joined, protected):
            yield Finding(GateCode.IDENTIFIERS, f"{before.text} {behind.text}")


def _is_told_joined(joined: str, protected: ProtectedWords) -> bool:
    stem = english.stem_of(joined)
    is_rare = stem in protected.both.stems and not english.is_everyday(joined)
    return is_rare or stem in protected.singles or joined in protected.names


def _chinese_code(word: str, protected: ProtectedWords) -> GateCode | None:
    if _is_foreign_element(word, protected):
        return GateCode.FIGURES
    if chinese.is_everyday_han(word):
        return GateCode.IDENTIFIERS if word in protected.singles else None
    if chinese.is_known_han(word):
        return GateCode.IDENTIFIERS if word in protected.both.han_words else None
    if word in protected.families or word in protected.persons:
        return GateCode.IDENTIFIERS
    return GateCode.FIGURES if chinese.is_withheld_han(word) else GateCode.DECODERS


def _find_joined_characters(words: Sequence[str], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield rows of lone characters that stand so in the source and are no words: what names and codes are made of."""
    for pair in ("".join(two) for row in chinese.rows(words) for two in pairwise(row)):
        is_phrase = max(map(rareness, pair)) <= FREE_CHARACTER_SHARE
        if not is_phrase and not own.holds_han(pair) and pair in protected.shown.han:
            yield Finding(GateCode.IDENTIFIERS, pair)


def _is_told_apart(word: str) -> bool:
    """Whether the characters of a Chinese word, each by itself, tell it: some of them are no frequent words."""
    is_han = not word.isascii() and word.isalpha() and 1 < len(word) <= _LONGEST_NAME
    return is_han and max(map(chinese.han_rank, word)) >= LONE_RANK


def _find_split_words(of: Sequence[Piece], own: OwnWords, protected: ProtectedWords) -> Iterator[Finding]:
    """Yield words of the source whose characters a text has one by one, and other words between them.

    Whether they may stand side by side, as a phrase does, is decided elsewhere.
    """
    texts = han_in(of)
    lone = frozenset(filter(_is_lone, chain(*map(chinese.segment, texts))))
    told = (word for word in protected.apart if lone.issuperset(word) and not own.holds_han(word))
    for word in told:
        if not any(word in han for han in texts):
            yield Finding(GateCode.IDENTIFIERS, "".join(dict.fromkeys(word)))


def _is_lone(word: str) -> bool:
    return len(word) == 1


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


def find_telling_terms(reading: SourceReading) -> list[Term]:
    """Return the terms of a source but single words that stay everyday though they are labels, or set off in a text."""
    labels = (term for term in reading.labels if not _is_plain(term, _LABEL_SHARE))
    introduced = (term for term in reading.introduced if not _is_plain(term, PLAIN_SHARE))
    return [term for term in chain(labels, introduced) if term.content]


def _is_plain(term: Term, share: Mapping[bool, float]) -> bool:
    return len(term.content) == 1 and rareness(term.content[0]) <= share[term.content[0].isascii()]


def rareness(content: str) -> float:
    """Return the rank of a stem or a Chinese word as a share of the everyday words; above 1 for one that is none."""
    if content.isascii():
        return english.stem_rank(content) / len(ranks("english_everyday"))
    return chinese.han_rank(content) / len(ranks("chinese_everyday"))
