"""What ends a turn while clients stream it: each stream has a terminal event of its kind, then `[DONE]`."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

import pytest

from backend.turns.http.event_stream import DONE
from shared.errors import ChatShellSilent, DeadlineExceeded, ModelStreamCut, Unavailable
from shared.models.events import ModelCallStarted, TextDelta
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.checked_streams import api_formats, checked
from tests.fakes.openai_types import check_event
from tests.fakes.served_turns import CHAT, FAILS, RESPONSES, LeavingClient, ServedApi, idle, reached, serve_api
from tests.patience import until
from tests.unit.backend.turns.asking import run_waiting

SAYS = [ModelCallStarted(call=1), TextDelta(text="Half")]


class Streams(NamedTuple):
    """The streams that are read of one turn: that of who asked, of who follows it, and of who comes back to it."""

    api: ServedApi
    response_id: str
    asked: LeavingClient
    followed: Sequence[asyncio.Task[Any]]
    gate: asyncio.Event


async def cancel(streams: Streams) -> None:
    assert (await streams.api.http.post(f"{RESPONSES}/{streams.response_id}/cancel")).status_code == 200


async def delete(streams: Streams) -> None:
    assert (await streams.api.http.delete(f"{RESPONSES}/{streams.response_id}")).status_code == 200


async def drain(streams: Streams) -> None:
    for running in tuple(cast(Any, streams.api.turns.registry)._running):
        running.interrupted.set()


async def expire(streams: Streams) -> None:
    streams.api.turns.clock.advance(timedelta(hours=2).total_seconds())
    streams.gate.set()


async def go_on(streams: Streams) -> None:
    streams.gate.set()


async def lose_events(streams: Streams) -> None:
    await streams.api.turns.events.drop(streams.response_id)
    streams.gate.set()


WAYS: list[tuple[Callable[[Streams], Awaitable[None]], Sequence[Any], set[str]]] = [
    (cancel, [], {"response.incomplete"}),
    (delete, [], {"response.incomplete"}),
    (drain, [], {"response.incomplete"}),
    (lose_events, answer("There."), {"error", "response.completed"}),
    (go_on, FAILS[2:], {"response.failed"}),
    (go_on, [ModelStreamCut("Cut.")], {"response.failed"}),
    (go_on, [Unavailable("Away.")], {"response.failed"}),
    (go_on, [ChatShellSilent("Silent.")], {"response.incomplete"}),
    (go_on, [DeadlineExceeded("Late.")], {"response.failed"}),
    (go_on, [RuntimeError("a defect")], {"response.failed"}),
    (go_on, answer("There.")[1:], {"response.completed"}),
]
IN_CHAT = {"error": "error", "response.failed": "error", "response.incomplete": "chunk", "response.completed": "chunk"}
"""As what a turn's last event is told in Chat Completions."""

NAMES = [
    "cancel",
    "delete",
    "drain",
    "lost events",
    "provider",
    "cut",
    "away",
    "failover",
    "deadline",
    "defect",
    "the end",
]


def last_type(content: bytes) -> str:
    """Return the type of the last event of a stream, of which those between may be missing."""
    *_, last, done, empty = content.split(b"\n\n")
    assert (done + b"\n\n", empty) == (DONE, b"")
    return check_event(last.rpartition(b"data: ")[2])["type"]


def check_end(content: bytes, path: str) -> str:
    """Check that a stream is whole; return the type of its last event, `[DONE]` behind a chunk as such."""
    of_responses, of_chat = api_formats()
    if path == RESPONSES:
        return checked(content, of_responses)["type"]
    last = checked(content, of_chat)
    return "error" if "error" in last else "chunk"


def body_of(client: LeavingClient) -> bytes:
    return b"".join(message.get("body", b"") for message in client.received)


@pytest.mark.parametrize("path", [RESPONSES, CHAT])
@pytest.mark.parametrize(("end", "rest", "types"), WAYS, ids=NAMES)
async def test_whatever_ends_a_running_turn_each_stream_of_it_is_whole(
    path: str, end: Callable[[Streams], Awaitable[None]], rest: Sequence[Any], types: set[str]
) -> None:
    gate = asyncio.Event()
    async with serve_api([*SAYS, gate, *rest]) as api:
        asked = LeavingClient(api, path, stream=True)
        response_id = await asked.response_id()
        await until(lambda: b"Half" in body_of(asked))
        address = f"{RESPONSES}/{response_id}?stream=true"
        followed = [asyncio.create_task(api.http.get(f"{address}{after}")) for after in ("", "&starting_after=0")]
        streams = Streams(api, response_id, asked, followed, gate)
        await end(streams)
        await asked.asking
        expected = types if path == RESPONSES else {IN_CHAT[each] for each in types}
        assert check_end(body_of(asked), path) in expected
        for reading in followed:
            assert last_type((await reading).content) in types
        gate.set()
        await idle(api)


@pytest.mark.parametrize("how", ["delete", "cancel", "expire"])
async def test_whatever_ends_a_waiting_turn_its_streams_are_whole(how: str) -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("First")]) as api:
        first = await api.openai.responses.create(input="Hi", background=True)
        await reached(api, 1)
        assert first.conversation is not None
        asked = LeavingClient(api, RESPONSES, conversation=first.conversation.id, if_running="queue", stream=True)
        response_id = await asked.response_id()
        followed = asyncio.create_task(api.http.get(f"{RESPONSES}/{response_id}?stream=true"))
        streams = Streams(api, response_id, asked, [followed], gate)
        if how in ("delete", "cancel"):
            await {"delete": delete, "cancel": cancel}[how](streams)
        else:
            await expire(streams)
            await idle(api)
            await run_waiting(api.turns)
        await asked.asking
        expected = "response.incomplete" if how in ("delete", "cancel") else "response.failed"
        assert check_end(body_of(asked), RESPONSES) == expected
        # who comes behind the deletion hears that there is no such response
        after = await followed
        assert after.status_code == 404 or check_end(after.content, RESPONSES) == expected
        gate.set()
        await idle(api)
