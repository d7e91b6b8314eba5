"""Whatever happens to a conversation, within an epoch no byte moves that was sent, but those that are declared to."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochReason, find_break, skill_calls
from backend.conversations.domain.placed_blocks import CLASSIC
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from shared.prompts.knowledge_tools import tools_of_request
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from tests.examples import of_many
from tests.fakes.chat_shell_talking import check_pairs, whole_prompt
from tests.unit.backend.turns.wandering import CLASSIC_WORDS, Walk
from tests.unit.backend.turns.wide_wandering import WIDE_KINDS, WideWalk

FILES_OF_AGENT = "These files belong to the assistant"
PARTS = of_many(100, few=1)


@pytest.mark.whole
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_that_was_sent_moves(part: int) -> None:
    seen: set[str] = set()
    resent = recognised = narrowed = 0
    for seed in range(part, of_many(2_000, few=40), PARTS):
        walk = asyncio.run(WideWalk(seed).run())
        check(walk)
        seen |= walk.seen | {*walk.world.observer.compactions, *(reason for _, reason in walk.world.observer.epochs)}
        resent, recognised, narrowed = resent + walk.resent, recognised + walk.recognised, narrowed + walk.narrowed
    assert seen >= {*WIDE_KINDS, "summarised"}
    assert recognised > resent * 9 // 10
    assert narrowed > 0


CLASSIC_KINDS = ("ask", "ask", "look", "look", "upload", "agent", "project", "steer", "kill", "fork", "narrow")


def test_nothing_moves_but_what_classic_moves_where_earlier_parts_are_left_out() -> None:
    compactions = 0
    for seed in range(of_many(200, few=8)):
        walk = asyncio.run(WideWalk(seed, kinds=CLASSIC_KINDS, models=("mover",), steps=20).run())
        check(walk)
        resets = [entry.reset for log in walk.world.state.entries.values() for entry in log if entry.reset is not None]
        compactions += sum((one.reason, one.placement) == (EpochReason.COMPACTION, CLASSIC) for one in resets)
    assert compactions > of_many(200, few=8)


def test_a_moved_byte_would_be_seen() -> None:
    walk = next(walk for walk in walks() if has_extended(walk))
    sent = walk.world.requests
    place = next(number for number, request in enumerate(sent) if len(request.history) > 3)
    first = sent[place].history[0].model_copy(update={"content": "Something else."})
    sent[place] = sent[place].model_copy(update={"history": (first, *sent[place].history[1:])})
    with pytest.raises(AssertionError, match=f"seed {walk.seed}"):
        check(walk)


def walks() -> Iterator[Walk]:
    for seed in range(50):
        yield asyncio.run(Walk(seed).run())


def has_extended(walk: Walk) -> bool:
    """Say whether the first request with more than three messages goes on in an epoch that keeps its place."""
    sent = walk.world.requests
    place = next((number for number, request in enumerate(sent) if len(request.history) > 3), 0)
    log = walk.world.state.entries.get(sent[place].conversation_id, [])
    is_kept = all(entry.reset is None or entry.reset.placement != CLASSIC for entry in log)
    return is_kept and newest_stored(sent[:place], sent[place], log) is not None


def check(walk: Walk) -> None:
    world = walk.world
    assert world.observer.drifts == [], f"seed {walk.seed}"
    assert world.observer.broken == [], f"seed {walk.seed}"
    for log in world.state.entries.values():
        assert find_break(log, len(log)) is None, f"seed {walk.seed}"
    answers = [request for request in world.requests if request.purpose is Purpose.ANSWER]
    for place, request in enumerate(answers):
        check_order(whole_prompt(request))
        log = world.state.entries[request.conversation_id]
        before = newest_stored(answers[:place], request, log)
        if before is not None:
            assert tools_of_request(before) == tools_of_request(request), f"seed {walk.seed}"
            kept = declared_part(before, log)
            assert declared_part(request, log)[: len(kept)] == kept, f"seed {walk.seed}, {request.turn_id}"


def newest_stored(
    earlier: Sequence[ExecutionRequest], request: ExecutionRequest, log: Sequence[Entry]
) -> ExecutionRequest | None:
    """Return the newest earlier request of the same epoch that lies wholly in the log behind which this one stands."""
    void = {entry.turn_id for entry in log if entry.kind is EntryKind.VOID}
    turns = {entry.turn_id for entry in log} - void
    before = [each for each in earlier if each.turn_id in turns and each.epoch == request.epoch]
    return before[-1] if before else None


def declared_part(request: ExecutionRequest, log: Sequence[Entry]) -> tuple[Message, ...]:
    """Return the messages of a request that must not move: under `classic` those above the blocks of its agent.

    Results of tools, which `classic` elides from the next turn on, are equal there whatever they say, but for the texts
    of skills, which stay.
    """
    prompt = whole_prompt(request)
    resets = [entry.reset for entry in log if entry.reset is not None and entry.epoch == request.epoch]
    if not any(reset.placement == CLASSIC for reset in resets):
        return prompt
    blocks = [number for number, message in enumerate(prompt) if is_block(message)]
    kept = prompt[: blocks[0]] if blocks else prompt
    said = [message for message in kept if isinstance(message, AssistantMessage)]
    skills = {call_id for message in said for call_id in skill_calls(message)}
    return tuple(
        message.model_copy(update={"content": TOOL_RESULT_ELIDED})
        if isinstance(message, ToolMessage) and message.call_id not in skills
        else message
        for message in kept
    )


def is_block(message: Message) -> bool:
    said = message.content if isinstance(message, UserMessage) else ""
    return isinstance(said, str) and said.startswith((CLASSIC_WORDS, FILES_OF_AGENT))


def check_order(prompt: Sequence[Message]) -> None:
    """System message first and alone, results right behind their calls in call order, no assistant first."""
    said = [message for message in prompt if not isinstance(message, SystemMessage)]
    assert len(said) >= len(prompt) - 1
    assert isinstance(said[0], UserMessage)
    check_pairs(said)
