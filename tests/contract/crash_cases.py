"""Processes that end at a write, and replicas that go on after them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.conversations.domain.responses import Exchange, FinishedTurn, Hold, NewTurn
from backend.openai_api.domain.response_events import LoggedEvent
from tests.contract.store_cases import Stores
from tests.fakes.chat_shell_talking import TalkingChatShell
from tests.fakes.openai_house import TurnHouse

MOST_WRITES = 60


class Killed(Exception):
    """The process ends here."""


class Death:
    """Ends a process at its write of a number, before or after the write is done; writes count from 0."""

    def __init__(self, at: int | None, *, is_after: bool) -> None:
        self.at = at
        self.count = 0
        self.has_come = asyncio.Event()
        self._is_after = is_after

    async def around(self, write: Callable[[], Awaitable[Any]]) -> Any:
        number, self.count = self.count, self.count + 1
        if self.has_come.is_set() or (number == self.at and not self._is_after):
            await self._die()
        outcome = await write()
        if number == self.at:
            await self._die()
        return outcome

    async def _die(self) -> None:
        self.has_come.set()
        await asyncio.Event().wait()


class MortalTurns:
    """A `TurnStore` whose writes may be the last."""

    def __init__(self, turns: Any, death: Death) -> None:
        self._turns = turns
        self._death = death

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turns, name)

    async def append(self, hold: Hold, expected_log_length: int, exchange: Exchange) -> None:
        await self._death.around(lambda: self._turns.append(hold, expected_log_length, exchange))

    async def finish(self, turn: FinishedTurn) -> bool:
        return await self._death.around(lambda: self._turns.finish(turn))

    async def begin(self, turn: NewTurn) -> None:
        await self._turns.begin(turn)


class MortalEvents:
    """An `EventLog` whose writes may be the last."""

    def __init__(self, events: Any, death: Death) -> None:
        self._events = events
        self._death = death

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        await self._death.around(lambda: self._events.append(response_id, events))


class World:
    """Replicas over the same stores, one after another."""

    def __init__(self, stores: Stores, **fields: Any) -> None:
        self._stores = stores
        self._fields = fields
        self._number = 0
        self._events = TurnHouse().events
        self.conversations = stores.conversations

    def house(self, death: Death, chat_shell: ChatShell | None = None) -> TurnHouse:
        self._number += 1
        return TurnHouse(
            chat_shell=chat_shell or TalkingChatShell(16_000, 1_000),
            replica=f"replica-{self._number}",
            events=cast(Any, MortalEvents(self._events, death)),
            turns_class=lambda _: MortalTurns(self._stores.turns, death),  # pyright: ignore[reportArgumentType]
            conversations_class=lambda _: self._stores.conversations,
            waiting_class=lambda _: self._stores.waiting,
            **self._fields,
        )
