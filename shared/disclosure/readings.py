"""Other ways to read a reply: initials, last letters, every other letter, capitals, spelling, and Chinese by sound.

A term that is found in one of them was put there. How long it has to be depends on how many letters a reading has: of
six letters in a row chance makes one in millions, of four only where few letters are read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shared.disclosure import english
from shared.disclosure.canonical import Kind, Piece, pieces
from shared.disclosure.folding import han_only, letters_only
from shared.disclosure.own_words import OwnWords
from shared.disclosure.source import SourceReading, Term
from shared.disclosure.word_lists import syllables
from shared.disclosure.words import rareness

ANYWHERE, AT_A_START = 6, 5
"""Letters of a word that count: at the beginning of a reading of many letters, and anywhere in one of few."""

FEW_LETTERS = 20
SOUNDS = 3
"""Syllables of a Chinese name or term that count where a reply has others characters of the same sound."""

_CAPITALS = re.compile("[A-Z]")


@dataclass(frozen=True, slots=True)
class HiddenTerms:
    """What is looked for: the letters of names, codes and terms, and Chinese names and terms."""

    names: frozenset[str]
    words: frozenset[str]
    han: frozenset[str]

    def words_of(self, shortest: int) -> Iterator[str]:
        """Yield words of so many letters and more, and names of one letter less."""
        yield from (word for word in self.words if len(word) >= shortest)
        yield from (name for name in self.names if len(name) >= shortest - 1)

    @classmethod
    def of(cls, readings: Sequence[SourceReading], own: OwnWords) -> "HiddenTerms":
        """Collect what several chunks name and introduce, and their rare words, but what the user wrote."""
        names = {
            word
            for reading in readings
            for word in _telling_words(reading)
            if not own.holds(word) and not english.is_quantity(word)
        }
        terms = {term for reading in readings for term in (*reading.labels, *reading.introduced) if not _is_plain(term)}
        names |= {"".join(term.content) for term in terms if term.han == "" and len(term.content) > 1}
        words = {
            word
            for reading in readings
            for word in reading.names.plain
            if not own.holds(word) and not english.is_quantity(word)
        }
        han = {term.han for term in terms if 2 <= len(term.han) <= 8}
        han |= {name for reading in readings for name in (*reading.persons, *reading.rare)}
        return cls(frozenset(names), frozenset(words), frozenset(name for name in han if not own.holds_han(name)))


def is_hidden_in(fields: Sequence[str], hidden: HiddenTerms) -> bool:
    """Whether one of the terms is found in another reading of a reply's fields as they were sent."""
    parts = [part for field in fields for part in _sentences(pieces(field))]
    letters = [[piece.text for piece in part if piece.kind is Kind.WORD] for part in parts]
    return _is_in_letters(letters, fields, hidden) or _is_in_han(parts, fields, hidden)


def _is_in_letters(parts: Sequence[Sequence[str]], fields: Sequence[str], hidden: HiddenTerms) -> bool:
    few = [_joined(part[0][:1] for part in parts if part), _joined(part[-1][-1:] for part in parts if part)]
    few += [_joined(part[0][1:2] for part in parts if part), _joined(part[-1][:1] for part in parts if part)]
    few.append(_joined(_CAPITALS.findall(" ".join(fields))).lower())
    few.append(_joined(word for part in parts for word in part if len(word) == 1))
    items = [letters_only(field.lower()) for field in fields]
    few += [
        _joined(item[start + step * place :][:1] for place, item in enumerate(rows))
        for rows in (items, items[1:])
        for start in range(5)
        for step in range(3)
    ]
    many = [_joined(word[at : at + 1 or None] for word in part) for at in (0, 1, 2, -1, -2) for part in parts]
    whole = [_joined(many[at : at + len(parts)]) for at in range(0, len(many), len(parts) or 1)]
    joined = "".join(items)
    whole += [joined[start::step] for step in (2, 3, 4) for start in range(step)]
    return (
        any(_stands_in(text, hidden, AT_A_START if len(text) <= FEW_LETTERS else ANYWHERE) for text in few)
        or any(text.startswith(tuple(hidden.words_of(ANYWHERE)) or (" ",)) for text in many)
        or any(_stands_in(text, hidden, ANYWHERE + 1) for text in whole)
    )


def _joined(letters: Iterable[str]) -> str:
    return "".join(letters)


def _stands_in(text: str, hidden: HiddenTerms, shortest: int) -> bool:
    both = (text, text[::-1])
    return any(term in each for each in both for term in hidden.words_of(shortest))


def _is_in_han(parts: Sequence[Sequence[Piece]], fields: Sequence[str], hidden: HiddenTerms) -> bool:
    clauses = [han for part in parts for piece in part if (han := piece.text if piece.kind is Kind.HAN else "")]
    sentences = [han for part in parts if (han := "".join(piece.text for piece in part if piece.kind is Kind.HAN))]
    joined = han_only("".join(fields))
    texts = ["".join(text[at] for text in some) for some in (clauses, sentences) for at in (0, -1)]
    texts += ["".join(text[1:2] for text in some) for some in (clauses, sentences)]
    texts += [joined[start::step] for step in (2, 3, 4) for start in range(step)]
    rows = [han_only(field) for field in fields]
    texts += [
        "".join(row[start + step * place :][:1] for place, row in enumerate(rows))
        for start in range(4)
        for step in (1, 0)
    ]
    if any(term in text or term[::-1] in text for text in texts for term in hidden.han):
        return True
    return any(_is_heard(text, term) for text in (*clauses, *texts) for term in hidden.han if len(term) >= SOUNDS)


def _is_heard(text: str, term: str) -> bool:
    """Whether other characters of the same sounds as a term stand in a text."""
    sounds, wanted = _sounds(text), _sounds(term)
    runs = (
        (sounds[start : start + len(term)], text[start : start + len(term)])
        for start in range(len(text) - len(term) + 1)
    )
    return any(heard == wanted and not set(term).intersection(written) for heard, written in runs)


def _sentences(of: Iterable[Piece]) -> Iterator[list[Piece]]:
    part: list[Piece] = []
    for piece in of:
        if piece.kind is Kind.STOP:
            yield part
            part = []
        elif piece.kind is not Kind.PAUSE:
            part.append(piece)
    if part:
        yield part


def _telling_words(reading: SourceReading) -> Iterator[str]:
    """Yield names of persons, words with a capital, and what a source introduces as a single word."""
    yield from reading.names.certain
    yield from (reading.names.capital - reading.names.plain)
    yield from (term.content[0] for term in reading.introduced if len(term.content) == 1)


def _is_plain(term: Term) -> bool:
    """Whether a term is a single word that is everyday."""
    return len(term.content) == 1 and rareness(term.content[0]) <= 1


def _sounds(han: str) -> tuple[str, ...]:
    return tuple(syllables().get(character, character) for character in han)
