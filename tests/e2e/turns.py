"""Turns over bare HTTP, for tests that look at the bytes on both sides of the pair."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import httpx2
import orjson

from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall
from tests.patience import PATIENCE_SECONDS

ANNOUNCED_BYTES = 20_000_000
Body = dict[str, Any]

SUFFIX = re.compile(r"\n\n<time>\d{4}-\d\d-\d\d \d\d:\d\d [A-Za-z/_]+</time>\Z")
DONE = "data: [DONE]"


def bare_client(pair: Pair, user_id: str) -> httpx2.AsyncClient:
    """Return a client with this user's key, to be used in an `async with`."""
    headers = {"Authorization": f"Bearer {pair.key(user_id)}"}
    return httpx2.AsyncClient(
        base_url=pair.backend_url, headers=headers, timeout=PATIENCE_SECONDS, trust_env=False, verify=False
    )


async def turn(client: httpx2.AsyncClient, asked: Any, **fields: Any) -> Body:
    """Run a turn that must be answered with a response, and return it."""
    answer = await client.post("/v1/responses", json={"input": asked, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def streamed_turn(client: httpx2.AsyncClient, asked: Any, **fields: Any) -> list[Body]:
    """Run a streamed turn to its end and return its events."""
    answer = await client.post("/v1/responses", json={"input": asked, "stream": True, **fields})
    assert answer.status_code == 200, answer.text
    return events_of(answer.text)


def events_of(text: str, *, is_whole: bool = True) -> list[Body]:
    """Read a stream, which must end with `[DONE]` and, if nothing of it was lost, be numbered without gaps."""
    *frames, last, rest = text.split("\n\n")
    assert (last, rest) == (DONE, ""), text[-300:]
    events = [decoded_frame(frame) for frame in frames if not frame.startswith(":")]
    numbers = [event["sequence_number"] for event in events]
    assert not is_whole or numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return events


def decoded_frame(frame: str) -> Body:
    """Read one frame."""
    name, content = frame.split("\n")
    event = orjson.loads(content.removeprefix("data: "))
    assert name == f"event: {event['type']}"
    return event


async def live_events(response: httpx2.Response) -> AsyncIterator[Body]:
    """Read a stream event by event, as long as it lasts."""
    assert response.status_code == 200
    async for line in response.aiter_lines():
        if line.startswith("data: ") and line != DONE:
            yield orjson.loads(line.removeprefix("data: "))


async def next_delta(events: AsyncIterator[Body]) -> str:
    """Return the next piece of text."""
    async for event in events:
        if event["type"] == "response.output_text.delta":
            return event["delta"]
    raise AssertionError("the stream ended without a further delta")


def text_of(response: Body) -> str:
    """Join the text of a response's messages."""
    messages = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part.get("text", "") for message in messages for part in message["content"])


async def items_of(client: httpx2.AsyncClient, conversation_id: str) -> list[Body]:
    """Return up to a hundred items of a conversation, oldest first."""
    answer = await client.get(f"/v1/conversations/{conversation_id}/items?order=asc&limit=100")
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def new_conversation(client: httpx2.AsyncClient) -> str:
    """Create an empty conversation and return its id."""
    return (await client.post("/v1/conversations", json={})).json()["id"]


async def new_base(client: httpx2.AsyncClient, name: str, **documents: str) -> str:
    """Create a knowledge base with documents `<keyword>.md` and return its id."""
    created = await client.post("/v1/knowledge_bases", json={"name": name, "summary": f"All about {name}."})
    assert created.status_code == 201, created.text
    base_id = created.json()["id"]
    for title, text in documents.items():
        stored = await client.put(f"/v1/knowledge_bases/{base_id}/documents/{title}.md", content=text.encode())
        assert stored.status_code == 201, stored.text
    return base_id


def file_search(*base_ids: str) -> Body:
    """Make the tool that binds bases."""
    return {"type": "file_search", "vector_store_ids": list(base_ids)}


def messages_in(request: RecordedRequest) -> list[Body]:
    """Return the messages of a recorded model request, without the reminder at their end."""
    messages: list[Body] = request.json_body["messages"]
    return messages[:-1] if reminder_in(request) else messages


def reminder_in(request: RecordedRequest) -> str:
    """Return the reminder at the end of a recorded model request; "" where it has none."""
    last = request.json_body["messages"][-1]
    return last["content"] if is_reminder(last) else ""


def is_reminder(message: Body) -> bool:
    """Say whether a message of a recorded model request reminds of something."""
    return message["role"] == "user" and str(message["content"]).startswith("<system-reminder>")


def tool_results(request: RecordedRequest) -> list[Body]:
    """Return the tool messages of a recorded model request."""
    return [message for message in messages_in(request) if message["role"] == "tool"]


def wire(message: Body) -> bytes:
    """Write a message as it stands in a request."""
    return orjson.dumps(message)


async def says(model: FakeModelControl, *texts: str) -> None:
    """Script answers of one delta each."""
    await model.script(*(Reply(text=(text,)) for text in texts))


async def upload(client: httpx2.AsyncClient, name: str, body: str) -> str:
    answer = await client.post("/v1/files", data={"purpose": "user_data"}, files={"file": (name, body.encode())})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def put_agent(client: httpx2.AsyncClient, name: str, **fields: Any) -> None:
    answer = await client.put(f"/v1/agents/{name}", json=fields)
    assert answer.status_code in (200, 201), answer.text


def asked(text: str, *file_ids: str) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"type": "input_file", "file_id": file_id} for file_id in file_ids]
    return [{"role": "user", "content": [*parts, {"type": "input_text", "text": text}]}]


