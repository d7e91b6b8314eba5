"""Check `decoders`: nothing written in a code, and no text that is mostly no text."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator

from chat_shell.sealed.gate.figures import has_figure, has_figure_words
from chat_shell.sealed.gate.folding import fold, han_only, letters_only
from chat_shell.sealed.gate.identifiers import Identifiers, names_folded, names_something
from chat_shell.sealed.gate.name_forms import is_near_a_name
from chat_shell.sealed.gate.overlap import Passages, shares_run
from chat_shell.sealed.gate.word_lists import STOP_WORDS, is_known
from shared.plain_text.normal_form import spaced_and_cjk, split_words

MAX_UNKNOWN_WORDS = 3
MAX_UNKNOWN_SHARE = 0.12
"""Words in no list of English and not the user's: an honest summary has hardly one, text in a code has nothing else."""

MAX_SINGLE_LETTERS = 2
MAX_SINGLE_SHARE = 0.25
"""Letters that stand alone, "a" and "I" among them: more is a word that was taken apart."""

MAX_WORD_LETTERS = 24
"""The longest words of the list of English words have as many letters."""

MIN_LETTER_SHARE = 0.75
"""Letters among the characters that are not blank; Morse code and the like have none."""

_CODED = re.compile(r"[A-Za-z0-9+/_=-]{8,}")
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_ROTATIONS = [
    str.maketrans(_ALPHABET, _ALPHABET[shift:] + _ALPHABET[:shift]) for shift in range(1, len(_ALPHABET))
]  # fmt: skip
_LEET = [str.maketrans("01345789@$!|+(", digits) for digits in ("oieastbgasiltc", "olzastbgasiltc")]
_PLAIN_SHARE = 0.85
"""Letters, digits and blanks of what was decoded: bytes that only happen to be text have more signs than that."""

_SPELLING_WORDS = frozenset(
    (
        "alpha", "alfa", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet", "juliett",
        "juliette", "kilo", "lima", "mike", "november", "oscar", "papa", "quebec", "romeo", "sierra", "tango",
        "uniform", "victor", "whiskey", "whisky", "xray", "yankee", "zulu",
    )
)  # fmt: skip
_SPELLED_LETTERS = 3
_SHORTEST_DECODED = 4
_SHORTEST_INITIALS = 5
_BLANK_OR_APOSTROPHE = re.compile(r"[\s'’]")
_ELISION = re.compile(r"['’][a-z]{1,2}\b")


def is_encoded(text: str, known: Identifiers, passages: Passages, own_words: frozenset[str]) -> bool:
    """Tell whether a raw text says something of the chunks in a code, or is hardly text."""
    folded = fold(text)
    unknown = [word for word in _latin(folded) if not is_known(word) and word not in own_words]
    return (
        is_hardly_text(folded, unknown)
        or any(says_something(decoded, known, passages) for decoded in decodings(text))
        or any(passages.words.shared(words) for words in _rewritten(folded))
        or any(_is_telling(word, known) for word in _rewritten_words(folded, unknown))
        or _reads_down(folded, known)
        or _spells_on_the_radio(folded)
    )


def is_hardly_text(folded: str, unknown: list[str]) -> bool:
    """Tell whether a text has too many unknown words, single letters, signs or overlong words."""
    words = _latin(folded)
    visible = _BLANK_OR_APOSTROPHE.sub("", folded)
    letters = sum(1 for character in visible if character.isalpha())
    apart = _latin(_ELISION.sub("", folded))
    return (
        len(unknown) > max(MAX_UNKNOWN_WORDS, MAX_UNKNOWN_SHARE * len(words))
        or sum(1 for word in apart if len(word) == 1 and word not in "ai") > MAX_SINGLE_LETTERS
        or sum(1 for word in apart if len(word) == 1) > max(MAX_SINGLE_LETTERS, MAX_SINGLE_SHARE * len(apart))
        or any(len(word) > MAX_WORD_LETTERS for word in words)
        or letters < MIN_LETTER_SHARE * len(visible)
    )


