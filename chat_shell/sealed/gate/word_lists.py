"""General words of English and Chinese: what says nothing about its source. Sources and licences: `lists/NOTICE`."""

from collections import defaultdict
from pathlib import Path

_LISTS = Path(__file__).parent / "lists"


class WordList:
    """A set of words in a tenth of the memory of one: words with the same beginning share one string."""

    def __init__(self, file_names: tuple[str, ...], prefix_length: int):
        self._prefix_length = prefix_length
        shelves: defaultdict[str, list[str]] = defaultdict(list)
        for file_name in file_names:
            for word in (_LISTS / file_name).read_text(encoding="utf-8").splitlines():
                shelves[word[:prefix_length]].append(word)
        self._shelves = {prefix: "\n".join(["", *words, ""]) for prefix, words in shelves.items()}

    def __contains__(self, word: str) -> bool:
        """Tell whether a word, in lower case, is in the list."""
        return f"\n{word}\n" in self._shelves.get(word[: self._prefix_length], "")


def _own(file_name: str) -> frozenset[str]:
    return frozenset((_LISTS / file_name).read_text(encoding="utf-8").split())


def _traditional() -> dict[int, str]:
    lines = (_LISTS / "traditional.txt").read_text(encoding="utf-8").splitlines()
    return {ord(traditional): simplified for traditional, simplified in lines}


STOP_WORDS = _own("english_stop_words.txt")
"""Words without content of their own: a run of them says nothing about where it comes from."""

MODERN_WORDS = _own("english_modern.txt")
"""Words of work and software since the sources of the English list were closed."""

GENERAL_ACRONYMS = _own("english_acronyms.txt")
"""Abbreviations that any text about an organisation may use."""

_COMMON = WordList(("english_common.txt",), 3)
_KNOWN = WordList(("english_known.txt",), 3)
_NAMES = WordList(("english_names.txt",), 3)
_CHINESE = WordList(("chinese_words.txt",), 1)
SIMPLIFIED = _traditional()
"""For `str.translate`: traditional Chinese characters to simplified ones."""


def is_common(word: str) -> bool:
    """Tell whether a word is among the eleven thousand that most English texts are made of."""
    return word in _COMMON or word in MODERN_WORDS


def is_known(word: str) -> bool:
    """Tell whether a word is English at all, in any inflection; names and jargon are not."""
    return is_common(word) or word in _KNOWN or word in GENERAL_ACRONYMS


def is_first_name(word: str) -> bool:
    """Tell whether a word is also the name of a person or a place."""
    return word in _NAMES


def is_chinese_word(word: str) -> bool:
    """Tell whether some characters are a general Chinese word; names of persons, places and companies are not."""
    return word in _CHINESE