async def everything_about(client: httpx2.AsyncClient, response: Body) -> str:
    """Read a response, its items, prompts and events in every way there is, as one text."""
    one, items = f"/v1/responses/{response['id']}", f"/v1/conversations/{response['conversation']['id']}/items"
    results = "include[]=file_search_call.results"
    ways = [one, f"{one}?{results}", f"{one}/prompts", f"{one}/input_items", f"{one}?stream=true"]
    ways += [f"{one}?stream=true&starting_after=2", items, f"{items}?{results}"]
    answers = [await client.get(way) for way in ways] + [await client.post(f"{one}/cancel")]
    listed = (await client.get(items)).json()["data"]
    answers += [await client.get(f"{items}/{item['id']}") for item in listed]
    assert {answer.status_code for answer in answers} == {200}
    return "\n".join(answer.text for answer in answers)


def search(query: str, call_id: str | None = None, **more: Any) -> ScriptedCall:
    arguments = orjson.dumps({"query": query, **more}).decode()
    return ScriptedCall(name="knowledge_base_search", arguments=arguments, call_id=call_id)


async def answer_to_head(pair: Pair, key: str, *headers: str) -> tuple[list[str], str]:
    """Announce a long body, send nothing of it, and return the lines of the answer's head, and its body."""
    url = httpx2.URL(pair.backend_url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    lines = ["POST /v1/responses HTTP/1.1", f"Host: {url.host}", f"Authorization: Bearer {key}"]
    lines += [*headers, "Content-Type: application/json", f"Content-Length: {ANNOUNCED_BYTES}", "", ""]
    writer.write("\r\n".join(lines).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().splitlines()
    length = next(int(line.split(": ")[1]) for line in head if line.lower().startswith("content-length"))
    body = (await reader.readexactly(length)).decode()
    writer.close()
    await writer.wait_closed()
    return head, body


async def prompts(client: httpx2.AsyncClient, *responses: Body) -> list[Body]:
    """Return the calls of all these turns."""
    found: list[Body] = []
    for response in responses:
        answer = await client.get(f"/v1/responses/{response['id']}/prompts")
        assert answer.status_code == 200, answer.text
        found.extend(answer.json()["data"])
    return found


def tamper(pair: Pair, conversation_id: str, before: str, after: str) -> None:
    """Change a message of the log behind the backend's back."""
    path = pair.backend.spec.directory / "var" / "ballast.db"
    with closing(sqlite3.connect(path)) as database, database:
        changed = database.execute(
            "UPDATE log_entry SET content = replace(content, ?, ?) WHERE conversation_id = ? AND position = 0",
            (before, after, conversation_id),
        )
        assert changed.rowcount == 1
