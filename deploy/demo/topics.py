"""The sentences of the demo model about each topic, read from `topic_words/`, a file for each language."""

import re
from dataclasses import dataclass
from pathlib import Path

_FILES = Path(__file__).with_name("topic_words")
_QUERY_WEIGHT, _MAX_CUES = 4, 3


@dataclass(frozen=True)
class Words:
    """What is said of a topic in one language."""

    summary: str
    observation: str
    risk: str
    action: str


@dataclass(frozen=True)
class Topic:
    """Cues in every language, and the words in English and Chinese."""

    cues: re.Pattern[str]
    words: tuple[Words, Words]

    def cues_in(self, text: str) -> int:
        """Count the different cues in a text."""
        return len(set(self.cues.findall(text.lower())))


def _sections(name: str) -> list[list[str]]:
    _, *blocks = (_FILES / name).read_text(encoding="utf-8").strip().split("\n\n")
    return [block.splitlines() for block in blocks]


def _topics() -> dict[str, Topic]:
    return {
        name: Topic(re.compile(rf"\b(?:{cues})|{cues_zh}"), (Words(*words), Words(*words_zh)))
        for (name, cues, *words), (_, cues_zh, *words_zh) in zip(_sections("en.txt"), _sections("zh.txt"), strict=True)
    }


TOPICS = _topics()
ANYTHING = TOPICS.pop("anything")
"""The sentences for queries in which no topic is recognised."""


def topics_of(query: str, evidence: str = "") -> list[Topic]:
    """Return the topics of a query, those first that its evidence is about too, and then the evidence's own."""

    def score(topic: Topic) -> int:
        return _QUERY_WEIGHT * topic.cues_in(query) + min(topic.cues_in(evidence), _MAX_CUES)

    return sorted((topic for topic in TOPICS.values() if score(topic)), key=score, reverse=True)
