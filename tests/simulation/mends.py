"""What the product does against faults, switched off; and faults that are planted, which a simulation has to find."""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from backend.conversations.domain.leases import TakenTurn
from backend.conversations.domain.responses import ResponseStatus, StoredResponse
from backend.openai_api.domain.response_events import LoggedEvent, terminal_event
from backend.openai_api.domain.response_object import ResponseBody
from backend.streams.services import follow_events
from backend.turns.http.event_stream import EventStream
from backend.turns.services.responses import Responses
from backend.turns.services.resume.recovery import Recovery
from chat_shell.servers.grpc.caller_link import CallerLink
from shared.models.events import ErrorReport
from tests.fakes.store_turns import FakeTurnStore
from tests.simulation import run, shell
from tests.simulation.replacing import replaced
from tests.simulation.valkey import Valkey

TWO_EVENTS = 5
"""Words of an XADD with two fields, without its key: with one it has fewer."""


class _WithoutHeartbeats(CallerLink):
    heartbeat_seconds = 0.0

    async def _beat(self) -> None:
        await asyncio.Event().wait()


class _WithoutFence(FakeTurnStore):
    """Renews the lease on a turn for whoever takes it over, and leaves its fencing number as it was."""

    def _take(self, response: StoredResponse, replica: str) -> TakenTurn:
        taken = super()._take(response, replica)
        kept = taken.response.model_copy(update={"fence": response.fence})
        self._state.responses[response.id] = kept
        return taken.model_copy(update={"response": kept})


class _NumberingTwice(Valkey):
    """Keeps the first event of an entry under the number of the second one, too."""

    def _xadd(self, name: str, *rest: Any) -> object:
        fields = list(rest)
        if len(fields) >= TWO_EVENTS and name.startswith("ballast:events:"):
            fields[-1] = fields[-3]
        return super()._xadd(name, *fields)


def _tell_failure(body: ResponseBody, report: ErrorReport, newest: int) -> tuple[LoggedEvent]:
    return (terminal_event(ResponseStatus.FAILED, {**body, "status": "failed"}, newest + 1, with_results=False),)


async def _write_or_raise(self: Any, scope: object, send: Any) -> None:
    last = await self._write(send)
    await send({"type": "http.response.body", "body": last, "more_body": True})


async def _look_for_nothing(self: Recovery) -> None:
    """Leave them to nobody."""


MENDS: Mapping[str, Callable[[], AbstractContextManager[object]]] = {
    "frozen chat_shell": lambda: replaced(shell, "CallerLink", _WithoutHeartbeats),
    "deleted queued response": lambda: _both(
        replaced(Responses, "wait_until_begun_or_deleted", Responses.wait_until_begun),
        replaced(EventStream, "_write_to_the_end", _write_or_raise),
    ),
    "lost events": lambda: replaced(follow_events, "break_off", _tell_failure),
    "lost second": lambda: replaced(Recovery, "_take_orphans", _look_for_nothing),
}
"""By the fault that each is against."""

PLANTED: Mapping[str, Callable[[], AbstractContextManager[object]]] = {
    "a lease renewed without its fence": lambda: replaced(run, "STORES", (_WithoutFence, *run.STORES[1:])),
    "an event numbered twice": lambda: replaced(run, "Valkey", _NumberingTwice),
}


@contextmanager
def _both(*switched: AbstractContextManager[object]) -> Generator[None]:
    with ExitStack() as stack:
        for one in switched:
            stack.enter_context(one)
        yield


def without(name: str) -> AbstractContextManager[object]:
    """Switch a mend off, or plant a fault, while the block runs; "" changes nothing."""
    return {**MENDS, **PLANTED}[name]() if name else nullcontext()
