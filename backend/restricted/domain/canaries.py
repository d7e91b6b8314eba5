"""Canaries: a random-looking word for each document that can be verified as a canary without a list.

A canary is a fingerprint of the document's id followed by a signature of that fingerprint, both keyed hashes
(HMAC-SHA256): whoever has the secret can recognise and make every canary, and nobody else can make one.
"""

import hmac
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256

_ALPHABET = "bcdfghjklmpqrvwx"
"""Sixteen consonants, one for each hexadecimal digit: no text in any language has 24 of them in a row."""

FINGERPRINT_LETTERS = 12
SIGNATURE_LETTERS = 12
"""A letter carries four bits, so a random candidate passes as a canary with probability 2^-48."""

_LETTERS = FINGERPRINT_LETTERS + SIGNATURE_LETTERS
_TELLING_LETTERS = 6
"""So many of these letters in a row are rare in any text."""

_RUN = re.compile(f"[{_ALPHABET}]{{{_LETTERS},}}")
_NOT_A_LETTER = re.compile("[^a-z]+")
_OF_DOCUMENTS = b"ballast document canary 1\0"
_SIGNATURES = b"ballast canary signature 1\0"
_CACHED_CHARACTERS = 4_096
_CACHED_DOCUMENTS = 4_096
"""The size of the cache of canaries, some 200 bytes a document: every chunk of a search carries a canary."""


@lru_cache(maxsize=_CACHED_DOCUMENTS)
def document_canary(secret: str, document_id: str) -> str:
    """Return the canary of a document: 24 lower-case letters, the same at each call."""
    fingerprint = _letters(secret, _OF_DOCUMENTS, document_id, FINGERPRINT_LETTERS)
    return fingerprint + _signature(secret, fingerprint)


def canaries_in(secret: str, text: str) -> tuple[str, ...]:
    """Return the canaries in a text, in text order, each once.

    A canary is found in any case and character width, with characters other than letters between its letters, and
    spelled backwards.
    """
    folded = _NOT_A_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())
    found = [candidate for candidate in _candidates(folded) if _is_canary(secret, candidate)]
    backwards = [candidate for candidate in _candidates(folded[::-1]) if _is_canary(secret, candidate)]
    return tuple(dict.fromkeys([*found, *reversed(backwards)]))


def possible_beginning(text: str) -> int:
    """Return the offset from which the end of a text may be the beginning of a canary; the text's length if none."""
    count, beginning = 0, len(text)
    for at in range(len(text) - 1, -1, -1):
        letters = _fold(text[at])
        if not all(letter in _ALPHABET for letter in letters):
            break
        if letters:
            count, beginning = count + len(letters), at
        if count >= _LETTERS:
            break
    return beginning if count >= _TELLING_LETTERS else len(text)


@lru_cache(maxsize=_CACHED_CHARACTERS)
def _fold(character: str) -> str:
    return _NOT_A_LETTER.sub("", unicodedata.normalize("NFKC", character).casefold())


def _candidates(letters: str) -> Iterator[str]:
    for run in _RUN.finditer(letters):
        for start in range(run.start(), run.end() - _LETTERS + 1):
            yield letters[start : start + _LETTERS]


def _is_canary(secret: str, candidate: str) -> bool:
    fingerprint, signature = candidate[:FINGERPRINT_LETTERS], candidate[FINGERPRINT_LETTERS:]
    return hmac.compare_digest(signature, _signature(secret, fingerprint))


def _signature(secret: str, fingerprint: str) -> str:
    return _letters(secret, _SIGNATURES, fingerprint, SIGNATURE_LETTERS)


def _letters(secret: str, purpose: bytes, text: str, count: int) -> str:
    digits = hmac.digest(secret.encode(), purpose + text.encode(), sha256).hex()
    return "".join(_ALPHABET[int(digit, 16)] for digit in digits[:count])
