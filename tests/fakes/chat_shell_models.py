"""A chat_shell that only names its models."""

import asyncio
from collections.abc import AsyncIterator

from shared.errors import ChatShellUnavailable
from shared.models.events import ExecutionEvent, ModelCard
from shared.models.execution import ExecutionRequest


class FakeModelLister:
    """Counts how often it is asked; `away` lets it fail, `gate` makes askers wait."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.asked = 0
        self.away = False
        self.gate = asyncio.Event()
        self.gate.set()

    async def models(self) -> tuple[ModelCard, ...]:
        """Return the offered models."""
        self.asked += 1
        await self.gate.wait()
        if self.away:
            raise ChatShellUnavailable("The model runner cannot be reached.")
        return tuple(
            ModelCard(name=name, context_window_tokens=128_000, max_output_tokens=8_000) for name in self.names
        )

    def execute(self, request: ExecutionRequest) -> AsyncIterator[tuple[ExecutionEvent, ...]]:
        """Run no turn."""
        raise ChatShellUnavailable("This one runs no turns.")

    async def close(self) -> None:
        """Free nothing."""
