"""The terms of a chunk that point at it: names, acronyms, codes, headings, titles, table heads, defined terms."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from chat_shell.sealed.gate.chinese_definitions import defined_in_chinese, explained_in_chinese
from chat_shell.sealed.gate.chinese_names import guessed_names, named_kinds, persons, segmented
from chat_shell.sealed.gate.english_definitions import defined_in_english, named_by_kind
from chat_shell.sealed.gate.english_names import is_proper, names_in, names_in_heading, written_forms
from chat_shell.sealed.gate.folding import fold, han_only
from chat_shell.sealed.gate.generality import (
    content_words,
    is_general_definition,
    is_general_heading,
    is_general_in_quotes,
    is_general_item,
    is_general_label,
    is_general_phrase,
    is_work_compound,
    is_work_pair,
)
from chat_shell.sealed.gate.headings import with_bare
from chat_shell.sealed.gate.labels import (
    HEADING,
    headings_in,
    items_in,
    quoted_in,
    rows_in,
    set_off_in,
    titles_in,
)
from chat_shell.sealed.gate.word_lists import SIMPLIFIED, is_everyday, is_known
from shared.plain_text.reading import joined_lines, shown_lines, without_blanks_in_han

_ENDING = re.compile(r"\.[a-z0-9]{1,5}$", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_PARTS_OF_TITLE = re.compile(r"[,:;–—|/()（）\[\]]| - |\band\b|&|\bv\d+\b")

_LEAD = re.compile(r"^(?:- |\d{1,2}[.)] )", re.MULTILINE)
"""What stands before a list's item, of which a definition may be the beginning."""

_LONGEST_BARE_HEADING = 200
_SENTENCE = re.compile(r"[\n。!?;,:|]|\.(?!\d)|^- ")

_KEPT_CHUNKS = 2_048
"""Whose terms are remembered, some 10 KB each with the text: searches of one base bring the same chunks again."""


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


_NOTHING = frozenset[str]()
NO_TERMS = Terms(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING)


@dataclass(frozen=True, slots=True)
class _Labels:
    """What a chunk calls things, as written, by how much a general word in such a place can mean."""

    titles: tuple[str, ...]
    headings: tuple[str, ...]
    rows: tuple[str, ...]
    items: tuple[str, ...]
    explained: tuple[str, ...]
    quoted: tuple[str, ...]
    set_off: tuple[str, ...]
    defined: tuple[str, ...]

    @property
    def above(self) -> tuple[str, ...]:
        """What stands over a text."""
        return self.titles + self.headings

    @property
    def marked(self) -> tuple[str, ...]:
        """What the form of a text sets apart in it, whether it is a term or not."""
        return self.rows + self.items + self.quoted + self.set_off


@lru_cache(maxsize=_KEPT_CHUNKS)
def terms_of(source: ChunkSource) -> Terms:
    """Read the terms of one chunk."""
    lines = shown_lines(source.text)
    text = joined_lines(lines)
    labels = _labels(source, lines, text)
    names = [*names_in(HEADING.sub(" ", text)), *(name for each in labels.above for name in names_in_heading(each))]
    lone = [name for name in names if " " not in name]
    acronyms = {name for name in lone if name.isupper()}
    forms = {form for name in lone if name not in acronyms for form in written_forms(name)}
    forms.update(form for name in acronyms for form in written_forms(name) if not is_everyday(form))
    folded = fold(without_blanks_in_han("\n".join((*labels.above, text))))
    stretches = segmented(folded)
    return Terms(
        words=frozenset((*_lone_words(labels), *forms)),
        capitals=frozenset(name for name in acronyms if is_everyday(fold(name))),
        phrases=frozenset((*_phrases(labels), *(n for n in names if " " in n and not is_work_pair(n)))),
        han=frozenset((*_han(labels), *persons(folded, stretches), *named_kinds(stretches))),
        han_guesses=frozenset(guessed_names(stretches)),
        names=frozenset(filter(is_proper, names)),
    )


@lru_cache(maxsize=_KEPT_CHUNKS)
def introduced_terms_of(source: ChunkSource) -> Terms:
    """Read only what a chunk introduces: its title, headings, labels and what it sets off or defines."""
    lines = shown_lines(source.text)
    labels = _labels(source, lines, joined_lines(lines))
    words, phrases, han = map(frozenset, (_lone_words(labels), _phrases(labels), _han(labels)))
    return replace(NO_TERMS, words=words, phrases=phrases, han=han)


def _labels(source: ChunkSource, lines: str, text: str) -> _Labels:
    """Read labels out of the lines that are shown, and out of the text in which each paragraph is one line."""
    flowing = _LEAD.sub("", text)
    han = without_blanks_in_han(text.translate(SIMPLIFIED))
    title = _CAMEL.sub(" ", _ENDING.sub("", source.document.rsplit("/", 1)[-1]))
    titles = (title, *with_bare((*source.headings[:1], *titles_in(lines))))
    parts = (part.strip() for whole in titles for part in _PARTS_OF_TITLE.split(whole))
    return _Labels(
        titles=(*titles, *parts),
        headings=tuple(with_bare((*source.headings[1:], *headings_in(lines), *_bare_heading(lines)))),
        rows=tuple(rows_in(lines)),
        items=tuple(items_in(text)),
        explained=tuple(explained_in_chinese(han)),
        quoted=tuple(quoted_in(text)),
        set_off=(*set_off_in(text), *named_by_kind(text)),
        defined=(*defined_in_english(flowing), *defined_in_chinese(_LEAD.sub("", han))),
    )


def _bare_heading(lines: str) -> tuple[str, ...]:
    """Return a chunk that is one short line and no sentence: a heading over nothing is a chunk of its own."""
    return (lines,) if len(lines) <= _LONGEST_BARE_HEADING and not _SENTENCE.search(lines) else ()


def _lone_words(labels: _Labels) -> Iterator[str]:
    """Yield the words of labels that have one word of content, unless that is a general one."""
    yield from _unless(labels.above, is_known)
    yield from _unless(labels.marked + labels.defined, is_everyday)


def _unless(labels: Iterable[str], is_general: Callable[[str], bool]) -> Iterator[str]:
    for label in labels:
        content = content_words(label)
        if (
            len(content) == 1
            and not is_general(word := content[0])
            and not word.isdigit()
            and not is_work_compound(word)
        ):
            yield word


def _phrases(labels: _Labels) -> Iterator[str]:
    yield from (*labels.titles, *labels.defined)
    yield from (heading for heading in labels.headings if not is_work_pair(heading))
    yield from (label for label in labels.marked if not is_work_pair(label))


def _han(labels: _Labels) -> Iterator[str]:
    """Yield the Chinese of labels, unless it is general."""
    for texts, is_general in (
        (labels.above, is_general_heading),
        (labels.rows, is_general_label),
        (labels.items, is_general_item),
        (labels.explained, is_general_phrase),
        (labels.quoted, is_general_in_quotes),
        (labels.set_off + labels.defined, is_general_definition),
    ):
        yield from (han for text in texts if len(han := han_only(fold(text))) > 1 and not is_general(han))
