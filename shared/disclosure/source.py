"""A chunk of a restricted base as the rules read it: what it names, what it introduces, and what it says."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

from shared.disclosure import chinese, english
from shared.disclosure.canonical import CLAUSES, Kind, Piece, han_in, parts_of, pieces, plain, sentences_of, words_in
from shared.disclosure.folding import han_only, letters_only
from shared.disclosure.names import RARE_NAME, EnglishNames, english_names, persons_among, persons_in
from shared.disclosure.word_lists import members
from shared.plain_text.reading import show_lines

KEPT_CHUNKS = 2_048
"""Chunks that are remembered as read: those of some eighty searches."""

_LONGEST_ROW, _PAIR = 4, 2
_PLANS = frozenset(("计划", "项目", "行动", "工程"))

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|[_/\\-]+|\.[a-z]{2,5}$")
_FIGURES = re.compile(r"[0-9](?:[0-9.,: -]*[0-9])?")
_NO_DIGITS = re.compile("[^0-9]+")
_LONG_FIGURE = re.compile("[0-9]{4,}")
_SENTENCE = re.compile(r"(?<=[.!?。！？；;])\s*|\n+")


@dataclass(frozen=True, slots=True)
class SourceText:
    """The title of a document, the headings above a chunk, and the chunk's text."""

    title: str
    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """What a source introduces: stems and Chinese words of content in order, its Chinese, and its Latin letters.

    `frequent` are the stems of two words of which one is too frequent to be a word of content.
    """

    content: tuple[str, ...]
    frequent: frozenset[str]
    han: str
    letters: str


class SourceReading(NamedTuple):
    """What the rules compare a reply with, for one chunk or several.

    `words`, their `stems` and `han_words` are all its words, `elements` the chemical ones that it speaks of, `han` its
    stretches of Chinese, a line each, and `unnamed` these without the names of persons. `labels` are terms that stand
    above or before a text (titles, headings, table cells), `introduced` those that a text calls by name or sets off.
    `sentences` are the words of content of each of its sentences, `parts` those of each sentence and clause between
    marks, `rare` its rows of Chinese characters that are no words, and `figures` its digits in rows of four or more,
    with and without the marks and blanks inside.
    """

    words: frozenset[str]
    stems: frozenset[str]
    elements: frozenset[str]
    han: str
    han_words: frozenset[str]
    names: EnglishNames
    persons: frozenset[str]
    unnamed: str
    labels: tuple[Term, ...]
    introduced: tuple[Term, ...]
    sentences: tuple[frozenset[str], ...]
    parts: frozenset[frozenset[str]]
    wholes: frozenset[frozenset[str]]
    rare: frozenset[str]
    figures: frozenset[str]


def read_source(source: SourceText) -> SourceReading:
    """Read one chunk, for a caller that remembers readings in a measure of its own."""
    text = plain(show_lines(source.text))
    above = (_CAMEL.sub(" ", source.title.rsplit("/", 1)[-1]), *source.headings)
    written = plain("\n".join((*above, text)))
    body = pieces(text)
    found = (Piece(Kind.STOP, "."), *pieces("\n".join(above)), *body)
    words, han_texts = words_in(found), han_in(found)
    stems, han = frozenset(map(english.stem_of, words)), "\n".join(han_texts)
    segments = [*map(chinese.segment, han_texts)]
    names = english_names(text, above)
    persons = frozenset(chain(persons_in(written), _find_persons(found)))
    told = [*sentences_of([body, pieces(plain(source.text))])]
    return SourceReading(
        words=words,
        stems=stems,
        elements=frozenset(each for each in members("elements") if english.stem_of(each) in stems or each in han),
        han=han,
        han_words=frozenset(chain(*segments)),
        names=names,
        persons=persons,
        unnamed=re.sub("|".join(sorted(persons, key=len, reverse=True)) or "$", "\n", han),
        labels=tuple(_terms(chain(above, labels_in(text)))),
        introduced=tuple(_terms(chain(find_introduced(text), names.rows, *map(_find_planned, segments)))),
        sentences=tuple(map(frozenset, map(content_of, _SENTENCE.split(text)))),
        parts=frozenset(frozenset(dict(list_written(part))) for part in (*told, *parts_of(body, CLAUSES))),
        wholes=frozenset(map(frozenset, map(all_of, told))),
        rare=frozenset(filter(_is_name, chain(*map(chinese.rows, segments)))),
        figures=frozenset(filter(_LONG_FIGURE.fullmatch, _figures_in(written))),
    )


