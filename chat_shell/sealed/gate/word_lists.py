"""General words of English and Chinese: what says nothing about its source. Sources and licences: `lists/NOTICE`."""

from collections import defaultdict
from pathlib import Path

_SHORTEST_PART = 4
_SHORTEST_DOER = 6
_DOERS = ("ers", "er")
_ENDINGS = (*_DOERS, "s", "es", "d", "ed", "ing", "ings", "ly", "al", "als", "ness", "ment", "ments", "able")
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

    def shelf(self, prefix: str) -> str:
        """Return the words with a beginning of the list's prefix length, each between two line feeds."""
        return self._shelves.get(prefix, "")

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
"""Words of work and software, among them those since the sources of the English list were closed."""

GENERAL_ACRONYMS = _own("english_acronyms.txt")
"""Abbreviations that any text about an organisation may use."""

WORDS_OF_WORK = MODERN_WORDS | _own("english_heads.txt") | _own("english_plain.txt")
"""Of which two together name nothing: "known weaknesses", "regional lead"."""

_EVERYDAY = WordList(("english_everyday.txt",), 3)
_KNOWN = WordList(("english_known.txt",), 3)
_GENERAL_CHINESE = ("chinese_plain.txt", "chinese_words.txt", "chinese_work.txt")
_CHINESE = WordList(_GENERAL_CHINESE, 1)
_CHINESE_EVERYDAY = WordList(("chinese_everyday.txt", "chinese_work.txt"), 1)
CHINESE_DICTIONARY = WordList((*_GENERAL_CHINESE, "chinese_places.txt"), 1)
"""General words and places together: what a text is cut into."""

CHINESE_KINDS = _own("chinese_kinds.txt")
"""Kinds of what has a name of its own before it: 银行, 计划."""

FREQUENT_CHARACTERS = _own("chinese_frequent.txt")
"""The 1,500 most frequent: new words of work are made of them, invented names seldom of them alone."""

_CHINESE_PLACES = WordList(("chinese_places.txt",), 1)
CHINESE_IDIOMS = _own("chinese_idioms.txt")
"""Sayings of four characters with a numeral in them that counts nothing."""

LONE_CHARACTERS = _own("chinese_lone.txt") | frozenset("人员者")
"""Characters that often stand as words by themselves: verbs, adverbs, pronouns and the like."""

SIMPLIFIED = _traditional()
"""For `str.translate`: traditional Chinese characters to simplified ones."""


def is_everyday(word: str) -> bool:
    """Tell whether a word is among the twelve thousand that most English texts are made of, or a form of one."""
    return _is_listed_everyday(word) or _is_derived(word)


def is_known(word: str) -> bool:
    """Tell whether a word is English at all, in any inflection; names and jargon are not."""
    return len(word) == 1 or _is_listed(word) or (word.endswith("s") and _is_listed(word[:-1]))


def is_compound(word: str) -> bool:
    """Tell whether a word is two English ones written together, such as "watchlist"."""
    cuts = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
    return any(_is_listed(word[:cut]) and is_known(word[cut:]) for cut in cuts)


def is_chinese_word(word: str) -> bool:
    """Tell whether some characters are a general Chinese word; names of persons, places and companies are not."""
    return word in _CHINESE


def is_everyday_chinese(word: str) -> bool:
    """Tell whether a word is among the five thousand that most Chinese texts are made of."""
    return word in _CHINESE_EVERYDAY


def is_chinese_place(word: str) -> bool:
    """Tell whether some characters name a place or an institution."""
    return word in _CHINESE_PLACES


def _is_listed_everyday(word: str) -> bool:
    return word in _EVERYDAY or word in MODERN_WORDS


def _is_derived(word: str) -> bool:
    """Tell whether a known word is an everyday one with an ending; of short verbs, those in -er are surnames."""
    if word not in _KNOWN:
        return False
    bases = ((word.removesuffix(ending), ending) for ending in _ENDINGS if word.endswith(ending))
    return any(
        len(base) >= (_SHORTEST_DOER if ending in _DOERS else _SHORTEST_PART)
        and (_is_listed_everyday(base) or _is_listed_everyday(base + "e"))
        for base, ending in bases
    )


def _is_listed(word: str) -> bool:
    return _is_listed_everyday(word) or word in _KNOWN or word in GENERAL_ACRONYMS
