"""Callers of the two replicas who note what they are answered; a broken connection is an answer like others."""

import time
import zlib
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson

from tests.chaos.records import DELTA, LAST_EVENTS, Reading, SeenEvent, Turn
from tests.e2e.turns import Body, text_of

TIMEOUT = httpx2.Timeout(75, connect=5)
KEPT_ERRORS = 50
SLOW_SECONDS = 40.0


@dataclass(eq=False)
class OpenCall:
    """A call that has no end yet."""

    kind: str
    replica: str
    turn: Turn | None
    since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has taken."""
        return time.monotonic() - self.since

    def __str__(self) -> str:
        return f"{self.kind} {self.turn.response_id if self.turn else ''} at {self.replica}: {self.seconds:.0f} s"


@dataclass
class Tally:
    """Answers by kind of call and status, or by how the connection broke; bodies of those that are our defect."""

    answers: Counter[str] = field(default_factory=Counter[str])
    server_errors: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    _open: list["OpenCall"] = field(default_factory=list["OpenCall"])

    def open_calls(self) -> list[str]:
        """Return the calls that wait for their end."""
        return [str(call) for call in self._open]

    @contextmanager
    def calling(self, kind: str, replica: str, turn: Turn | None = None) -> Generator[None]:
        """Note that a call is under way, that it took long, and how its connection broke."""
        call = OpenCall(kind, replica, turn)
        self._open.append(call)
        try:
            yield
        except httpx2.HTTPError as error:
            self.answers[f"{kind} {type(error).__name__}"] += 1
        finally:
            self._open.remove(call)
            if call.seconds > SLOW_SECONDS:
                self.slow.append(str(call))

    def note(self, kind: str, answer: httpx2.Response) -> None:
        """Count an answer whose body has been read, or need not be."""
        self.answers[f"{kind} {answer.status_code}"] += 1
        if answer.status_code == 500 and len(self.server_errors) < KEPT_ERRORS:
            request_id = answer.headers.get("x-request-id", "")
            self.server_errors.append(f"{kind} {answer.request.url.path} ({request_id}): {answer.text[:300]}")


class Caller:
    """A user at both replicas."""

    def __init__(self, urls: Mapping[str, str], key: str, tally: Tally) -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self.replicas = tuple(urls)
        self.tally = tally
        self._clients = {
            name: httpx2.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT, trust_env=False)
            for name, url in urls.items()
        }

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()

    def other(self, replica: str) -> str:
        """Return the other replica."""
        return next(name for name in self.replicas if name != replica)

    async def send(self, replica: str, method: str, path: str, kind: str, **options: Any) -> httpx2.Response | None:
        """Send a request; None when the connection broke."""
        with self.tally.calling(kind, replica):
            answer = await self._clients[replica].request(method, path, **options)
            self.tally.note(kind, answer)
            return answer
        return None

    async def plain_turn(self, replica: str, turn: Turn, body: Body, **headers: str) -> int:
        """Run a turn without a stream and return the status, 0 when the connection broke."""
        answer = await self.send(replica, "POST", "/v1/responses", turn.kind, json=body, headers=headers)
        if answer is None or answer.status_code != 200:
            return 0 if answer is None else answer.status_code
        response = answer.json()
        turn.answered_at = time.monotonic()
        turn.response_id = response["id"]
        turn.answers.append(response["id"])
        if not body.get("background"):
            turn.plain = (response["status"], text_of(response))
        return 200

    async def streamed_turn(
        self, replica: str, turn: Turn, body: Body, leave_after: int | None = None, key: str = ""
    ) -> int:
        """Run a streamed turn, leaving after so many events where that is said; return the status."""
        headers = {"Idempotency-Key": key} if key else {}
        options = {"method": "POST", "url": "/v1/responses", "json": {**body, "stream": True}, "headers": headers}
        return await self._read(turn, Reading(replica), options, leave_after)

    async def follow(self, replica: str, turn: Turn, after: int | None, leave_after: int | None = None) -> int:
        """Read a turn's events after a number; return the status."""
        starting = {} if after is None else {"starting_after": after}
        options = {
            "method": "GET",
            "url": f"/v1/responses/{turn.response_id}",
            "params": {"stream": "true", **starting},
        }
        return await self._read(turn, Reading(replica, after), options, leave_after)

    async def _read(self, turn: Turn, reading: Reading, options: Mapping[str, Any], leave_after: int | None) -> int:
        kind = f"{turn.kind} {'stream' if options['method'] == 'POST' else 'follow'}"
        with self.tally.calling(kind, reading.replica, turn):
            async with self._clients[reading.replica].stream(**options) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                self.tally.note(kind, answer)
                if answer.status_code == 200:
                    turn.readings.append(reading)
                    await _note_events(answer, turn, reading, leave_after)
                return answer.status_code
        return 0


async def _note_events(answer: httpx2.Response, turn: Turn, reading: Reading, leave_after: int | None) -> None:
    async for line in answer.aiter_lines():
        if not line.startswith("data: {"):
            continue
        body = orjson.loads(line[6:])
        if "response" in body:
            turn.response_id = body["response"]["id"]
        if (event := seen_event(line, body)) is not None:
            reading.events.append(event)
            reading.times.append(time.monotonic())
        if leave_after is not None and len(reading.events) >= leave_after:
            return


def seen_event(line: str, body: Body) -> SeenEvent | None:
    """Reduce an event; None for one without a number."""
    number, kind = body.get("sequence_number"), body["type"]
    if number is None:
        return None
    text = body["delta"] if kind == DELTA else body["error"]["type"] if kind == "error" else ""
    status = body["response"]["status"] if kind in LAST_EVENTS else ""
    return SeenEvent(number, kind, zlib.crc32(line.encode()), text, status)
