"""The bytes of bodies: counted while they are held, refused where there is no room, and given back."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi import Request
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Scope

from backend.foundation.http.bodies import SMALL_BODY_BYTES, BodyLimit, DecodingRoom, find_held_body
from shared.errors import Unauthenticated, Unavailable
from shared.shares import SharedBudget
from tests.patience import PATIENCE_SECONDS

LARGE = SMALL_BODY_BYTES + 1


async def holder_of(presented: str | None) -> str:
    if presented is None:
        raise Unauthenticated("No key.")
    return presented


class ServedApi:
    """An application behind the limit, whose answer waits for `go`."""

    def __init__(self, wait_seconds: float = PATIENCE_SECONDS) -> None:
        self.budget = SharedBudget("room for bodies", 4 * LARGE)
        self.at_work = SharedBudget("room for bodies at work", 2 * LARGE)
        self.read = asyncio.Queue[int]()
        self.go = asyncio.Event()
        self.kept = [self.budget.lease().release]
        answers = {"/": self.take, "/keep": self.keep, "/own": self.own, "/work": self.work}
        routes = [Route(path, answer, methods=["POST"]) for path, answer in answers.items()]
        self.app = BodyLimit(
            Starlette(routes=routes), 2 * LARGE, self.budget, DecodingRoom(self.at_work, wait_seconds), holder_of
        )

    async def take(self, request: Request) -> Response:
        self.read.put_nowait(len(await request.body()))
        await self.go.wait()
        return PlainTextResponse("taken")

    async def keep(self, request: Request) -> Response:
        await request.body()
        self.kept.append(find_held_body(request).keep())
        return PlainTextResponse("kept")

    async def work(self, request: Request) -> Response:
        await request.body()
        await find_held_body(request).wait_for_work()
        return await self.take(request)

    async def own(self, request: Request) -> Response:
        await request.body()
        find_held_body(request).own("ann")
        return await self.keep(request)

    async def post(
        self,
        length: int,
        key: str | None = "ann",
        path: str = "/",
        announced: int | None = None,
        coding: bytes | None = None,
    ) -> Message:
        """Send a body in two pieces; return the beginning of the answer."""
        headers = [] if key is None else [(b"authorization", b"Bearer " + key.encode())]
        headers += [] if announced is None else [(b"content-length", b"%d" % announced)]
        headers += [] if coding is None else [(b"content-encoding", coding)]
        scope: Scope = {
            "type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers, "root_path": "",
        }  # fmt: skip
        pieces = [bytes(length // 2), bytes(length - length // 2)]
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]


@pytest.fixture
async def api() -> AsyncIterator[ServedApi]:
    api = ServedApi()
    yield api
    for release in api.kept:
        release()
    assert (api.budget.taken, api.at_work.taken) == (0, 0)


async def test_one_key_never_takes_all_the_room(api: ServedApi) -> None:
    async with asyncio.TaskGroup() as group:
        held = [group.create_task(api.post(LARGE)) for _ in range(2)]
        for _ in held:
            await api.read.get()
        assert api.budget.taken == 2 * LARGE
        refused = await api.post(LARGE)
        assert refused["status"] == 429
        assert dict(refused["headers"])[b"retry-after"] == b"1"
        others = [group.create_task(api.post(LARGE, "bob")) for _ in range(2)]
        for _ in others:
            await api.read.get()
        full = await api.post(10, "cia")
        assert full["status"] == 503
        assert dict(full["headers"])[b"retry-after"] == b"1"
        api.go.set()
    assert [task.result()["status"] for task in (*held, *others)] == [200] * 4


@pytest.mark.parametrize("announced", [None, LARGE])
async def test_a_large_body_of_nobody_is_not_read(api: ServedApi, announced: int | None) -> None:
    api.go.set()
    assert (await api.post(LARGE, None, announced=announced))["status"] == 401
    assert api.read.empty()
    assert (await api.post(SMALL_BODY_BYTES, None))["status"] == 200


async def test_what_is_announced_is_held_before_it_comes(api: ServedApi) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(api.post(10, announced=2 * LARGE))
        await api.read.get()
        assert api.budget.taken == 2 * LARGE
        api.go.set()


async def test_a_turn_may_hold_a_body_beyond_its_answer(api: ServedApi) -> None:
    assert (await api.post(LARGE, path="/keep"))["status"] == 200
    assert api.budget.taken == LARGE


async def test_long_bodies_are_decoded_as_many_at_a_time_as_have_room(api: ServedApi) -> None:
    async with asyncio.TaskGroup() as group:
        posted = [group.create_task(api.post(LARGE, key, "/work")) for key in ("ann", "ann", "bob", "bob")]
        for _ in range(2):
            await api.read.get()
        assert api.budget.taken == 4 * LARGE  # all have arrived
        assert api.at_work.is_waited_for
        assert api.read.empty()
        api.go.set()
    assert [task.result()["status"] for task in posted] == [200] * 4


async def test_a_small_body_does_not_wait_for_long_ones(api: ServedApi) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(api.post(LARGE, "ann", "/work"))
        for _ in range(2):
            await api.read.get()
        group.create_task(api.post(SMALL_BODY_BYTES, "bob", "/work"))
        assert await api.read.get() == SMALL_BODY_BYTES
        api.go.set()


async def test_a_body_that_waits_too_long_hears_of_which_bound() -> None:
    api = ServedApi(wait_seconds=0.01)
    with api.at_work.lease() as others, pytest.raises(Unavailable, match="BACKEND_MAX_BODIES_BYTES") as refused:
        others.grow(2 * LARGE)
        await api.post(LARGE, "ann", "/work")
    assert refused.value.retry_after_seconds == 1


async def test_a_body_beyond_the_limit_is_too_large(api: ServedApi) -> None:
    assert (await api.post(2 * LARGE + 2))["status"] == 413
    assert (await api.post(0, announced=2 * LARGE + 1))["status"] == 413


@pytest.mark.parametrize(("coding", "status"), [(b"gzip", 400), (b"br, gzip", 400), (b"identity", 200), (b"", 200)])
async def test_a_packed_body_is_refused(api: ServedApi, coding: bytes, status: int) -> None:
    api.go.set()
    assert (await api.post(10, coding=coding))["status"] == status


async def test_what_a_small_body_announces_takes_no_room(api: ServedApi) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(api.post(10, None, announced=SMALL_BODY_BYTES))
        await api.read.get()
        assert api.budget.taken == 10
        api.go.set()


async def test_bodies_of_nobody_take_a_quarter_and_leave_the_rest_to_keys(api: ServedApi) -> None:
    async with asyncio.TaskGroup() as group:
        sent = [group.create_task(api.post(SMALL_BODY_BYTES, None))]
        await api.read.get()
        assert (await api.post(2, None))["status"] == 401
        sent += [group.create_task(api.post(SMALL_BODY_BYTES, key)) for key in ("ann", "ann", "bob")]
        for _ in range(3):
            await api.read.get()
        assert (await api.post(4, "ann"))["status"] == 429
        api.go.set()
    assert [task.result()["status"] for task in sent] == [200] * 4


async def test_a_small_body_is_its_keys_own_once_the_key_is_known(api: ServedApi) -> None:
    assert (await api.post(SMALL_BODY_BYTES, path="/own"))["status"] == 200
    async with asyncio.TaskGroup() as group:
        nobody = group.create_task(api.post(SMALL_BODY_BYTES, None))
        assert await api.read.get() == SMALL_BODY_BYTES
        assert (await api.post(LARGE, "ann", path="/own"))["status"] == 200
        assert (await api.post(LARGE, "ann"))["status"] == 429
        api.go.set()
    assert nobody.result()["status"] == 200
