"""Conversations to measure with: what happens in them, with no word on how it is sent."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backend.conversations.domain.placed_blocks import NO_BLOCKS, PlacedBlocks
from backend.knowledge.domain.knowledge import Binding
from shared.models.execution import DynamicBlock, ToolDefinition
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage


class Ending(StrEnum):
    """How a turn ends."""

    ANSWERED = "answered"
    UNSENT = "unsent"
    """Its process dies between storing and sending."""
    LOST = "lost"
    """Its process dies behind the first model call, before a word is stored."""
    CUT = "cut"
    """Its process dies behind a model call whose tool results are not stored yet."""


@dataclass(frozen=True)
class Step:
    """What a model call brings: words, and calls that `results` answer in call order."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[AssistantMessage | ToolMessage, ...]:
        """Return what goes into the log."""
        answers = zip(self.calls, self.results, strict=True)
        return (
            AssistantMessage(text=self.text, tool_calls=self.calls),
            *(ToolMessage(call_id=call.call_id, content=result) for call, result in answers),
        )


@dataclass(frozen=True)
class Settings:
    """What stays until it is changed."""

    model: str
    instructions: str
    functions: tuple[ToolDefinition, ...]
    is_restricted: bool


@dataclass(frozen=True)
class Turn:
    """A turn: it goes on behind the turn `after`, and branches off where that is not the newest.

    `bindings` and `blocks` are the knowledge as it stands then, `placed` the words and files of its agent and the
    files of its message. `attempts` counts how often the first model call
    is sent; `is_reloaded` says that another process runs this turn than the one before.
    """

    id: str
    after: str | None
    settings: Settings
    bindings: tuple[Binding, ...]
    blocks: tuple[DynamicBlock, ...]
    user: str
    sent_at: datetime
    steps: tuple[Step, ...]
    placed: PlacedBlocks = NO_BLOCKS
    ending: Ending = Ending.ANSWERED
    attempts: int = 1
    is_reloaded: bool = False


@dataclass(frozen=True)
class Conversation:
    """A conversation with its branches, in the order in which the turns happen; the seed makes it again."""

    seed: int
    window_tokens: int
    turns: tuple[Turn, ...]

    @property
    def narrows_access(self) -> bool:
        """Whether someone may read less in the course of it."""
        return any(turn.settings.is_restricted for turn in self.turns)
