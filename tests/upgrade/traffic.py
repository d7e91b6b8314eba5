"""Users whose turns, searches, streams and documents never stop, sent to whichever backend is in use."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx2

from tests.e2e.turns import events_of, file_search, text_of
from tests.upgrade.columns import NEW, Column

Body = dict[str, Any]
DOCUMENT = "The lamp of the lighthouse burns {number} hours.\n\nIts keeper is called Maren.\n"
QUESTION = "Who is the keeper of the lighthouse?"


@dataclass
class Traffic:
    """The balancer, what was sent through it, and what came back wrong."""

    columns: Sequence[Column]
    sent: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    is_over: bool = False
    _next: "count[int]" = field(default_factory=count)

    async def call(self, key: str, method: str, path: str, *, found: str = "", **content: Any) -> httpx2.Response:
        """Send one request, never twice; note whatever is no success, and where this release does not find a word."""
        usable = [column for column in self.columns if column.in_use]
        column = usable[next(self._next) % len(usable)]
        kind, code = f"{method} {path.split('/')[2]}", column.backend_code
        self.sent[kind] += 1
        headers = {"Authorization": f"Bearer {key}"}
        try:
            async with httpx2.AsyncClient(base_url=column.url, headers=headers, timeout=120, trust_env=False) as client:
                answer = await client.request(method, path, **content)
        except httpx2.HTTPError as error:
            self.wrong.append(f"{kind} on {column.name}: {type(error).__name__} {error}")
            raise
        if answer.status_code >= 400:
            self.wrong.append(f"{kind} on {column.name}: {answer.status_code} {answer.text}")
        elif found not in answer.text and code == NEW:
            self.wrong.append(f"{kind} on {column.name} did not find {found}: {answer.text}")
        return answer

    async def until(self, kind: str, more: int) -> None:
        """Wait until so many more requests of a kind have been sent."""
        wanted = self.sent[kind] + more
        while self.sent[kind] < wanted:
            assert not self.wrong, self.wrong[:5]
            await asyncio.sleep(0.05)


class User:
    """Somebody with a key, a conversation and a knowledge base, who does one thing after the other."""

    def __init__(self, traffic: Traffic, key: str) -> None:
        self._traffic = traffic
        self._key = key
        self._conversation = ""
        self._base = ""
        self.turns = 0

    async def settle(self) -> None:
        """Make the conversation, and the base with a document."""
        created = await self._call("POST", "/v1/knowledge_bases", json={"name": "Lighthouse", "summary": "Its lamp."})
        self._base = created.json()["id"]
        await self._ingest(0)
        self._conversation = (await self._call("POST", "/v1/conversations", json={})).json()["id"]

    async def act(self) -> None:
        """Do everything in turn until the traffic is over."""
        for number in count():
            if self._traffic.is_over:
                return
            await self._plain_turn()
            await self._short_conversation()
            await self._searching_stream()
            await self._search()
            await self._ingest(number)

    async def history(self) -> list[Body]:
        """Return the items of the conversation, up to a hundred of the newest."""
        page = f"/v1/conversations/{self._conversation}/items?limit=100"
        return (await self._call("GET", page)).json()["data"]

    async def _plain_turn(self) -> None:
        body: Body = {"input": "Good morning", "conversation": self._conversation, "tools": []}
        answer = await self._call("POST", "/v1/responses", json=body)
        self._note_end(answer.json(), "plain turn")

    async def _short_conversation(self) -> None:
        """Begin a conversation in one release and go on in whichever comes next: their fixed texts are not the same."""
        begun = await self._call("POST", "/v1/responses", json={"input": "Good morning", "tools": []})
        self._note_answer(begun.json(), "first turn")
        body: Body = {"input": "And now?", "previous_response_id": begun.json()["id"], "tools": []}
        self._note_answer((await self._call("POST", "/v1/responses", json=body)).json(), "second turn")

    async def _searching_stream(self) -> None:
        """Take a turn that searches the base, as events."""
        tools = [file_search(self._base)]
        body: Body = {"input": QUESTION, "conversation": self._conversation, "tools": tools, "stream": True}
        answer = await self._call("POST", "/v1/responses", json=body)
        events = events_of(answer.text)
        self._note_end(events[-1].get("response", {}), "stream")
        searched = [item for item in events[-1]["response"]["output"] if item["type"] == "file_search_call"]
        if not searched or searched[0]["status"] != "completed":
            self._traffic.wrong.append(f"a turn did not search: {events[-1]}")

    async def _search(self) -> None:
        # The release before does not find what this one has put, and must answer all the same.
        await self._call("POST", f"/v1/knowledge_bases/{self._base}/search", json={"query": "keeper"}, found="Maren")

    async def _ingest(self, number: int) -> None:
        path = f"/v1/knowledge_bases/{self._base}/documents/lamp.md"
        await self._call("PUT", path, content=DOCUMENT.format(number=number).encode())

    def _note_end(self, response: Body, what: str) -> None:
        self.turns += 1
        self._note_answer(response, what)

    def _note_answer(self, response: Body, what: str) -> None:
        if response.get("status") != "completed" or not text_of(response):
            self._traffic.wrong.append(f"{what}: {response}")

    async def _call(self, method: str, path: str, **content: Any) -> httpx2.Response:
        return await self._traffic.call(self._key, method, path, **content)
