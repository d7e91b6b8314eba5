"""Actors who talk: conversations over many turns, with all that clients do to a turn."""

import asyncio
import random
import time
from typing import Any

from tests.chaos.clients import Caller
from tests.chaos.model import LOOK_UP, SEARCH, Order
from tests.chaos.records import Turn
from tests.chaos.world import World

KINDS = ("stream", "stream", "plain", "background", "leave", "leave", "cancel", "function", "two_readers")
TURNS_A_TALK = (4, 14)
WORDS = (3, 40)
PAUSES_MILLISECONDS = (0, 5, 30)
COME_BACK_SECONDS, COME_BACK_PAUSE_SECONDS = 45.0, 0.3
CONFLICT, TAKEN = 409, 200
LOOK_UP_TOOL = {
    "type": "function",
    "name": LOOK_UP,
    "description": "Look something up.",
    "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
    "strict": False,
}


async def talk_on(world: World, actor: str, user: str, *, is_restricted: bool = False) -> None:
    """Hold one conversation after the other until the load stops."""
    caller, dice = world.caller(user), world.dice(actor)
    try:
        while not world.stopped.is_set():
            conversation = await new_conversation(caller, dice)
            if conversation:
                world.conversations[conversation] = user
                await Talk(world, caller, dice, conversation, is_restricted=is_restricted).hold()
            await world.pause(dice)
    finally:
        await caller.close()


async def new_conversation(caller: Caller, dice: random.Random) -> str:
    """Create one and return its id, empty when that did not work."""
    answer = await caller.send(dice.choice(caller.replicas), "POST", "/v1/conversations", "conversation", json={})
    return answer.json()["id"] if answer is not None and answer.status_code == 201 else ""


class Talk:
    """One conversation."""

    def __init__(
        self, world: World, caller: Caller, dice: random.Random, conversation: str, *, is_restricted: bool
    ) -> None:
        self._world, self._caller, self._dice, self._conversation = world, caller, dice, conversation
        self._is_restricted = is_restricted
        self._is_over = False
        base = world.bases["restricted" if is_restricted else "shared"]
        search = {"type": "file_search", "vector_store_ids": [base]}
        self._tools: list[dict[str, Any]] = [search] if is_restricted else [search, LOOK_UP_TOOL]

    async def hold(self) -> None:
        """Take turns until the talk is long enough or the load stops."""
        for _ in range(self._dice.randint(*TURNS_A_TALK)):
            if self._world.stopped.is_set() or self._is_over:
                return
            kind = "restricted" if self._is_restricted else self._dice.choice(KINDS)
            await self.take(kind)
            await self._world.pause(self._dice)

    async def take(self, kind: str) -> Turn:
        """Take one turn of a kind."""
        turn = self._world.new_turn(kind, self._conversation)
        order = self._order(turn)
        turn.expected = None if order.is_plain else "".join(order.deltas())
        turn.calls = int(order.call == SEARCH)
        body = {"conversation": self._conversation, "input": order.prompt(), "tools": self._tools}
        replica = self._dice.choice(self._caller.replicas)
        await getattr(self, f"_{kind}")(replica, turn, body)
        return turn

    def _order(self, turn: Turn) -> Order:
        call = SEARCH if self._is_restricted or self._dice.random() < 0.3 else "none"
        if turn.kind == "function":
            call = LOOK_UP
        pause = self._dice.choice(PAUSES_MILLISECONDS)
        return Order(turn.key, self._dice.randint(*WORDS), pause, call, is_plain=self._is_restricted)

    async def _stream(self, replica: str, turn: Turn, body: dict[str, Any]) -> None:
        await self._caller.streamed_turn(replica, turn, body)
        await self._come_back(replica, turn)

    _restricted = _stream

    async def _plain(self, replica: str, turn: Turn, body: dict[str, Any]) -> None:
        await self._caller.plain_turn(replica, turn, body)

    async def _background(self, replica: str, turn: Turn, body: dict[str, Any]) -> None:
        if await self._caller.plain_turn(replica, turn, {**body, "background": True}) == TAKEN:
            await self._come_back(replica, turn)

    async def _leave(self, replica: str, turn: Turn, body: dict[str, Any]) -> None:
        await self._caller.streamed_turn(replica, turn, body, leave_after=self._dice.randint(1, 20))
        await self._world.pause(self._dice)
        await self._come_back(replica, turn)

    async def _cancel(self, replica: str, turn: Turn, body: dict[str, Any]) -> None:
        await self._caller.streamed_turn(replica, turn, body, leave_after=self._dice.randint(1, 12))
        if turn.response_id:
            path = f"/v1/responses/{turn.response_id}/cancel"
            await self._caller.send(self._caller.other(replica), "POST", path, "cancel")
            await self._come_back(replica, turn)

    async def _two_readers(self, replica: str, turn: Turn, body: dict[str, Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._caller.streamed_turn(replica, turn, body))
            group.create_task(self._read_beside(self._caller.other(replica), turn))
        await self._come_back(replica, turn)

    async def _read_beside(self, replica: str, turn: Turn) -> None:
        await self._world.pause(self._dice)
        if turn.response_id:
            await self._caller.follow(replica, turn, self._dice.choice((None, 0, turn.newest_number())))

    async def _function(self, replica: str, turn: Turn, body: dict[str, Any]) -> None:
        said, turn.expected = turn.expected, ""
        await self._caller.streamed_turn(replica, turn, body)
        await self._come_back(replica, turn)
        if not any(reading.last_event and reading.last_event.status == "completed" for reading in turn.readings):
            self._is_over = bool(turn.response_id)
            return
        result = self._world.new_turn("function_result", self._conversation)
        result.expected, result.question = said, turn.key
        output = {"type": "function_call_output", "call_id": f"call_{turn.key}", "output": "High water at nine."}
        other = self._caller.other(replica)
        await self._caller.streamed_turn(other, result, {**body, "input": [output]})
        await self._come_back(other, result)
        # whether the call has its output is not known otherwise, and nothing else may follow before that
        self._is_over = not result.is_ended

    async def _come_back(self, replica: str, turn: Turn) -> None:
        """Read on at the other replica, and again, until the end was seen."""
        give_up = time.monotonic() + COME_BACK_SECONDS
        while turn.response_id and not turn.is_ended and time.monotonic() < give_up:
            replica = self._caller.other(replica)
            newest = turn.newest_number()
            await self._caller.follow(replica, turn, None if newest < 0 else newest)
            if not turn.is_ended:
                await asyncio.sleep(COME_BACK_PAUSE_SECONDS)


async def repeat_with_keys(world: World, actor: str, user: str) -> None:
    """Send turns under an Idempotency-Key to both replicas at once, and once more, until the load stops."""
    caller, dice = world.caller(user), world.dice(actor)
    try:
        while not world.stopped.is_set():
            turn = world.new_turn("keyed")
            order = Order(turn.key, dice.randint(*WORDS), dice.choice(PAUSES_MILLISECONDS))
            turn.expected = "".join(order.deltas())
            body, key = {"input": order.prompt()}, f"{world.seed}-{turn.key}"
            async with asyncio.TaskGroup() as group:
                for replica in caller.replicas:
                    group.create_task(caller.plain_turn(replica, turn, body, **{"Idempotency-Key": key}))
            await caller.plain_turn(dice.choice(caller.replicas), turn, body, **{"Idempotency-Key": key})
            await world.pause(dice)
    finally:
        await caller.close()
