"""The opening of an epoch's system message: the operator's default text, or that of an agent.

Both may hold placeholders such as `{{user.name}}`, which are filled once, when the epoch begins.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from backend.conversations.domain.placed_blocks import ANCHORED, PlacedBlocks, Placement, text_digest

_PLACEHOLDER = re.compile(r"\{\{([a-z]+(?:\.[a-z]+)?)\}\}")


class PromptForm(NamedTuple):
    """What an epoch is begun with besides settings: a change of `opening_of` or `placement` begins another one.

    `opening` is the text with which the system message opens. `opening_of` is the digest of an agent's own system
    prompt before it was filled, and "" for the operator's default: a change of that one waits for the next epoch.
    """

    opening: str = ""
    opening_of: str = ""
    placement: Placement = ANCHORED


PLAIN_FORM = PromptForm()


def prompt_form(blocks: PlacedBlocks, default: str, values: Mapping[str, str]) -> PromptForm:
    """Return the form of the prompts of a turn, if its epoch began with it."""
    own = blocks.system_prompt
    opening = fill(default if own is None else own, values)
    return PromptForm(opening=opening, opening_of=digest_opening(own), placement=blocks.placement)


def digest_opening(system_prompt: str | None) -> str:
    """Return the digest of an agent's own system prompt; "" where it has none, which an empty one is not."""
    return "" if system_prompt is None else text_digest(system_prompt) or "empty"


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put values in the places of the placeholders that name them; unknown ones stay as they were typed."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)
