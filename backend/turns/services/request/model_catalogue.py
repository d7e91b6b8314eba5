"""The models of chat_shell, asked for at most every few seconds."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from backend.chat_shell_client.ports.chat_shell import ChatShell
from shared.clock import Clock
from shared.errors import ChatShellUnavailable
from shared.models.events import ModelCard

T = TypeVar("T")

MAX_AGE = timedelta(seconds=5)


class RecentAnswer(Generic[T]):
    """Keeps an answer of chat_shell; concurrent callers share one request and its result."""

    def __init__(self, ask: Callable[[], Awaitable[T]], clock: Clock, max_age: timedelta = MAX_AGE) -> None:
        self._ask = ask
        self._clock = clock
        self._max_age = max_age
        self._asking = asyncio.Lock()
        self._kept: tuple[T, datetime] | None = None
        self._failures = 0

    async def get(self) -> T:
        """Return the answer.

        Raises:
            ChatShellUnavailable: it cannot be reached. Retryable.
        """
        failures_before = self._failures
        async with self._asking:
            if self._failures != failures_before:
                raise ChatShellUnavailable("The model runner cannot be reached.")
            if self._kept is None or self._clock.now() - self._kept[1] >= self._max_age:
                self._kept = await self._fetch(), self._clock.now()
            return self._kept[0]

    async def _fetch(self) -> T:
        try:
            return await self._ask()
        except ChatShellUnavailable:
            self._failures += 1
            raise


class ModelCatalogue:
    """The models that chat_shell offers."""

    def __init__(self, chat_shell: ChatShell, clock: Clock, max_age: timedelta = MAX_AGE) -> None:
        self._cards = RecentAnswer(chat_shell.models, clock, max_age)

    async def all(self) -> tuple[ModelCard, ...]:
        """Return the offered models in chat_shell's order; the first is its default.

        Raises:
            ChatShellUnavailable: it cannot be reached. Retryable.
        """
        return await self._cards.get()
