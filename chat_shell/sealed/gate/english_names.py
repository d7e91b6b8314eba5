"""Names of running text in English and other Latin scripts: what its capitals, digits and spelling show to be one."""

import re
from collections import Counter
from collections.abc import Iterator

from chat_shell.sealed.gate.folding import fold
from chat_shell.sealed.gate.generality import is_work_compound
from chat_shell.sealed.gate.word_lists import GENERAL_ACRONYMS, STOP_WORDS, is_compound, is_everyday, is_known
from shared.plain_text.normal_form import split_words

_WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:[._&'’-][^\W_\u3040-\u30ff\u3400-\u9fff]+)*(?:_\w+)*")
_SENTENCE_END = re.compile(r"(?:^|[.!?:;。！？：；|>•\n])[\s\"“”'‘’()*_#+-]*$")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_JOINERS = frozenset({"of", "and", "the", "for", "&", "de", "von", "van"})

_PAIR, _LONGEST_ROW = 2, 6
_LOOK_BACK = 12
_SHORTEST_JARGON = 4
_LONGEST_ACRONYM = 6
_NAMED_TWICE = 2
"""A capital at the start of a sentence says nothing; one that comes back, and never small, is a name's."""


def names_in(text: str) -> Iterator[str]:
    """Yield names of running text: lone words that are no general ones, and rows of capitalised words."""
    spelled = Counter(split_words(text))
    row: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match[0].removesuffix("'s").removesuffix("’s")
        if row and text[end : match.start()] not in (" ", "\n", " & "):
            yield from _rows(row)
            row = []
        starts = word[0].isupper() and _starts_sentence(text, match.start())
        if _points(word, spelled, starts or len(row) > 1):
            yield word
        if _is_joined_row(word):
            yield word.replace("-", " ")
        if (word[0].isupper() and not (starts and word.casefold() in STOP_WORDS)) or (row and _is_joiner(word)):
            row.append(word)
        elif row:
            yield from _rows(row)
            row = []
        end = match.end()
    yield from _rows(row)


def names_in_heading(heading: str) -> Iterator[str]:
    """Yield the words of a heading or title that are in no dictionary: its capitals say nothing."""
    spelled = Counter[str]()
    for match in _WORD.finditer(heading):
        word = match[0].removesuffix("'s").removesuffix("’s")
        if _points(word, spelled, starts_sentence=True):
            yield word


def is_proper(name: str) -> bool:
    """Tell whether a name is a proper one: no acronym, and no two English words that only begin a sentence."""
    is_compound_noun = name[1:].islower() and is_compound(fold(name))
    return name[0].isupper() and not name.isupper() and not is_compound_noun


def written_forms(name: str) -> Iterator[str]:
    """Yield a name with nothing between its parts, and those of its parts that are no general words."""
    parts = split_words(fold(name))
    telling = (part for part in parts if len(part) > 1 and not part.isdigit() and not is_known(part))
    yield from (form for form in ("".join(parts), *telling) if not is_work_compound(form))


def _is_joined_row(word: str) -> bool:
    """Tell whether a word is several capitalised ones with hyphens between."""
    return "-" in word and sum(part[:1].isupper() for part in word.split("-")) > 1


def _is_joiner(word: str) -> bool:
    return word in _JOINERS


def _starts_sentence(text: str, place: int) -> bool:
    return _SENTENCE_END.search(text, max(0, place - _LOOK_BACK), place) is not None


def _rows(row: list[str]) -> Iterator[str]:
    """Yield a row of words, and of a short one each part that could be a name by itself, as behind "Contact"."""
    whole = _trimmed(row)
    if len(whole) > 1:
        yield " ".join(whole)
    if _PAIR < len(whole) <= _LONGEST_ROW:
        places = range(len(whole) + 1)
        parts = (whole[start:end] for start in places for end in places if _PAIR <= end - start < len(whole))
        yield from (" ".join(part) for part in parts if not _is_joiner(part[0]) and not _is_joiner(part[-1]))


def _trimmed(row: list[str]) -> list[str]:
    end = len(row)
    while end and _is_joiner(row[end - 1]):
        end -= 1
    return row[:end]


def _points(word: str, spelled: Counter[str], starts_sentence: bool) -> bool:
    """Tell whether a lone word of a chunk points at it."""
    folded = fold(word)
    if folded in STOP_WORDS or folded.isdigit() or len(folded) == 1:
        return False
    if any(character.isdigit() for character in word):
        return any(character.isalpha() for character in word)
    if _is_acronym(word):
        return folded not in GENERAL_ACRONYMS
    parts = split_words(folded)
    if _CAMEL.search(word) or "_" in word:
        return True
    if not all(is_known(part) for part in parts):
        return word[0].isupper() or (len(folded) >= _SHORTEST_JARGON and not all(map(is_compound, parts)))
    if word[0].islower() or folded in spelled or all(map(is_everyday, parts)):
        return False
    return not starts_sentence or spelled[word] >= _NAMED_TWICE


def _is_acronym(word: str) -> bool:
    letters = word.replace(".", "").replace("&", "")
    return letters.isupper() and 1 < len(letters) <= _LONGEST_ACRONYM
