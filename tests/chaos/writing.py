"""Writing to a place until it is acknowledged, and noting what may stand there afterwards."""

import random
from typing import Any

from tests.chaos.clients import Caller
from tests.chaos.records import Register
from tests.chaos.world import World

WRITTEN = (200, 201, 204)
GONE = 404
ATTEMPTS = 3


class Writer:
    """A user who writes to either replica, and tries again what was not acknowledged."""

    def __init__(self, world: World, caller: Caller, dice: random.Random) -> None:
        self._world, self._caller, self._dice = world, caller, dice

    async def write(self, register: Register, value: str, method: str, path: str, kind: str, **options: Any) -> bool:
        """Write a value; return whether that was acknowledged."""
        for _ in range(ATTEMPTS):
            with register.sending(value) as sent:
                answer = await self._caller.send(
                    self._dice.choice(self._caller.replicas), method, path, kind, **options
                )
                is_gone = method == "DELETE" and answer is not None and answer.status_code == GONE
                sent.is_acknowledged = is_gone or (answer is not None and answer.status_code in WRITTEN)
            if sent.is_acknowledged:
                return True
            await self._world.pause(self._dice)
        return False
