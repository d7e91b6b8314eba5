"""The texts that describe the knowledge bases in scope to a model, all of them or the changes.

Every sentence is declarative and fixed: an instruction in a message that the user did not write looks like an attack.
"""

from collections.abc import Iterable, Sequence

from shared.models.execution import AccessMode
from shared.models.values import Value
from shared.tokens import estimate_tokens

DELTA_BUDGET_TOKENS = 400
"""The limit of the descriptions in one prompt delta."""

FULL_SET_BUDGET_TOKENS = 16_000
"""The limit of the descriptions in a full set: an eighth of a window of 128,000 tokens."""

BASES_ARE_NOW = "Knowledge bases in scope are now:"
BASES_ARE_NOW_INSTEAD = "Knowledge bases in scope are now, replacing all that earlier messages said of them:"
BASES_HAVE_CHANGED = "Knowledge bases in scope are now changed; this replaces what earlier messages said of these:"
BASES_ARE_NONE = "Knowledge bases in scope are now: none. This replaces what earlier messages said of them."
TRUNCATED = "Truncated, in scope with the description left out:"
SUPERSEDED = "Superseded, no longer in scope:"


class BaseText(Value):
    """A base as a model reads it; `name` is one line, and `text` the whole description with name and id.

    `mode` is the reader's: the texts of both modes never stand in one epoch.
    """

    id: str
    name: str
    text: str
    mode: AccessMode = AccessMode.RESTRICTED


def in_order(bases: Iterable[BaseText]) -> tuple[BaseText, ...]:
    """Sort by name and id, whatever the order of arrival."""
    return tuple(sorted(bases, key=lambda base: (base.name, base.id)))


def full_set(
    bases: Iterable[BaseText], opening: str = BASES_ARE_NOW, budget_tokens: int = FULL_SET_BUDGET_TOKENS
) -> str:
    """Describe all bases; "" when there are none.

    Its budget is wider than a delta's, because a model that is shown the bases for the first time needs their
    descriptions to choose one. Without a budget, one call could fill the context window.
    """
    described, listed = _within(in_order(bases), budget_tokens)
    if not described and not listed:
        return ""
    return _paragraphs(opening, *(base.text for base in described), _render_list(TRUNCATED, listed))


def delta(changed: Iterable[BaseText], removed: Iterable[BaseText], budget_tokens: int) -> str:
    """Describe new and changed bases, and name removed ones.

    The budget is for descriptions; the sentences around them and a line for each base that is named come on top,
    so that no change is ever dropped.
    """
    described, listed = _within(in_order(changed), budget_tokens)
    return _paragraphs(
        BASES_HAVE_CHANGED,
        *(base.text for base in described),
        _render_list(TRUNCATED, listed),
        _render_list(SUPERSEDED, in_order(removed)),
    )


def block_replaced(name: str, text: str) -> str:
    """Return a block's new text, under a line which states that it replaces the earlier one."""
    return _paragraphs(f'The following replaces the earlier text "{name}":', text)


def block_gone(name: str) -> str:
    """Return the sentence that a block no longer applies."""
    return f'The earlier text "{name}" no longer applies.'


def _within(bases: Sequence[BaseText], budget_tokens: int) -> tuple[list[BaseText], list[BaseText]]:
    """Separate the bases whose texts fit, taken in the order given, from those that are only listed."""
    described: list[BaseText] = []
    listed: list[BaseText] = []
    left = budget_tokens
    for base in bases:
        cost = estimate_tokens(base.text)
        if cost <= left:
            left -= cost
            described.append(base)
        else:
            listed.append(base)
    return described, listed


def _render_list(heading: str, bases: Sequence[BaseText]) -> str:
    return "\n".join([heading, *(f"- id: {base.id}; name: {base.name}" for base in bases)]) if bases else ""


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
