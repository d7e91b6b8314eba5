"""An actor who sends what nobody should: bodies with too much of everything, half requests, hostile documents."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from tests.chaos.world import World

JSON = {"Content-Type": "application/json"}
PAUSE_SECONDS = (1.0, 3.0)
KEYS, DEPTH, LETTERS, TAGS = 150_000, 60_000, 4_000_000, 100_000


def many_keys() -> bytes:
    """Return an object with a great many unknown keys."""
    return b'{"input":"x",' + b",".join(b'"k%d":%d' % (place, place) for place in range(KEYS)) + b"}"


def deep() -> bytes:
    """Return an input that is nested without an end in sight."""
    return b'{"input":' + b"[" * DEPTH + b"]" * DEPTH + b"}"


def long() -> bytes:
    """Return a model's name of some megabytes."""
    return b'{"input":"x","model":"' + b"m" * LETTERS + b'"}'


def many_items() -> bytes:
    """Return an input of a great many wrong items."""
    return b'{"input":[' + b",".join([b'{"role":"nobody"}'] * (KEYS // 3)) + b"]}"


def broken_text() -> bytes:
    """Return bytes that are no UTF-8."""
    return b'{"input":"\xff\xfe\xed\xa0\x80"}'


def lone_surrogate() -> bytes:
    """Return an escape that stands for no character."""
    return b'{"input":"\\ud800","metadata":{"a":"\\udfff"}}'


def nested_markup() -> bytes:
    """Return a page of elements within elements."""
    return b"<div>" * TAGS + b"x"


def one_attribute() -> bytes:
    """Return an element with a great many attributes."""
    return b"<p " + b" ".join(b"a%d=1" % place for place in range(TAGS)) + b">x</p>"


def one_line() -> bytes:
    """Return a text without a blank."""
    return b"x" * LETTERS


BODIES: tuple[Callable[[], bytes], ...] = (many_keys, deep, long, many_items, broken_text, lone_surrogate)
DOCUMENTS: tuple[tuple[Callable[[], bytes], str], ...] = (
    (nested_markup, "text/html"),
    (one_attribute, "text/html"),
    (one_line, "text/plain"),
    (nested_markup, "application/pdf"),
)


async def send_rubbish(world: World, actor: str, user: str) -> None:
    """Send one thing after the other until the load stops; 500s are noted by the caller."""
    caller, dice = world.caller(user), world.dice(actor)
    try:
        while not world.stopped.is_set():
            replica = dice.choice(caller.replicas)
            drawn = dice.random()
            if drawn < 0.6:
                body = dice.choice(BODIES)
                kind = f"hostile {body.__name__}"
                await caller.send(replica, "POST", "/v1/responses", kind, content=body(), headers=JSON)
            elif drawn < 0.85:
                document, media_type = dice.choice(DOCUMENTS)
                path = f"/v1/knowledge_bases/{world.bases['hostile']}/documents/{document.__name__}"
                kind = f"hostile {document.__name__} {media_type}"
                await caller.send(replica, "PUT", path, kind, content=document(), headers={"Content-Type": media_type})
            else:
                await half_a_request(world.urls[replica], world.keys[user], dice)
            await asyncio.sleep(dice.uniform(*PAUSE_SECONDS))
    finally:
        await caller.close()


async def half_a_request(url: str, key: str, dice: random.Random) -> None:
    """Announce a body, send some of it, and leave."""
    place = urlsplit(url)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(5):
            _, writer = await asyncio.open_connection(place.hostname, place.port)
        lines = ("POST /v1/responses HTTP/1.1", f"Host: {place.netloc}", f"Authorization: Bearer {key}")
        head = "\r\n".join((*lines, "Content-Type: application/json", "Content-Length: 1000000", "", ""))
        writer.write(head.encode() + b'{"input":"')
        await asyncio.sleep(dice.uniform(*PAUSE_SECONDS))
        writer.transport.abort()
