"""The room's two ways out over real sockets: the secondary model's API and the backend's calls; and their silence."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest
import structlog
from aiohttp import web
from pydantic import SecretStr

from chat_shell.knowledge.telemetry.sealed_room import LoggingRoomObserver
from chat_shell.sealed.backend_wire import HttpSealedBackend
from chat_shell.sealed.gate.schema import MAX_REPLY_BYTES
from chat_shell.sealed.outcome import SealedSearchResult, SearchProgress, outcome_of
from chat_shell.sealed.secondary_model import ChatCompletionsSecondary, SecondaryEndpoint
from shared.models.safe_summary import Decision, Failure, PolicyRefusal, SummaryVersions
from tests.fakes.clock import FakeClock
from tests.fakes.model_server import FakeModelServer, Fault, Reply
from tests.fakes.safe_summaries import released
from tests.fakes.sealed_room import CANARY, SECRET, RoomStage, sealed_search

MESSAGES = ({"role": "system", "content": "Write."}, {"role": "user", "content": SECRET})
VERSIONS = SummaryVersions(policy_version="1", gate_version="2", prompt_version="3", model="second")


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


def secondary(session: aiohttp.ClientSession, base_url: str, key: str | None = "k") -> ChatCompletionsSecondary:
    return ChatCompletionsSecondary(session, SecondaryEndpoint("second", base_url, SecretStr(key) if key else None))


async def said(session: aiohttp.ClientSession, *replies: Reply) -> tuple[bytes | Failure, FakeModelServer]:
    async with FakeModelServer() as server:
        server.script(*replies)
        return await secondary(session, server.base_url).reply(MESSAGES), server


# The secondary model


async def test_it_is_asked_once_without_streaming_under_its_own_name_and_key(session: aiohttp.ClientSession):
    reply, server = await said(session, Reply(text=("{}",)))
    assert reply == b"{}"
    (request,) = server.requests
    assert request.json_body == {"model": "second", "messages": list(MESSAGES), "stream": False}
    assert request.headers["authorization"] == "Bearer k"


async def test_with_a_salt_no_call_finds_what_another_has_put_into_a_cache(session: aiohttp.ClientSession):
    async with FakeModelServer() as server:
        server.script(Reply(text=("{}",)), Reply(text=("{}",)))
        asked = ChatCompletionsSecondary(session, SecondaryEndpoint("second", server.base_url, None, is_salted=True))
        for _ in range(2):
            await asked.reply(MESSAGES)
    salts = {request.json_body["cache_salt"] for request in server.requests}
    assert len(salts) == 2
    assert all(len(salt) == 43 for salt in salts)


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 429, 500, 503])
async def test_a_provider_that_refuses_is_unavailable_and_asked_once(session: aiohttp.ClientSession, status: int):
    headers = {"Location": "http://127.0.0.1:1/v1/chat/completions"} if status < 400 else {}
    reply, server = await said(session, Reply(status=status, body=SECRET, headers=headers))
    assert reply is Failure.MODEL_UNAVAILABLE
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "null", '{"choices": []}', '{"choices": [{"message": {"content": null}}]}', "\ufffd"]
)
async def test_an_answer_of_another_form_is_invalid(session: aiohttp.ClientSession, body: str):
    reply, _ = await said(session, Reply(body=body))
    assert reply is Failure.INVALID_OUTPUT


async def test_a_reply_that_is_too_long_is_for_the_gate_to_refuse(session: aiohttp.ClientSession):
    reply, _ = await said(session, Reply(text=("x" * (MAX_REPLY_BYTES + 1),)))
    assert reply == b"x" * (MAX_REPLY_BYTES + 1)


async def test_an_endless_answer_is_dropped_while_it_comes(session: aiohttp.ClientSession):
    reply, _ = await said(session, Reply(raw=(b"x" * 300_000,), fault=Fault.STALL))
    assert reply is Failure.INVALID_OUTPUT


async def test_a_broken_connection_is_tried_once_more(session: aiohttp.ClientSession):
    reply, server = await said(session, Reply(raw=(b"{",), fault=Fault.CUT), Reply(text=("{}",)))
    assert (reply, len(server.requests)) == (b"{}", 2)
    reply, server = await said(session, *[Reply(raw=(b"{",), fault=Fault.CUT)] * 3)
    assert (reply, len(server.requests)) == (Failure.MODEL_UNAVAILABLE, 2)


async def test_nobody_there_is_unavailable(session: aiohttp.ClientSession):
    async with FakeModelServer() as server:
        address = server.base_url
    assert await secondary(session, address).reply(MESSAGES) is Failure.MODEL_UNAVAILABLE


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999/v1", "http://127.0.0.1:1/v1", "http://no..host/v1"])
async def test_without_a_usable_model_the_search_is_refused_recorded_and_logged(
    session: aiohttp.ClientSession, address: str
):
    stage = RoomStage()
    stage.model = secondary(session, address)  # type: ignore[assignment]
    stage.observer = LoggingRoomObserver(log_requests=False)  # type: ignore[assignment]
    with structlog.testing.capture_logs() as lines:
        assert await stage.ask() is None
    assert [(one.decision, one.reason) for one in stage.backend.outcomes] == [
        (Decision.REFUSE, Failure.MODEL_UNAVAILABLE)
    ]
    last = lines[-1]
    assert (last["event"], last["decision"], last["reason"]) == (
        "Safe summary completed", "refuse", "model_unavailable",
    )  # fmt: skip


# The backend


@asynccontextmanager
async def backend(answer: Any, status: int = 200) -> AsyncGenerator[tuple[str, list[dict[str, Any]]]]:
    """Serve one answer, JSON or bytes, and keep what came: path, headers and body."""
    came: list[dict[str, Any]] = []

    async def answered(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        came.append({"path": request.path, "headers": headers, "body": await request.json()})
        return web.Response(body=answer if isinstance(answer, bytes) else orjson.dumps(answer), status=status)

    app = web.Application()
    app.router.add_post("/internal/v1/knowledge/{call}", answered)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", came
    finally:
        await runner.cleanup()


CHUNK = {
    "knowledge_base_id": "kb_r",
    "chunk_id": "c_1",
    "document": "reserve-plan.md",
    "heading_path": ["Reserves"],
    "ordinal": 3,
    "text": SECRET,
    "canary": CANARY,
}


def answer(**changes: Any) -> dict[str, Any]:
    sealed = {"search_id": "s_1", "refusal": None, "released": None, "chunks": [CHUNK], "canary_replies": 2, **changes}
    return {"access_mode": "restricted", "whole": False, "data": [], "sealed": sealed}


async def test_chunks_are_wrapped_as_they_are_read(session: aiohttp.ClientSession):
    async with backend(answer(siblings=[CHUNK | {"chunk_id": "c_2"}])) as (url, came):
        found = await HttpSealedBackend(session, url, "service").search(sealed_search(), VERSIONS)
    assert isinstance(found, SealedSearchResult)
    (chunk,), (sibling,) = found.chunks, found.siblings
    assert repr(sibling.text) == "<protected kb_r c_2>"
    assert (found.search_id, chunk.chunk_id, chunk.ordinal, found.canary_replies) == ("s_1", "c_1", 3, 2)
    assert [repr(one) for one in (chunk.text, chunk.document, *chunk.heading_path, chunk.canary)] == [
        "<protected kb_r c_1>"
    ] * 4
    assert came[0]["path"] == "/internal/v1/knowledge/search"
    assert came[0]["headers"]["authorization"] == "Bearer service"
    assert came[0]["headers"]["x-request-id"] == "req_1"
    assert came[0]["body"] == {
        "ticket": "ticket_1",
        "query": "weaknesses of the reserve",
        "knowledge_base_ids": ["kb_r"],
        "limit": 24,
        "whole_below_tokens": 12_000,
        "sealed": VERSIONS.model_dump(),
    }


async def test_a_strict_search_has_its_chunks_where_no_prose_is_made_of_them(session: aiohttp.ClientSession):
    strict = {"areas": ["reserves"], "chunks": [CHUNK], "siblings": []}
    async with backend(answer(chunks=[], strict=strict)) as (url, _):
        found = await HttpSealedBackend(session, url, "t").search(sealed_search(), VERSIONS)
    assert isinstance(found, SealedSearchResult)
    assert (found.areas, [chunk.chunk_id for chunk in found.chunks]) == (("reserves",), ["c_1"])


NO_IDS: tuple[Any, ...] = ([], None, True, "kb_r", {"kb_r": True}, ["kb_r", 1], [["kb_r"]])


async def test_translation_is_allowed_where_the_backend_says_so_and_nowhere_else(session: aiohttp.ClientSession):
    allowed = ["kb_r", "kb_s"]
    for told, ids in (
        (answer(restricted_translation=allowed), allowed),
        (answer(), []),
        *((answer(restricted_translation=form), list[str]()) for form in NO_IDS),
    ):
        async with backend(told) as (url, _):
            found = await HttpSealedBackend(session, url, "t").search(sealed_search(), VERSIONS)
        assert isinstance(found, SealedSearchResult)
        assert found.translatable_base_ids == frozenset(ids)


async def test_refusals_and_earlier_releases_are_read(session: aiohttp.ClientSession):
    async with backend(answer(refusal="budget_day", chunks=[])) as (url, _):
        found = await HttpSealedBackend(session, url, "t").search(sealed_search(), VERSIONS)
    assert found == SealedSearchResult("s_1", refusal=Failure.BUDGET_DAY)
    async with backend(answer(released=released().as_object(), chunks=[])) as (url, _):
        found = await HttpSealedBackend(session, url, "t").search(sealed_search(), VERSIONS)
    assert found == SealedSearchResult("s_1", released=released())


@pytest.mark.parametrize(
    ("given", "status", "failure"),
    [
        ({}, 401, Failure.BAD_TICKET),
        ({}, 403, Failure.ACCESS_CHANGED),
        ({}, 500, Failure.AUDIT_UNAVAILABLE),
        ({}, 302, Failure.AUDIT_UNAVAILABLE),
        ({}, 200, Failure.AUDIT_UNAVAILABLE),
        (b"{", 200, Failure.AUDIT_UNAVAILABLE),
        ([], 200, Failure.AUDIT_UNAVAILABLE),
        ({"access_mode": "restricted", "whole": False, "data": []}, 200, Failure.AUDIT_UNAVAILABLE),
        (answer(refusal="tired"), 200, Failure.AUDIT_UNAVAILABLE),
        (answer(released={"decision": "answer"}), 200, Failure.AUDIT_UNAVAILABLE),
        (answer(chunks=[{**CHUNK, "text": None}]), 200, Failure.AUDIT_UNAVAILABLE),
        (answer(chunks=[{"text": SECRET}]), 200, Failure.AUDIT_UNAVAILABLE),
        (answer(canary_replies=None), 200, Failure.AUDIT_UNAVAILABLE),
    ],
)
async def test_any_other_answer_is_a_code(session: aiohttp.ClientSession, given: Any, status: int, failure: Failure):
    async with backend(given, status) as (url, _):
        assert await HttpSealedBackend(session, url, "t").search(sealed_search(), VERSIONS) is failure


async def test_an_outcome_is_told_whole(session: aiohttp.ClientSession):
    progress = SearchProgress(started_at=FakeClock().now(), search_id="s_1", chunks_found=2, chunks_sent=2)
    outcome = outcome_of(sealed_search(), released(), progress, FakeClock().now())
    async with backend({"recorded": True, "release": False, "reason": "base_changed"}) as (url, came):
        told = await HttpSealedBackend(session, url, "t").record(sealed_search(), VERSIONS, outcome)
    assert (told.status, told.recorded, told.release, told.reason) == (200, True, False, "base_changed")
    assert came[0]["path"] == "/internal/v1/knowledge/outcomes"
    assert came[0]["body"] == {
        "ticket": "ticket_1", **VERSIONS.model_dump(), "search_id": "s_1", "knowledge_base_ids": ["kb_r"],
        "decision": "answer", "reason": "gap", "gate_codes": [], "rewrites": 0, "latency_ms": 0, "chunks_found": 2,
        "chunks_sent": 2, "canary_hits": 0, "is_open_ask": False,
        "released": released().as_object(),
    }  # fmt: skip


async def test_an_outcome_without_a_readable_answer_is_not_recorded(session: aiohttp.ClientSession):
    outcome = outcome_of(sealed_search(), PolicyRefusal.VERBATIM, SearchProgress(FakeClock().now()), FakeClock().now())
    whole = {"recorded": True, "release": True, "reason": "gap"}
    ill_typed = ({**whole, "recorded": 1}, {**whole, "release": "true"}, {**whole, "reason": None})
    unreadable: tuple[tuple[Any, int], ...] = (
        (b"{", 200), ({"recorded": True}, 500), ([], 200), *((given, 200) for given in ill_typed)
    )  # fmt: skip
    for given, status in unreadable:
        async with backend(given, status) as (url, _):
            told = await HttpSealedBackend(session, url, "t").record(sealed_search(), VERSIONS, outcome)
        assert not (told.recorded or told.release)
    async with backend([], 200) as (gone, _):
        """Nobody listens there once it is left."""
    told = await HttpSealedBackend(session, gone, "t").record(sealed_search(), VERSIONS, outcome)
    assert (told.status, told.recorded) == (None, False)


# Silence


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500, body=SECRET),
        Reply(body=SECRET),
        Reply(raw=(SECRET.encode() * 20_000,), fault=Fault.STALL),
        Reply(raw=(SECRET.encode(),), fault=Fault.CUT, repeat=True),
        Reply(raw=(SECRET.encode(),), fault=Fault.STALL, repeat=True),
        Reply(headers={"X-Echo": SECRET}, status=302, body=SECRET),
        Reply(text=(SECRET,)),
    ],
)
async def test_at_debug_level_nothing_of_a_failing_model_is_logged(
    session: aiohttp.ClientSession, reply: Reply, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    told: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _loop, context: told.append(context))
    stage = RoomStage(summary_seconds=0.3)
    async with FakeModelServer() as server, backend(answer()) as (url, _):
        server.script(reply)
        stage.model = secondary(session, server.base_url)  # type: ignore[assignment]
        stage.backend = HttpSealedBackend(session, url, "t")  # type: ignore[assignment]
        assert await stage.ask() is None
    loop.set_debug(False)
    assert told == []
    assert SECRET not in caplog.text + str(stage.observer.seen)
