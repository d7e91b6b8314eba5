"""Whatever happens to a conversation, each body of an epoch at the model begins with the whole body before it."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

import pytest

from backend.conversations.domain.conversation_log import Entry, EntryKind
from shared.models.execution import Purpose
from tests.examples import first_of
from tests.unit.backend.turns.wandering import World
from tests.unit.backend.turns.wandering_model import Body, ModelShell
from tests.unit.backend.turns.wide_wandering import WIDE_KINDS, WideWalk

REMINDED = b"<system-reminder>"
CONVERSATIONS, PARTS = 500, 50
STRICT_KINDS = (*WIDE_KINDS, "agent", "agent", "look", "look", "kill", "search")


async def walked(seed: int) -> tuple[WideWalk, list[Body]]:
    bodies: list[Body] = []
    walk = WideWalk(seed, World(shell=partial(ModelShell, bodies)), kinds=STRICT_KINDS)
    return await walk.run(), bodies


@pytest.mark.parametrize("part", first_of(*range(PARTS)))
def test_each_body_begins_with_the_whole_body_before_it(part: int) -> None:
    compared = reminded = 0
    for seed in range(part, CONVERSATIONS, PARTS):
        walk, bodies = asyncio.run(walked(seed))
        assert walk.world.observer.drifts == [], f"seed {seed}"
        assert walk.world.observer.broken == [], f"seed {seed}"
        for earlier, later in pairs(walk, bodies):
            assert later.opening.startswith(earlier.opening), f"seed {seed}, {later.request.turn_id}"
            compared += 1
            reminded += REMINDED in earlier.opening
    assert reminded > compared // 10 > 0


def pairs(walk: WideWalk, bodies: Sequence[Body]) -> Iterable[tuple[Body, Body]]:
    """Yield each body that keeps its place with the newest before it that lies wholly in the log it stands behind."""
    answers = [body for body in bodies if body.request.purpose is Purpose.ANSWER]
    for place, later in enumerate(answers):
        log = walk.world.state.entries.get(later.request.conversation_id, [])
        if later.request.keeps_reminders and (earlier := newest(answers[:place], later, log)) is not None:
            yield earlier, later


def newest(before: Sequence[Body], later: Body, log: Sequence[Entry]) -> Body | None:
    """Return the newest earlier body of the epoch; what a process that died had not stored is in none."""
    void = {entry.turn_id for entry in log if entry.kind is EntryKind.VOID}
    turns = {entry.turn_id for entry in log} - void
    request = later.request
    return next(
        (
            body
            for body in reversed(before)
            if body.request.turn_id in turns
            and body.request.epoch == request.epoch
            and (body.request is request or body.count <= later.first)
        ),
        None,
    )
