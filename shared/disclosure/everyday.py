"""The everyday part of a text: what is left without names, figures and rare words, and could stand in any base."""

import re
from collections.abc import Collection, Iterator
from itertools import chain

from shared.disclosure import chinese, english
from shared.disclosure.canonical import HAN, plain
from shared.disclosure.names import english_names, persons_among, persons_in
from shared.disclosure.word_lists import members

_HAN_RUN = re.compile(rf"[{HAN}]+")
_WORD = re.compile(rf"(?:(?![{HAN}])[^\W_])+(?:['’](?:(?![{HAN}])[^\W_])+)*")
_BLANKS = re.compile("( +)")


def keep_everyday(text: str, rarest: int = chinese.UNRANKED_HAN) -> str:
    """Return a text with its everyday words alone, each as it is written, and with its marks.

    What rests on these words tells nothing of whether a name, a figure or a rare word stands in a base: the gate lets
    an everyday word out wherever it comes from, unless it names something there. `rarest` is the rank behind which a
    word is left out, too.
    """
    written = plain(text)
    named, persons = frozenset(_find_english_names(written)), re.compile("|".join(_longest_first(written)) or "$^")
    spaced = _WORD.sub(lambda found: found[0] if _is_everyday(found[0], named, rarest) else "", text)
    return _HAN_RUN.sub(lambda found: _keep_everyday_han(found[0], persons, rarest), spaced)


def _find_english_names(text: str) -> Iterator[str]:
    """Yield the words that a text writes as names: those of persons, and those that have a capital and nowhere none."""
    names = english_names(text, ())
    rows = (english.one_spelling(word.casefold()) for row in names.rows for word in row.split())
    yield from names.certain
    yield from (word for word in chain(names.capital, rows) if word not in names.plain)


def _longest_first(text: str) -> list[str]:
    """Return the Chinese names of persons in a text, so that none hides a longer one."""
    among = (persons_among(("", *chinese.segment(run))) for run in _HAN_RUN.findall(text))
    return sorted({*persons_in(text), *chain.from_iterable(among)}, key=lambda name: (-len(name), name))


def _is_everyday(word: str, named: Collection[str], rarest: int) -> bool:
    spelled = english.one_spelling(plain(word).casefold())
    bare = spelled.removesuffix("'s").removesuffix("s'")
    if english.is_contraction(spelled):
        return True
    is_telling = bare in named or bare in members("elements") or english.is_quantity(bare)
    return english.is_everyday(bare) and not is_telling and english.stem_rank(english.stem_of(bare)) < rarest


def _keep_everyday_han(run: str, persons: re.Pattern[str], rarest: int) -> str:
    """Put blanks in place of the names of persons, and of the words that are not everyday."""
    unnamed = _BLANKS.split(persons.sub(lambda name: " " * len(name[0]), plain(run)))
    words = chain.from_iterable(chinese.segment(part) if part.strip() else (part,) for part in unnamed)
    kept = "".join(word if _is_everyday_han(word, rarest) else " " * len(word) for word in words)
    return "".join(written if shown != " " else " " for written, shown in zip(run, kept, strict=True))


def _is_everyday_han(word: str, rarest: int) -> bool:
    return chinese.han_rank(word) < rarest and word not in members("elements")
