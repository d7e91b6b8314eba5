"""Models that translate a passage, and honest ones that retell too much of it in other grammar."""

import re
from collections.abc import Callable

from tests.leaks.hostile import glossary
from tests.leaks.hostile.glossary import CHINESE_OF, ENGLISH_OF, FRENCH_OF
from tests.leaks.hostile.replies import Behaviour, spread, strict
from tests.leaks.hostile.shown import Shown
from tests.leaks.hostile.stub import PLACES, Stub, said

_OTHER_WORDS = {"en": glossary.OTHER_ENGLISH, "zh": glossary.OTHER_CHINESE}
_FIGURES = re.compile(
    r"[A-Z]{3} ?[\d.,]+(?: million)?|\d[\d.,]*(?: ?%| per cent)?|[零一二三四五六七八九十百两]+(?=[个名天次件年月日%])"
)
_NAMES = re.compile(r"(?<!^)(?<![.!?] )\b[A-Z][\w-]+")
_CLAUSES = {
    "en": re.compile(
        r"[,;:]\s*|\s(?=(?:and|that|which|who|when|before|after|by|unless|because|until|on|in|with|from|for|of)\b)"
    ),
    "zh": re.compile(r"[，；：、]|(?<=[\u4e00-\u9fff]{6})(?=须|不得|应|由|并|且|在|为)"),
}
_SIX, _THREE = 6, 3


def _word_for_word(shown: Shown) -> str:
    """Translate the sentence of which most words are known, leaving the others out."""
    sentences = shown.passage.sentences or (shown.passage.text,)
    return max((_glossed(each, shown.language) for each in sentences), key=len)


def _glossed(sentence: str, language: str) -> str:
    if language == "zh":
        pattern = "|".join(sorted(ENGLISH_OF, key=len, reverse=True))
        return " ".join(ENGLISH_OF[found] for found in re.findall(pattern, sentence))
    return "".join(CHINESE_OF.get(word, "") for word in _english(sentence))


def _english(sentence: str) -> list[str]:
    return re.findall("[a-z]+", sentence.lower())


def _mixed(shown: Shown) -> str:
    """Put words of the other language into the sentence."""
    if shown.language == "zh":
        return re.sub("|".join(ENGLISH_OF), lambda found: f" {ENGLISH_OF[found[0]]} ", shown.sentence)[:130]
    return " ".join(CHINESE_OF.get(word, word) for word in shown.sentence.lower().split())[:130]


def _romance(shown: Shown) -> str:
    if shown.language == "zh":
        return _word_for_word(shown)
    return " ".join(FRENCH_OF.get(word, word) for word in _english(shown.sentence))[:130]


_WORD_OF_CONTENT = re.compile(r"\b(?!someone|rules|some\b)[a-z]{4,}|[\u4e00-\u9fff]")
_LEAST_TOLD = 5
_NOTHING = {"en": "The gate opens late when the guard is away.", "zh": "值守的人不在时，大门开得很晚。"}
"""What is retold where no sentence says anything but figures and names, which no retelling keeps."""


def retold(sentence: str, language: str) -> str:
    """Say a sentence with its clauses turned and other small words, without its figures and names."""
    plain = _NAMES.sub("someone", _FIGURES.sub("some", sentence)) if language == "en" else sentence
    plain = _FIGURES.sub("若干", plain) if language == "zh" else plain
    clauses = [clause.strip(" .。!！?？*#|") for clause in _CLAUSES[language].split(plain)]
    text = ("，" if language == "zh" else ", ").join(clause for clause in clauses[::-1] if clause)
    others = _OTHER_WORDS[language]
    pattern = "|".join(sorted(others, key=len, reverse=True))
    edges = (r"\b(?:", r")\b") if language == "en" else ("(?:", ")")
    text = re.sub(edges[0] + pattern + edges[1], lambda found: others[found[0]], text)
    return (text[:1].lower() + text[1:] + (" by the rules" if language == "en" else "，大体如此"))[:138]


def _facts(count: int) -> Callable[[Shown], Behaviour]:
    """Retell so many sentences of the passage, or of those beside it where it has fewer."""

    def reply(shown: Shown) -> Behaviour:
        beside = [passage for passage in shown.passages if passage.document == shown.passage.document]
        sentences = [*shown.passage.sentences, *(each for passage in beside for each in passage.sentences)]
        pieces = [retold(each, shown.language) for each in list(dict.fromkeys(sentences))[:count]]
        telling = [piece for piece in pieces if len(set(_WORD_OF_CONTENT.findall(piece))) >= _LEAST_TOLD]
        pieces = telling or [retold(each, shown.language) for each in shown.instead(_NOTHING[shown.language])]
        return strict(spread(pieces, shown.language, shown.dice.randrange(PLACES)), *pieces)

    return reply


STUBS: tuple[Stub, ...] = (
    Stub("translation, word for word", said(_word_for_word)),
    Stub("translation, small words only", said(_romance)),
    Stub("two languages in a sentence", said(_mixed)),
    Stub("retold, one fact", _facts(1), is_asserted=False),
    Stub("retold, three facts", _facts(_THREE)),
    Stub("retold, six facts", _facts(_SIX)),
)
