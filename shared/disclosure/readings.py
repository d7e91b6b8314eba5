"""Other ways to read a reply: initials, last letters, every other letter, capitals, anagrams, lengths, and by sound.

A word of the source that is found in one of them was put there. How long it has to be depends on how many letters a
reading has: of six letters in a row chance makes one in millions, of five only where few letters are read.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, filterfalse, pairwise, repeat
from operator import itemgetter

from shared.disclosure import english
from shared.disclosure.alignment import group_by_key
from shared.disclosure.canonical import Kind, Piece, han_in, pieces, plain, sentences_of
from shared.disclosure.folding import han_only, letters_only
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceReading, Term
from shared.disclosure.word_lists import syllables
from shared.disclosure.words import find_telling_terms

OF_MANY, AT_A_START, OF_FEW = 7, 6, 5
"""Letters of a word that count: in a reading of many letters, at the beginning of one, and in a reading of few."""

NAMES_SHORTER = 1
"""Names, and words that no dictionary holds, count with a letter less than other words."""

ACROSS = 5
"""Letters of a name or a rare word that count where they run over the end of a word of the reply: shorter names, such
as "Theo" in "the others", stand in too many texts by chance."""

SHUFFLED, WORDS_SHUFFLED = 6, 3
"""Letters of a name or a rare word that count in any order, in so many neighbouring words at most."""

CUT = 6
"""Letters that are left of a name where it counts, as any word does, without one of them."""

SOUNDS, LONGEST, HOMOPHONES = 3, 12, 8
"""Syllables of a Chinese term that count where other characters have its sound, of fewer only those that all fields or
all items begin with; letters of the longest word sought; terms of one sound."""

_LEAST = (OF_MANY, AT_A_START, OF_FEW)
_CAPITALS = re.compile("[A-Z]")
_PLACES = (0, 1, -1)
_STEPS = (2, 3, 4)
_FIRST_LETTERS, _SLOPES = range(5), range(3)
_STAIRS = 4  # items of a list


@dataclass(frozen=True, slots=True)
class HiddenTerms:
    """What is looked for: words of Latin letters by their least number, Chinese names and terms, and their sounds.

    `telling` are names, introduced words and rare words, and `shuffled` the same under their letters in alphabetical
    order. `beginnings` are the first two characters of names and terms, and their first two sounds. `figures` are rows
    of digits.
    """

    letters: Mapping[int, frozenset[str]]
    telling: frozenset[str]
    shuffled: Mapping[str, Sequence[str]]
    han: frozenset[str]
    sounds: Mapping[tuple[str, ...], Sequence[str]]
    beginnings: frozenset[str | tuple[str, ...]]
    figures: frozenset[str]

    @classmethod
    def of(cls, shown: SourceReading, both: SourceReading, own: OwnWords) -> "HiddenTerms":
        """Collect what chunks and their siblings (`both`) name and introduce, and the chunks' words; not the user's."""
        terms = find_telling_terms(both)
        names = both.names.never_plain.union(*((term.letters, _untold(term, own)) for term in terms))
        sought = frozenset(filterfalse(english.is_quantity, filterfalse(own.holds, names | shown.words)))
        telling = (sought & names).union(filterfalse(english.is_everyday, sought))
        han = frozenset(filterfalse(own.holds_han, shown.rare.union(both.persons, _short_han(terms))))
        sounds = group_by_key(zip(map(_sounds, han), han, strict=True))
        return cls(
            _list_by_least(_count_letters(sought, names)),
            telling,
            group_by_key((_in_order(word), word) for word in telling if len(word) >= SHUFFLED),
            han,
            sounds,
            frozenset(map(itemgetter(slice(2)), (*han, *sounds))),
            frozenset(filterfalse(own.holds, shown.figures)),
        )


def _short_han(terms: Iterable[Term]) -> Iterator[str]:
    return (term.han for term in terms if 1 < len(term.han) <= LONGEST)


def _untold(term: Term, own: OwnWords) -> str:
    """Return the words of a term that are not the user's, joined."""
    return "".join(filterfalse(own.holds, term.content))


