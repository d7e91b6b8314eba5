"""Whether this process should get traffic."""

import asyncio

from backend.ports.readiness import Probe
from backend.services.admission import Admission
from shared.errors import Unavailable

PING_TIMEOUT_SECONDS = 2.0
"""Below the timeouts that probes of Kubernetes are given in deploy/."""


class Readiness:
    """Ready is: taking new turns, and the database answers.

    chat_shell is no part of it. Were it down, all replicas would leave the balancer together, and with
    them the stored conversations, replays and the error that says what is wrong.
    """

    def __init__(self, admission: Admission, database: Probe) -> None:
        self._admission = admission
        self._database = database

    async def check(self) -> None:
        """Return when ready.

        Raises:
            Draining: this process is shutting down.
            Unavailable: the database does not answer.
        """
        self._admission.check()
        try:
            async with asyncio.timeout(PING_TIMEOUT_SECONDS):
                await self._database.ping()
        except TimeoutError:
            raise Unavailable("The database does not answer.") from None
