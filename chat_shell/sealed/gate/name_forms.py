"""Names of the chunks written otherwise: a letter changed, parts written together, initials."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from chat_shell.sealed.gate.folding import fold
from chat_shell.sealed.gate.word_lists import GENERAL_ACRONYMS, STOP_WORDS, is_compound, is_everyday, is_known
from shared.plain_text.normal_form import spaced_and_cjk, split_words

_SHORTEST_NAME, _LONGEST_NAME = 5, 20
"""Letters of a name that is known again with some of them wrong: fewer are found by chance, more are no name."""

_TWO_WRONG = 7
"""Letters of a name that is known again with two wrong, not only one."""

_SHORTEST_PART = 3
_MOST_INITIALS = 4
_CAPITALISED = re.compile(r"(?<=[^\s.!?:;。！？：；] )[(\"'“‘]?([A-Z][^\W\d_]+)")
_INITIALS = re.compile(r"\b[A-Z](?:(?:\. ?| ?& ?|[/+-])?[A-Z]){1,3}(?![^\W_])")


@dataclass(frozen=True, slots=True)
class NameForms:
    """The names of some chunks, ready to be known again.

    `shortened` leads from each name with up to two letters left out to the whole; `joined` are neighbours in a name
    written as one word; `own` are words that the user wrote.
    """

    shortened: Mapping[str, tuple[str, ...]]
    parts: frozenset[str]
    joined: frozenset[str]
    initials: frozenset[str]
    own: Collection[str]

    @classmethod
    def of(cls, names: Iterable[str], own: Collection[str]) -> "NameForms":
        """Read names of one or more words as they are written in the chunks; those of `own`, folded, are left out."""
        found = set(names)
        rows = [[part for part in _latin(fold(name)) if part not in STOP_WORDS] for name in found]
        parts = {part for row in rows for part in row}
        shortened: defaultdict[str, list[str]] = defaultdict(list)
        for part in parts.difference(own):
            if not is_everyday(part) and part.isalpha() and _SHORTEST_NAME <= len(part) <= _LONGEST_NAME:
                for form in _shorter(part, _reach(part)):
                    shortened[form].append(part)
        return cls(
            shortened={form: tuple(whole) for form, whole in shortened.items()},
            parts=frozenset(part for part in parts.difference(own) if len(part) >= _SHORTEST_PART),
            joined=frozenset(form for row in rows for form in _joined(row, own)).difference(own),
            initials=frozenset(form for name in found for form in _initials(name, own)).difference(own),
            own=own,
        )


def varies_a_name(text: str, forms: NameForms) -> bool:
    """Tell whether a raw text holds a name with some letters wrong, with its parts as one word, or its initials."""
    suspects = {word for word in _latin(fold(text)) if not is_known(word)}
    suspects.update(fold(match[1]) for match in _CAPITALISED.finditer(text))
    return any(
        is_near_a_name(word, forms) or _is_made_of(word, forms) for word in suspects.difference(forms.own)
    ) or not forms.initials.isdisjoint(_written_initials(text))


def is_near_a_name(word: str, forms: NameForms, most_wrong: int = 2) -> bool:
    """Tell whether a folded word is a name with no more letters wrong than its length and `most_wrong` allow."""
    if not _SHORTEST_NAME - 1 <= len(word) <= _LONGEST_NAME + most_wrong:
        return False
    found = {name for form in _shorter(word, most_wrong) for name in forms.shortened.get(form, ())}
    return any(_wrong_letters(word, name) <= min(_reach(name), most_wrong) for name in found)


def _is_made_of(word: str, forms: NameForms) -> bool:
    """Tell whether a word is neighbours of a name written together, or parts of several that make no English word."""
    whole = word.removesuffix("s")
    if word in forms.joined or whole in forms.joined:
        return True
    return not is_compound(word) and any(_can_be_cut(form, forms.parts) for form in (word, whole))


def _can_be_cut(word: str, parts: Collection[str]) -> bool:
    cuts = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
    return any(word[:cut] in parts and word[cut:] in parts for cut in cuts)


def _joined(row: list[str], own: Collection[str]) -> Iterator[str]:
    for neighbours in _neighbours(row, (2, 3), own):
        yield from ("".join(neighbours), "".join(reversed(neighbours)))


def _initials(name: str, own: Collection[str]) -> Iterator[str]:
    """Yield the initials of each two to four neighbours among the capitalised words of a name, in either order."""
    capitalised = [fold(word) for word in name.split() if word[0].isupper()]
    for neighbours in _neighbours(capitalised, range(2, _MOST_INITIALS + 1), own):
        found = "".join(word[0] for word in neighbours)
        yield from (form for form in (found, found[::-1]) if _is_telling(form))


def _neighbours(words: list[str], lengths: Iterable[int], own: Collection[str]) -> Iterator[list[str]]:
    """Yield each row of so many neighbours, unless the user wrote every one of them."""
    for length in lengths:
        for start in range(len(words) - length + 1):
            if not all(word in own for word in words[start : start + length]):
                yield words[start : start + length]


def _is_telling(initials: str) -> bool:
    return initials not in GENERAL_ACRONYMS and initials not in STOP_WORDS


def _written_initials(text: str) -> Iterator[str]:
    compatible = unicodedata.normalize("NFKC", text)
    for match in _INITIALS.finditer(compatible):
        yield "".join(letter for letter in match[0] if letter.isalpha()).casefold()


def _reach(name: str) -> int:
    return 2 if len(name) >= _TWO_WRONG else 1


@lru_cache(maxsize=8_192)
def _shorter(word: str, most_left_out: int) -> frozenset[str]:
    """Return a word with none and up to so many of its letters left out."""
    return frozenset(
        "".join(kept) for left_out in range(most_left_out + 1) for kept in combinations(word, len(word) - left_out)
    )


def _wrong_letters(one: str, other: str) -> int:
    """Count the letters put in, left out, changed or swapped with a neighbour between two words."""
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for place, letter in enumerate(one, start=1):
        above, row = row, [place]
        for column, wanted in enumerate(other, start=1):
            least = min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != wanted))
            if place > 1 and column > 1 and letter == other[column - 2] and one[place - 2] == wanted:
                least = min(least, before[column - 2] + 1)
            row.append(least)
        before = above
    return row[-1]


def _latin(folded: str) -> list[str]:
    return spaced_and_cjk(split_words(folded))[0]