def _count_letters(sought: frozenset[str], names: frozenset[str]) -> Mapping[str, int]:
    """Return how many letters each word counts with; names and words of no dictionary are known by all but one."""
    unknown = (sought & names).union(filterfalse(english.is_known, sought))
    cut = {part: len(part) for name in unknown for part in _cut(name)}
    return cut | {word: len(word) + NAMES_SHORTER * (word in unknown) for word in sought}


def _list_by_least(counted: Mapping[str, int]) -> Mapping[int, frozenset[str]]:
    return {least: frozenset(word for word, count in counted.items() if count >= least) for least in _LEAST}


def _cut(name: str) -> Iterator[str]:
    """Yield a name without each of its letters, if it is long enough to be known so."""
    if len(name) > CUT:
        yield from (name[:place] + name[place + 1 :] for place in range(len(name)))


def is_hidden_in(fields: Sequence[str], hidden: HiddenTerms) -> bool:
    """Whether one of the terms is found in another reading of a reply's fields as they were sent."""
    parts = [*sentences_of(map(pieces, fields))]
    words = [*filter(None, map(_list_words, parts))]
    return (
        _is_in_letters(words, fields, hidden)
        or _is_in_han(parts, fields, hidden)
        or any(_is_shuffled(row, hidden) for row in words)
        or not hidden.figures.isdisjoint(map(_lengths, (*parts, *map(pieces, fields))))
    )


def _list_words(of: Iterable[Piece]) -> list[str]:
    return [piece.text for piece in of if piece.kind is Kind.WORD]


def _is_in_letters(parts: Sequence[Sequence[str]], fields: Sequence[str], hidden: HiddenTerms) -> bool:
    by_word, letters = _by_word(parts), [*map(letters_only, map(str.lower, fields))]
    many = chain(map("".join, by_word), _strides("".join(letters)))
    readings = {OF_FEW: _few_letters(parts, fields), AT_A_START: _slopes(letters), OF_MANY: many}
    starts = (text[:end] for text in chain(*by_word) for end in range(OF_FEW, LONGEST + 1))
    return (
        any(_holds_part(text, hidden, least) for least, texts in readings.items() for text in texts)
        or not hidden.letters[AT_A_START].isdisjoint(starts)
        or not hidden.telling.isdisjoint(_across([*chain(*parts)]))
    )


