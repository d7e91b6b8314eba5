"""Many streams at an even pace, each by a client that looks for its turn at the other replica when it hears nothing."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from tests.chaos.clients import Caller
from tests.chaos.load import STOP_SECONDS, TALKER
from tests.chaos.model import Order
from tests.chaos.records import DELTA, Reading, Turn
from tests.chaos.talks import new_conversation
from tests.chaos.world import World

WORDS, PAUSE_MILLISECONDS = 60, 100
PATIENT_SECONDS, LOOK_SECONDS, AGAIN_SECONDS = 3.0, 0.25, 0.5


@dataclass
class Course:
    """One turn as its client lived through it: `signs` are the instants at which it was answered anything."""

    turn: Turn
    begun_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    answered_at: list[float] = field(default_factory=list[float])

    def signs(self) -> list[float]:
        """Return all instants at which something of the turn was heard, in order, from its begin."""
        events = [at for reading in self.turn.readings for at in reading.times]
        return sorted([self.begun_at, *self.answered_at, *events])

    def silences_in(self, begins: float, ends: float) -> Iterator[float]:
        """Yield how long the client heard nothing, each time, of what lies within an interval."""
        last = self.ended_at if self.ended_at is not None else time.monotonic()
        for earlier, later in pairwise([*self.signs(), last]):
            if later > begins and earlier < ends:
                yield min(later, ends) - max(earlier, begins)

    def delta_gaps_in(self, begins: float, ends: float) -> Iterator[float]:
        """Yield the time between two deltas that one connection showed within an interval."""
        for reading in self.turn.readings:
            shown = _delta_times(reading, begins, ends)
            yield from (later - earlier for earlier, later in pairwise(shown))


def _delta_times(reading: Reading, begins: float, ends: float) -> list[float]:
    seen = zip(reading.events, reading.times, strict=True)
    return [at for event, at in seen if event.type == DELTA and begins <= at <= ends]


@asynccontextmanager
async def steady_streams(world: World, count: int, courses: list[Course]) -> AsyncGenerator[None]:
    """Keep so many streams running; at the end each reads its turn to its end."""
    world.stopped.clear()
    async with asyncio.TaskGroup() as group:
        acting = [group.create_task(_talk(world, f"steady-{place}", courses)) for place in range(count)]
        yield
        world.stopped.set()
        _, late = await asyncio.wait(acting, timeout=STOP_SECONDS)
        world.hung += world.tally.open_calls() if late else []
        for task in late:
            task.cancel()


async def _talk(world: World, actor: str, courses: list[Course]) -> None:
    caller, dice = world.caller(TALKER), world.dice(actor)
    await asyncio.sleep(dice.random() * WORDS * PAUSE_MILLISECONDS / 1000)  # they do not all begin at once
    try:
        while not world.stopped.is_set():
            conversation = await new_conversation(caller, dice)
            if conversation:
                turn = world.new_turn("stream", conversation)
                course = Course(turn)
                courses.append(course)
                world.conversations[conversation] = TALKER
                await _read_to_its_end(world, caller, course, dice.choice(caller.replicas))
            else:
                await asyncio.sleep(AGAIN_SECONDS)
    finally:
        await caller.close()


async def _read_to_its_end(world: World, caller: Caller, course: Course, replica: str) -> None:
    """Read at one replica; where nothing comes for a while, ask the other one beside it, and again what was broken."""
    order = Order(course.turn.key, WORDS, PAUSE_MILLISECONDS)
    course.turn.expected = "".join(order.deltas())
    asking: dict[str, asyncio.Task[None]] = {}
    async with asyncio.TaskGroup() as group:
        while not course.turn.is_ended and not (world.stopped.is_set() and not course.turn.response_id):
            if not asking or time.monotonic() - course.signs()[-1] > PATIENT_SECONDS:
                replica = replica if replica not in asking else caller.other(replica)
                if replica not in asking:
                    asking[replica] = group.create_task(_ask(caller, course, order, replica, f"{world.seed}-steady"))
            if asking:
                await asyncio.wait(asking.values(), timeout=LOOK_SECONDS)
            ended = [name for name, task in asking.items() if task.done()]
            for name in ended:
                del asking[name]
            if ended and not course.turn.is_ended:
                replica = caller.other(ended[0])
                await asyncio.sleep(AGAIN_SECONDS)
        for task in asking.values():
            task.cancel()
    course.ended_at = time.monotonic()


async def _ask(caller: Caller, course: Course, order: Order, replica: str, key: str) -> None:
    """Follow the turn that is known, or send it under its key."""
    turn = course.turn
    if turn.response_id:
        newest = turn.newest_number()
        status = await caller.follow(replica, turn, None if newest < 0 else newest)
    else:
        body = {"conversation": turn.conversation, "input": order.prompt()}
        status = await caller.streamed_turn(replica, turn, body, key=f"{key}-{turn.key}")
    if status:
        course.answered_at.append(time.monotonic())
