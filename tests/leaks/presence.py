"""`python -m tests.leaks.presence`: whether what a restricted member gets tells which words stand in a base.

    python -m tests.leaks.presence [--questions N] [--postgres]

Two bases differ in names, rare words and figures. For each protocol between the services, with vectors and without,
both are asked the same questions through both services, as streams. It prints how many streams are alike byte by byte,
but for ids and times, and ends with 1 where one is not.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import orjson

from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH
from tests.fakes.model_server import FakeModelServer, RecordedRequest, Reply, ScriptedCall
from tests.leaks.embedding import EmbedderKind, all_embedded, staged_embedder
from tests.leaks.hostile.replies import summary
from tests.leaks.pair import ADMIN_KEY, MODEL, LeakPair, ModelAddresses, MoreSettings, Way, running_pair
from tests.leaks.spend import plain_stream
from tests.leaks.visits import ACT_FOR
from tests.leaks.worlds import ONE, OTHER, TEXTS, World, queries
from tests.servers.postgres import PostgresServer

AT_ONCE = 6
_SAID = orjson.dumps(summary("Too much rests on one person. Share the duty.")).decode()
_EMBEDDERS: tuple[EmbedderKind, ...] = ("none", "fake")


def search_and_repeat(request: RecordedRequest) -> Reply:
    """Search for what was asked, and repeat whatever came, as a main model does that obeys the reader."""
    messages: list[dict[str, Any]] = request.json_body["messages"]
    got = [str(message["content"]) for message in messages if message["role"] == "tool"]
    if got:
        return Reply(text=(got[-1],))
    asked = next(str(one["content"]) for one in reversed(messages) if str(one["content"]).startswith("Ask: "))
    arguments = orjson.dumps({"query": asked.removeprefix("Ask: ").partition("\n")[0]}).decode()
    return Reply(tool_calls=(ScriptedCall(name=KNOWLEDGE_BASE_SEARCH, arguments=arguments),))


async def compare(directory: Path, way: Way, asked: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the questions whose streams differ between the worlds, with what came in each."""
    async with (
        FakeModelServer(search_and_repeat, models=(MODEL,)) as main,
        FakeModelServer(lambda _: Reply(text=(_SAID,))) as secondary,
        staged_embedder(way.embedder, directory) as embedder,
    ):
        addresses, more = ModelAddresses(main.base_url, secondary.base_url), MoreSettings(backend=embedder)
        async with running_pair(directory, addresses, 20, way, is_gated=True, more=more) as pair:
            one, other = [await _hear(pair, world, asked, has_vectors=bool(embedder)) for world in (ONE, OTHER)]
    answered = zip(asked, one, other, strict=True)
    return [(query, mine, theirs) for query, mine, theirs in answered if mine != theirs]


async def _hear(pair: LeakPair, world: World, asked: Sequence[str], *, has_vectors: bool) -> list[str]:
    """Ask a base of this world everything, some at once, each question by a member of its own."""
    async with pair.client(ADMIN_KEY) as admin:
        key = (await admin.post("/v1/api_keys", json={"user_id": "presence", "role": "service"})).json()["key"]
    turns = asyncio.Semaphore(AT_ONCE)
    async with pair.client(key, **{ACT_FOR: "owner"}) as owner:
        base_id = (await owner.post("/v1/knowledge_bases", json={"name": "World"})).json()["id"]
        base = f"/v1/knowledge_bases/{base_id}"
        for place, text in enumerate(TEXTS):
            put = await owner.put(f"{base}/documents/{place}.md", content=text.format(**world._asdict()).encode())
            assert put.status_code == 201, put.text
        if has_vectors:
            await all_embedded(owner, [base_id])

        async def ask(number: int, query: str) -> str:
            reader = f"reader-{number}"
            async with turns, pair.client(key, **{ACT_FOR: reader}) as client:
                await owner.put(f"{base}/members/{reader}", json={"role": "restricted_analyst"})
                return await _listen(client, base_id, query)

        return await asyncio.gather(*(ask(number, query) for number, query in enumerate(asked)))


async def _listen(client: httpx2.AsyncClient, base_id: str, query: str) -> str:
    tool = {"type": "file_search", "vector_store_ids": [base_id]}
    answer = await client.post("/v1/responses", json={"input": f"Ask: {query}", "tools": [tool], "stream": True})
    assert answer.status_code == 200, answer.text
    return plain_stream(answer.text)


def main() -> int:
    """Compare the worlds in each way, and print how many streams differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=len(queries()))
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    every = max(len(queries()) // given.questions, 1)
    asked, worst = queries()[::every], 0
    with ExitStack() as stack:
        directory, server = Path(stack.enter_context(tempfile.TemporaryDirectory())), None
        if given.postgres:
            server = stack.enter_context(closing(PostgresServer()))
            server.start()
        for at, (protocol, embedder) in enumerate(product(("grpc", "http"), _EMBEDDERS)):
            way = Way(protocol, server.url(server.new_database()) if server is not None else "", embedder)
            differing = asyncio.run(compare(directory / str(at), way, asked))
            worst = max(worst, len(differing))
            sys.stdout.write(f"{way}: {len(asked) - len(differing)} of {len(asked)} streams alike\n")
            sys.stdout.writelines(f"  {query}\n" for query, *_ in differing[:5])
            sys.stdout.flush()
    return int(worst > 0)


if __name__ == "__main__":
    sys.exit(main())
