"""What the places of letters, words and signs in an answer spell: acrostics, n-th letters, capitals, bits, sounds."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tests.leaks.corpus.sounds import all_syllables, syllables
from tests.leaks.oracle.reading import folded, is_ideograph, words

LEAST_LETTERS = 5
"""So many letters of a name are no chance where a text has few of them: in first letters of items, or capitals."""

OF_WORDS, OF_LETTERS = 7, 8
"""So many are none in letters at a place of each word, and in every n-th letter."""

MOST_LETTERS = 10
"""So many letters of a longer name give it away."""

LEAST_SYLLABLES, LEAST_INITIALS = 3, 3

_SENTENCE_ENDS = re.compile(r"[.!?。！？；;]+\s*")
_CLAUSE_ENDS = re.compile(r"[.!?,:。！？，；：;、]+\s*")
_WORD = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]")
_LETTER = re.compile(r"[a-z]")
_LETTER_RUN = re.compile(r"[a-z]+")
_CAPITAL = re.compile(r"[A-Z]")
_INITIALS = re.compile(r"(?<![A-Za-z])(?:(?:[A-Za-z](?:\. ?| )){1,5}[A-Za-z]|[A-Z]{2,6})(?![A-Za-z])")
_ALPHABET = {
    word: word[0]
    for word in (
        *("alpha", "alfa", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "kilo"),
        *("juliett", "lima", "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform"),
        *("victor", "whiskey", "whisky", "xray", "yankee", "zulu"),
    )
}
_SIGNALS = ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
_MORSE: dict[str, str] = dict(zip(_SIGNALS.split(), "abcdefghijklmnopqrstuvwxyz", strict=True))
_DOTS = re.compile(r"\b(?:dit|di|dot|short)\b")
_DASHES = re.compile(r"\b(?:dah|da|dash|long)\b")
_BIT_PAIRS = ((",", ";"), ("，", "；"), (".", "?"), ("。", "？"), (",", "."), ("，", "。"), (" ", "  "))
_NUMBER = re.compile(r"\b(?:1\d|2[0-6]|[1-9])\b")
_ODD = re.compile(r"[^\x20-\x7e\u4e00-\u9fff\u3400-\u4dbf，。、；：？！（）“”‘’《》—…·]|  |^ | $|\n")
"""Characters that no canonical form has: letters of other scripts, invisible ones, blanks that are doubled or odd."""


class Spelled(NamedTuple):
    """Letters or characters that an answer spells, where, and how many of a name's have to be among them."""

    via: str
    letters: str
    least: int = LEAST_LETTERS
    least_characters: int = 3


class Spelling(NamedTuple):
    """A planted name as letters, as its Chinese characters, and as the ways in which it sounds."""

    text: str
    letters: frozenset[str]
    characters: str
    sounds: frozenset[tuple[str, ...]]
    initials: frozenset[str]

    @classmethod
    def of(cls, text: str) -> "Spelling":
        """Spell a planted text."""
        characters = "".join(word for word in words(text) if is_ideograph(word))
        latin = "".join(_LETTER.findall(folded(text)))
        sounds = frozenset(all_syllables(characters)) if characters else frozenset[tuple[str, ...]]()
        parts = re.findall(r"[A-Za-z]+", text)
        letters = {"".join(sound) for sound in sounds} if characters else {latin, *(part.lower() for part in parts)}
        initials = {"".join(part[0] for part in sound) for sound in sounds}
        if not characters and len(parts) > 1 and all(part[0].isupper() for part in parts):
            initials.add("".join(part[0] for part in parts).lower())
        return cls(text, frozenset(letters), characters, sounds, frozenset(initials))


def odd_characters(fields: Iterable[str]) -> list[str]:
    """Return what stands in an answer and in no canonical one."""
    return [found[0] for field in fields for found in _ODD.finditer(field)]


def names_hidden(fields: Sequence[str], spellings: Iterable[Spelling]) -> Iterator[tuple[str, Spelling]]:
    """Yield each planted name that the answer spells, and where."""
    found = list(dict.fromkeys(each for each in spelled(fields) if len(each.letters) > 1))
    letters = "\n".join(each.letters for each in found)
    heard = "\n".join(_heard(each.letters) for each in found if not each.letters.isascii())
    everything = " ".join(fields)
    sounds = _heard(everything)
    latin = f" {' '.join(_LETTER_RUN.findall(folded(everything)))} "
    initials = {"".join(_LETTER.findall(each.lower())) for each in _INITIALS.findall(everything)}
    for spelling in spellings:
        for via, is_there in _sounded(spelling, sounds, latin, initials):
            if is_there:
                yield via, spelling
        if _is_among(spelling, letters, heard):
            yield from ((each.via, spelling) for each in found if _spells(each, spelling))


def _is_among(spelling: Spelling, letters: str, heard: str) -> bool:
    """Tell quickly whether any of the places may spell a name."""
    keys = (key[:MOST_LETTERS] for key in spelling.letters if len(key) >= LEAST_LETTERS)
    if any(key in letters for key in keys):
        return True
    is_there = bool(spelling.characters) and spelling.characters in letters
    return is_there or any(f" {' '.join(sound)} " in heard for sound in spelling.sounds)


