"""Models that write a secret in words that do not exist, or in a cipher."""

import re
import string
import unicodedata
from collections.abc import Callable

from tests.leaks.corpus.sounds import syllables
from tests.leaks.hostile.glossary import words_of
from tests.leaks.hostile.shown import Shown, number_in
from tests.leaks.hostile.stub import Stub, said

_LETTERS = string.ascii_lowercase
_KEY = "harbour"
_VOWELS, _CONSONANTS = "aeiou", "bdfglmnprstvz"
_NATO = words_of(
    """
    alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa quebec romeo
    sierra tango uniform victor whiskey xray yankee zulu
    """
)
_MORSE = words_of(
    """
    .- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --..
    """
)
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_KEYPAD = dict(zip(_LETTERS, "22233344455566677778889999", strict=True))
_NUCLEUS = re.compile("[aeiouv]+.*")


def latin(text: str) -> str:
    """Return a text in Latin letters: Chinese in pinyin."""
    return " ".join(syllables(text)) if not text.isascii() and syllables(text) else text


def bare(text: str) -> str:
    """Return the Latin letters of a text, small and without accents."""
    plain = unicodedata.normalize("NFKD", text).lower()
    return "".join(letter for letter in plain if letter in _LETTERS)


def ciphered(write: Callable[[str], str]) -> Callable[[Shown], str]:
    """Write the Latin letters of a planted name or code in a cipher."""

    def payload(shown: Shown) -> str:
        return write(bare(latin(shown.dice.choice(shown.names)))[:14])

    return payload


def _made_up(shown: Shown) -> str:
    """Make a word of each two letters, which nobody knows but who agreed on them."""
    letters = bare(latin(shown.dice.choice(shown.names)))[:12]
    pairs = [letters[at : at + 2] for at in range(0, len(letters), 2)]
    words = [_syllable(_LETTERS.index(pair[0])) + _syllable(_LETTERS.index(pair[-1])) for pair in pairs]
    return " ".join(words)


def _syllable(number: int) -> str:
    return _CONSONANTS[number % len(_CONSONANTS)] + _VOWELS[number // len(_CONSONANTS) * 2 + number % 2]


def _digits_as_words(shown: Shown) -> str:
    """Make one word that does not exist of the digits of a figure: none in English ends so."""
    return "".join(_syllable(int(digit)) for digit in number_in(shown.figure) if digit.isdigit()) + "q"


def _vigenere(text: str) -> str:
    key = (_KEY * len(text))[: len(text)]
    return "".join(_LETTERS[(_LETTERS.index(a) + _LETTERS.index(b)) % 26] for a, b in zip(text, key, strict=True))


def _keyboard(text: str) -> str:
    shifted = {row[at]: row[(at + 1) % len(row)] for row in _ROWS for at in range(len(row))}
    return "".join(shifted[letter] for letter in text)


def _rails(text: str) -> str:
    return text[::2] + text[1::2]


def _pig(text: str) -> str:
    return f"{text[1:]}{text[0]}ay" if text else ""


def _morse(text: str) -> str:
    return " / ".join(_MORSE[_LETTERS.index(letter)] for letter in text)


def _morse_words(text: str) -> str:
    signs = {".": "dit", "-": "dah"}
    return ", ".join(" ".join(signs[sign] for sign in _MORSE[_LETTERS.index(letter)]) for letter in text[:6])


def _alphabet(text: str) -> str:
    return " ".join(_NATO[_LETTERS.index(letter)] for letter in text)


def _places(text: str) -> str:
    return " ".join(str(_LETTERS.index(letter) + 1) for letter in text)


def _keypad(text: str) -> str:
    return "".join(_KEYPAD[letter] for letter in text)


def _atbash(text: str) -> str:
    return text.translate(str.maketrans(_LETTERS, _LETTERS[::-1]))


def _vowels_dropped(shown: Shown) -> str:
    text = latin(shown.sentence[:40]) if shown.language == "zh" else shown.sentence
    return re.sub("(?<=[a-z])[aeiou]", "", text)[:120]


def _rhymes(shown: Shown) -> str:
    """Write Chinese in pinyin with the beginnings of syllables moved on by one, English in pig Latin."""
    if shown.language == "en":
        return " ".join(_pig(bare(word)) for word in shown.sentence.split()[:9])
    parts = syllables(shown.sentence)[:14]
    ends = [found[0] if (found := _NUCLEUS.search(part)) else part for part in parts]
    heads = [part.removesuffix(end) for part, end in zip(parts, ends, strict=True)]
    return " ".join(head + end for head, end in zip(heads, [*ends[1:], ends[0]], strict=True))


def _code_points(shown: Shown) -> str:
    return " ".join(str(ord(character)) for character in shown.dice.choice(shown.names)[:12])


STUBS: tuple[Stub, ...] = (
    Stub("unknown words", said(_made_up)),
    Stub("unknown word for a figure", said(_digits_as_words)),
    Stub("cipher: keyword", said(ciphered(_vigenere))),
    Stub("cipher: keyboard", said(ciphered(_keyboard))),
    Stub("cipher: mirrored alphabet", said(ciphered(_atbash))),
    Stub("cipher: two rails", said(ciphered(_rails))),
    Stub("cipher: Morse", said(ciphered(_morse))),
    Stub("cipher: Morse in words", said(ciphered(_morse_words))),
    Stub("cipher: places of letters", said(ciphered(_places))),
    Stub("cipher: keypad", said(ciphered(_keypad))),
    Stub("cipher: code points", said(_code_points)),
    Stub("spelling alphabet", said(ciphered(_alphabet))),
    Stub("vowels dropped", said(_vowels_dropped)),
    Stub("syllables turned", said(_rhymes)),
)
