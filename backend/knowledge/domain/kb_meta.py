"""The description of the knowledge bases in scope for a model: names and purposes, never content.

It depends on nothing but the fields that are rendered here: order of arrival, versions, instants and cosmetic white
space change nothing.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from backend.knowledge.domain.context_texts import BaseText, in_order
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase
from shared.models.execution import AccessMode

MAX_ROUTING_HINT_CHARACTERS = 200
MAX_ROUTING_KEYWORDS = 24
MAX_SHOWN_KEYWORDS = 5
"""So many keywords, the first ones by the alphabet, stand in a prompt."""

MAX_ROUTING_KEYWORD_CHARACTERS = 48

_FULL_ACCESS = "access: full"
_RESTRICTED_ACCESS = "access: access is restricted"
_RESTRICTED_NOTE = "note: hint and keywords serve for drafting search queries; they are no material for answers"
_MARKUP = str.maketrans({"`": "'", "[": "(", "]": ")", "|": "/"})
_TAG = re.compile(r"<(?![\s=\d]|$)([^<>]*)(>?)")
"""A possible markup tag; `<` and `>` that compare amounts are kept, as `>=` and `>` are different rules."""


def render_bases(bindings: Sequence[Binding]) -> tuple[BaseText, ...]:
    """Render each base, ordered by name and id, its topics and keywords alphabetically.

    A base in which the user is restricted shows name, id, hint and keywords only; one that is bound twice shows once,
    in its strictest form.
    """
    by_id = {binding.base.id: binding for binding in sorted(bindings, key=_strictest_last)}
    return in_order(
        BaseText(
            id=one_line(base_id),
            name=one_line(binding.base.name),
            text=_render(binding),
            mode=binding.role.access_mode,
        )
        for base_id, binding in by_id.items()
    )


def one_line(text: str) -> str:
    """Make one line of any text: white space joined, invisible characters and markup taken out."""
    visible = "".join(
        " " if character.isspace() else character
        for character in unicodedata.normalize("NFC", text)
        if character.isspace() or not unicodedata.category(character).startswith("C")
    )
    return _TAG.sub(_without_brackets, " ".join(visible.translate(_MARKUP).split()))


def _without_brackets(tag: re.Match[str]) -> str:
    return f"‹{tag[1]}{'›' if tag[2] else ''}"


def _strictest_last(binding: Binding) -> bool:
    return binding.role.access_mode is AccessMode.RESTRICTED


def _render(binding: Binding) -> str:
    base = binding.base
    restricted = binding.role.access_mode is not AccessMode.FULL
    lines = _render_restricted(base) if restricted else _full_lines(base)
    named = [f"- id: {one_line(base.id)}", _field("name", one_line(base.name)), *lines]
    return "\n  ".join(line for line in named if line)


def _full_lines(base: KnowledgeBase) -> list[str]:
    return [
        _FULL_ACCESS,
        _field("summary", one_line(base.summary)),
        _field("topics", _join_words(base.topics)),
        _field("hint", one_line(base.routing_hint)),
        _field("keywords", _join_words(base.routing_keywords)),
    ]


def _render_restricted(base: KnowledgeBase) -> list[str]:
    keywords = sorted(_clean(base.routing_keywords))[:MAX_SHOWN_KEYWORDS]
    return [
        _RESTRICTED_ACCESS,
        _field("hint", one_line(base.routing_hint)[:MAX_ROUTING_HINT_CHARACTERS].rstrip()),
        _field("keywords", _join_words(word[:MAX_ROUTING_KEYWORD_CHARACTERS] for word in keywords)),
        _RESTRICTED_NOTE,
    ]


def _field(name: str, text: str) -> str:
    return f"{name}: {text}" if text else ""


def _join_words(words: Iterable[str]) -> str:
    return "; ".join(sorted(_clean(words)))


def _clean(words: Iterable[str]) -> set[str]:
    return {line for line in (one_line(word).replace(";", ",") for word in words) if line}
