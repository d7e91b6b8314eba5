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

ANYWHERE, AT_A_START, IN_A_FEW = 6, 5, 4
"""Letters of a term that count: anywhere in a reading, at the beginning of a sentence, in a reading of few letters."""

FEW_LETTERS = 20
SOUNDS = 3
"""Syllables of a Chinese name or term that count where a reply has others characters of the same sound."""

_CAPITALS = re.compile("[A-Z]")


@dataclass(frozen=True, slots=True)
class HiddenTerms:
    """What is looked for: the letters of names, codes and terms, and Chinese names and terms."""

    letters: frozenset[str]
    han: frozenset[str]

    @classmethod
    def of(cls, readings: Sequence[SourceReading], own: OwnWords) -> "HiddenTerms":
        """Collect what several chunks name and introduce, and their rare words, but what the user wrote."""
        words = {word for reading in readings for word in _telling_words(reading) if not own.holds(word)}
        terms = {term for reading in readings for term in (*reading.labels, *reading.introduced) if not _is_plain(term)}
        joined = {"".join(term.content) for term in terms if term.han == "" and len(term.content) > 1}
        han = {term.han for term in terms if 2 <= len(term.han) <= 8 and not own.holds_han(term.han)}
        han |= {person for reading in readings for person in reading.persons if not own.holds_han(person)}
        return cls(frozenset(word for word in (*words, *joined) if len(word) >= IN_A_FEW), frozenset(han))


def is_hidden_in(fields: Sequence[str], hidden: HiddenTerms) -> bool:
    """Whether one of the terms is found in another reading of a reply's fields as they were sent."""
    parts = [part for field in fields for part in _sentences(pieces(field))]
    letters = [[piece.text for piece in part if piece.kind is Kind.WORD] for part in parts]
    return _is_in_letters(letters, fields, hidden.letters) or _is_in_han(parts, fields, hidden)


def _is_in_letters(parts: Sequence[Sequence[str]], fields: Sequence[str], terms: frozenset[str]) -> bool:
    few = ["".join(part[0][0] for part in parts if part), "".join(part[-1][-1] for part in parts if part)]
    few += ["".join(part[0][1:2] for part in parts if part), "".join(part[-1][0] for part in parts if part)]
    few.append("".join(_CAPITALS.findall(" ".join(fields))).lower())
    few.append("".join(word for part in parts for word in part if len(word) == 1))
    many = ["".join(word[at] for word in part if len(word) > abs(at + 0.5)) for at in (0, -1, 1, -2) for part in parts]
    whole = ["".join(texts) for texts in zip(*[iter(many)] * len(parts), strict=True)] if parts else []
    joined = letters_only(" ".join(fields).lower())
    whole += [joined[start::step] for step in (2, 3, 4) for start in range(step)]
    return (
        any(term in text or term[::-1] in text for text in few for term in terms if len(text) <= FEW_LETTERS or len(term) >= AT_A_START)
        or any(text.startswith(term) for text in many for term in terms if len(term) >= AT_A_START)
        or any(term in text or term[::-1] in text for text in whole for term in terms if len(term) >= ANYWHERE)
    )


def _is_in_han(parts: Sequence[Sequence[Piece]], fields: Sequence[str], hidden: HiddenTerms) -> bool:
    clauses = [han for part in parts for piece in part if (han := piece.text if piece.kind is Kind.HAN else "")]
    sentences = [han for part in parts if (han := "".join(piece.text for piece in part if piece.kind is Kind.HAN))]
    joined = han_only("".join(fields))
    texts = ["".join(text[at] for text in some) for some in (clauses, sentences) for at in (0, -1)]
    texts += ["".join(text[1:2] for text in some) for some in (clauses, sentences)]
    texts += [joined[start::step] for step in (2, 3) for start in range(step)]
    if any(term in text or term[::-1] in text for text in texts for term in hidden.han):
        return True
    return any(_is_heard(text, term) for text in (*clauses, *texts) for term in hidden.han if len(term) >= SOUNDS)


def _is_heard(text: str, term: str) -> bool:
    """Whether other characters of the same sounds as a term stand in a text."""
    sounds, wanted = _sounds(text), _sounds(term)
    runs = ((sounds[start : start + len(term)], text[start : start + len(term)]) for start in range(len(text) - len(term) + 1))
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
    """Yield names and the words that are not everyday."""
    yield from reading.names.certain
    yield from (reading.names.capital - reading.names.plain)
    yield from (word for word in reading.names.plain if not english.is_everyday(word))
    yield from (term.content[0] for term in reading.introduced if len(term.content) == 1)


def _is_plain(term: Term) -> bool:
    """Whether a term is a single word that is everyday."""
    return len(term.content) == 1 and rareness(term.content[0]) <= 1


def _sounds(han: str) -> tuple[str, ...]:
    return tuple(syllables().get(character, character) for character in han)


