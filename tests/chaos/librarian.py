"""An actor who writes: documents, their deletion, metadata and items, each noted as acknowledged or not."""

import random

from tests.chaos.clients import Caller
from tests.chaos.records import ABSENT, Register
from tests.chaos.talks import new_conversation
from tests.chaos.world import World
from tests.chaos.writing import WRITTEN, Writer

PARAGRAPHS = (1, 30)


async def keep_library(world: World, actor: str, user: str) -> None:
    """Write until the load stops."""
    caller, dice = world.caller(user), world.dice(actor)
    library = _Library(world, caller, dice, actor)
    try:
        while not world.stopped.is_set():
            await library.document()
            await library.metadata()
            await library.item()
            await world.pause(dice)
    finally:
        await caller.close()


class _Library:
    def __init__(self, world: World, caller: Caller, dice: random.Random, actor: str) -> None:
        self._world, self._caller, self._dice, self._actor = world, caller, dice, actor
        self._writer = Writer(world, caller, dice)
        self._documents: list[Register] = []
        self._conversation: tuple[str, Register] | None = None
        self._written = 0

    async def document(self) -> None:
        """Put a document, or delete one."""
        self._written = self._world.next_number()
        if self._documents and self._dice.random() < 0.3:
            register = self._documents.pop(self._dice.randrange(len(self._documents)))
            await self._writer.write(register, ABSENT, "DELETE", register.path, "delete document")
            return
        name = f"{self._actor}-{self._written}.md"
        register = self._world.register(f"/v1/knowledge_bases/{self._world.bases['shared']}/documents/{name}")
        paragraph = f"The tide at quay {self._written} turns when the pilot rests. " * 12
        text = f"# {name}\n\n" + f"{paragraph}\n\n" * self._dice.randint(*PARAGRAPHS)
        await self._writer.write(register, text, "PUT", register.path, "put document", content=text.encode())
        self._documents.append(register)

    async def metadata(self) -> None:
        """Set the metadata of a conversation."""
        if self._conversation is None:
            created = await new_conversation(self._caller, self._dice)
            if not created:
                return
            self._conversation = created, self._world.register(f"/v1/conversations/{created}")
        _, register = self._conversation
        value = str(self._written)
        await self._writer.write(
            register, value, "POST", register.path, "metadata", json={"metadata": {"written": value}}
        )

    async def item(self) -> None:
        """Add an item to the conversation; it must be there under the id that was answered."""
        if self._conversation is None:
            return
        text = f"item {self._written}"
        path = f"/v1/conversations/{self._conversation[0]}/items"
        body = {"items": [{"type": "message", "role": "user", "content": text}]}
        replica = self._dice.choice(self._caller.replicas)
        answer = await self._caller.send(replica, "POST", path, "item", json=body)
        if answer is not None and answer.status_code in WRITTEN:
            register = self._world.register(f"{path}/{answer.json()['data'][0]['id']}")
            register.acknowledge(text)
