"""The parts of a base's description that restricted members and their models may see, as they reveal no content."""

from collections.abc import Iterator, Mapping

from backend.knowledge.domain.knowledge import KnowledgeBase
from shared.models.safe_summary import GateCode
from shared.models.values import Value

NEUTRAL_NAME = "Knowledge base"
"""What stands for the name of a base whose own name reveals its content."""


class LeftOut(Value):
    """Why a text is not shown: the checks that it fails, and its words and phrases that fail them."""

    codes: tuple[GateCode, ...]
    phrases: tuple[str, ...]


def described_texts(base: KnowledgeBase) -> tuple[str, ...]:
    """Return the name, the hint, where there is one, and the keywords; each is shown or left out as a whole."""
    texts = (base.name, base.routing_hint, *base.routing_keywords)
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def places_of(base: KnowledgeBase, left_out: Mapping[str, LeftOut]) -> dict[str, LeftOut]:
    """Return the verdicts by the fields that hold the texts, in the notation of errors: `routing_keywords[0]`."""
    return {place: left_out[text] for place, text in _fields(base) if text in left_out}


def without_texts(base: KnowledgeBase, left_out: Mapping[str, LeftOut]) -> KnowledgeBase:
    """Return a base as restricted members may see it: no summary, no topics, none of these texts."""
    changes = {
        "name": NEUTRAL_NAME if base.name in left_out else base.name,
        "summary": "",
        "topics": (),
        "routing_hint": "" if base.routing_hint in left_out else base.routing_hint,
        "routing_keywords": tuple(word for word in base.routing_keywords if word not in left_out),
    }
    return base.model_copy(update=changes)


def _fields(base: KnowledgeBase) -> Iterator[tuple[str, str]]:
    yield "name", base.name
    yield "routing_hint", base.routing_hint
    yield from ((f"routing_keywords[{place}]", word) for place, word in enumerate(base.routing_keywords))
