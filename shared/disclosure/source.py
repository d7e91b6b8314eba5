"""A chunk of a restricted base as the rules read it: what it names, what it introduces, and what it says."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from shared.disclosure import chinese, english
from shared.disclosure.canonical import CLAUSES, SENTENCES, Kind, Piece, parts_of, pieces, plain
from shared.disclosure.folding import han_only, letters_only
from shared.disclosure.introductions import introduced_in, labels_in
from shared.disclosure.names import EnglishNames, english_names, persons_in
from shared.plain_text.reading import shown_lines

KEPT_CHUNKS = 2_048
"""Chunks that are remembered as read: those of some eighty searches."""

_LONGEST_ROW = 4
_RARE_RANK = 8_000
"""A row of characters is a name rather than a phrase where one of them is as rare as this as a word."""

_PLANS = frozenset(("计划", "项目", "行动", "工程"))
_NAMED_RANK = 5_000
"""A word before one of these is a name where it is rarer than this: what is planned often is a thing."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|[_/\\-]+|\.[a-z]{2,5}$")
_SENTENCE = re.compile(r"(?<=[.!?。！？；;])\s*|\n+")


@dataclass(frozen=True, slots=True)
class SourceText:
    """The title of a document, the headings above a chunk, and the chunk's text."""

    title: str
    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Term:
    """What a source introduces: stems and Chinese words of content in order, its Chinese, and its Latin letters."""

    content: tuple[str, ...]
    han: str
    letters: str


@dataclass(frozen=True, slots=True)
class SourceReading:
    """What the rules compare a reply with, for one chunk.

    `words`, their `stems` and `han_words` are all its words, `han` its stretches of Chinese. `labels` are terms that
    stand above or before a text (titles, headings, table cells), `introduced` those that a text calls by name or
    sets off. `sentences` are the words of content of each of its sentences, `bags` all the words of each sentence and
    clause, and `rare` its rows of Chinese characters that are no words.
    """

    words: frozenset[str]
    stems: frozenset[str]
    han: tuple[str, ...]
    han_words: frozenset[str]
    names: EnglishNames
    persons: frozenset[str]
    labels: tuple[Term, ...]
    introduced: tuple[Term, ...]
    sentences: tuple[frozenset[str], ...]
    bags: frozenset[frozenset[str]]
    rare: frozenset[str]


def reading_of(source: SourceText) -> SourceReading:
    """Read one chunk, for a caller that remembers readings in a measure of its own."""
    text = plain(shown_lines(source.text))
    title = _CAMEL.sub(" ", source.title.rsplit("/", 1)[-1])
    above = (title, *source.headings)
    body = pieces(text)
    found = (*pieces("\n".join(above)), *body)
    words = frozenset(piece.text for piece in found if piece.kind is Kind.WORD)
    han = tuple(piece.text for piece in found if piece.kind is Kind.HAN)
    segments = [chinese.segment(stretch) for stretch in han]
    names = english_names(text, above)
    planned = (name for segment in segments for name in _planned(segment))
    parts = [tuple(content_of(part)) for part in _SENTENCE.split(text)]
    return SourceReading(
        words=words,
        stems=frozenset(map(english.stem_of, words)),
        han=han,
        han_words=frozenset(chain.from_iterable(segments)),
        names=names,
        persons=frozenset(persons_in(plain("\n".join((*above, text))))),
        labels=tuple(_terms(chain(above, labels_in(text)))),
        introduced=tuple(_terms(chain(introduced_in(text), names.rows, planned))),
        sentences=tuple(frozenset(part) for part in parts if len(part) > 1),
        bags=frozenset(bag_of(part) for ends in (SENTENCES, CLAUSES) for part in parts_of(body, ends)),
        rare=frozenset(row for segment in segments for row in chinese.rows(segment) if _is_name(row)),
    )


read_source = lru_cache(maxsize=KEPT_CHUNKS)(reading_of)
"""Read one chunk, or remember how it was read."""


def bag_of(part: Iterable[Piece]) -> frozenset[str]:
    """Return the stems and single Chinese characters, without figures, of a part of a text."""
    bags = (
        piece.text if piece.kind is Kind.HAN else (english.stem_of(piece.text),) for piece in part if _is_said(piece)
    )
    return frozenset(chain.from_iterable(bags))


def _is_said(piece: Piece) -> bool:
    return piece.kind is Kind.HAN or piece.text.isalpha()


def words_of(of: Iterable[Piece]) -> Iterator[str]:
    """Yield the words of a text, with Chinese cut into its words, and its marks."""
    for piece in of:
        yield from chinese.segment(piece.text) if piece.kind is Kind.HAN else (piece.text,)


def _planned(words: Sequence[str]) -> Iterator[str]:
    """Yield what a plan, project, operation or work is called, with and without that word."""
    for place, word in enumerate(words):
        if word in _PLANS and place:
            lone = len(words[place - 1]) == 1 and place > 1 and len(words[place - 2]) == 1
            name = "".join(words[place - 2 : place]) if lone else words[place - 1]
            if len(name) > 1 and chinese.han_rank(name) > _NAMED_RANK:
                yield from (name, name + word)


def content_of(text: str) -> Iterator[str]:
    """Yield the stems of a text's English words of content and its Chinese words of content, in order."""
    return (content for content, _ in written_content_of(text))


def written_content_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each of the stems and Chinese words of `content_of` with the word as it is written."""
    for piece in pieces(text):
        if piece.kind is Kind.WORD and not english.is_function_word(piece.text):
            yield english.stem_of(piece.text), piece.text
        elif piece.kind is Kind.HAN:
            yield from ((word, word) for word in chinese.segment(piece.text) if not chinese.is_function_han(word))


def _is_name(row: str) -> bool:
    """Whether characters none of which is part of a word are a name or a code, as they mostly are."""
    return 1 < len(row) <= _LONGEST_ROW and max(map(chinese.han_rank, row)) > _RARE_RANK


def _terms(texts: Iterable[str]) -> Iterator[Term]:
    for text in dict.fromkeys(texts):
        content = tuple(dict.fromkeys(content_of(text)))
        if content:
            joined = "".join(piece.text for piece in pieces(text))
            yield Term(content, han_only(joined), letters_only(joined))
