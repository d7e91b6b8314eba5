"""`python -m tests.leaks.wire`: whether sizes and times of restricted streams tell what an answer is about.

python -m tests.leaks.wire [--streams N] [--seconds S] [--postgres]

Two topics differ in the length of their answers and in the pace of their words. For each protocol between the services
it prints how well a classifier tells them apart from what a reader of the wire sees: an AUC of 0.5 is not at all, 1
always. With `--seconds 0` streams are as those of other turns. It ends with 1 where an AUC is above the bar.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from math import log
from pathlib import Path
from statistics import fmean, pstdev
from typing import Literal

import httpx2

from tests.fakes.model_server import FakeModelServer, RecordedRequest, Reply
from tests.leaks.pair import ADMIN_KEY, MODEL, LeakPair, ModelAddresses, MoreSettings, Way, running_pair
from tests.leaks.visits import ACT_FOR
from tests.servers.postgres import PostgresServer

BAR = 0.55
AT_ONCE = 20
_OWNER, _ANALYST = "owner", "analyst"
_WORDS = ("reviews", "drift", "because", "nobody", "owns", "them", "while", "teams", "wait", "and", "plans", "change")
_PROTOCOLS: tuple[Literal["grpc", "http"], ...] = ("grpc", "http")
_TOPICS = ((20, 60, 0.004), (50, 130, 0.008))
"""Of each topic the fewest and the most words of an answer, and the seconds between them."""

Seen = list[tuple[float, int]]
"""When pieces of a stream have come, and how long they were."""


def say(request: RecordedRequest) -> Reply:
    """Answer as the topic is answered that the question names."""
    body = request.body.decode()
    topic = next((at for at in range(len(_TOPICS)) if f"topic {at}" in body), 0)
    fewest, most, pause = _TOPICS[topic]
    words = random.choices(_WORDS, k=random.randint(fewest, most))
    return Reply(text=tuple(f"{word} " for word in words), pause_seconds=pause)


def features(seen: Seen) -> list[float]:
    """Return what tells streams apart: how long, how much, in how many pieces, how even."""
    times, sizes = [at for at, _ in seen], [size for _, size in seen]
    gaps = [later - earlier for earlier, later in pairwise(times)] or [0.0]
    told = [len(seen), sum(sizes), times[-1], max(sizes), pstdev(sizes), fmean(gaps), pstdev(gaps), max(gaps), times[0]]
    return [log(value + 1e-3) for value in told]


def auc(scores: Sequence[tuple[float, int]]) -> float:
    """Return how often a stream of the second topic has the higher score, ties counted half."""
    first, second = ([score for score, topic in scores if topic == wanted] for wanted in (0, 1))
    told = sum((high > low) + (high == low) / 2 for high in second for low in first)
    return told / (len(first) * len(second))


def classify(streams: Sequence[tuple[Seen, int]]) -> float:
    """Learn each topic's normal distributions from one half, and return the AUC for the other."""
    rows = [(features(seen), topic) for seen, topic in streams]
    learnt, asked = rows[::2], rows[1::2]

    def fit(topic: int) -> list[tuple[float, float]]:
        columns = zip(*(row for row, of in learnt if of == topic), strict=True)
        return [(fmean(column), max(pstdev(column), 1e-2)) for column in columns]

    models = fit(0), fit(1)

    def fits(row: Sequence[float], model: Sequence[tuple[float, float]]) -> float:
        return sum(-log(wide) - ((at - mean) / wide) ** 2 / 2 for at, (mean, wide) in zip(row, model, strict=True))

    return auc([(fits(row, models[1]) - fits(row, models[0]), topic) for row, topic in asked])


async def listen(analyst: httpx2.AsyncClient, base_id: str, topic: int) -> Seen:
    """Ask about a topic, and note what comes when."""
    tool = {"type": "file_search", "vector_store_ids": [base_id]}
    body = {"input": f"What of topic {topic}?", "stream": True, "tools": [tool]}
    async with analyst.stream("POST", "/v1/responses", json=body) as answer:
        assert answer.status_code == 200, await answer.aread()
        began = time.perf_counter()
        return [(time.perf_counter() - began, len(piece)) async for piece in answer.aiter_raw()]


async def hear(pair: LeakPair, count: int) -> list[tuple[Seen, int]]:
    """Listen to streams of both topics, in any order, some at once."""
    async with pair.client(ADMIN_KEY) as admin:
        made = await admin.post("/v1/api_keys", json={"user_id": "wire", "role": "service"})
    key, turns = made.json()["key"], asyncio.Semaphore(AT_ONCE)
    topics = random.sample([0, 1] * (count // 2), count // 2 * 2)
    async with pair.client(key, **{ACT_FOR: _OWNER}) as owner, pair.client(key, **{ACT_FOR: _ANALYST}) as analyst:
        base_id = (await owner.post("/v1/knowledge_bases", json={"name": "Wire"})).json()["id"]
        base = f"/v1/knowledge_bases/{base_id}"
        await owner.put(f"{base}/documents/a.md", content=b"# Reviews\n\nEvery vault has a keeper of its own.")
        await owner.put(f"{base}/members/{_ANALYST}", json={"role": "restricted_analyst"})

        async def take_turn(topic: int) -> tuple[Seen, int]:
            async with turns:
                return await listen(analyst, base_id, topic), topic

        return await asyncio.gather(*map(take_turn, topics))


async def measure(directory: Path, way: Way, count: int, seconds: float) -> float:
    """Return the AUC of a way."""
    more = MoreSettings(backend={"BACKEND_RESTRICTED_STREAM_SECONDS": str(seconds)})
    async with FakeModelServer(say, models=(MODEL,)) as main:
        addresses = ModelAddresses(main.base_url, main.base_url)
        async with running_pair(directory, addresses, 20, way, is_gated=True, more=more) as pair:
            return classify(await hear(pair, count))


def main() -> int:
    """Measure each way, and print its AUC."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=3.2)
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    found: list[float] = []
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = [""]
        if given.postgres:
            server = PostgresServer()
            server.start()
            stack.enter_context(closing(server))
            urls.append(server.url(server.new_database()))
        for at, way in enumerate(Way(protocol, url) for url in urls for protocol in _PROTOCOLS):
            found.append(asyncio.run(measure(directory / str(at), way, given.streams, given.seconds)))
            sys.stdout.write(f"{way}: AUC {found[-1]:.3f} of {given.streams} streams\n")
            sys.stdout.flush()
    return int(max(found) > BAR)


if __name__ == "__main__":
    sys.exit(main())
