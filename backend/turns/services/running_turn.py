"""A turn that runs in this process, and what runs it."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.wakeups import CallingEvent
from backend.openai_api.domain.response_object import total_tokens
from backend.turns.domain.turn import JoinedTurn, Turn
from shared.errors import Unavailable


class TurnSignals(NamedTuple):
    """`opened` is set once the turn's first events can be read; who sets `interrupted` stops the turn.

    Who sets `boundary` ends the execution that runs before its next model call, and a further one goes on from there.
    `waited_for` is set once others are known to wait for the turn's end.
    """

    opened: asyncio.Event
    interrupted: CallingEvent
    boundary: asyncio.Event
    waited_for: asyncio.Event


class TurnRunner(Protocol):
    """Runs turns; `start` begins what it does for all of them together, `stop` ends it."""

    def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End."""
        ...

    async def run(self, turn: Turn | JoinedTurn, signals: TurnSignals) -> StoredResponse | None:
        """Run a turn to its end, or join its lanes; None where another process runs it, or is to run it."""
        ...

    async def wait_until_ended_elsewhere(self, response_id: str) -> StoredResponse | None:
        """Wait for the end of a turn that another process runs; None where the response was deleted."""
        ...

    async def drop_events(self, response_id: str) -> None:
        """Drop the events of a turn; a failure must end neither the process nor the answer that was made."""
        ...

    def report_defect(self, response_id: str, error: BaseException) -> None:
        """Report what a turn failed with that is no error of ours."""
        ...


class RunningTurn:
    """A running turn, as the request that started it sees it.

    `opened` is set once its first events can be read. Who sets `interrupted` stops the turn; who sets `boundary` has it
    go on from its log before its next model call. `waited_for` says that others may wait for its end; of a turn that
    another process has begun, that one may have heard it.
    """

    def __init__(self, turn: Turn | JoinedTurn) -> None:
        self.response = turn.response
        self.is_stored = turn.is_stored
        self.with_results = turn.with_results
        self.opened = asyncio.Event()
        self.interrupted = CallingEvent()
        self.boundary = asyncio.Event()
        self.waited_for = asyncio.Event()
        if turn.begun is not None:
            self.waited_for.set()
        self._ended = asyncio.Event()
        self._result: StoredResponse | None = None
        self._at_end: list[Callable[[], None]] = []

    def at_end(self, release: Callable[[], None]) -> None:
        """Call a function when the turn has ended, at once where it has already."""
        if self.has_ended:
            release()
        else:
            self._at_end.append(release)

    async def wait_until_ended(self) -> StoredResponse:
        """Wait for the turn's end and return the response; cancelling the wait does not stop the turn.

        Raises:
            Unavailable: this process shuts down, and the turn goes on in another one.
        """
        await self._ended.wait()
        if self._result is None:
            raise Unavailable("The turn goes on in another process: read the response later.")
        return self._result

    def set_result(self, outcome: StoredResponse | None) -> None:
        """Set the ended response, or None if it is not known here, and wake all waiting tasks."""
        self._result = outcome
        self.opened.set()
        self._ended.set()
        while self._at_end:
            self._at_end.pop(0)()

    @property
    def has_ended(self) -> bool:
        """Whether the turn has ended."""
        return self._ended.is_set()

    @property
    def tokens(self) -> int:
        """How many tokens the provider has counted, in and out; 0 before the end, or where that is not known here."""
        return total_tokens(self._result.body) if self._result is not None else 0
