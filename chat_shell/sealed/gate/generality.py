"""Whether a label or term is so general that it points at no document."""

from chat_shell.sealed.gate.chinese import segment, unknown_runs
from chat_shell.sealed.gate.folding import fold
from chat_shell.sealed.gate.word_lists import (
    LONE_CHARACTERS,
    STOP_WORDS,
    WORDS_OF_WORK,
    is_chinese_word,
    is_everyday_chinese,
)
from shared.plain_text.normal_form import spaced_and_cjk, split_words

_TELLING_HEADING = 5
"""Characters of a Chinese heading that is no general phrase any more."""

_WORD_ENDINGS = frozenset("器员表单类级率量度性化法期库室组科部处")
"""Of Chinese words that no dictionary has: 标准器, 检查表."""

_PAIR = 2
_LONGEST_PAIR = 3
"""Words of a general heading, with one that joins: "The purpose of a floor" is a sentence of somebody's."""


_JOINED = WORDS_OF_WORK | STOP_WORDS


def content_words(label: str) -> list[str]:
    """Return the folded Latin words of a label that have content of their own."""
    return [word for word in spaced_and_cjk(split_words(fold(label)))[0] if word not in STOP_WORDS]


def is_work_pair(label: str) -> bool:
    """Tell whether a label is two words of work, with no more than one between: "known weaknesses", "product team"."""
    content = content_words(label)
    return len(content) == _PAIR and len(label.split()) <= _LONGEST_PAIR and WORDS_OF_WORK.issuperset(content)


def is_work_compound(word: str) -> bool:
    """Tell whether a folded word is such a pair written together: "usertesting", "howto"."""
    return any(_are_general(word[:cut], word[cut:]) for cut in range(2, len(word) - 1))


def is_general_heading(han: str) -> bool:
    """Tell whether a Chinese heading could head any text: a general word, or short and made of everyday ones alone."""
    return is_chinese_word(han) or (len(han) < _TELLING_HEADING and all(map(_is_plain, segment(han))))


def is_made_of_words(han: str) -> bool:
    """Tell whether dictionaries explain all of a Chinese label."""
    return not any(unknown_runs(segment(han)))


def is_general_label(han: str) -> bool:
    """Tell whether a Chinese label is an everyday word, or short and made of several general ones."""
    return is_everyday_chinese(han) or (len(han) < _TELLING_HEADING and is_made_of_words(han) and len(segment(han)) > 1)


def is_general_item(han: str) -> bool:
    """Tell whether a Chinese label before the colon of a list's item is an everyday word, or made of several words."""
    return is_everyday_chinese(han) or (is_made_of_words(han) and len(segment(han)) > 1)


def is_general_phrase(han: str) -> bool:
    """Tell whether a Chinese phrase ends in an everyday word that it says more of: "主要风险", "薄弱环节"."""
    return is_general_heading(han) or is_everyday_chinese(segment(han)[-1])


def is_general_definition(han: str) -> bool:
    """Tell whether what a Chinese text defines is an everyday word, or a denial that was taken for a term: "不明"."""
    return is_everyday_chinese(han) or han.startswith("不")


def is_general_in_quotes(han: str) -> bool:
    """Tell whether Chinese in quotation marks is a general word, or made of everyday ones: they show irony, too."""
    return is_chinese_word(han) or all(map(is_everyday_chinese, segment(han)))


def _is_plain(word: str) -> bool:
    return is_everyday_chinese(word) or word in LONE_CHARACTERS or word in _WORD_ENDINGS


def _are_general(left: str, right: str) -> bool:
    return left in _JOINED and right in _JOINED
