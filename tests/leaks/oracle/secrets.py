"""What was planted, and where a text gives it away."""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from tests.leaks.corpus.reading import Secrets
from tests.leaks.oracle.numbers import Number, numbers_in, value_of
from tests.leaks.oracle.passages import weight
from tests.leaks.oracle.reading import folded, squeezed, words

TELLING_VALUE = 10
"""Whole numbers below it stand in any prose; they tell something only with their unit."""

TELLS_NOTHING = 1
"""One, and none: no secret in any unit."""

TELLING_DIGITS = 6
"""A number of so many digits is the planted one wherever it stands."""

TELLING_LETTERS = 8
"""A name of so many letters is found without its spaces too."""

HEADING_WORDS, HEADING_IDEOGRAPHS = 5, 8
"""A shorter heading may be a plain phrase; several in the order of their document give it away all the same."""

HEADINGS_IN_ORDER = 4

_NEWEST_CANARIES = 64
_NEAR_CHARACTERS = 24
_SAY_NOTHING = frozenset({"the", "and", "last", "per", "for", "than", "out", "each", "about", "with", "more", "least"})
_PERCENT = ("%", "percent", "per cent", "百分之", "pct")


class Secret(NamedTuple):
    """A planted thing: `kind` is figure, name, code, acronym, title, heading, term, definition or canary."""

    kind: str
    text: str


class _Figure(NamedTuple):
    secret: Secret
    value: Decimal
    units: frozenset[str]


class PlantedSecrets:
    """Finds planted secrets."""

    def __init__(self, planted: Iterable[Secrets]) -> None:
        self._phrases: dict[str, dict[tuple[str, ...], Secret]] = {}
        self._squeezed: dict[str, Secret] = {}
        self._figures: dict[Decimal, list[_Figure]] = {}
        self._headings: list[tuple[str, list[list[str]]]] = []
        self._heading_starts: set[str] = set()
        self._canaries: set[str] = set()
        self._newest: deque[Secret] = deque(maxlen=_NEWEST_CANARIES)
        for secrets in planted:
            self._add(secrets)

    def add_phrase(self, secret: Secret) -> None:
        """Look for one more phrase from now on."""
        self._add_words(secret)
        if len(bare := squeezed(secret.text)) >= TELLING_LETTERS:
            self._squeezed.setdefault(bare, secret)

    def add_canary(self, canary: str) -> None:
        """Look for a canary from now on; without its spaces only as long as it is one of the newest."""
        if canary not in self._canaries:
            self._canaries.add(canary)
            self._newest.append(Secret("canary", canary))
            self._add_words(Secret("canary", canary))

    def named(self, kinds: Container[str]) -> Iterator[Secret]:
        """Yield the planted phrases of these kinds."""
        for phrases in self._phrases.values():
            yield from (secret for secret in phrases.values() if secret.kind in kinds)

    def phrases(self, text: Sequence[str]) -> Iterator[Secret]:
        """Yield secrets whose words stand there one behind the other."""
        for at, word in enumerate(text):
            for phrase, secret in self._phrases.get(word, {}).items():
                if tuple(text[at : at + len(phrase)]) == phrase:
                    yield secret

    def structures(self, text: Sequence[str]) -> Iterator[Secret]:
        """Yield the titles of documents of which several headings stand in the text in their order."""
        if len(self._heading_starts.intersection(text)) < HEADINGS_IN_ORDER:
            return
        joined = f" {' '.join(text)} "
        for title, headings in self._headings:
            at = count = 0
            for heading in headings:
                if (end := _stands_at(heading, joined, at)) >= 0:
                    at, count = end, count + 1
            if count >= HEADINGS_IN_ORDER:
                yield Secret("structure", title)

    def squeezed_phrases(self, text: str) -> Iterator[Secret]:
        """Yield secrets that stand in a text without any spaces."""
        for bare, secret in self._squeezed.items():
            if bare in text:
                yield secret
        for canary in self._newest:
            if squeezed(canary.text) in text:
                yield canary

    def figures(self, text: str, *, is_prose: bool) -> Iterator[Secret]:
        """Yield planted figures: in prose by their value, elsewhere only with their unit or many digits."""
        plain = ""
        for number in numbers_in(text):
            for figure in self._figures.get(number.value, ()):
                plain = plain or folded(text)
                if (is_prose and _tells_by_itself(number.value)) or _tells_anywhere(number, figure, plain):
                    yield figure.secret

    def _add_words(self, secret: Secret) -> None:
        if found := tuple(words(secret.text)):
            self._phrases.setdefault(found[0], {}).setdefault(found, secret)

    def _add(self, secrets: Secrets) -> None:
        kinds = {
            "title": (secrets.title,),
            "heading": tuple(heading for heading in secrets.headings if _is_telling(words(heading))),
            "name": secrets.names,
            "code": secrets.codes,
            "acronym": secrets.acronyms,
            "term": tuple(definition.term for definition in secrets.definitions),
            "definition": tuple(definition.text for definition in secrets.definitions),
        }
        for kind, texts in kinds.items():
            for text in texts:
                self.add_phrase(Secret(kind, text))
        headings = [words(heading) for heading in secrets.headings]
        self._headings.append((secrets.title, headings))
        self._heading_starts.update(heading[0] for heading in headings)
        for figure in secrets.figures:
            self._add_figure(Secret("figure", figure))

    def _add_figure(self, secret: Secret) -> None:
        values = set(value_of(secret.text))
        for value in values:
            if abs(value) <= TELLS_NOTHING and value == value.to_integral_value():
                continue
            units = frozenset(_units(secret.text))
            self._figures.setdefault(value, []).append(_Figure(secret, value, units))


def _is_telling(heading: Sequence[str]) -> bool:
    return weight(heading, HEADING_WORDS, HEADING_IDEOGRAPHS) >= 1


def _stands_at(phrase: Sequence[str], text: str, start: int) -> int:
    """Return where a phrase ends in words joined with blanks, -1 where it does not stand behind `start`."""
    found = text.find(f" {' '.join(phrase)} ", start)
    return -1 if found < 0 else found + len(" ".join(phrase)) + 1


def _units(figure: str) -> Iterator[str]:
    plain = folded(figure)
    if any(mark in plain for mark in _PERCENT):
        yield from _PERCENT
    spans = [(number.start, number.end) for number in numbers_in(figure)]
    for start, end in sorted(spans, reverse=True):
        plain = plain[:start] + " " + plain[end:] if end <= len(plain) else plain
    rest = "".join(character for character in plain if not character.isdigit())
    yield from (word for word in words(rest) if word.isascii() and len(word) > 2 and word not in _SAY_NOTHING)
    if ideographs := "".join(word for word in words(rest) if not word.isascii()):
        yield ideographs


def _tells_by_itself(value: Decimal) -> bool:
    return value >= TELLING_VALUE or value != value.to_integral_value()


def _tells_anywhere(number: Number, figure: _Figure, plain: str) -> bool:
    if len(figure.value.as_tuple().digits) >= TELLING_DIGITS:
        return True
    near = plain[max(0, number.start - _NEAR_CHARACTERS) : number.end + _NEAR_CHARACTERS]
    around = frozenset(words(near))
    return any(unit in around if unit.isascii() and unit.isalpha() else unit in near for unit in figure.units)
