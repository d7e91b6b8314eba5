"""What a turn's dynamic context says: under `durable` only what changed, under `tail` everything.

Under `durable` each piece, the knowledge metadata and every block, is compared with what the epoch said of it last,
and no further back: text A, then B, then A again is said three times. What is said stays in the log, so silence means
that the last words hold.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

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
from shared.models.values import Value
from shared.prompts.message_order import context_text


class ContextState(Value):
    """All that an epoch has said and not taken back: bases by name and id, blocks by name.

    A base that was only listed as truncated counts as said: it is named again when it changes, not every turn.
    """

    bases: tuple[BaseText, ...]
    blocks: tuple[DynamicBlock, ...]


class ContextPlan(Value):
    """The context to send; `state` is what stands once it is logged, None when nothing is to be logged."""

    kb_meta_prompt: str
    dynamic_blocks: tuple[DynamicBlock, ...]
    state: ContextState | None

    @property
    def text(self) -> str:
        """The content of the message that carries it; "" where nothing is said."""
        return context_text(self.kb_meta_prompt, self.dynamic_blocks)


def full_context(bases: Sequence[BaseText], blocks: Sequence[DynamicBlock]) -> ContextPlan:
    """Say everything: what the policy `tail` sends in every turn and stores nowhere.

    Raises:
        InternalError: two bases have one id, or two blocks one name.
    """
    _check(bases, blocks)
    return ContextPlan(kb_meta_prompt=full_set(bases), dynamic_blocks=_written(blocks), state=None)


def plan_context(
    last: ContextState | None,
    bases: Sequence[BaseText],
    blocks: Sequence[DynamicBlock],
    budget_tokens: int = DELTA_BUDGET_TOKENS,
) -> ContextPlan:
    """Say what differs from `last`, the newest state of the running epoch, or None in its first context.

    The order of bases is of no account. Blocks are sent in the order given, those that are gone behind them by name;
    a new order alone says nothing. A blank block is no block, and one that differs in white space alone is the same.

    Metadata that follows earlier metadata takes at most 4 bytes a token of the budget, the fixed sentences, and a
    line for each base that is truncated or superseded; a block takes its text and one line.

    Raises:
        InternalError: two bases have one id, or two blocks one name.
    """
    _check(bases, blocks)
    said = last or ContextState(bases=(), blocks=())
    written = _written(blocks)
    kb_meta_prompt = _metadata(said.bases, in_order(bases), budget_tokens)
    news = (*_changed_blocks(said.blocks, written), *_gone_blocks(said.blocks, written))
    state = ContextState(bases=in_order(bases), blocks=_standing(said.blocks, written))
    return ContextPlan(
        kb_meta_prompt=kb_meta_prompt, dynamic_blocks=news, state=state if kb_meta_prompt or news else None
    )


def _metadata(said: Sequence[BaseText], bases: Sequence[BaseText], budget_tokens: int) -> str:
    """Choose the shorter of full set and delta, in bytes; the full set where they are equal."""
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


def _written(blocks: Iterable[DynamicBlock]) -> tuple[DynamicBlock, ...]:
    return tuple(block for block in blocks if block.text and not block.text.isspace())


def _changed_blocks(said: Sequence[DynamicBlock], written: Sequence[DynamicBlock]) -> list[DynamicBlock]:
    texts = {block.name: block.text for block in said}
    news: list[DynamicBlock] = []
    for block in written:
        earlier = texts.get(block.name)
        if earlier is None:
            news.append(block)
        elif _words(earlier) != _words(block.text):
            news.append(DynamicBlock(name=block.name, text=block_replaced(one_line(block.name), block.text)))
    return news


def _gone_blocks(said: Sequence[DynamicBlock], written: Sequence[DynamicBlock]) -> list[DynamicBlock]:
    gone = {block.name for block in said}.difference(block.name for block in written)
    return [DynamicBlock(name=name, text=block_gone(one_line(name))) for name in sorted(gone)]


def _standing(said: Sequence[DynamicBlock], written: Sequence[DynamicBlock]) -> tuple[DynamicBlock, ...]:
    """Return the blocks in the words that the log holds, which may differ from today's in white space."""
    earlier = {block.name: block for block in said}
    standing = [_same_or_new(earlier.get(block.name), block) for block in written]
    return tuple(sorted(standing, key=lambda block: block.name))


def _same_or_new(earlier: DynamicBlock | None, block: DynamicBlock) -> DynamicBlock:
    return earlier if earlier is not None and _words(earlier.text) == _words(block.text) else block


def _words(text: str) -> list[str]:
    return unicodedata.normalize("NFC", text).split()


def _check(bases: Sequence[BaseText], blocks: Sequence[DynamicBlock]) -> None:
    _check_once("knowledge bases have the id", (base.id for base in bases))
    _check_once("dynamic blocks have the name", (block.name for block in blocks))


def _check_once(what: str, names: Iterable[str]) -> None:
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubled:
        raise InternalError(f"Several {what} '{doubled[0]}'.")
