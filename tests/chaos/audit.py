"""After the faults: reading all that is stored, replayed, logged and recorded into evidence."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx2
import orjson

from tests.chaos.clients import seen_event
from tests.chaos.cluster import Cluster
from tests.chaos.model import Order, order_and_results
from tests.chaos.records import ABSENT, TERMINAL, LogShare, Register, SentPrompt, Stored
from tests.chaos.resources import LOG, RUNNING, rows
from tests.chaos.world import World
from tests.e2e.prefixes import opening
from tests.e2e.turns import text_of

AT_ONCE = 8
ATTEMPTS = 5
NO_ANSWER = 599
REVIVED = 25
LogLine = dict[str, Any]


class Audit:
    """Reads as the users of a world, from both replicas by turns."""

    def __init__(self, cluster: Cluster, world: World) -> None:
        self._cluster, self._world = cluster, world
        self._replicas = list(cluster.replica_urls.values())
        self._http = httpx2.AsyncClient(timeout=60, trust_env=False)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def unfinished(self, bound_seconds: float) -> tuple[str, ...]:
        """Wait until no turn runs and no file waits, at most so long, and return those that do."""
        give_up = asyncio.get_running_loop().time() + bound_seconds
        running = await rows(self._cluster, RUNNING)
        while running and asyncio.get_running_loop().time() < give_up:
            await asyncio.sleep(0.5)
            running = await rows(self._cluster, RUNNING)
        return tuple(row[0] for row in running)

    async def log(self) -> dict[str, LogShare]:
        """Return what each turn has in its conversation's log."""
        return {row[0]: LogShare(row[1], row[2]) for row in await rows(self._cluster, LOG)}

    async def stored(self) -> dict[str, Stored]:
        """Return every response that a client was told of."""
        owners = {turn.response_id: self._owner(turn.kind) for turn in self._world.turns if turn.response_id}
        found = await self._each(self._stored, list(owners.items()))
        return {response_id: one for response_id, one in zip(owners, found, strict=True) if one is not None}

    async def found(self) -> dict[str, str]:
        """Return what stands at each place that was written to."""
        registers = self._world.registers
        values = await self._each(self._value, [(register, "lib") for register in registers])
        return {register.path: value for register, value in zip(registers, values, strict=True)}

    async def stuck(self) -> list[str]:
        """Take a turn in some of the conversations; return what was told where that failed."""
        chosen = list(self._world.conversations.items())[-REVIVED:]
        told = await self._each(self._revive, chosen)
        return [one for one in told if one]

    async def _each(self, read: Any, pairs: list[Any]) -> list[Any]:
        async def one(place: int, pair: Any) -> Any:
            async with self._turns:
                return await read(self._replicas[place % len(self._replicas)], *pair)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(place, pair)) for place, pair in enumerate(pairs)]
        return [task.result() for task in tasks]

    async def _get(self, url: str, user: str, **query: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self._world.keys[user]}"}
        answer = httpx2.Response(NO_ANSWER)
        for _ in range(ATTEMPTS):
            with suppress(httpx2.HTTPError):
                answer = await self._http.get(url, headers=headers, params=query)
                if answer.status_code < 500:
                    return answer
            await asyncio.sleep(0.5)
        return answer

    async def _stored(self, replica: str, response_id: str, user: str) -> Stored | None:
        url = f"{replica}/v1/responses/{response_id}"
        answer = await self._get(url, user)
        if answer.status_code != 200:
            return None
        body = answer.json()
        if body["status"] not in TERMINAL:
            return Stored(body["status"], text_of(body), ())
        replay = await self._get(url, user, stream="true")
        lines = [line for line in replay.text.splitlines() if line.startswith("data: {")]
        events = [seen_event(line, orjson.loads(line[6:])) for line in lines]
        return Stored(body["status"], text_of(body), tuple(event for event in events if event is not None))

    async def _value(self, replica: str, register: Register, user: str) -> str:
        answer = await self._get(f"{replica}{register.path}", user)
        if answer.status_code == 404:
            return ABSENT
        if answer.status_code != 200:
            return f"status {answer.status_code}"
        if "/documents/" in register.path:
            return answer.text
        body = answer.json()
        if "/agents/" in register.path:
            return body["instructions"]
        return body["content"][0]["text"] if "/items/" in register.path else body["metadata"].get("written", ABSENT)

    async def _revive(self, replica: str, conversation: str, user: str) -> str:
        headers = {"Authorization": f"Bearer {self._world.keys[user]}"}
        body = {"conversation": conversation, "input": Order("revival", 3, 0, is_plain=user == "rita").prompt()}
        try:
            answer = await self._http.post(f"{replica}/v1/responses", headers=headers, json=body)
        except httpx2.HTTPError as error:
            return f"{conversation}: {type(error).__name__}"
        waits_for_client = answer.status_code == 400 and "No output was given" in answer.text
        return (
            ""
            if answer.status_code == 200 or waits_for_client
            else f"{conversation}: {answer.status_code} {answer.text[:300]}"
        )

    def _owner(self, kind: str) -> str:
        return {"restricted": "rita", "keyed": "ron"}.get(kind, "ann")


def sent_prompts(cluster: Cluster) -> list[SentPrompt]:
    """Return the main model's requests in the order of their arrival."""
    found: list[SentPrompt] = []
    for request in cluster.model_server.requests:
        body = request.json_body
        order, results = order_and_results(body["messages"])
        if order is not None and "prompt_cache_key" in body:
            found.append(SentPrompt(order.key, body["prompt_cache_key"], opening(request), results))
    return found


def log_lines(cluster: Cluster) -> Iterator[tuple[str, LogLine]]:
    """Yield each line that a service has logged as JSON, with the service's name."""
    for name, log in cluster.logs().items():
        for line in log.splitlines():
            with suppress(orjson.JSONDecodeError):
                parsed = orjson.loads(line) if line.startswith("{") else None
                if isinstance(parsed, dict):
                    yield name, parsed


def tool_runs(lines: list[tuple[str, LogLine]]) -> dict[str, int]:
    """Count the finished tool calls of each turn."""
    return Counter(line["turn_id"] for _, line in lines if line.get("event") == "Tool called" and "turn_id" in line)


def drifted(lines: list[tuple[str, LogLine]]) -> tuple[str, ...]:
    """Return the alarms on drift."""
    return tuple(
        f"{name}: {orjson.dumps(line).decode()}" for name, line in lines if line.get("event") == "Prompt drift"
    )


def warnings_by_event(lines: list[tuple[str, LogLine]]) -> Counter[str]:
    """Count what was logged at warning and above, and every takeover."""
    counted: Counter[str] = Counter()
    for name, line in lines:
        event, level = str(line.get("event", "")), line.get("level")
        if level in ("warning", "error", "critical") or "taken over" in event.lower():
            counted[f"{level} {name.rpartition('_')[0]}: {event[:80]}"] += 1
    return counted
