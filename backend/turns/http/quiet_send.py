"""Streams whose sizes and times do not depend on what is said in them."""

import asyncio
from math import ceil

from starlette.types import Message, Send

from backend.turns.domain.quiet_pace import QuietPace

STEP_SECONDS, STEP_BYTES = 0.1, 4096
_HELD_STEPS = 5
_END = b"\n\n"


class QuietSend:
    """Sends a body of server-sent events in steps of one size, filled up with comments that stand between events.

    Its pace says how long it takes. The last piece leaves right before the end, since a client that has read it leaves.
    """

    def __init__(self, send: Send, pace: QuietPace) -> None:
        self._send = send
        self._pace = pace
        self._waiting = bytearray()
        self._newest = b""
        self._newest_at = self._steps = 0
        self._is_over = self._is_within = False
        self._sent = asyncio.Event()

    async def __call__(self, message: Message) -> None:
        """Take a piece of the body; it is the last one where this returns once all was sent."""
        is_over = not message["more_body"]
        self._waiting += b"" if is_over else self._newest
        self._newest = self._newest + message["body"] if is_over else message["body"]
        self._newest_at, self._is_over = self._steps, is_over
        if is_over:
            await self._sent.wait()

    async def run(self) -> None:
        """Send one step after another until the end."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not self._is_over:
            if self._steps - self._newest_at > _HELD_STEPS:
                self._let_go()
            await self._step(begun)
        last = _steps_of(self._newest)
        least = self._steps + _steps_of(self._waiting) + last
        end = self._pace.round_up(least, max(1, round(self._pace.shortest_seconds / STEP_SECONDS)))
        while self._steps < end - last:
            await self._step(begun)
        self._let_go()
        while self._steps < end:
            await self._step(begun)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        self._sent.set()

    def _let_go(self) -> None:
        self._waiting += self._newest
        self._newest = b""

    async def _step(self, begun: float) -> None:
        self._steps += 1
        await asyncio.sleep(begun + self._steps * STEP_SECONDS - asyncio.get_running_loop().time())
        body = bytes(self._waiting[:STEP_BYTES])
        del self._waiting[:STEP_BYTES]
        if len(body) < STEP_BYTES:
            between = body.find(_END) + len(_END) if self._is_within else 0
            body = body[:between] + _fill(STEP_BYTES - len(body)) + body[between:]
        self._is_within = not body.endswith(_END)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


def _steps_of(body: bytes | bytearray) -> int:
    return ceil(len(body) / STEP_BYTES)


def _fill(size: int) -> bytes:
    """Return a comment of this size; two bytes have room for empty lines only."""
    return b":" + b" " * (size - 3) + _END if size > 2 else b"\n" * size
