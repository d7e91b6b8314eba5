"""Canaries: a word for each document that nobody writes by chance, and that says of itself that it is one.

A word is its document's fingerprint followed by a signature of that fingerprint, both keyed: whoever knows the
secret recognises every canary there is without a list of them, and nobody else can make one.
"""

import hmac
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256

_ALPHABET = "bcdfghjklmpqrvwx"
"""Sixteen letters, and no vowel among them: no run of words in any language has so many of them in a row."""

FINGERPRINT_LETTERS = 12
SIGNATURE_LETTERS = 12
"""Four bits a letter: one text in 2^48 is taken for a canary by chance."""

_LETTERS = FINGERPRINT_LETTERS + SIGNATURE_LETTERS
_RUN = re.compile(f"[{_ALPHABET}]{{{_LETTERS},}}")
_NOT_A_LETTER = re.compile("[^a-z]+")
_OF_DOCUMENTS = b"ballast document canary 1\0"
_SIGNATURES = b"ballast canary signature 1\0"
_KEPT = 4_096
"""Documents whose canaries are remembered, some 200 bytes each: every chunk of a search carries one."""


@lru_cache(maxsize=_KEPT)
def document_canary(secret: str, document_id: str) -> str:
    """Return the canary of a document: 24 lower-case letters, the same at each call."""
    fingerprint = _letters(secret, _OF_DOCUMENTS, document_id, FINGERPRINT_LETTERS)
    return fingerprint + _signature(secret, fingerprint)


def canaries_in(secret: str, text: str) -> tuple[str, ...]:
    """Return the canaries in a text, in text order, each once.

    Case, width, and whatever stands between the letters but other letters do not hide one; neither does writing it
    backwards.
    """
    folded = _NOT_A_LETTER.sub("", unicodedata.normalize("NFKC", text).casefold())
    found = [candidate for candidate in _candidates(folded) if _is_canary(secret, candidate)]
    backwards = [candidate for candidate in _candidates(folded[::-1]) if _is_canary(secret, candidate)]
    return tuple(dict.fromkeys([*found, *reversed(backwards)]))


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
