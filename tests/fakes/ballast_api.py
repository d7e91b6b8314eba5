"""A fake of the backend's public API in memory, behind the HTTP client of the command `ballast`."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

import httpx2

Json = dict[str, Any]
Handler = Callable[[httpx2.Request, re.Match[str]], httpx2.Response]

KEY = "key-of-ann"


def answer(body: Json, status: int = 200) -> httpx2.Response:
    """Answer with an object of the API, which says of itself that it is one."""
    return httpx2.Response(status, json={"object": "planted", **body})


def refusal(status: int, message: str, kind: str = "invalid_request_error", code: str | None = None) -> httpx2.Response:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return httpx2.Response(status, json={"error": error})


def page(items: list[Json], request: httpx2.Request) -> httpx2.Response:
    """Answer with the page that a request asks for, of at most three items: lists have several pages."""
    ids = [str(item["id"]) for item in items]
    after = request.url.params.get("after")
    start = ids.index(after) + 1 if after else 0
    shown = items[start : start + 3]
    has_more = start + 3 < len(items)
    return answer({"object": "list", "data": shown, "last_id": shown[-1]["id"] if shown else "", "has_more": has_more})


def stream(*events: Json, whole: bool = True) -> httpx2.Response:
    """Answer with numbered events; one that is not whole breaks off without an end."""
    lines = [f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    text = "".join([*lines, "data: [DONE]\n\n"] if whole else lines)
    return httpx2.Response(200, content=text.encode(), headers={"content-type": "text/event-stream"})


@dataclass
class FakeBallast:
    """Bases with their documents; `routes` come before what it knows by itself, and `open` paths ask for no key."""

    bases: dict[str, str] = field(default_factory=dict[str, str])
    documents: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    routes: list[tuple[str, Handler]] = field(default_factory=list[tuple[str, Handler]])
    open: tuple[str, ...] = ()
    roles: dict[str, str] = field(default_factory=dict[str, str])
    calls: list[str] = field(default_factory=list[str])
    bodies: list[Json] = field(default_factory=list[Json])

    @property
    def transport(self) -> httpx2.MockTransport:
        return httpx2.MockTransport(self.handle)

    @property
    def puts(self) -> list[str]:
        return [call for call in self.calls if call.startswith("PUT ")]

    def on(self, pattern: str, handler: Handler) -> None:
        """Answer calls whose `METHOD /path` a pattern matches whole."""
        self.routes.insert(0, (pattern, handler))

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        call = f"{request.method} {request.url.raw_path.decode().partition('?')[0]}"
        self.calls.append(call)
        body = await request.aread()
        if request.headers.get("content-type") == "application/json":
            self.bodies.append(json.loads(body))
        if request.url.path not in self.open and request.headers.get("authorization") != f"Bearer {KEY}":
            return refusal(401, "This API key is not valid.", "authentication_error")
        for pattern, handler in (*self.routes, *self._own()):
            if match := re.fullmatch(pattern, call):
                return handler(request, match)
        return refusal(404, f"Nothing is at {call}.", "not_found_error")

    def _own(self) -> tuple[tuple[str, Handler], ...]:
        base = "/v1/knowledge_bases/([^/]+)"
        return (
            ("GET /v1/knowledge_bases", lambda request, _: page([self._base(each) for each in self.bases], request)),
            ("POST /v1/knowledge_bases", lambda _, __: self._make()),
            (f"GET {base}", lambda _, match: answer(self._base(match[1]))),
            (f"GET {base}/documents", lambda request, match: page(self._documents(match[1]), request)),
            (f"PUT {base}/documents/([^/]+)", lambda request, match: self._put(match[1], unquote(match[2]), request)),
            (f"DELETE {base}/documents/([^/]+)", lambda _, match: self._delete(match[1], unquote(match[2]))),
            (f"POST {base}/search", lambda _, match: self._search(match[1])),
        )

    def _base(self, base_id: str) -> Json:
        count = sum(base == base_id for base, _ in self.documents)
        role = self.roles.get(base_id, "owner")
        return {
            "id": base_id, "name": self.bases[base_id], "role": role, "chunks": count, "embedded_chunks": count - 1,
            "embedding_seconds_left": 130,
        }  # fmt: skip

    def _make(self) -> httpx2.Response:
        base_id = f"kb_{len(self.bases) + 1}"
        self.bases[base_id] = self.bodies[-1]["name"]
        return answer(self._base(base_id), 201)

    def _documents(self, base_id: str) -> list[Json]:
        return [
            {"id": f"doc_{name}", "name": name, "sha256": sha256(body).hexdigest(), "bytes": len(body), "chunks": 1}
            for (base, name), body in sorted(self.documents.items())
            if base == base_id
        ]

    def _put(self, base_id: str, name: str, request: httpx2.Request) -> httpx2.Response:
        body = request.content
        if b"\0" in body:
            return refusal(400, f"body: {name} is no text")
        self.documents[base_id, name] = body
        notes = ["Page 3 has no text."] if b"scan" in body else []
        return answer({"id": f"doc_{name}", "name": name, "notes": notes}, 201)

    def _delete(self, base_id: str, name: str) -> httpx2.Response:
        del self.documents[base_id, name]
        return answer({})

    def _search(self, base_id: str) -> httpx2.Response:
        hits: list[Json] = [
            {"document": name, "heading_path": [], "text": ""} for base, name in self.documents if base == base_id
        ]
        return answer({"object": "list", "data": hits})
