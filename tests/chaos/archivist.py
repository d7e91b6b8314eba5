"""An actor who uploads files and attaches them, calls tools over /mcp, and puts agents."""

import random
from typing import Any

from tests.chaos.clients import Caller
from tests.chaos.records import ABSENT
from tests.chaos.world import World
from tests.chaos.writing import WRITTEN, Writer

DELETED_SHARE = 0.3
DEFECT = "The server had an error"
"""What /mcp says, with status 200, of what any other route answers with 500."""


async def keep_archive(world: World, actor: str, user: str) -> None:
    """Act until the load stops."""
    caller, dice = world.caller(user), world.dice(actor)
    archive = _Archive(world, caller, dice, actor)
    try:
        while not world.stopped.is_set():
            await archive.file()
            await archive.search()
            await archive.agent()
            await world.pause(dice)
    finally:
        await caller.close()


class _Archive:
    def __init__(self, world: World, caller: Caller, dice: random.Random, actor: str) -> None:
        self._world, self._caller, self._dice, self._actor = world, caller, dice, actor
        self._writer = Writer(world, caller, dice)
        self._agent = world.register(f"/v1/agents/{actor}-{world.next_number()}")

    async def file(self) -> None:
        """Upload a file and attach it more than once: it must become one document, or none where it is deleted."""
        name = f"{self._actor}-{self._world.next_number()}.md"
        text = f"# {name}\n\n" + "The pilot boards at the outer buoy. " * self._dice.randint(1, 400)
        form = {"files": {"file": (name, text.encode())}, "data": {"purpose": "assistants"}}
        uploaded = await self._sent("POST", "/v1/files", "upload", **form)
        if uploaded is None:
            return
        store, file_id = self._world.bases["shared"], uploaded.json()["id"]
        documents = f"/v1/knowledge_bases/{store}/documents"
        self._world.register(f"{documents}/{name.removesuffix('.md')} (2).md").acknowledged = ABSENT
        document = self._world.register(f"{documents}/{name}")
        for _ in range(2):
            body = {"file_id": file_id}
            await self._writer.write(document, text, "POST", f"/v1/vector_stores/{store}/files", "attach", json=body)
        if self._dice.random() < DELETED_SHARE:
            await self._writer.write(document, ABSENT, "DELETE", f"/v1/files/{file_id}", "delete file")

    async def search(self) -> None:
        """Search as an agent of somebody else does."""
        arguments = {"query": "pilot at the buoy", "knowledge_base_ids": [self._world.bases["shared"]]}
        params = {"name": "search_knowledge", "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": self._world.next_number(), "method": "tools/call", "params": params}
        answer = await self._sent("POST", "/mcp", "mcp", json=body)
        if answer is not None and DEFECT in answer.text:
            self._world.tally.server_errors.append(f"mcp: {answer.text[:300]}")

    async def agent(self) -> None:
        """Put an agent."""
        told = f"Answer as number {self._world.next_number()}."
        await self._writer.write(self._agent, told, "PUT", self._agent.path, "agent", json={"instructions": told})

    async def _sent(self, method: str, path: str, kind: str, **options: Any) -> Any:
        answer = await self._caller.send(self._dice.choice(self._caller.replicas), method, path, kind, **options)
        return answer if answer is not None and answer.status_code in WRITTEN else None
