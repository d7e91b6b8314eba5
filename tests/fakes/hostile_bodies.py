"""Bodies that are meant to hold a server's event loop or to fill its memory, each of a given length in bytes."""

import base64
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple
from uuid import uuid4

import orjson

CHAT = "/v1/chat/completions"
JSON = "application/json"
USER = b'{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}'
SECONDS_TO_SEND = 120.0


class Attack(NamedTuple):
    """One request: where it goes, with what, and which statuses are right answers."""

    name: str
    path: str
    body: bytes
    statuses: tuple[int, ...] = (400,)

    @property
    def headers(self) -> dict[str, str]:
        """The headers it is sent with; a key of its own lets the server hash what it accepts."""
        return {"content-type": JSON, "idempotency-key": uuid4().hex}


def _filled(before: bytes, unit: bytes, after: bytes, length: int) -> bytes:
    return before + unit * ((length - len(before) - len(after)) // len(unit)) + after


def _numbered(before: bytes, unit: Callable[[int], bytes], after: bytes, length: int) -> bytes:
    pieces, left = [before], length - len(before) - len(after)
    for number in count():
        piece = unit(number)
        left -= len(piece)
        if left < 0:
            break
        pieces.append(piece)
    return b"".join([*pieces, after])


def wide_bodies(length: int) -> Iterator[tuple[str, bytes]]:
    """Yield bodies that are refused wherever JSON is read."""
    yield "millions of unknown keys", _numbered(b'{"input":"x"', lambda n: b',"k%d":1' % n, b"}", length)
    yield "millions of equal keys", _filled(b'{"input":"x"', b',"k":1', b"}", length)
    yield "millions of empty objects", _filled(b'{"input":[{}', b",{}", b"]}", length)
    yield "millions of short strings", _filled(b'{"include":["a"', b',"a"', b"]}", length)
    yield "a million items", _filled(b'{"input":[' + USER, b"," + USER, b"]}", length)
    yield "millions of metadata", _numbered(b'{"metadata":{"a":"b"', lambda n: b',"%d":"b"' % n, b"}}", length)
    yield "millions of levels", _filled(b'{"input":', b"[", b"", length)
    yield "brackets that only close", b"]" * length
    yield "quotes", b'"' * length
    yield "backslashes", b"\\" * length
    yield "a long number", _filled(b'{"input":', b"9", b"}", length)
    yield "a long string of escapes", _filled(b'{"input":"', rb"\u4e2d", b'"}', length)
    yield "a long text", _filled(b'{"input":"', b"hello, world ", b'"}', length)
    yield "a long key", _filled(b'{"', b"k", b'":1}', length)
    yield "blanks", _filled(b"", b" ", b"[]", length)
    yield "invalid UTF-8", _filled(b'{"input":"', b"\xff", b'"}', length)
    yield "zeros", bytes(length)
    yield (
        "an image of no base64",
        _filled(
            b'{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,',
            b"AB*D",
            b'"}]}]}',
            length,
        ),
    )


def attacks(length: int) -> Iterator[Attack]:
    """Yield attacks on the routes that take JSON; what is within all bounds comes last."""
    for name, body in wide_bodies(length):
        yield Attack(name, "/v1/responses", body)
    keys = _numbered(b'{"name":"x"', lambda n: b',"k%d":1' % n, b"}", length)
    for path in ("/v1/conversations", "/v1/knowledge_bases", "/v1/knowledge_bases/kb_0/search"):
        yield Attack("millions of unknown keys", path, keys)
    yield from _near_the_bounds(length)


def _near_the_bounds(length: int) -> Iterator[Attack]:
    background: dict[str, object] = {"background": True, "input": "x"}
    image = "data:image/png;base64," + base64.b64encode(bytes(min(length, 28_000_000) * 3 // 4)).decode()
    shown = {"role": "user", "content": [{"type": "input_image", "image_url": image}]}
    parts = {"role": "user", "content": [{"type": "input_text", "text": "x"}] * 1_000}
    wrong_item, wrong_parts = {"role": "user", "content": 7}, {"role": "user", "content": [{"a": 1}] * 5_000}
    schema = {f"k{n}": {f"p{m}": {"a": "b"} for m in range(70)} for n in range(70)}
    tool = {"type": "function", "name": "f", "parameters": schema}
    items = b",".join([USER] * 2_000)
    text = "hello, world " * (min(length, 10_000_000) // 13)
    newlines = "\n" * (min(length, 31_000_000) // 6)
    spoken = {"role": "user", "content": [{"type": "input_text", "text": newlines}] * 2}
    keys = dict.fromkeys((f"k{number}" for number in range(16_000)), 1)
    chat_parts = {"role": "user", "content": [{"type": "text", "text": "x"}] * 1_000}
    fine = (200, 400, 502, 503, 504)
    for name, path, body, statuses in (
        ("16,000 unknown keys", "/v1/responses", {"input": "x", **keys}, (400,)),
        ("5,000 wrong parts", "/v1/responses", {"input": [wrong_parts]}, (400,)),
        ("2,000 wrong items", "/v1/responses", {"input": [wrong_item] * 2_000}, (400,)),
        ("16,000 unknown keys", "/v1/knowledge_bases", keys, (400,)),
        ("2,000 wrong items", "/v1/conversations", {"items": [wrong_item] * 2_000}, (400,)),
        ("5,000 wrong parts", CHAT, {"messages": [wrong_parts]}, (400,)),
        ("2,000 wrong messages", CHAT, {"messages": [wrong_item] * 2_000}, (400,)),
        ("4,000 parts", CHAT, {"messages": [chat_parts] * 4}, fine),
        ("2,000 messages", CHAT, {"messages": [{"role": "user", "content": "hi"}] * 2_000}, fine),
        ("4,000 parts", "/v1/responses", {**background, "input": [parts] * 4}, fine),
        ("a tool of 5,000 keys", "/v1/responses", {**background, "tools": [tool]}, fine),
        ("a text of 10 MB", "/v1/responses", {**background, "instructions": text}, fine),
        ("texts of newlines", "/v1/responses", {**background, "instructions": newlines, "input": [spoken]}, fine),
        ("an image of 20 MB", "/v1/responses", {**background, "input": [shown]}, fine),
        ("an image of 20 MB", "/v1/conversations", {"items": [shown]}, (201,)),
    ):
        yield Attack(name, path, orjson.dumps(body), statuses)
    yield Attack("2,000 items", "/v1/responses", b'{"background":true,"input":[%b]}' % items, fine)
    yield Attack("2,000 items", "/v1/conversations", b'{"items":[%b]}' % items, (201,))
