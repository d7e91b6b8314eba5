"""Readiness: the decision whether this process should get traffic."""

import asyncio
from typing import Literal, NamedTuple

from backend.foundation.ports.readiness import Probe
from backend.foundation.services.admission import Admission
from shared.errors import Unavailable

PING_TIMEOUT_SECONDS = 2.0
"""Shorter than the timeouts of the Kubernetes probes in deploy/."""


State = Literal["ok", "away"]


class Components(NamedTuple):
    """The states in which a ready process found the parts that it depends on."""

    database: State
    event_store: State


class Readiness:
    """Ready is: not shutting down, and the database takes writes, without which no turn can begin.

    Neither chat_shell nor the event store is a part of it. All replicas share them: were one down, all would leave
    the balancer together, and with them the stored conversations, replays and the error that says what is wrong.
    """

    def __init__(self, admission: Admission, database: Probe) -> None:
        self._admission = admission
        self._database = database

    async def check(self) -> Components:
        """Return the states of the parts when this process is ready.

        Raises:
            Draining: this process is shutting down.
            Unavailable: the database does not answer, or takes no writes.
        """
        self._admission.check_open()
        try:
            async with asyncio.timeout(PING_TIMEOUT_SECONDS):
                await self._database.check_writable()
        except TimeoutError:
            raise Unavailable("The database does not answer.") from None
        return Components(database="ok", event_store="ok" if self._admission.has_event_store else "away")
