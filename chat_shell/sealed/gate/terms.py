"""The terms of a chunk that point at it: names, acronyms, codes, headings, titles, table heads, defined terms."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from chat_shell.sealed.gate.chinese import segment, unknown_runs
from chat_shell.sealed.gate.chinese_names import guessed_names, persons, segmented
from chat_shell.sealed.gate.folding import fold, han_only
from chat_shell.sealed.gate.word_lists import (
    GENERAL_ACRONYMS,
    STOP_WORDS,
    is_chinese_word,
    is_compound,
    is_everyday,
    is_everyday_chinese,
    is_known,
)
from shared.plain_text.normal_form import spaced_and_cjk, split_words

# Blanks are taken possessively: whoever writes documents must not be able to make a search of them take for ever.
_HEADING = re.compile(r"^ {0,3}#{1,6}[^\S\n]++(.{1,300})$|^(.{1,200})\n {0,3}(?:={3,}|-{3,})$", re.MULTILINE)
_TABLE_HEAD = re.compile(r"^([^|\n]{0,500}+\|.{0,500}+)\n[^\S\n]*+\|?+[^\S\n]*+:?-{2,}", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]{2,80})`")
_LED = re.compile(r"^[^\S\n]*+(?:[-*+•]|\d++[.)])?[^\S\n]*+(?:\*\*|__)([^*_\n]{2,80}?):?(?:\*\*|__)", re.MULTILINE)
_DEFINED = re.compile(
    r"[\"“‘「『《]([^\"”’」』》\n]{2,60})[\"”’」』》]"
    r"|(?:^|[.;]\s+)(?:the |an? )?([A-Za-z][\w -]{1,60}?),?\s+(?:means|refers to|is defined as|denotes|stands for)\b"
    r"|\b(?:called|known as|defined as|referred to as|named)\s+(?:the |an? )?([A-Z][\w-]*(?:\s+[A-Z][\w-]*){0,4})"
    r"|(?:^|[。；，：:\n])(?:所谓)?([\u4e00-\u9fff]{2,12})(?:是指|指的是|定义为|的定义是)"
    r"|(?:以下简称|简称为?|称之为|称为|又称|所谓|命名为|名为)[“「《]?([\u4e00-\u9fff]{2,10})",
    re.MULTILINE,
)
_CALLED = re.compile(r"\b(?:is|are) called (?:the |an? )?([a-z][a-z-]++(?: [a-z][a-z-]++){0,2})(?=[.,;:)\n])")
_TABLE_ROW = re.compile(r"^\|[^\S\n]*+([^|\n]{1,60}?)[^\S\n]*+\|", re.MULTILINE)
_WORD = re.compile(r"[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:[._&'’-][^\W_\u3040-\u30ff\u3400-\u9fff]+)*(?:_\w+)*")
_SENTENCE_END = re.compile(r"(?:^|[.!?:;。！？：；|>•\n])[\s\"“”'‘’()*_#+-]*$")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_JOINERS = frozenset({"of", "and", "the", "for", "&", "de", "von", "van"})
_ENDING = re.compile(r"\.[a-z0-9]{1,5}$", re.IGNORECASE)
_LOOK_BACK = 12
_SHORTEST_JARGON = 4
_TELLING_HEADING = 5
"""Characters of a Chinese heading that is no general phrase any more."""

_KEPT_CHUNKS = 2_048
"""Whose terms are remembered, some 10 KB each with the text: searches of one base bring the same chunks again."""

_LONGEST_ACRONYM = 6
_NAMED_TWICE = 2
"""A capital at the start of a sentence says nothing; one that comes back, and never small, is a name's."""


