"""Whom and what a text speaks of by name: persons, things with a proper name, identifiers, and subjects of records."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, filterfalse, pairwise
from operator import itemgetter
from typing import NamedTuple

from shared.disclosure import chinese, english
from shared.disclosure.canonical import Piece, han_in, pieces, plain, sentences_of
from shared.disclosure.folding import letters_only
from shared.disclosure.frame import BaseRules
from shared.disclosure.languages import Language
from shared.disclosure.names import english_names, is_titled, persons_among, persons_in
from shared.disclosure.source import content_of, words_of
from shared.disclosure.words import Finding
from shared.models.safe_summary import GateCode

_IDENTIFIER = re.compile(r"(?<![\w-])(?=[\w-]*[\d_])[A-Za-z][A-Za-z0-9_-]*[A-Za-z0-9]")
_ACRONYM = re.compile(r"\b[A-Z]{2,}s?\b")
_LETTERS = re.compile("[A-Za-z]+")
_LANGUAGES = frozenset(language.name.lower() for language in Language)
_HEADING_SHARE, _SHORTEST_HEADING = 0.7, 3
"""A text in which so many words behind the first begin with a capital is a heading, whose capitals name nothing."""

_LEAD = re.compile(r"(?!#)([^.。:：\n]+)[.。\n]")
_LONGEST_LEAD, _LEAD_SHARE = 6, 0.5
"""Words of content of a line that says whose record follows, and the share of passages that begin so in records."""

_STANDING_FOR = frozenset((
    "he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "they", "them", "their",
    "他", "她", "它", "他们", "她们", "它们",
))  # fmt: skip
_CONFIRMING = re.compile(r"(?:yes|no)\b|是|对|不|没|会|有|能|可以")


def find_subjects(text: str) -> Iterator[str]:
    """Yield what a text names by how it is written, whatever a base holds: so nothing is told of the base."""
    written = plain(text)
    yield from filter(str.isalnum, words_of(pieces("\n".join(_IDENTIFIER.findall(written)))))
    yield from _find_english(_ACRONYM.sub(lambda letters: letters[0].lower(), written))
    segments = [*map(chinese.segment, han_in(pieces(text)))]
    yield from filterfalse(_is_word, chain(persons_in(written), *(persons_among(("", *words)) for words in segments)))
    yield from (first + second for first, second in chain(*map(pairwise, segments)) if is_titled(first, second))


def _is_word(name: str) -> bool:
    return any(map(chinese.is_known_han, (name, name[1:], name[:2])))


def _find_english(text: str) -> Iterable[str]:
    behind, names = _LETTERS.findall(text)[1:], english_names(text, ())
    if sum(word[0].isupper() for word in behind) > _HEADING_SHARE * max(_SHORTEST_HEADING, len(behind)):
        return ()
    rows = map(letters_only, " ".join(names.rows).lower().split())
    unknown = filterfalse(english.is_of_language, chain(names.capital, rows))
    return names.certain.union(unknown) - names.plain - _LANGUAGES


class PlacedText(NamedTuple):
    """A passage with its headings, of which the first is the title of its document."""

    headings: tuple[str, ...]
    text: str


def find_roles(passages: Sequence[PlacedText], rules: BaseRules) -> frozenset[str]:
    """Return what tells the subjects of records from each other; nothing where most passages begin otherwise.

    A record begins with whom or what it is about: "Ruth Pellow, teacher." What so many begin with tells none of them.
    Where the owner says that these are records, what stands above them counts as well.
    """
    leads = [*filterfalse(_is_sentence, _find_leads(passages))]
    named = [*leads, *_find_headings(passages, rules.support)] if rules.has_records else leads
    short = [lead for lead in map(frozenset, map(content_of, named)) if 0 < len(lead) <= _LONGEST_LEAD]
    if not rules.has_records and len(short) < max(rules.support, _LEAD_SHARE * len(passages)):
        return frozenset()
    return frozenset(word for word, count in Counter(chain.from_iterable(short)).items() if count < rules.support)


def _find_leads(passages: Iterable[PlacedText]) -> Iterator[str]:
    return (lead[1] for passage in passages if (lead := _LEAD.match(passage.text)))


def _find_headings(passages: Sequence[PlacedText], least: int) -> Iterator[str]:
    """Yield titles and headings where a level has several; one that several documents have names a part of a record."""
    placed = {(level, text, each.headings[0]) for each in passages for level, text in enumerate(each.headings)}
    alone = [place for place, count in Counter(place[:2] for place in placed).items() if count == 1]
    levels = Counter(map(itemgetter(0), alone))
    yield from (text for level, text in alone if levels[level] >= least)


def _is_sentence(lead: str) -> bool:
    """Whether a line has words that join others: what begins a record has none."""
    return any(english.is_function_word(word) for word in _LETTERS.findall(lead.lower()))


def find_spoken_of(
    fields: Sequence[Sequence[Piece]], subjects: Collection[str], roles: Collection[str]
) -> Iterator[Finding]:
    """Yield subjects and roles; where there are subjects also what stands for one.

    That is a personal pronoun, and a yes or no to what was asked about it.
    """
    for part in sentences_of(fields):
        said = chain(_find_named(part, (*subjects, *roles)), _find_standing(part) if subjects else ())
        yield from (Finding(GateCode.IDENTIFIERS, word) for word in said)


def _find_named(part: Sequence[Piece], names: Iterable[str]) -> Iterator[str]:
    han = "\n".join(han_in(part))
    stems = frozenset(form for word in words_of(part) for form in (word.removesuffix("'s"), english.stem_of(word)))
    yield from (name for name in names if name in stems or name in han)


def _find_standing(part: Sequence[Piece]) -> Iterator[str]:
    yield from (word for word in words_of(part) if word in _STANDING_FOR)
    if confirmed := _CONFIRMING.match(part[0].text):
        yield confirmed[0]
