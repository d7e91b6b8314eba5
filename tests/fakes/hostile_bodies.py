"""Bodies that are meant to hold a server's event loop or to fill its memory, each of a given length in bytes."""

import base64
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple
from uuid import uuid4

import orjson

CHAT = "/v1/chat/completions"
JSON = "application/json"
STORE, AGENT = "/v1/vector_stores/kb_0", "/v1/agents/hostile"
FORM_START = b"--b\r\n"
RESOURCE = (
    b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"ballast://knowledge_bases/kb_0/documents/'
)
CURSOR = b'{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"'
USER = b'{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}'
SECONDS_TO_SEND = 120.0


class Attack(NamedTuple):
    """One request: where it goes, with what, and which statuses are right answers."""

    name: str
    path: str
    body: bytes
    statuses: tuple[int, ...] = (400,)
    media_type: str = JSON
    method: str = "POST"

    @property
    def headers(self) -> dict[str, str]:
        """The headers it is sent with; a key of its own lets the server hash what it accepts."""
        return {"content-type": self.media_type, "idempotency-key": uuid4().hex}


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
    """Yield attacks on all routes that take a body; what is within all bounds comes last."""
    for name, body in wide_bodies(length):
        yield Attack(name, "/v1/responses", body)
    keys = _numbered(b'{"name":"x"', lambda n: b',"k%d":1' % n, b"}", length)
    for path in (
        *("/v1/conversations", "/v1/knowledge_bases", "/v1/knowledge_bases/kb_0/search", "/mcp"),
        *("/v1/vector_stores", f"{STORE}/search", f"{STORE}/files", f"{STORE}/file_batches"),
    ):
        yield Attack("millions of unknown keys", path, keys)
    yield Attack("millions of unknown keys", AGENT, keys, method="PUT")
    yield from _forms(length)
    yield from _messages(length)
    yield from _searches_and_agents()
    yield from _near_the_bounds(length)


def _forms(length: int) -> Iterator[Attack]:
    """Yield uploads: forms whose parts, headers or boundaries have no end, and a file of the greatest length."""
    file = FORM_START + b'content-disposition: form-data; name="file"; filename="a.txt"\r\n'
    purpose = b'\r\n--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nassistants\r\n--b--\r\n'
    named = FORM_START + b'content-disposition: form-data; name="'
    for name, body, statuses in (
        ("millions of parts", _filled(b"", FORM_START + b"\r\n\r\n", b"", length), (400,)),
        ("millions of headers", _filled(FORM_START, b"a: b\r\n", b"\r\n", length), (400,)),
        ("a long header", _filled(named, b"a", b'"\r\n\r\n', length), (400,)),
        ("a header of options", _filled(named + b'a"', b";a=b", b"\r\n\r\n", length), (400,)),
        ("almost boundaries", _filled(file + b"\r\n", b"\r\n--", purpose, length), (201,)),
        ("line ends", _filled(file + b"\r\n", b"\r", purpose, length), (201,)),
        ("a long preamble", _filled(b"", b"-", b"", length), (400,)),
        ("a long field", _filled(named + b'purpose"\r\n\r\n', b"a", purpose, length), (400,)),
        ("a long file", _filled(file + b"\r\n", b"hello, world ", purpose, length), (201,)),
    ):
        yield Attack(name, "/v1/files", body, statuses, "multipart/form-data; boundary=b")


def _messages(length: int) -> Iterator[Attack]:
    """Yield messages of the Model Context Protocol, most of them within its bound of a mebibyte."""
    start = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_knowledge","arguments":{"query":"'
    wide, most = min(length, 200_000), min(length, 1_048_576)
    known = (200, 400)
    for name, body, statuses in (
        ("a long argument", _filled(start, b"a", b'"}}}', length), (400, 413)),
        ("an argument of a mebibyte", _filled(start, b"a", b'"}}}', most), known),
        ("words of a mebibyte", _filled(start, b"tide ", b'"}}}', most), known),
        ("newlines of a mebibyte", _filled(start, rb"\n", b'"}}}', most), known),
        ("1,000 unknown arguments", _numbered(start + b'"', lambda n: b',"k%d":1' % n, b"}}}", 9_000), known),
        ("a long name", _filled(start[:69], b"a", b'"}}', most), known),
        ("a long method", _filled(b'{"jsonrpc":"2.0","id":1,"method":"', b"a", b'"}', most), known),
        ("a long id", _filled(b'{"jsonrpc":"2.0","method":"ping","id":"', b"a", b'"}', most), known),
        ("a number of many digits", _filled(b'{"jsonrpc":"2.0","method":"ping","id":', b"9", b"}", wide), (400,)),
        ("a long address", _filled(RESOURCE, b"%41", b'"}}', most), known),
        ("a long cursor", _filled(CURSOR, b"QUFB", b'"}}', most), known),
    ):
        yield Attack(name, "/mcp", body, statuses)


def _searches_and_agents() -> Iterator[Attack]:
    """Yield bodies within or near the bounds of searches, batches and agents."""
    words = " ".join(f"w{n}" for n in range(3_500))[:20_000]
    equal: dict[str, object] = {"type": "eq", "key": "a", "value": "b"}
    deep = equal
    for _ in range(60):
        deep = {"type": "and", "filters": [deep]}
    wide = {"type": "or", "filters": [equal] * 240}
    schema = {f"k{n}": {f"p{m}": {"a": "b"} for m in range(70)} for n in range(70)}
    tools: list[dict[str, object]] = [{"type": "function", "name": f"f{n}", "parameters": {}} for n in range(1_000)]
    definitions: tuple[tuple[str, dict[str, object]], ...] = (
        ("a tool of 5,000 keys", {"tools": [{"type": "function", "name": "f", "parameters": schema}]}),
        ("1,000 tools", {"tools": tools}),
        ("2,000 wrong tools", {"tools": [{"type": "no"}] * 2_000}),
        ("instructions of 10 MB", {"instructions": "hello, world " * 770_000}),
    )
    not_there = (400, 404)
    for name, path, body in (
        ("16 queries of 20,000 characters", f"{STORE}/search", {"query": [words] * 16}),
        ("a deep filter", f"{STORE}/search", {"query": "x", "filters": deep}),
        ("a wide filter", f"{STORE}/search", {"query": "x", "filters": wide}),
        ("500 files", f"{STORE}/file_batches", {"file_ids": [f"file-{n}" for n in range(500)]}),
        ("500 files", "/v1/vector_stores", {"file_ids": [f"file-{n}" for n in range(500)]}),
    ):
        yield Attack(name, path, orjson.dumps(body), not_there)
    for name, body in definitions:
        yield Attack(name, AGENT, orjson.dumps({"model": "bench", **body}), (200, 201, 400, 413), method="PUT")


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
