"""Compose the dynamic context of a turn: under the policy `durable` only its changes, under `tail` all of it.

Under `durable` the knowledge metadata and every block are compared with their newest version in the epoch, not with
older ones: a block that changes from text A to B and back to A is sent three times. Context messages stay in the log,
so a part that a turn does not mention is unchanged.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import ContextState
from backend.knowledge.domain.context_texts import (
    BASES_ARE_NONE,
    BASES_ARE_NOW_INSTEAD,
    DELTA_BUDGET_TOKENS,
    BaseText,
    block_gone,
    block_replaced,
    delta,
    full_set,
    in_order,
)
from backend.knowledge.domain.kb_meta import one_line
from shared.errors import InternalError
from shared.models.execution import DynamicBlock
from shared.prompts.message_order import context_text


class ContextPlan(NamedTuple):
    """The context to send; `state` is the state after it, or None where nothing is written to the log."""

    kb_meta_prompt: str
    dynamic_blocks: tuple[DynamicBlock, ...]
    state: ContextState | None

    @property
    def text(self) -> str:
        """The content of the context message; "" where there is none."""
        return context_text(self.kb_meta_prompt, self.dynamic_blocks)


def with_line(plan: ContextPlan, last: ContextState | None, line: str) -> ContextPlan:
    """Add a line that belongs to one context message alone, and that no later one says to be gone."""
    block = DynamicBlock(name="line", text=line)
    state = plan.state or last or ContextState(bases=(), blocks=())
    return plan._replace(dynamic_blocks=(*plan.dynamic_blocks, block), state=state)


def full_context(bases: Sequence[BaseText], blocks: Sequence[DynamicBlock]) -> ContextPlan:
    """Return the whole context, which the policy `tail` sends in every turn and does not store.

    Raises:
        InternalError: two bases have one id, or two blocks one name.
    """
    _check(bases, blocks)
    return ContextPlan(kb_meta_prompt=full_set(bases), dynamic_blocks=_not_blank(blocks), state=None)


_NOTHING_SAID = ContextState(bases=(), blocks=())


def plan_context(
    last: ContextState | None,
    bases: Sequence[BaseText],
    blocks: Sequence[DynamicBlock],
    budget_tokens: int = DELTA_BUDGET_TOKENS,
) -> ContextPlan:
    """Return the changes since `last`, the newest state of the epoch; it is None for the first context of an epoch.

    The order of bases does not matter. Changed blocks are sent in the given order, followed by the removed ones sorted
    by name; a change of the order alone sends nothing. A blank block is ignored, and so is a change of white space.

    The size of changed metadata is at most 4 bytes for each token of the budget, plus the fixed sentences and one line
    for each base that is truncated or superseded; a block adds its text and one line.

    Raises:
        InternalError: two bases have one id, or two blocks one name.
    """
    _check(bases, blocks)
    said = last or _NOTHING_SAID
    written = _not_blank(blocks)
    kb_meta_prompt = _metadata(said.bases, in_order(bases), budget_tokens)
    news = (*_find_changed_blocks(said.blocks, written), *_find_gone_blocks(said.blocks, written))
    if not kb_meta_prompt and not news:
        return ContextPlan(kb_meta_prompt="", dynamic_blocks=(), state=None)
    state = ContextState(bases=in_order(bases), blocks=_current_blocks(said.blocks, written))
    return ContextPlan(kb_meta_prompt=kb_meta_prompt, dynamic_blocks=news, state=state)


def _metadata(said: Sequence[BaseText], bases: Sequence[BaseText], budget_tokens: int) -> str:
    """Return the full set of bases or the changes, whichever has fewer bytes; the full set where they are equal."""
    if not said:
        return full_set(bases)
    if not bases:
        return BASES_ARE_NONE
    earlier, present = {base.id: base for base in said}, {base.id for base in bases}
    changed = [base for base in bases if earlier.get(base.id) != base]
    removed = [base for base in said if base.id not in present]
    if not changed and not removed:
        return ""
    return min(full_set(bases, BASES_ARE_NOW_INSTEAD), delta(changed, removed, budget_tokens), key=_size_bytes)


def _size_bytes(text: str) -> int:
    return len(text.encode())


def _not_blank(blocks: Iterable[DynamicBlock]) -> tuple[DynamicBlock, ...]:
    return tuple(block for block in blocks if block.text and not block.text.isspace())


def _find_changed_blocks(said: Sequence[DynamicBlock], written: Sequence[DynamicBlock]) -> list[DynamicBlock]:
    texts = {block.name: block.text for block in said}
    news: list[DynamicBlock] = []
    for block in written:
        earlier = texts.get(block.name)
        if earlier is None:
            news.append(block)
        elif _words(earlier) != _words(block.text):
            news.append(DynamicBlock(name=block.name, text=block_replaced(one_line(block.name), block.text)))
    return news


def _find_gone_blocks(said: Sequence[DynamicBlock], written: Sequence[DynamicBlock]) -> list[DynamicBlock]:
    gone = {block.name for block in said}.difference(block.name for block in written)
    return [DynamicBlock(name=name, text=block_gone(one_line(name))) for name in sorted(gone)]


def _current_blocks(said: Sequence[DynamicBlock], written: Sequence[DynamicBlock]) -> tuple[DynamicBlock, ...]:
    """Return the current blocks with the texts that the log holds, which may differ from the given in white space."""
    earlier = {block.name: block for block in said}
    standing = [_same_or_new(earlier.get(block.name), block) for block in written]
    return tuple(sorted(standing, key=lambda block: block.name))


def _same_or_new(earlier: DynamicBlock | None, block: DynamicBlock) -> DynamicBlock:
    return earlier if earlier is not None and _words(earlier.text) == _words(block.text) else block


def _words(text: str) -> list[str]:
    return unicodedata.normalize("NFC", text).split()


def _check(bases: Sequence[BaseText], blocks: Sequence[DynamicBlock]) -> None:
    _check_unique("knowledge bases have the id", (base.id for base in bases))
    _check_unique("dynamic blocks have the name", (block.name for block in blocks))


def _check_unique(what: str, names: Iterable[str]) -> None:
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubled:
        raise InternalError(f"Several {what} '{doubled[0]}'.")