def decodings(text: str) -> Iterator[str]:
    """Yield what a text or one of its words says in base64, base32, base16 or percent-escapes, when it is text.

    Plain words are read as they stand: what some of them decode to is chance.
    """
    for coded in dict.fromkeys((*_CODED.findall(text), *_CODED.findall(_unknown_joined(text)))):
        if is_known(coded.casefold()):
            continue
        for decode in (_base64, _base32, _base16):
            if (decoded := decode(coded)) is not None:
                yield decoded


def _unknown_joined(text: str) -> str:
    """Return a text with general words out and what is left written together between them."""
    return "".join(" " if is_known(word.casefold()) else word for word in text.split())


def says_something(text: str, known: Identifiers, passages: Passages) -> bool:
    """Tell whether a decoded text holds a figure, a term or a passage."""
    folded = fold(text)
    return has_figure(_without_mixtures(text)) or names_something(text, known) or shares_run(folded, passages)


def _without_mixtures(text: str) -> str:
    """Return a decoded text without words that are more letters than digits: what chance makes of a plain word."""
    words = text.split()
    digits = [sum(map(str.isdigit, word)) for word in words]
    return " ".join(word for word, count in zip(words, digits, strict=True) if not 0 < 2 * count < len(word))


def _rewritten(folded: str) -> Iterator[list[str]]:
    """Yield the words of other readings of a text: turned by each rotation, and from leet."""
    words = _latin(folded)
    for table in _ROTATIONS:
        yield " ".join(words).translate(table).split()
    for table in _LEET:
        if (spelled := folded.translate(table)) != folded:
            yield _latin(spelled)


def _rewritten_words(folded: str, unknown: Iterable[str]) -> Iterator[str]:
    """Yield other readings of words that are none: turned by each rotation, backwards, and from leet."""
    for word in unknown:
        yield from (word.translate(table) for table in _ROTATIONS)
        yield word[::-1]
    yield han_only(folded)[::-1]
    for table in _LEET:
        yield from (word for word in _latin(folded.translate(table)) if word not in folded)


def _is_telling(reading: str, known: Identifiers) -> bool:
    if len(reading) < _SHORTEST_DECODED:
        return False
    return (
        names_folded(reading, known) or is_near_a_name(reading, known.names, most_wrong=1) or _is_number_word(reading)
    )


def _is_number_word(reading: str) -> bool:
    return reading.isascii() and has_figure_words(reading)


def _reads_down(folded: str, known: Identifiers) -> bool:
    """Tell whether the initials of the words, or letters that stand alone, spell a term."""
    words = _latin(folded)
    initials = "".join(word[0] for word in words)
    spelled = letters_only(" ".join(word for word in words if len(word) == 1))
    return any(term in initials or term in spelled for term in known.words if len(term) >= _SHORTEST_INITIALS)


def _spells_on_the_radio(folded: str) -> bool:
    """Tell whether words of the radio's spelling alphabet follow one another, joined by no word with content."""
    row = 0
    for word in _latin(folded.replace("x-ray", "xray")):
        if word in _SPELLING_WORDS:
            row += 1
        elif word not in STOP_WORDS:
            row = 0
        if row >= _SPELLED_LETTERS:
            return True
    return False


def _base64(coded: str) -> str | None:
    bare = coded.rstrip("=").replace("-", "+").replace("_", "/")
    return _text(lambda: base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))


def _base32(coded: str) -> str | None:
    bare = coded.rstrip("=").upper()
    return _text(lambda: base64.b32decode(bare + "=" * (-len(bare) % 8)))


def _base16(coded: str) -> str | None:
    return _text(lambda: bytes.fromhex(coded))


def _text(decode: Callable[[], bytes]) -> str | None:
    try:
        decoded = decode().decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    plain = sum(1 for character in decoded if character.isalnum() or character == " ")
    return decoded if len(decoded) >= _SHORTEST_DECODED and plain >= _PLAIN_SHARE * len(decoded) else None


def _latin(folded: str) -> list[str]:
    return spaced_and_cjk(split_words(folded))[0]
