"""What a secondary model is shown: the passages, secrets and canaries in its request."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tests.leaks.corpus.reading import Language, Secrets

_SENTENCE_ENDS = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_TWO_DIGITS = re.compile(r"(?<![\d.])[1-9]\d")
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_ROLLS = 12
_LEAST_ENGLISH, _LEAST_CHINESE = 50, 18
"""Characters of a sentence; shorter lines are headings or items."""

# words of a blocked reply stand in lines of their own too, in the request for a rewrite: they are shorter
_ALONE = re.compile(r"^([a-z0-9]{16,64})$", re.MULTILINE)
_MARKER = re.compile(r"^<[a-z]+-([a-z0-9]{16,64})>$", re.MULTILINE)


@dataclass(frozen=True)
class Passage:
    """A chunk as it is stored."""

    chunk_id: str
    document: str
    heading_path: tuple[str, ...]
    text: str

    @cached_property
    def language(self) -> Language:
        """The language of its text."""
        ideographs = sum("\u3400" <= character <= "\u9fff" for character in self.text)
        return "zh" if ideographs > len(self.text) / 5 else "en"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Its sentences and lines that say something."""
        pieces = (piece.strip() for piece in _SENTENCE_ENDS.split(self.text))
        return tuple(piece for piece in pieces if len(piece) >= (_LEAST_ENGLISH if piece.isascii() else _LEAST_CHINESE))


@dataclass(frozen=True)
class Shown:
    """A request to a secondary model as a model reads it, and the dice that vary its reply.

    `made_up` is what a reply was made of because nothing of its kind was shown: it gives nothing away.
    """

    request_text: str
    passages: tuple[Passage, ...]
    secrets: tuple[Secrets, ...]
    canaries: tuple[str, ...]
    attempt: int
    dice: random.Random
    made_up: list[str] = field(default_factory=list[str])

    @cached_property
    def passage(self) -> Passage:
        """The passage that this reply is about; one with a planted secret where there is one."""
        telling = [passage for passage in self.passages if self._planted_in(passage)]
        return self.dice.choice(telling or list(self.passages))

    @cached_property
    def language(self) -> Language:
        """The passage's language."""
        return self.passage.language

    @property
    def sentence(self) -> str:
        """A sentence of the passage."""
        return self.dice.choice(self.passage.sentences or (self.passage.text,))

    @property
    def words(self) -> list[str]:
        """The passage in words; in Chinese in characters."""
        return list(self.passage.text.replace("\n", "")) if self.language == "zh" else self.passage.text.split()

    @property
    def figure(self) -> str:
        """A planted figure as it stands in the passage, or any number of it; one digit is nothing that can be told."""
        planted = [figure for secrets in self.secrets for figure in secrets.figures if figure in self.passage.text]
        numbers: list[str] = _NUMBER.findall(self.passage.text)
        told = [figure for figure in planted or numbers if _TWO_DIGITS.search(figure)]
        return self.dice.choice(told or self.instead("4,750"))

    @property
    def whole_figure(self) -> str:
        """A figure whose number has no fraction, where there is one."""
        rolled = [self.figure for _ in range(_ROLLS)]
        planted = self._seen(figure for secrets in self.secrets for figure in secrets.figures)
        others = [figure for figure in planted if _TWO_DIGITS.search(figure)]
        return next((figure for figure in (*rolled, *others) if "." not in number_in(figure)), rolled[0])

    @property
    def names(self) -> list[str]:
        """Planted names, codes and acronyms of the passage; of all that was shown where it has none."""
        planted = self._seen(name for each in self.secrets for name in (*each.names, *each.codes, *each.acronyms))
        return [name for name in planted if name in self.passage.text] or planted or self.instead(self.passage.document)

    @property
    def definitions(self) -> list[str]:
        """What the planted terms mean."""
        planted = self._seen(definition.text for secrets in self.secrets for definition in secrets.definitions)
        return [text for text in planted if text in self.passage.text] or planted or [self.sentence]

    @property
    def title(self) -> str:
        """The title of a document that was shown, or its name."""
        return self.dice.choice(self._seen(secrets.title for secrets in self.secrets) or [self.passage.document])

    @property
    def headings(self) -> list[str]:
        """Headings in the order of their document."""
        planted = [self._seen(secrets.headings) for secrets in self.secrets]
        long = [headings for headings in planted if len(headings) > 1]
        seen = [heading for passage in self.passages for heading in passage.heading_path]
        return self.dice.choice(long) if long else list(dict.fromkeys(seen)) or [self.title]

    def instead(self, text: str) -> list[str]:
        """Make something up where nothing of the kind was shown."""
        self.made_up.append(text)
        return [text]

    def _seen(self, planted: Iterable[str]) -> list[str]:
        """Keep what stands in the request: a model can give away only what it was shown."""
        return [text for text in planted if text in self.request_text]

    def _planted_in(self, passage: Passage) -> bool:
        return any(figure in passage.text for secrets in self.secrets for figure in secrets.figures)


def number_in(figure: str) -> str:
    """Return the longest number in a figure, without separators of thousands."""
    found = max(_NUMBER.findall(figure) or ["4750"], key=len)
    return found.replace(",", "").rstrip(".")


class BaseContent:
    """All passages that a base can show, to know from a request which ones it did."""

    def __init__(self, passages: Sequence[Passage], secrets: Mapping[str, Secrets]) -> None:
        self.passages = passages
        self._secrets = secrets

    def shown_in(self, request_text: str, attempt: int, dice: random.Random) -> Shown:
        """Read a request."""
        shown = tuple(passage for passage in self.passages if passage.text in request_text)
        documents = dict.fromkeys(passage.document for passage in shown)
        secrets = tuple(self._secrets[name] for name in documents if name in self._secrets)
        return Shown(request_text, shown, secrets, _canaries(request_text, shown), attempt, dice)


def _canaries(request_text: str, shown: Sequence[Passage]) -> tuple[str, ...]:
    """Return the tokens that stand in lines of their own or in markers, and in no passage."""
    inside = "\n".join(passage.text for passage in shown)
    found = (*_ALONE.findall(request_text), *_MARKER.findall(request_text))
    return tuple(token for token in dict.fromkeys(found) if token not in inside)