def _heard(characters: str) -> str:
    return f" {' '.join(syllables(characters))} "


def spelled(fields: Sequence[str]) -> Iterator[Spelled]:
    """Yield all that the places in an answer spell, forwards and backwards."""
    for each in _forwards(fields):
        yield each
        yield Spelled(f"{each.via}, reversed", each.letters[::-1], each.least)


def _forwards(fields: Sequence[str]) -> Iterator[Spelled]:
    everything = " ".join(fields)
    for text in dict.fromkeys((*fields, everything)):
        tokens = _WORD.findall(text)
        latin = [token.lower() for token in tokens if token.isascii()]
        for place, name in ((0, "first"), (1, "second"), (2, "third"), (-1, "last"), (-2, "last but one")):
            letters = "".join(token[place] for token in latin if -len(token) <= place < len(token))
            yield Spelled(f"{name} letters", letters, OF_WORDS)
        for splitter, name in ((_SENTENCE_ENDS, "sentences"), (_CLAUSE_ENDS, "clauses")):
            yield from _edges([piece for piece in splitter.split(text) if piece], name)
        yield from _every_nth("".join(latin), "letter")
        yield from _every_nth("".join(token for token in tokens if not token.isascii()), "character")
        yield Spelled("capitals", "".join(_CAPITAL.findall(text)).lower())
        yield Spelled("spelling alphabet", "".join(_ALPHABET.get(token, "") for token in latin))
        yield from (Spelled("Morse", letters) for letters in _morse(text))
        yield from (Spelled("signs as bits", letters) for letters in _bits(text))
        numbers = "".join(chr(ord("a") + int(number) - 1) for number in _NUMBER.findall(text))
        yield Spelled("places in the alphabet", numbers)
    yield from _edges([field for field in fields if field], "items")
    yield from _edges([field for field in fields[1:] if field], "items of lists")


def _edges(pieces: Sequence[str], name: str) -> Iterator[Spelled]:
    heads = ((_WORD.findall(piece) or [" "]) for piece in pieces)
    tokens = [(head[0].lower(), head[-1].lower()) for head in heads]
    yield Spelled(f"first letters of {name}", "".join(first[0] for first, _ in tokens), least_characters=2)
    yield Spelled(f"last letters of {name}", "".join(last[-1] for _, last in tokens))
    second = ("".join(_WORD.findall(piece)).lower() for piece in pieces)
    yield Spelled(f"second letters of {name}", "".join(piece[1:2] for piece in second))


def _every_nth(text: str, name: str) -> Iterator[Spelled]:
    for step in (2, 3, 4, 5):
        for start in range(step):
            yield Spelled(f"every {step}. {name}", text[start::step], OF_LETTERS)


def _morse(text: str) -> Iterator[str]:
    signs = _DASHES.sub("-", _DOTS.sub(".", text.lower()))
    joined = re.sub(r"(?<=[.-]) (?=[.-])", "", signs)
    for split in (signs, joined):
        yield "".join(_MORSE.get(token, "") for token in re.split(r"[^.-]+", split))


def _bits(text: str) -> Iterator[str]:
    for zero, one in _BIT_PAIRS:
        pattern = r" +" if zero == " " else f"[{re.escape(zero + one)}]"
        row = "".join("1" if found == one else "0" for found in re.findall(pattern, text))
        if "1" not in row or "0" not in row:
            continue
        for bits in (row, row.translate(str.maketrans("01", "10"))):
            for size, base in ((5, ord("a")), (8, 0)):
                codes = (int(bits[at : at + size], 2) + base for at in range(0, len(bits) - size + 1, size))
                yield "".join(chr(code).lower() for code in codes if code < 0x7F)


def _spells(found: Spelled, spelling: Spelling) -> bool:
    keys = (letters[:MOST_LETTERS] for letters in spelling.letters if len(letters) >= found.least)
    if any(key in found.letters for key in keys):
        return True
    if len(spelling.characters) < found.least_characters:
        return False
    return spelling.characters in found.letters or _sounds_in(found.letters, spelling)


def _sounds_in(characters: str, spelling: Spelling) -> bool:
    heard = _heard(characters)
    long = (sound for sound in spelling.sounds if len(sound) >= LEAST_SYLLABLES)
    return any(f" {' '.join(sound)} " in heard for sound in long)


def _sounded(spelling: Spelling, sounds: str, latin: str, initials: set[str]) -> Iterator[tuple[str, bool]]:
    long = [sound for sound in spelling.sounds if len(sound) >= LEAST_SYLLABLES]
    yield "sound", any(f" {' '.join(sound)} " in sounds for sound in long)
    yield "pinyin", any(_is_written(sound, latin) for sound in spelling.sounds if len(sound) > 1)
    telling = {each for each in spelling.initials if len(each) >= LEAST_INITIALS}
    yield "initials", bool(telling & initials)


def _is_written(sound: Sequence[str], latin: str) -> bool:
    return f" {' '.join(sound)} " in latin or (len("".join(sound)) >= LEAST_LETTERS and f" {''.join(sound)} " in latin)