read_source = lru_cache(maxsize=KEPT_CHUNKS)(read_source)
"""Read one chunk, or remember how it was read."""


def join_readings(readings: Iterable[SourceReading]) -> SourceReading:
    """Put the readings of chunks together, as if they were one chunk; of none they are those of an empty text."""
    empty = read_source(SourceText("", (), ""))
    return SourceReading(*map(_join, zip(empty, *readings, strict=True)))


def _join(parts: tuple[Any, ...]) -> Any:
    match parts[0]:
        case str():
            return "\n".join(parts)
        case EnglishNames():
            return EnglishNames(*map(_join, zip(*parts, strict=True)))
        case frozenset():
            return frozenset[Any]().union(*parts)
        case _:
            return tuple[Any, ...](chain(*parts))


def _find_persons(found: Sequence[Piece]) -> Iterator[str]:
    """Yield the names of persons in each stretch of Chinese, beside what stands before it."""
    for before, piece in pairwise(found):
        if piece.kind is Kind.HAN:
            yield from persons_among((before.text, *chinese.segment(piece.text)))


def _figures_in(text: str) -> Iterator[str]:
    """Yield each row of digits, and as one those that marks and blanks keep apart."""
    for found in _FIGURES.findall(text):
        yield from (_NO_DIGITS.sub("", found), *_NO_DIGITS.split(found))


def words_of(of: Iterable[Piece]) -> Iterator[str]:
    """Yield the words of a text, with Chinese cut into its words, and its marks."""
    for piece in of:
        yield from chinese.segment(piece.text) if piece.kind is Kind.HAN else (piece.text,)


def _find_planned(words: Sequence[str]) -> Iterator[str]:
    """Yield what a plan, project, operation or work is called, with and without that word."""
    for place, word in enumerate(words):
        if word in _PLANS and place:
            lone = len(words[place - 1]) == 1 and place > 1 and len(words[place - 2]) == 1
            name = "".join(words[place - 2 : place]) if lone else words[place - 1]
            if len(name) > 1 and chinese.han_rank(name) > RARE_NAME:
                yield from (name, name + word)


def all_of(of: Iterable[Piece]) -> Iterator[str]:
    """Yield the stems of all words of a text, those that join others too, and all its Chinese characters.

    Figures are left out: none may leave, and a sentence without them is the same sentence.
    """
    for piece in of:
        if piece.kind is Kind.WORD and piece.text.isalpha():
            yield english.stem_of(piece.text)
        elif piece.kind is Kind.HAN:
            yield from piece.text


def content_of(text: str) -> Iterator[str]:
    """Yield the stems of a text's English words of content and its Chinese words of content, in order."""
    return (content for content, _ in list_written(pieces(text)))


def list_written(of: Iterable[Piece]) -> Iterator[tuple[str, str]]:
    """Yield the stems and Chinese words of content of a text, each with the word as it is written."""
    for piece in of:
        if piece.kind is Kind.WORD and not english.is_function_word(piece.text):
            yield english.stem_of(piece.text), piece.text
        elif piece.kind is Kind.HAN:
            yield from ((word, word) for word in chinese.segment(piece.text) if not chinese.is_function_han(word))


def _is_name(row: str) -> bool:
    """Whether characters none of which is part of a word are a name or a code, as they mostly are."""
    return 1 < len(row) <= _LONGEST_ROW and max(map(chinese.han_rank, row)) > RARE_NAME


