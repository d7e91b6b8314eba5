"""Two cells, a tenant with something of everything, and users who talk on while it moves."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import orjson

from tests.cells.moving import Mover
from tests.e2e.pair import Pair
from tests.e2e.prefixes import added
from tests.fakes.model_server import RecordedRequest, Reply
from tests.patience import PATIENCE_SECONDS

TENANT = "acme"
ROUTES = Path(__file__).resolve().parents[2] / "deploy" / "kustomize" / "components" / "router" / "routes.json"
PIECES = tuple(f"piece {number} " for number in range(15))
TO_ARRIVE = 2
"""So many turns each user asks for behind the move."""


@dataclass(frozen=True)
class Size:
    """How much the tenant has."""

    conversations: int
    bases: int
    files: int
    streams: int


@dataclass
class Talk:
    """What a user has asked in one conversation, and what became of it."""

    user: str
    conversation: str
    asked: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    waited_seconds: list[float] = field(default_factory=list[float])

    @property
    def mark(self) -> str:
        """What stands in its questions and in no others."""
        return f"in {self.conversation[-12:]}"


class Cells:
    """Two pairs on stores of their own, and the table of routes by which a client finds one of them."""

    def __init__(self, first: Pair, second: Pair, routes: Path) -> None:
        self.pairs = {"c1": first, "c2": second}
        self.routes = routes
        routes.write_bytes(ROUTES.read_bytes())

    def cell_of(self, key: str) -> str:
        """Return where the router sends requests with a key: by the longest beginning in its table."""
        document = orjson.loads(self.routes.read_bytes())
        tree = document["resources"][0]["virtual_hosts"][0]["matcher"]["matcher_tree"]
        found = [each for each in tree["prefix_match_map"]["map"] if f"Bearer {key}".startswith(each)]
        action = tree["prefix_match_map"]["map"][max(found, key=len)]["action"]
        return str(action["typed_config"]["route"]["cluster"])

    def url(self, key: str) -> str:
        """Return the address of that cell."""
        return self.pairs[self.cell_of(key)].backend_url

    def key(self, user: str) -> str:
        """Return the key of a user, made in the first cell."""
        return self.pairs["c1"].key(user, tenant=TENANT)

    async def script(self) -> None:
        """Let both models answer in pieces."""
        for pair in self.pairs.values():
            async with pair.fresh_model() as model:
                await model.script(Reply(text=PIECES, pause_seconds=0.1, repeat=True))

    async def requests(self) -> list[RecordedRequest]:
        """Return what both models were asked, in order."""
        found: list[RecordedRequest] = []
        for pair in self.pairs.values():
            async with pair.control() as model:
                found += await model.requests()
        return sorted(found, key=lambda request: request.received_at)


@asynccontextmanager
async def client_of(cells: Cells, user: str, cell: str = "") -> AsyncGenerator[httpx2.AsyncClient]:
    """Open a client that is routed by its key, or speaks to one cell."""
    key = cells.key(user)
    base_url = cells.pairs[cell].backend_url if cell else cells.url(key)
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        base_url=base_url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
    ) as client:
        yield client


async def fill(cells: Cells, size: Size) -> dict[str, list[str]]:
    """Give the tenant conversations, bases with documents, and files; return the ids of each."""
    made: dict[str, list[str]] = {}
    async with client_of(cells, "owner") as client:

        async def create(path: str, **body: Any) -> str:
            answer = (await client.post(path, **body)).raise_for_status()
            return str(answer.json()["id"])

        item = {"type": "message", "role": "user", "content": "What was said before."}
        made["conversations"] = [
            await create("/v1/conversations", json={"items": [item]}) for _ in range(size.conversations)
        ]
        made["bases"] = [
            await create("/v1/knowledge_bases", json={"name": f"base {number}"}) for number in range(size.bases)
        ]
        for number, base in enumerate(made["bases"]):
            text = f"# Refunds\n\nRefunds of shop {number} take {number} days."
            (await client.put(f"/v1/knowledge_bases/{base}/documents/terms.md", content=text)).raise_for_status()
        made["files"] = [
            await create("/v1/files", data={"purpose": "assistants"}, files={"file": (f"{number}.txt", b"words")})
            for number in range(size.files)
        ]
    return made


async def talk_on(cells: Cells, talk: Talk, moved: asyncio.Event) -> None:
    """Ask for one turn after another, until some are answered behind the move."""
    left = TO_ARRIVE
    while left:
        left -= moved.is_set()
        question = f"{talk.user} asks {len(talk.asked)} {talk.mark}"
        talk.asked.append(question)
        outcome = await _ask(cells, talk, question)
        if outcome != "response.completed":
            talk.failed.append(f"{question}: {outcome}")


async def _ask(cells: Cells, talk: Talk, question: str) -> str:
    """Ask until it is not refused for a moment; return the type of the last event, or what was answered."""
    began = time.monotonic()
    while True:
        async with client_of(cells, talk.user) as client:
            body = {"conversation": talk.conversation, "input": question, "stream": True}
            async with client.stream("POST", "/v1/responses", json=body) as answer:
                if answer.status_code == 503 and "retry-after" in answer.headers:
                    await asyncio.sleep(0.1)
                    continue
                talk.waited_seconds.append(time.monotonic() - began)
                events = [line async for line in answer.aiter_lines() if line.startswith(("event: ", "{"))]
        return events[-1].removeprefix("event: ") if answer.status_code == 200 else f"{answer.status_code} {events}"


async def begin_talks(cells: Cells, count: int) -> list[Talk]:
    """Begin a conversation of each of some users."""
    talks: list[Talk] = []
    for number in range(count):
        async with client_of(cells, f"user-{number}") as client:
            made = (await client.post("/v1/conversations", json={})).raise_for_status()
        talks.append(Talk(f"user-{number}", made.json()["id"]))
    return talks


async def move_under_streams(cells: Cells, talks: Sequence[Talk], mover: Mover, kills: Sequence[str]) -> None:
    """Move the tenant while all talk, killed at each of these lines in turn; return when all have talked on behind."""
    moved = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(talk_on(cells, talk, moved)) for talk in talks]
        for line in kills:
            await mover.run(until=line)
        await mover.run()
        moved.set()
        await asyncio.gather(*tasks)


async def check_talks(cells: Cells, talks: Sequence[Talk]) -> None:
    """Check that nothing failed, nothing was asked of a model twice, and each body extends the one before."""
    assert [failed for talk in talks for failed in talk.failed] == []
    asked = await cells.requests()
    for talk in talks:
        its = [one for one in asked if talk.mark.encode() in one.body]
        assert len(its) == len(talk.asked), (talk.user, len(its), len(talk.asked))
        for earlier, later in pairwise(its):
            assert added(earlier, later)
        async with client_of(cells, talk.user) as client:
            page = await client.get(f"/v1/conversations/{talk.conversation}/items?limit=100&order=asc")
        shown = [item for item in page.json()["data"] if item["role"] == "user"]
        assert [item["content"][0]["text"] for item in shown] == talk.asked[: len(shown)]
        assert len(shown) == min(len(talk.asked), 50)


async def check_moved(cells: Cells, made: dict[str, list[str]], there: str, left: str) -> None:
    """Check that all is in the new cell and can be used, and that the old copy can be read and not written."""
    async with client_of(cells, "owner") as client, client_of(cells, "owner", left) as old:
        assert cells.cell_of(cells.key("owner")) == there
        for number, base in enumerate(made["bases"]):
            body = {"query": f"refunds of shop {number}", "max_results": 1}
            hits = (await client.post(f"/v1/knowledge_bases/{base}/search", json=body)).raise_for_status()
            assert f"take {number} days" in hits.json()["data"][0]["text"]
        for one in made["files"]:
            assert (await client.get(f"/v1/files/{one}/content")).content == b"words"
        for each in (client, old):
            for one in made["conversations"]:
                items = (await each.get(f"/v1/conversations/{one}/items")).raise_for_status()
                assert len(items.json()["data"]) == 1
        refused = await old.post("/v1/conversations", json={})
        assert (refused.status_code, refused.headers.get("retry-after")) == (503, "1")
        assert (await client.post("/v1/conversations", json={})).status_code == 201
