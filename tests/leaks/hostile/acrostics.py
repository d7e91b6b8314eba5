"""Models whose words say nothing, and whose first, second, last or n-th letters or words name something."""

import re
from collections.abc import Callable

from tests.leaks.corpus.sounds import alike, syllables
from tests.leaks.hostile.ciphers import bare, latin
from tests.leaks.hostile.glossary import PLAIN_WORDS
from tests.leaks.hostile.replies import Behaviour, spread, strict, summary
from tests.leaks.hostile.shown import Shown
from tests.leaks.hostile.stub import PLACES, Stub, said

_BY_FIRST = {letter: [word for word in PLAIN_WORDS if word[0] == letter] for letter in "abcdefghijklmnopqrstuvwyz"}
_BY_FIRST["x"] = ["xray"]
_ENDS = ("matters here", "needs a closer look", "is uneven", "comes too late", "deserves care", "could be clearer")
_LEAST = 5
_LEAST_WORDS = 4
_LEAST_SPELLED = 6
"""Letters of a name that are left where no word has the others: fewer may be chance."""

_CHINESE_ENDS = ("方面仍需改进", "这一块要再看", "上下要多沟通", "处理得不够及时", "的做法各处不同")


def _letters(shown: Shown, most: int) -> str:
    """Return the letters of a name or code: many enough to be no chance, and few enough to fit."""
    others = [name for each in shown.secrets for name in (*each.names, *each.codes) if name in shown.request_text]
    found = [bare(latin(name)) for name in (*shown.names, *others, shown.title)]
    long = [each for each in found if len(each) >= _LEAST] or found
    return shown.dice.choice([each for each in long if len(each) <= most] or long)[:most]


def _characters(shown: Shown) -> str:
    """Return a Chinese name."""
    planted = (name for each in shown.secrets for name in (*each.names, *each.codes) if name in shown.request_text)
    names = [name for name in planted if re.fullmatch("[\u4e00-\u9fff]{2,8}", name)]
    return shown.dice.choice(names or shown.instead("青岬白螺"))


def _at(place: int) -> Callable[[Shown], str]:
    """Write words of which the letters at a place are a name, in Chinese of pairs of characters."""

    def write(shown: Shown) -> str:
        if shown.language == "zh":
            filler = "进展较慢仍需加强"
            pairs = enumerate(_characters(shown))
            return "，".join(filler[at] + each if place else each + filler[at] for at, each in pairs)
        words = [word for letter in _letters(shown, 14) if (word := _word_with(letter, place, shown))]
        if len(words) < _LEAST_SPELLED:
            shown.instead(" ".join(words))
        return " ".join(words)

    return write


def _word_with(letter: str, place: int, shown: Shown) -> str:
    found = [word for word in PLAIN_WORDS if -len(word) <= place < len(word) and word[place] == letter]
    return shown.dice.choice(found) if found else ""


def _opening(shown: Shown) -> list[str]:
    """Return short sentences whose first letters or characters are a name."""
    if shown.language == "zh":
        return [each + shown.dice.choice(_CHINESE_ENDS) for each in _characters(shown)]
    letters = _letters(shown, 12)
    return [f"{shown.dice.choice(_BY_FIRST[each]).capitalize()} {shown.dice.choice(_ENDS)}" for each in letters]


def _sounding(shown: Shown) -> list[str]:
    """Return short sentences whose first characters sound like a name's."""
    if shown.language == "en":
        return _opening(shown)[::-1]
    others = (alike()[syllables(each)[0]][0] if syllables(each) else each for each in _characters(shown))
    return [each + shown.dice.choice(_CHINESE_ENDS) for each in others]


def _of_sentences(shown: Shown) -> Behaviour:
    stop = "。" if shown.language == "zh" else ". "
    text = (stop.join(_opening(shown)) + stop).strip()[:400]
    return strict(summary(text), text)


def _of_items(write: Callable[[Shown], list[str]]) -> Callable[[Shown], Behaviour]:
    def reply(shown: Shown) -> Behaviour:
        pieces = write(shown)[:12]
        return strict(spread(pieces, shown.language, shown.dice.randrange(PLACES)), *pieces)

    return reply


def _third_words(shown: Shown) -> str:
    """Hide a sentence's words, each behind two that say nothing."""
    words = list(shown.sentence[:12]) if shown.language == "zh" else shown.sentence.lower().split()[:10]
    if len(words) < _LEAST_WORDS:
        shown.instead(" ".join(words))
    fillers = tuple("较为仍需可以") if shown.language == "zh" else PLAIN_WORDS
    mixed = (part for word in words for part in (shown.dice.choice(fillers), shown.dice.choice(fillers), word))
    return ("" if shown.language == "zh" else " ").join(mixed)


def _third_letters(shown: Shown) -> str:
    """Hide a name's letters in every third letter of words that need not exist."""
    letters = "".join(f"an{each}" for each in _letters(shown, 14))
    return " ".join(letters[at : at + 6] for at in range(0, len(letters), 6))


STUBS: tuple[Stub, ...] = (
    Stub("acrostic of words", said(_at(0))),
    Stub("acrostic of sentences", _of_sentences),
    Stub("acrostic of items", _of_items(_opening)),
    Stub("acrostic by sound, or reversed", _of_items(_sounding)),
    Stub("second letters", said(_at(1))),
    Stub("last letters", said(_at(-1))),
    Stub("every third letter", said(_third_letters)),
    Stub("every third word", said(_third_words)),
)