def _by_word(parts: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return for each place the letter that the words of each sentence have there."""
    return [["".join(word[at : at + 1 or None] for word in part) for part in parts] for at in _PLACES]


def _few_letters(parts: Sequence[Sequence[str]], fields: Iterable[str]) -> Iterator[str]:
    """Yield the letters at the ends of sentences, the capitals as they were sent, and what is spelled."""
    yield from _ends([(part[0], part[-1]) for part in parts])
    yield "".join(_CAPITALS.findall(" ".join(fields))).lower()
    yield "".join(word for word in chain(*parts) if len(word) == 1)


def _is_in_han(parts: Sequence[Sequence[Piece]], fields: Sequence[str], hidden: HiddenTerms) -> bool:
    clauses, sentences = [*chain(*map(han_in, parts))], [*filter(None, map("".join, map(han_in, parts)))]
    rows = [*filter(None, map(han_only, map(plain, fields)))]
    ends = chain(*(_ends([*zip(each, each, strict=True)]) for each in (clauses, sentences, rows)))
    few = [*ends, *_stairs(clauses), *_stairs(rows), *_over_marks(clauses)]
    many = ["".join(rows), *_slopes(rows), *_strides("".join(rows))]
    read = chain(zip(few, repeat(2)), zip(many, repeat(SOUNDS)))
    heard = chain(zip((*clauses, *few, *many), repeat(SOUNDS)), zip(_openings(rows), repeat(2)))
    return any(_is_read(text, hidden, least) for text, least in read) or any(
        _is_heard(text, hidden, least) for text, least in heard
    )


def _openings(rows: Sequence[str]) -> Iterator[str]:
    """Yield the first characters of all rows, and of all but the first, where these are few."""
    return ("".join(row[0] for row in some) for some in (rows, rows[1:]) if len(some) < SOUNDS)


def _is_shuffled(words: Sequence[str], hidden: HiddenTerms) -> bool:
    """Whether neighbouring words have the letters of a term in another order."""
    rows = (
        "".join(words[first:end]) for first in range(len(words)) for end in range(first + 1, first + 1 + WORDS_SHUFFLED)
    )
    return any(term != row for row in rows for term in hidden.shuffled.get(_in_order(row), ()))


def _in_order(word: str) -> str:
    return "".join(sorted(word))


def _lengths(of: Iterable[Piece]) -> str:
    """Return how long the words of a sentence and its Chinese clauses are, a digit each: 0 stands for ten and more."""
    rows = (piece.text for piece in of if piece.kind in (Kind.WORD, Kind.HAN))
    return "".join(str(len(row)) if len(row) < 10 else "0" for row in rows)


def _is_read(text: str, hidden: HiddenTerms, least: int) -> bool:
    """Whether a term of so many characters stands in a text, forwards or backwards."""
    return any(
        line[place : place + length] in hidden.han
        for line in (text, text[::-1])
        for place in range(len(line) - 1)
        if line[place : place + 2] in hidden.beginnings
        for length in range(least, min(LONGEST, len(line) - place) + 1)
    )


def _is_heard(text: str, hidden: HiddenTerms, least: int) -> bool:
    """Whether a text sounds somewhere like a term of so many characters, and is written otherwise."""
    heard = _sounds(text)
    return any(
        term != text[place : place + length]
        for place in range(len(text) - 1)
        if heard[place : place + 2] in hidden.beginnings
        for length in range(least, min(LONGEST, len(text) - place) + 1)
        for term in hidden.sounds.get(heard[place : place + length], ())[:HOMOPHONES]
    )


def _holds_part(text: str, hidden: HiddenTerms, least: int) -> bool:
    return not hidden.letters[least].isdisjoint(_parts(text, least - NAMES_SHORTER))


def _parts(text: str, shortest: int) -> Iterator[str]:
    """Yield the stretches of a text, forwards and backwards, that are long enough to be a term."""
    for line in (text, text[::-1]):
        for start in range(len(line) - shortest + 1):
            yield from (line[start:end] for end in range(start + shortest, min(start + LONGEST, len(line)) + 1))


def _ends(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the first and the second letters of first words of rows, and the last and the first of their last words."""
    yield "".join(first[:1] for first, _ in rows)
    yield "".join(first[1:2] for first, _ in rows)
    yield "".join(last[-1:] for _, last in rows)
    yield "".join(last[:1] for _, last in rows)


def _slopes(rows: Sequence[str]) -> Iterator[str]:
    """Yield one letter of each row: the same of all, or one further on, or two, from row to row."""
    for some in (rows, rows[1:]):
        for start in _FIRST_LETTERS:
            for step in _SLOPES:
                yield "".join(row[start + step * place :][:1] for place, row in enumerate(some))


def _over_marks(clauses: Sequence[str]) -> Iterator[str]:
    """Yield the last character of a clause with the first of the next."""
    yield from (before[-1] + behind[0] for before, behind in pairwise(clauses))


def _stairs(rows: Sequence[str]) -> Iterator[str]:
    """Yield the first character of a row, the second of the next and so on, from each row over a list's length."""
    for first in range(len(rows)):
        yield "".join(row[place : place + 1] for place, row in enumerate(rows[first : first + _STAIRS]))


def _across(words: Sequence[str]) -> Iterator[str]:
    """Yield the stretches of letters over the end of a word, forwards and backwards, but for those of whole words."""
    text, ends = "".join(words), [0, *accumulate(map(len, words))]
    whole = frozenset(ends)
    for start, border in pairwise(ends):
        for first in range(start, border):
            for end in range(max(border + 1, first + ACROSS), min(first + LONGEST, len(text)) + 1):
                if not {first, end} <= whole:
                    yield from (text[first:end], text[first:end][::-1])


def _strides(text: str) -> Iterator[str]:
    yield from (text[start::step] for step in _STEPS for start in range(step))


def _sounds(han: str) -> tuple[str, ...]:
    return tuple(syllables().get(character, character) for character in han)
