"""A client that closes its connection: which turns end with it, at once and though their model is silent."""

import asyncio
from typing import Any, NamedTuple

import pytest

from backend.conversations.domain.responses import FinishedTurn
from backend.identity.domain import Caller, KeyRole
from backend.openai_api.domain.client_left import create_unstored_id, is_unstored_of
from backend.turns.http.event_stream import DONE
from shared.models.events import TextDelta
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import ADA
from tests.fakes.served_turns import CHAT, RESPONSES, LeavingClient, idle, reached, serve_api

CANCEL, CONTINUE = {"on_disconnect": "cancel"}, {"on_disconnect": "continue"}
SEVERAL = ["demo-model", "vendor/large"]
EVE = Caller(user_id="eve", tenant="default", role=KeyRole.USER)


class Left(NamedTuple):
    """How a turn is asked for, and whether it ends when the client of that request leaves."""

    path: str
    fields: dict[str, Any]
    ends: bool


CASES = [
    Left(CHAT, {"stream": True}, ends=True),
    Left(CHAT, {}, ends=False),
    Left(CHAT, {"stream": True, "stream_options": CONTINUE}, ends=False),
    Left(CHAT, {"stream": True, "store": False}, ends=True),
    Left(CHAT, {"stream": True, "store": False, "stream_options": CONTINUE}, ends=True),
    Left(CHAT, {"store": False}, ends=True),
    Left(CHAT, {"stream": True, "n": 3}, ends=True),
    Left(CHAT, {"store": False, "n": 2}, ends=True),
    Left(RESPONSES, {"stream": True}, ends=False),
    Left(RESPONSES, {}, ends=False),
    Left(RESPONSES, {"stream": True, "stream_options": CANCEL}, ends=True),
    Left(RESPONSES, {"stream": True, "stream_options": CANCEL, "background": True}, ends=False),
    Left(RESPONSES, {"stream": True, "store": False}, ends=True),
    Left(RESPONSES, {"store": False}, ends=True),
    Left(RESPONSES, {"stream": True, "store": False, "models": SEVERAL}, ends=True),
    Left(RESPONSES, {"stream": True, "stream_options": CANCEL, "models": SEVERAL}, ends=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_which_turns_end_with_their_client(case: Left) -> None:
    gate = asyncio.Event()
    count = case.fields.get("n") or len(case.fields.get("models", [None]))
    async with serve_api(*[[TextDelta(text="Half"), gate, *answer("Whole")]] * count) as api:
        client = LeavingClient(api, case.path, **case.fields)
        await reached(api, count)
        leaving = asyncio.create_task(client.leave())
        if case.ends:
            await idle(api)
        gate.set()
        await leaving
        await idle(api)
        assert api.turns.scripted.broken_off == (count if case.ends else 0)
        statuses = {each.status.value for each in api.turns.state.responses.values()}
        is_stored = case.fields.get("store") is not False
        assert statuses == ({"cancelled" if case.ends else "completed"} if is_stored else set())


async def test_a_conversation_goes_on_after_a_stream_that_was_closed() -> None:
    async with serve_api([TextDelta(text="Half"), asyncio.Event()], answer("Fine.")) as api:
        client = LeavingClient(api, CHAT, stream=True)
        await reached(api, 1)
        assert b"[DONE]" not in await client.leave()
        await idle(api)
        left = await api.openai.responses.retrieve(await client.response_id())
        assert (left.status, left.output_text) == ("cancelled", "Half")
        after = await api.openai.responses.create(input="Go on", previous_response_id=left.id)
        assert after.output_text == "Fine."


async def test_a_client_that_closes_as_the_turn_ends_cancels_nothing() -> None:
    async with serve_api(answer("Whole")) as api:
        client = LeavingClient(api, CHAT, stream=True)
        store = api.turns.turns
        finish = store.finish

        async def finish_late(turn: FinishedTurn) -> bool:
            client.is_time.set()
            await client.asking
            return await finish(turn)

        store.finish = finish_late
        await client.asking
        await idle(api)
        assert (await api.openai.responses.retrieve(await client.response_id())).status == "completed"


async def test_a_follower_that_leaves_stops_nothing_and_one_that_stays_hears_the_end() -> None:
    async with serve_api([TextDelta(text="Half"), asyncio.Event()]) as api:
        client = LeavingClient(api, CHAT, stream=True)
        await reached(api, 1)
        path = f"{RESPONSES}/{await client.response_id()}?stream=true"
        staying = asyncio.create_task(api.http.get(path))
        leaving = asyncio.create_task(api.http.get(path))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        assert api.turns.registry.running_count == 1
        await client.leave()
        followed = (await staying).content
        assert b"event: response.incomplete" in followed
        assert followed.endswith(DONE)


async def test_a_turn_that_waits_ends_unbegun_when_the_client_of_its_stream_leaves() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answer("First")]) as api:
        first = await api.openai.responses.create(input="Hi", background=True)
        await reached(api, 1)
        assert first.conversation is not None
        fields = {"conversation": first.conversation.id, "if_running": "queue", "stream": True}
        client = LeavingClient(api, RESPONSES, stream_options=CANCEL, **fields)
        waiting = await client.response_id()
        await client.leave()
        gate.set()
        await idle(api)
        assert (await api.openai.responses.retrieve(waiting)).status == "cancelled"
        assert len(api.turns.sent) == 1


@pytest.mark.parametrize("models", [None, SEVERAL], ids=["one", "several"])
async def test_a_turn_that_is_not_stored_is_cancelled_by_its_id_by_its_user_alone(models: list[str] | None) -> None:
    count = len(models or [None])
    async with serve_api(*[[TextDelta(text="Half"), asyncio.Event()]] * count) as api:
        client = LeavingClient(api, RESPONSES, store=False, stream=True, models=models)
        await reached(api, count)
        response_id = await client.response_id()
        path = f"{RESPONSES}/{response_id}"
        assert await api.turns.services.unstored.cancel(EVE, response_id) is None
        assert (await api.http.get(path)).status_code == 404
        cancelled = await api.http.post(f"{path}/cancel")
        assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
        assert b"Half" not in cancelled.content
        await client.asking
        assert client.received[-1]["body"] == DONE
        assert (await api.http.post(f"{path}/cancel")).status_code == 404


def test_only_who_has_the_secret_can_tell_whose_an_id_is() -> None:
    made = create_unstored_id("secret", ADA)
    assert is_unstored_of("secret", ADA, made)
    elsewhere = ADA.model_copy(update={"tenant": "other"})
    for secret, caller in (("other", ADA), ("secret", EVE), ("secret", elsewhere)):
        assert not is_unstored_of(secret, caller, made)
    for other_id in (made[:-1], made[: made.index("_") + 33], f"{made}0", ""):
        assert not is_unstored_of("secret", ADA, other_id)