@dataclass(frozen=True, slots=True)
class ChunkSource:
    """The revealed texts of one chunk, as they were written."""

    document: str
    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms by the way they are compared.

    `words` and `han` are folded and found in any writing; `han_guesses` only where a candidate's own words begin and
    end; `capitals` are acronyms that are also words, found in capitals only; `phrases` are several words as written;
    `names` are what is written with capitals in running text, of one word or more, and may be found misspelled.
    """

    words: frozenset[str]
    capitals: frozenset[str]
    phrases: frozenset[str]
    han: frozenset[str]
    han_guesses: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, parts: Iterable["Terms"]) -> "Terms":
        """Put the terms of several chunks together."""
        found = list(parts)
        return cls(
            frozenset(term for part in found for term in part.words),
            frozenset(term for part in found for term in part.capitals),
            frozenset(term for part in found for term in part.phrases),
            frozenset(term for part in found for term in part.han),
            frozenset(term for part in found for term in part.han_guesses),
            frozenset(term for part in found for term in part.names),
        )


@lru_cache(maxsize=_KEPT_CHUNKS)
def terms_of(source: ChunkSource) -> Terms:
    """Read the terms of one chunk."""
    text = unicodedata.normalize("NFKC", source.text)
    folded = fold(text)
    stretches = segmented(folded)
    title = _ENDING.sub("", source.document.rsplit("/", 1)[-1])
    headings, defined = [title, *source.headings, *_headings(text)], list(_defined(text))
    rows = [match[1] for match in _TABLE_ROW.finditer(text)]
    names = list(_names(_HEADING.sub(" ", text)))
    phrases = [*headings, *rows, *defined, *(name for name in names if " " in name)]
    words = {*_lone_words(headings, is_known), *_lone_words((*defined, *rows), is_everyday)}
    words.update(form for name in names if " " not in name for form in _forms(name) if not name.isupper())
    acronyms = {name for name in names if name.isupper() and " " not in name}
    words.update(form for name in acronyms for form in _forms(name) if not is_everyday(form))
    return Terms(
        words=frozenset(words),
        capitals=frozenset(name for name in acronyms if is_everyday(fold(name))),
        phrases=frozenset(phrases),
        han=frozenset(
            (
                *_han((*headings, *rows), _is_general_heading),
                *_han((*rows,), _is_everyday_or_several),
                *_han(defined, is_everyday_chinese),
                *persons(folded, stretches),
            )
        ),
        han_guesses=frozenset(guessed_names(stretches)),
        names=frozenset(filter(_is_proper, names)),
    )


def _is_everyday_or_several(han: str) -> bool:
    return is_everyday_chinese(han) or not is_chinese_word(han)


def _headings(text: str) -> Iterator[str]:
    """Yield the headings and table heads of a Markdown text."""
    yield from (match[match.lastindex or 0] for match in _HEADING.finditer(text))
    for match in _TABLE_HEAD.finditer(text):
        yield from (cell.strip() for cell in match[1].split("|") if cell.strip())


def _defined(text: str) -> Iterator[str]:
    """Yield what a Markdown text sets off: code, quotations, terms led in or defined."""
    for pattern in (_CODE, _LED, _DEFINED, _CALLED):
        yield from (match[match.lastindex or 0] for match in pattern.finditer(text))


def _lone_words(labels: Iterable[str], is_general: Callable[[str], bool]) -> Iterator[str]:
    """Yield the words of labels that have one word of content, unless that is a general one."""
    for label in labels:
        content = [word for word in spaced_and_cjk(split_words(fold(label)))[0] if word not in STOP_WORDS]
        if len(content) == 1 and not is_general(content[0]) and not content[0].isdigit():
            yield content[0]


def _han(labels: Iterable[str], is_general: Callable[[str], bool]) -> Iterator[str]:
    return (han for label in labels if len(han := han_only(fold(label))) > 1 and not is_general(han))


def _is_general_heading(han: str) -> bool:
    """Tell whether a Chinese heading could head any text: short, and made of general words alone."""
    return len(han) < _TELLING_HEADING and not any(unknown_runs(segment(han)))


def _names(text: str) -> Iterator[str]:
    """Yield names of running text: lone words that are no general ones, and rows of capitalised words."""
    spelled = Counter(split_words(text))
    row: list[str] = []
    end = 0
    for match in _WORD.finditer(text):
        word = match[0].removesuffix("'s").removesuffix("’s")
        if row and text[end : match.start()] not in (" ", "\n", " & "):
            yield from _row(row)
            row = []
        starts = word[0].isupper() and _starts_sentence(text, match.start())
        if _points(word, spelled, starts or len(row) > 1):
            yield word
        if (word[0].isupper() and not (starts and word.casefold() in STOP_WORDS)) or (row and word in _JOINERS):
            row.append(word)
        elif row:
            yield from _row(row)
            row = []
        end = match.end()
    yield from _row(row)


def _starts_sentence(text: str, place: int) -> bool:
    return _SENTENCE_END.search(text, max(0, place - _LOOK_BACK), place) is not None


def _row(row: list[str]) -> Iterator[str]:
    while row and row[-1] in _JOINERS:
        row = row[:-1]
    if len(row) > 1:
        yield " ".join(row)


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
    if word[0].islower() or is_everyday(folded) or folded in spelled:
        return False
    return not starts_sentence or spelled[word] >= _NAMED_TWICE


def _is_proper(name: str) -> bool:
    """Tell whether a name is a proper one: no acronym, and no two English words that only begin a sentence."""
    is_compound_noun = name[1:].islower() and is_compound(fold(name))
    return name[0].isupper() and not name.isupper() and not is_compound_noun


def _is_acronym(word: str) -> bool:
    letters = word.replace(".", "").replace("&", "")
    return letters.isupper() and 1 < len(letters) <= _LONGEST_ACRONYM


def _forms(name: str) -> Iterator[str]:
    """Yield a name with nothing between its parts, and those of its parts that are no general words."""
    parts = split_words(fold(name))
    yield "".join(parts)
    yield from (part for part in parts if len(part) > 1 and not part.isdigit() and not is_known(part))
