"""A scripted chat_shell that is asked for its models, and may be away."""

import asyncio

from shared.errors import ChatShellUnavailable
from shared.models.events import ModelCard
from tests.fakes.chat_shell_scripted import ScriptedChatShell


class FakeModelLister(ScriptedChatShell):
    """Counts how often it is asked; `away` lets it fail, `gate` makes askers wait."""

    def __init__(self, *names: str) -> None:
        super().__init__(models=names)
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
        return await super().models()