def _terms(texts: Iterable[str]) -> Iterator[Term]:
    for text in dict.fromkeys(texts):
        content = tuple(dict.fromkeys(content_of(text)))
        found = [*pieces(text)]
        frequent = frozenset(find_telling_stems(found)) if len(content) < len(found) == _PAIR else frozenset[str]()
        if content or len(frequent) == _PAIR:
            joined = "".join(piece.text for piece in found)
            yield Term(content, frequent, han_only(joined), letters_only(joined))


def find_telling_stems(of: Iterable[Piece]) -> Iterator[str]:
    """Yield the stems of a text's English words but for those that only join others."""
    return (
        english.stem_of(piece.text) for piece in of if piece.kind is Kind.WORD and not english.joins_only(piece.text)
    )


_HEADING = re.compile(r"^ {0,3}#{1,6}[^\S\n]++(.{1,200})$|^(.{1,200})\n {0,3}(?:={3,}|-{3,})$", re.MULTILINE)
_NUMBERED = re.compile(
    r"^(?:(?:\d{1,2}\.){1,3}\d{0,2}|第[^\s]{1,4}[章节条])[^\S\n]++([^.\n:：。]{2,60})$", re.MULTILINE
)
_LABEL = re.compile(r"^(?:- |1\. )?(?:\*\*|__)?([^\s*_:：|\n][^*_:：|\n。.]{0,40}?)(?:\*\*|__)?[:：]", re.MULTILINE)
_VALUE = re.compile(r"[:：][^\S\n]*+([^\s:：\n][^:：\n,，;；。|]{0,40}?)[.。;；,，]?(?=$|[|,，;；。])", re.MULTILINE)
_CELLS = re.compile(r"^\|?([^|\n]{0,300}(?:\|[^|\n]{0,300}){1,20})\|?$", re.MULTILINE)
_RULE = re.compile(r"[\s:|-]*")
_MARKED = re.compile(
    r"[\"“‘「『《«‹„]([^\"”’」』》»›\n]{2,60})[\"”’」』》»›]|(?<![\w'])'([^'\n]{2,60})'(?![\w'])|`([^`\n]{2,80})`"
    r"|(?<![A-Za-z\d_*])(?:\*{1,3}|__?)(?=[^\s*_])([^*_\n]{2,60}?)(?<=\S)(?:\*{1,3}|__?)(?![A-Za-z\d_*])"
)
_WORDS = r"((?:[A-Za-z][\w'-]*+ ){0,3}[A-Za-z][\w'-]*+)"
_NAMED = "called|named|nicknamed|dubbed|labell?ed|code-?named"
_CALLED = (
    rf"{_NAMED}|termed|"
    r"known (?:\w{1,12} ){0,3}as|referred to (?:\w+ )?as|"
    r"speaks? of|calls? (?:it|this|them|these|that)|goes by|so-called|herein(?:after)?|stands for|short for|means|"
    r"(?:the )?(?:term|word|code ?word|code ?name|code|nickname|pass ?word|pass ?phrase|pass ?code|pin|key|alias|"
    r"name|phrase|project|operation|initiative|programme|program)"
    r"(?: (?:is|was|for [^.\n]{1,40}? is|to [^.\n]{1,40}? is))?"
)
_HAN = "[\u4e00-\u9fff]"
_BETWEEN, _BETWEEN_HAN = re.compile(r",? (?:and|or) |, "), re.compile("[^\u4e00-\u9fff]+|(?<=.)[和与及]")
"""What stands between names that are listed."""

