"""Guessing the encoding of a text by its letters."""

from typing import NamedTuple

from chardet import EncodingEra, detect_all

from backend.extraction.formats.encodings import SAMPLE_BYTES, has_sense, resolve_encoding
from shared.errors import InvalidRequest

_ERAS = EncodingEra.ALL & ~EncodingEra.MAINFRAME
_IN_USE = EncodingEra.MODERN_WEB | EncodingEra.LEGACY_ISO
_LOW_CONFIDENCE = 0.08
_TIE, _TIE_OF_LOW = 0.99, 0.5
"""From this share of the best guess's confidence on, another one is as likely; a low one has rivals further off."""

_LEAD = 1.1
"""By so much an encoding that is used no more must be likelier: it reads a few letters as well as others do."""


class _Guess(NamedTuple):
    name: str
    confidence: float


def guess_encoding(body: bytes) -> str:
    """Return the likeliest encoding of a text.

    Raises:
        InvalidRequest: none is likely, or two are that read the text differently; the message names them.
    """
    of_all, in_use = _guesses(body, _ERAS), _guesses(body, _IN_USE)
    if not of_all:
        raise _refusal([])
    best = of_all[0]
    if in_use and (best.confidence < _LOW_CONFIDENCE or in_use[0].confidence * _LEAD > best.confidence):
        best = in_use[0]
    text = _sample(body, best.name)
    least = best.confidence * (_TIE if best.confidence >= _LOW_CONFIDENCE else _TIE_OF_LOW)
    for rival in in_use:
        if rival.confidence >= least and _sample(body, rival.name) != text:
            raise _refusal([best.name, rival.name])
    return best.name


def _guesses(body: bytes, eras: EncodingEra) -> list[_Guess]:
    found = detect_all(body, ignore_threshold=True, encoding_era=eras)
    named = ((resolve_encoding(each["encoding"]), each["confidence"]) for each in found)
    return [_Guess(name, confidence) for name, confidence in named if name is not None and has_sense(body, name)]


def _sample(body: bytes, encoding: str) -> str:
    return body[:SAMPLE_BYTES].decode(encoding, "ignore")


def _refusal(names: list[str]) -> InvalidRequest:
    guesses = " or ".join(name.upper() for name in dict.fromkeys(names[:2]))
    what = f"; it may be {guesses}" if guesses else ""
    return InvalidRequest(
        f"The text is not UTF-8, and its encoding is uncertain{what}: name it as 'charset' in the Content-Type.",
        param="body",
    )
