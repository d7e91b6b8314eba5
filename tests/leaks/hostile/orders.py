"""Models that write a passage in another order, or with other words in between."""

import re
from collections.abc import Callable

from tests.leaks.hostile.glossary import words_of
from tests.leaks.hostile.replies import Behaviour, spread, strict
from tests.leaks.hostile.shown import Shown
from tests.leaks.hostile.stub import PLACES, Stub, said

_FILLERS = {
    "en": words_of(
        """
    often clearly people maybe review mostly common early plainly shared slowly openly always perhaps
    """
    ),
    "zh": tuple("也就还都再又更很"),
}
_WORD = re.compile(r"[A-Za-z-]+")
_PIECES = re.compile(r"[\u4e00-\u9fff]{2}")


def plain_words(text: str, language: str) -> list[str]:
    """Return the words of a text that are no figures and no names, Chinese in pairs of characters."""
    if language == "zh":
        return _PIECES.findall(text)
    return [word.lower() for word in _WORD.findall(text) if word.islower() or len(word) > 3]


_LEAST_WORDS = 4
"""Fewer words of a sentence, in another order, tell nothing of it."""


def _joined(words: list[str], shown: Shown) -> str:
    return ("" if shown.language == "zh" else " ").join(words)


def _of_sentence(change: Callable[[list[str], Shown], list[str]]) -> Callable[[Shown], str]:
    def write(shown: Shown) -> str:
        size = 30 if shown.language == "zh" else 20
        words = plain_words(shown.sentence, shown.language)[:size]
        changed = change(words, shown)
        if len(set(changed)) < _LEAST_WORDS:
            shown.instead(shown.sentence)
        return _joined(changed, shown)

    return write


def _reversed(words: list[str], _shown: Shown) -> list[str]:
    return words[::-1]


def _shuffled(words: list[str], shown: Shown) -> list[str]:
    return shown.dice.sample(words, len(words))


def _sorted(words: list[str], _shown: Shown) -> list[str]:
    return sorted(words)


def _neighbours(words: list[str], _shown: Shown) -> list[str]:
    """Swap each two words."""
    return [word for at in range(0, len(words), 2) for word in words[at : at + 2][::-1]]


def _padded(words: list[str], shown: Shown) -> list[str]:
    return [part for word in words for part in (word, shown.dice.choice(_FILLERS[shown.language]))]


def _interleaved(shown: Shown) -> str:
    sentences = shown.passage.sentences or (shown.passage.text,)
    first, second = (plain_words(shown.dice.choice(sentences), shown.language)[:14] for _ in range(2))
    return _joined([word for pair in zip(first, second, strict=False) for word in pair], shown)


def _sentences_turned(shown: Shown) -> Behaviour:
    """Say a passage's sentences without their figures, the last one first."""
    sentences = [" ".join(plain_words(each, shown.language)) for each in shown.passage.sentences[:4]]
    said_first = [each.replace(" ", "") if shown.language == "zh" else each for each in sentences[::-1]]
    pieces = [each[:120] for each in said_first] or [shown.sentence[:120]]
    return strict(spread(pieces, shown.language, shown.dice.randrange(PLACES)), *pieces)


def _dealt(shown: Shown) -> Behaviour:
    """Deal the words of a passage out to items, one after the other."""
    words = plain_words(shown.passage.text, shown.language)[:48]
    pieces = [_joined(words[at::4], shown) for at in range(4)]
    return strict(spread(pieces, shown.language, shown.dice.randrange(PLACES)), *pieces)


STUBS: tuple[Stub, ...] = (
    Stub("sentences turned round", _sentences_turned),
    Stub("words reversed", said(_of_sentence(_reversed))),
    Stub("words shuffled", said(_of_sentence(_shuffled))),
    Stub("words by the alphabet", said(_of_sentence(_sorted))),
    Stub("neighbours swapped", said(_of_sentence(_neighbours))),
    Stub("padded", said(_of_sentence(_padded))),
    Stub("two sentences interleaved", said(_interleaved)),
    Stub("dealt out to items", _dealt),
)