_CALLED_IN_ENGLISH = re.compile(rf"\b(?:{_CALLED}):? (?:(?:the|an?|our) )?{_WORDS}", re.IGNORECASE)
_LISTED_IN_ENGLISH = re.compile(
    rf"\b(?:{_NAMED}|known as) ((?:{_WORDS}, ){{1,8}}{_WORDS},? (?:and|or) {_WORDS})",
    re.IGNORECASE,
)
_NAMED_IN_CHINESE = "称为|称作|叫做|叫作|叫|名为|命名为|代号|简称|统称|俗称"
_LISTED_IN_CHINESE = re.compile(
    f"(?:{_NAMED_IN_CHINESE})(?:为|是)?[:：“「《\"'* ]{{0,4}}"
    f"({_HAN}{{1,8}}(?:[”」》\"'* ]{{0,2}}[、和与及]{{1,2}}[“「《\"'* ]{{0,2}}{_HAN}{{1,8}}){{1,8}})"
)
_DEFINED_IN_ENGLISH = re.compile(
    rf"(?:^|[.;:(!?] {{0,3}}|\n|- )(?:(?:the|an?|our|by an?|by the) )?{_WORDS},? "
    r"(?:means|refers? to|is (?:defined as|short for|what we call|our (?:name|word|term) for)|denotes?|stands? for|"
    r"we (?:mean|understand))\b",
    re.IGNORECASE | re.MULTILINE,
)
_CLASSED_IN_ENGLISH = re.compile(
    r"(?:^|[.!?] |\n)(?:An?|The) ([A-Za-z][\w'-]*+ [a-z][\w'-]*+) is (?:an?|the|any|what|when|whoever|every)\b",
    re.MULTILINE,
)
"""A sentence that says what something is: "A lost page is one that …"."""

_CALLED_IN_CHINESE = re.compile(
    f"(?:{_NAMED_IN_CHINESE}|称之为|取名|起名|合称|又称|也称|所谓|绰号|外号|昵称|花名|口令|密码|暗号|暗语|密语|口诀)"
    f"(?:为|是|叫)?[:：“「《\"'* ]{{0,4}}({_HAN}{{2,8}})"
)
_DEFINED_IN_CHINESE = re.compile(
    f'(?:^|[。;；,，:：\n|(（ ])(?:所谓)?[“「《"*]{{0,3}}({_HAN}{{2,10}}?)[”」》"*]{{0,3}}[,，:：]?'
    "(?:是指|指的是|即指|定义为|的定义|的意思是|意思是|特指|指)",
    re.MULTILINE,
)
_ENDS = re.compile(
    r"\b(?:is|are|was|were|has|have|must|may|can|for|which|that|who|and|or|in|on|to|at|from|of|by|with|because|as|when|"
    r"if|the|a|an|it|this|not|be|should|will)\b.*",
    re.IGNORECASE,
)
_LABELS = (_HEADING, _NUMBERED, _LABEL)
_SET_OFF = (_MARKED, _DEFINED_IN_ENGLISH, _CLASSED_IN_ENGLISH, _CALLED_IN_CHINESE, _DEFINED_IN_CHINESE)
_LONGEST_CELL, _LONGEST_VALUE = 40, 4


def labels_in(text: str) -> Iterator[str]:
    """Yield the headings, the labels before a colon, and the cells of the tables of a text."""
    yield from _find_matched(_LABELS, text)
    for match in _CELLS.finditer(text):
        cells = (cell.strip(" *`_") for cell in match[1].split("|"))
        yield from (cell for cell in cells if cell and len(cell) <= _LONGEST_CELL and not _RULE.fullmatch(cell))


def find_introduced(text: str) -> Iterator[str]:
    """Yield what a text sets off by marks, defines, calls by a name, or states as the value of a label."""
    yield from _find_matched(_SET_OFF, text)
    for pattern, mark in ((_LISTED_IN_ENGLISH, _BETWEEN), (_LISTED_IN_CHINESE, _BETWEEN_HAN)):
        yield from filter(None, chain.from_iterable(mark.split(listed[1]) for listed in pattern.finditer(text)))
    yield from filter(None, (_ENDS.sub("", name).strip() for name in _CALLED_IN_ENGLISH.findall(text)))
    yield from (value for value in _VALUE.findall(text) if len(value.split()) <= _LONGEST_VALUE)


def _find_matched(patterns: Iterable[re.Pattern[str]], text: str) -> Iterator[str]:
    """Yield what the patterns' groups hold, of which one takes part in each match."""
    return (match[match.lastindex or 0] for pattern in patterns for match in pattern.finditer(text))
