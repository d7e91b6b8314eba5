"""The share of a model's window that the files of a turn may take."""

from collections.abc import Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import newest_epoch_state, select_sent
from backend.conversations.domain.responses import ConversationSettings
from backend.prompt.domain.compaction import TRIGGER_PERCENT, tools_tokens
from backend.turns.domain.turn_origin import TurnStart
from shared.models.events import ModelCard
from shared.prompts.knowledge_tools import can_read_files
from shared.tokens import estimate_tokens, message_tokens


class Room(NamedTuple):
    """How many tokens the files of a turn may take of the model's window.

    Files that are given by their bytes must fit `hard_tokens`, with all earlier turns left out; stored files are shown
    whole as long as they fit `soft_tokens`, with which nothing has to be left out. `lists` says that stored files that
    do not fit can be read by a tool.
    """

    window_tokens: int
    hard_tokens: int
    soft_tokens: int
    lists: bool


def files_room(start: TurnStart, settings: ConversationSettings, card: ModelCard, texts: Sequence[str]) -> Room:
    """Return the room that the rest of a turn leaves; `texts` are those that it has of its agent and operator."""
    log = start.origin.log
    fixed = (settings.system_prompt(newest_epoch_state(log)), *texts)
    own = (
        tools_tokens(settings.definitions)
        + sum(map(estimate_tokens, fixed))
        + sum(map(message_tokens, start.read.messages))
    )
    earlier = sum(
        message_tokens(entry.message)
        for entry in select_sent(log, newest_epoch_state(log))
        if entry.message is not None and entry.block is None
    )
    budget = card.input_budget_tokens
    return Room(
        window_tokens=card.context_window_tokens,
        hard_tokens=max(0, budget - own),
        soft_tokens=max(0, budget * TRIGGER_PERCENT // 100 - own - earlier),
        lists=can_read_files(settings.functions),
    )
