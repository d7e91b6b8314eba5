"""Whom and what a text speaks of by name: persons, things with a proper name, identifiers, and subjects of records."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise

from shared.disclosure import chinese, english
from shared.disclosure.canonical import SENTENCES, Kind, Piece, parts_of, pieces, plain
from shared.disclosure.folding import letters_only
from shared.disclosure.frame import SUPPORT
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

_STANDING_FOR = frozenset(
    [
        "he",
        "him",
        "his",
        "himself",
        "she",
        "her",
        "hers",
        "herself",
        "it",
        "its",
        "they",
        "them",
        "their",
        "他",
        "她",
        "它",
        "他们",
        "她们",
        "它们",
    ]
)
_CONFIRMING = re.compile(r"(?:yes|no)\b|是|对|不|没|会|有|能|可以")


def find_subjects(text: str) -> Iterator[str]:
    """Yield what a text names by how it is written, whatever a base holds: so nothing is told of the base."""
    written = plain(text)
    yield from (part for name in _IDENTIFIER.findall(written) for part in words_of(pieces(name)) if part.isalnum())
    yield from _find_english(_ACRONYM.sub(lambda letters: letters[0].lower(), written))
    segments = [chinese.segment(piece.text) for piece in pieces(text) if piece.kind is Kind.HAN]
    named = chain(persons_in(written), *(persons_among(("", *words)) for words in segments))
    yield from (name for name in named if not any(map(chinese.is_known_han, (name, name[1:], name[:2]))))
    yield from (first + second for words in segments for first, second in pairwise(words) if is_titled(first, second))


def _find_english(text: str) -> Iterator[str]:
    behind, names = _LETTERS.findall(text)[1:], english_names(text, ())
    if sum(word[0].isupper() for word in behind) > _HEADING_SHARE * max(_SHORTEST_HEADING, len(behind)):
        return
    rows = (letters_only(word.lower()) for row in names.rows for word in row.split())
    unknown = (word for word in (*names.capital, *rows) if not english.is_known(word) and not english.is_quantity(word))
    yield from (word for word in (*names.certain, *unknown) if word not in names.plain and word not in _LANGUAGES)


def find_roles(texts: Sequence[str]) -> frozenset[str]:
    """Return what tells the subjects of records from each other; nothing where most passages begin otherwise.

    A record begins with whom or what it is about: "Ruth Pellow, teacher." What so many begin with tells none of them.
    """
    leads = [lead[1] for text in texts if (lead := _LEAD.match(text)) and not _is_sentence(lead[1])]
    short = [lead for lead in map(frozenset, map(content_of, leads)) if 0 < len(lead) <= _LONGEST_LEAD]
    if len(short) < max(SUPPORT, _LEAD_SHARE * len(texts)):
        return frozenset()
    return frozenset(word for word, count in Counter(chain.from_iterable(short)).items() if count < SUPPORT)


def _is_sentence(lead: str) -> bool:
    """Whether a line has words that join others: what begins a record has none."""
    return any(english.is_function_word(word) for word in _LETTERS.findall(lead.lower()))


def find_spoken_of(fields: Sequence[Sequence[Piece]], subjects: Collection[str]) -> Iterator[Finding]:
    """Yield subjects, and what stands for one: a personal pronoun, and a yes or no to what was asked about it."""
    for part in (part for field in fields for part in parts_of(field, SENTENCES)):
        words, han = [*words_of(part)], "\n".join(piece.text for piece in part if piece.kind is Kind.HAN)
        stems = frozenset(form for word in words for form in (word.removesuffix("'s"), english.stem_of(word)))
        held = [name for name in subjects if name in stems or name in han]
        stand = [word for word in words if word in _STANDING_FOR]
        confirmed = _CONFIRMING.match(part[0].text)
        yield from (
            Finding(GateCode.IDENTIFIERS, word) for word in (*held, *stand, *([confirmed[0]] if confirmed else ()))
        )
