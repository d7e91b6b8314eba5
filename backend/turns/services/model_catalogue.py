"""The models that chat_shell offers, asked for at most every few seconds."""

import asyncio
from datetime import datetime, timedelta

from backend.turns.ports.chat_shell import ChatShell
from shared.clock import Clock
from shared.errors import ChatShellUnavailable
from shared.models.events import ModelCard

MAX_AGE = timedelta(seconds=5)


class ModelCatalogue:
    """Caches the list of models; concurrent callers share one request to chat_shell and its result."""

    def __init__(self, chat_shell: ChatShell, clock: Clock, max_age: timedelta = MAX_AGE) -> None:
        self._chat_shell = chat_shell
        self._clock = clock
        self._max_age = max_age
        self._asking = asyncio.Lock()
        self._cards: tuple[ModelCard, ...] = ()
        self._asked_at: datetime | None = None
        self._failures = 0

    async def all(self) -> tuple[ModelCard, ...]:
        """Return the offered models in chat_shell's order; the first is its default.

        Raises:
            ChatShellUnavailable: it cannot be reached. Retryable.
        """
        failures_before = self._failures
        async with self._asking:
            if self._failures != failures_before:
                raise ChatShellUnavailable("The model runner cannot be reached.")
            if self._is_stale():
                await self._ask()
            return self._cards

    def _is_stale(self) -> bool:
        return self._asked_at is None or self._clock.now() - self._asked_at >= self._max_age

    async def _ask(self) -> None:
        try:
            self._cards = await self._chat_shell.models()
        except ChatShellUnavailable:
            self._failures += 1
            raise
        self._asked_at = self._clock.now()
