"""The parts of a base's description that restricted members and their models may see, as they reveal no content."""

import unicodedata
from collections.abc import Collection

from backend.knowledge.domain.knowledge import KnowledgeBase
from shared.plain_text.figures import telling_figures
from shared.plain_text.orders import is_order_to_model


def routing_texts(base: KnowledgeBase) -> tuple[str, ...]:
    """Return the hint, where there is one, and the keywords; each is shown or left out as a whole."""
    return tuple(text for text in (base.routing_hint, *base.routing_keywords) if text.strip())


def has_figure_or_order(text: str) -> bool:
    """Return whether a text holds a figure, in digits or in words, or an instruction to a model."""
    has_digit = any(unicodedata.category(character) in ("Nd", "Nl", "No") for character in text)
    return has_digit or bool(telling_figures(text)) or is_order_to_model(text)


def places_of(base: KnowledgeBase, left_out: Collection[str]) -> tuple[str, ...]:
    """Return the fields that hold these texts, in the notation of errors, such as `routing_keywords[0]`."""
    keywords = enumerate(base.routing_keywords)
    hint = ("routing_hint",) if base.routing_hint in left_out else ()
    return (*hint, *(f"routing_keywords[{place}]" for place, word in keywords if word in left_out))


def without_texts(base: KnowledgeBase, left_out: Collection[str]) -> KnowledgeBase:
    """Return a base as restricted members may see it: no summary, no topics, none of these texts."""
    changes = {
        "summary": "",
        "topics": (),
        "routing_hint": "" if base.routing_hint in left_out else base.routing_hint,
        "routing_keywords": tuple(word for word in base.routing_keywords if word not in left_out),
    }
    return base.model_copy(update=changes)
