"""A base that is filled, embedded and searched while its backend is tried."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import httpx2

from tests.e2e.pair import Pair
from tests.e2e.turns import bare_client, new_base
from tests.servers.counted_embedder import CountedEmbedder

SECONDS_OF_CALL = 0.15
PUTS_AT_ONCE = 8
LONGEST_WAIT_SECONDS = 600.0


class World:
    """A base that ada owns, documents that are put into it, and searches beside that."""

    def __init__(self, pair: Pair, base_id: str, embedder: CountedEmbedder) -> None:
        self.pair, self.base_id, self.embedder = pair, base_id, embedder

    async def put(self, numbers: Iterable[int]) -> None:
        """Put a document for each number; one that the backend has not acknowledged is put again."""
        waiting = iter(numbers)

        async def put_some(client: httpx2.AsyncClient) -> None:
            for number in waiting:
                while not await self._is_put(client, number):
                    continue

        async with bare_client(self.pair, "ada") as client, asyncio.TaskGroup() as group:
            for _ in range(PUTS_AT_ONCE):
                group.create_task(put_some(client))

    async def _is_put(self, client: httpx2.AsyncClient, number: int) -> bool:
        path = f"/v1/knowledge_bases/{self.base_id}/documents/{number}.txt"
        try:
            answer = await client.put(path, content=text_of(number).encode())
        except httpx2.TransportError:
            return False
        assert answer.status_code in {200, 201, 503}, answer.text
        return answer.status_code != 503

    async def complete(self, count: int) -> None:
        """Wait until all that was put is embedded."""
        with self.pair.http(self.pair.key("ada")) as client:

            def is_complete() -> bool:
                shown = client.get(f"/v1/knowledge_bases/{self.base_id}").json()
                assert shown["chunks"] == count, "what was acknowledged is there"
                return shown["embedded_chunks"] == count

            await asyncio.to_thread(self.pair.backend.wait_until, is_complete, LONGEST_WAIT_SECONDS)

    @asynccontextmanager
    async def searches(self) -> AsyncGenerator["Searches"]:
        """Search all the time while the block runs, over one connection."""
        searches = Searches()
        async with bare_client(self.pair, "ada") as client, asyncio.TaskGroup() as group:
            group.create_task(searches.run(client, f"/v1/knowledge_bases/{self.base_id}/search"))
            try:
                yield searches
            finally:
                searches.ended = True

    async def asked_for(self, count: int) -> None:
        """Wait until so many texts have been on their way to the embedder."""
        await asyncio.to_thread(
            self.embedder.wait_until, lambda: self.embedder.asked().total() >= count, LONGEST_WAIT_SECONDS
        )

    def repeated(self, count: int) -> int:
        """Return how many texts were asked for again, having checked that none is missing."""
        asked = self.embedder.asked()
        wanted = {text_of(number) for number in range(count)}
        assert wanted <= asked.keys()
        return sum(asked[text] - 1 for text in wanted)


class Searches:
    """One search after the other; `statuses` counts their answers."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.ended = False
        self._answered = asyncio.Event()

    async def run(self, client: httpx2.AsyncClient, path: str) -> None:
        while not self.ended:
            answer = await client.post(path, json={"query": f"wine of the barrel {self.statuses.total()}"})
            self.statuses[answer.status_code] += 1
            self._answered.set()
            assert answer.status_code != 200 or answer.json()["data"], "words alone find something"

    async def more(self, count: int) -> None:
        """Wait until so many more have been answered."""
        for _ in range(count):
            self._answered.clear()
            await self._answered.wait()


def text_of(number: int) -> str:
    return f"The barrel {number} holds wine of the hill {number % 97}."


async def world_of(pair: Pair, embedder: CountedEmbedder) -> World:
    async with bare_client(pair, "ada") as client:
        return World(pair, await new_base(client, "Cellar"), embedder)
