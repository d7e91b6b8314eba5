"""Decide what a turn states of its agent's instructions and project files under the placement `anchored`.

Each is compared with its own newest statement in the log: an unchanged one says nothing, a changed one is stated whole.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochState, find_standing_blocks
from backend.conversations.domain.placed_blocks import AgentRef, BlockMark, PlacedBlocks, text_digest, words_digest
from shared.models.messages import UserMessage
from shared.prompts.message_order import (
    BOTH_STAND,
    FILES_GONE,
    FILES_REPLACED,
    FILES_STAND,
    INSTRUCTIONS_GONE,
    INSTRUCTIONS_REPLACED,
    INSTRUCTIONS_STAND,
    join_blocks,
)
from shared.tokens import message_tokens

FAR_TOKENS = 8_000
"""How far above the message of a user its agent's words may stand without a pointer to them. Models make less of what
stands in the middle of a long prompt (Liu et al., "Lost in the Middle", 2023, where this shows from some 4,000 tokens
on); a line for each 8,000 tokens costs nothing to speak of."""


class BlockStatement(NamedTuple):
    """A message that states a block."""

    kind: EntryKind
    text: str
    mark: BlockMark


class _Wording(NamedTuple):
    """The lines by which a block of one kind is replaced, and is said to be gone."""

    replaced: str
    gone: str


_WORDINGS: Mapping[EntryKind, _Wording] = {
    EntryKind.CUSTOM_INSTRUCTIONS: _Wording(INSTRUCTIONS_REPLACED, INSTRUCTIONS_GONE),
    EntryKind.PROJECT_FILES: _Wording(FILES_REPLACED, FILES_GONE),
}


def find_stated_blocks(log: Sequence[Entry], reset: EpochState) -> Mapping[EntryKind, BlockMark]:
    """Return what the requests of an epoch state of each block, by its kind."""
    standing = find_standing_blocks(log, reset)
    return {entry.kind: entry.block for entry in log if entry.block is not None and entry.position in standing}


def agents_stated(log: Sequence[Entry], reset: EpochState) -> frozenset[AgentRef]:
    """Return the agents whose words requests of an epoch contain."""
    standing, reminder = find_standing_blocks(log, reset), EntryKind.REMINDER
    stated = [
        entry
        for entry in log
        if entry.position in standing or (entry.kind is reminder and entry.position >= reset.blocks_from)
    ]
    return frozenset[AgentRef]().union(*(entry.agents for entry in stated))


def block_statements(said: Mapping[EntryKind, BlockMark], blocks: PlacedBlocks) -> tuple[BlockStatement, ...]:
    """Return what a turn states of its blocks, the instructions first."""
    texts = (
        (EntryKind.CUSTOM_INSTRUCTIONS, blocks.instructions, words_digest(blocks.instructions)),
        (EntryKind.PROJECT_FILES, blocks.project_files, text_digest(blocks.project_files)),
    )
    statements: list[BlockStatement] = []
    for kind, text, digest in texts:
        before = said[kind].digest if kind in said else ""
        if digest != before:
            written = _write(_WORDINGS[kind], text if digest else "", is_first=not before)
            statements.append(BlockStatement(kind, written, BlockMark(digest=digest, agent=blocks.agent)))
    return tuple(statements)


def far_pointer(sent: Sequence[Entry], statements: Sequence[BlockStatement]) -> str:
    """Return the line that reminds of an agent's words far above; "" where they stand near, or are stated now.

    `sent` are the entries of the log that the request contains. The line counts as a place where the words stand, so
    that it comes once for each `FAR_TOKENS` of the conversation.
    """
    now = {statement.kind for statement in statements}
    in_force = {entry.kind: place for place, entry in enumerate(sent) if entry.block is not None}
    in_force = {kind: place for kind, place in in_force.items() if _is_stated(sent[place]) and kind not in now}
    pointed = next((place for place in reversed(range(len(sent))) if _points(sent[place])), 0)
    if not in_force or _distance_tokens(sent, max(pointed, min(in_force.values()))) < FAR_TOKENS:
        return ""
    return BOTH_STAND if len(in_force) > 1 else _STANDING[next(iter(in_force))]


_STANDING: Mapping[EntryKind, str] = {
    EntryKind.CUSTOM_INSTRUCTIONS: INSTRUCTIONS_STAND,
    EntryKind.PROJECT_FILES: FILES_STAND,
}


def _is_stated(entry: Entry) -> bool:
    return entry.block is not None and bool(entry.block.digest)


def _points(entry: Entry) -> bool:
    if entry.kind is not EntryKind.DYNAMIC_CONTEXT or not isinstance(entry.message, UserMessage):
        return False
    content = entry.message.content
    return isinstance(content, str) and content.endswith((*_STANDING.values(), BOTH_STAND))


def _distance_tokens(sent: Sequence[Entry], place: int) -> int:
    """Return the tokens behind a place; an agent's own words do not count, as they lie between themselves only."""
    between = [entry.message for entry in sent[place + 1 :] if entry.block is None and entry.message is not None]
    return sum(map(message_tokens, between))


def _write(wording: _Wording, text: str, *, is_first: bool) -> str:
    if not text:
        return wording.gone
    return text if is_first else join_blocks((wording.replaced, text))
