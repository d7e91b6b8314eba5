"""`python -m tests.leaks.timing`: whether the time of a restricted turn tells how its search ended.

python -m tests.leaks.timing [--samples N] [--postgres]

For each protocol between the services, searches are asked through both services that end in an answer, in nothing found
and in a reply held twice, in any order. It prints for each two how well the time of a turn tells them apart (AUC), and
ends with 1 where one is above the bar.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx2
import orjson

from shared.prompts import knowledge_base as texts
from tests.fakes.model_server import FakeModelServer, RecordedRequest, Reply, ScriptedCall
from tests.leaks.hostile.replies import summary
from tests.leaks.pair import ADMIN_KEY, MODEL, LeakPair, ModelAddresses, Way, running_pair
from tests.leaks.trials import CODE_WORDS
from tests.leaks.visits import ACT_FOR
from tests.leaks.wire import BAR, auc
from tests.servers.postgres import PostgresServer

AT_ONCE = 8
TAKES_SECONDS = 0.3
"""How long the secondary model thinks."""

_PASSAGE = "Every vault has a keeper of its own, who signs the book at noon and hides the brass key under the stairs."
_ASKED = {
    "answer": "What are the risks for the vault, its keeper, the book and the brass key under the stairs? {words}",
    "nothing": "What are the risks for the orchard, its ladder, the cider and the press behind the barn? {words}",
    "blocked": "What are the weaknesses of the vault, its keeper, the book and the brass key under the stairs? {words}",
}


def ask(request: RecordedRequest) -> Reply:
    """Search for what was asked, and end the turn with one sentence."""
    messages: list[dict[str, Any]] = request.json_body["messages"]
    if any(message["role"] == "tool" for message in messages):
        return Reply(text=("That is all.",))
    asked = next(str(one["content"]) for one in reversed(messages) if "?" in str(one["content"]))
    arguments = orjson.dumps({"query": asked[asked.rfind("What are") :]}).decode()
    return Reply(tool_calls=(ScriptedCall(name=texts.KNOWLEDGE_BASE_SEARCH, arguments=arguments),))


def summarise(request: RecordedRequest) -> Reply:
    """Answer honestly, or with the passage where weaknesses are asked for, at once and when asked again."""
    said = _PASSAGE if "weaknesses" in request.body.decode() else "Too much rests on one person. Share the duty."
    return Reply(text=(orjson.dumps(summary(said)).decode(),), pause_seconds=TAKES_SECONDS)


async def measure(directory: Path, way: Way, samples: int) -> dict[str, list[float]]:
    """Return by outcome how long turns took, in seconds."""
    async with FakeModelServer(ask, models=(MODEL,)) as main, FakeModelServer(summarise) as secondary:
        addresses = ModelAddresses(main.base_url, secondary.base_url)
        async with running_pair(directory, addresses, 20, way, is_gated=True) as pair:
            took = await _time_turns(pair, samples)
        asked = len(secondary.requests)
    # none for what is not found, one for an answer, two for a reply held twice
    assert asked == 3 * samples, f"{asked} requests of the secondary model, not {3 * samples}"
    return took


async def _time_turns(pair: LeakPair, samples: int) -> dict[str, list[float]]:
    async with pair.client(ADMIN_KEY) as admin:
        key = (await admin.post("/v1/api_keys", json={"user_id": "timing", "role": "service"})).json()["key"]
    took: dict[str, list[float]] = {outcome: [] for outcome in _ASKED}
    turns = asyncio.Semaphore(AT_ONCE)
    async with pair.client(key, **{ACT_FOR: "owner"}) as owner:
        base_id = (await owner.post("/v1/knowledge_bases", json={"name": "Timing"})).json()["id"]
        await owner.put(f"/v1/knowledge_bases/{base_id}/documents/a.md", content=f"# Vault\n\n{_PASSAGE}".encode())

        async def take_turn(number: int, outcome: str) -> None:
            async with turns:
                reader = f"reader-{number}"
                await owner.put(f"/v1/knowledge_bases/{base_id}/members/{reader}", json={"role": "restricted_analyst"})
                async with pair.client(key, **{ACT_FOR: reader}) as client:
                    words = _ASKED[outcome].format(words=" ".join(random.choices(CODE_WORDS, k=4)))
                    took[outcome].append(await _seconds_of(client, base_id, words))

        order = random.sample([*_ASKED] * samples, len(_ASKED) * samples)
        await asyncio.gather(*(take_turn(number, outcome) for number, outcome in enumerate(order)))
    return took


async def _seconds_of(client: httpx2.AsyncClient, base_id: str, words: str) -> float:
    tool = {"type": "file_search", "vector_store_ids": [base_id]}
    began = time.perf_counter()
    answer = await client.post("/v1/responses", json={"input": words, "tools": [tool]})
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - began


def compare(took: dict[str, list[float]]) -> dict[str, float]:
    """Return the AUC of the time for each two outcomes, whichever takes longer."""
    found: dict[str, float] = {}
    for first, second in combinations(took, 2):
        told = auc([(seconds, at) for at, outcome in enumerate((first, second)) for seconds in took[outcome]])
        found[f"{first}, {second}"] = max(told, 1 - told)
    return found


def main() -> int:
    """Measure each way, and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    worst = 0.0
    with ExitStack() as stack:
        directory, urls = Path(stack.enter_context(tempfile.TemporaryDirectory())), [""]
        if given.postgres:
            server = PostgresServer()
            server.start()
            stack.enter_context(closing(server))
            urls.append(server.url(server.new_database()))
        for at, way in enumerate(Way(protocol, url) for url in urls for protocol in ("grpc", "http")):
            found = compare(asyncio.run(measure(directory / str(at), way, given.samples)))
            worst = max(worst, *found.values())
            told = "; ".join(f"{pair}: {value:.3f}" for pair, value in found.items())
            sys.stdout.write(f"{way}: AUC of {given.samples} turns each: {told}\n")
            sys.stdout.flush()
    return int(worst > BAR)


if __name__ == "__main__":
    sys.exit(main())
