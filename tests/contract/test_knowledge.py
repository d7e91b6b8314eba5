"""What chat_shell expects of its knowledge port, on the fake and on the backend's internal API."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from chat_shell.knowledge.http.backend import BackendKnowledge
from chat_shell.knowledge.ports import Knowledge, KnowledgeAnswer, TurnCredentials
from shared.errors import (
    BallastError,
    InternalError,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from shared.models.execution import AccessMode
from tests.fakes.knowledge_in_memory import KnowledgeInMemory

TOKEN = "service-token"
CREDENTIALS = TurnCredentials(ticket="ticket", request_id="req_1")
STORED = {"kb_a": {"leave.md": "Thirty days.", "紧急.md": "Three months."}}
STATUS: dict[type[BallastError], int] = {Unauthenticated: 401, PermissionDenied: 403, NotFound: 404}


class InternalApi:
    """The backend's internal API over documents in memory; `override` answers instead when set."""

    def __init__(self, stored: KnowledgeInMemory):
        self._stored = stored
        self.override: Callable[[], web.Response] | None = None
        self.requests: list[tuple[str, str, dict[str, Any]]] = []
        self.request_ids: list[str | None] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/internal/v1/knowledge/search", self._guard(self._search))
        app.router.add_post("/internal/v1/knowledge/documents", self._guard(self._documents))
        app.router.add_post("/internal/v1/knowledge/read", self._guard(self._read))
        app.router.add_post("/internal/v1/knowledge/read_file", self._guard(self._read_file))
        return app

    def _guard(self, answer: Callable[[dict[str, Any]], Any]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.Response:
            body = await request.json()
            self.request_ids.append(request.headers.get("x-request-id"))
            self.requests.append((request.path, request.headers["Authorization"], body))
            if self.override is not None:
                return self.override()
            try:
                return web.json_response(await answer(body))
            except BallastError as error:
                return web.json_response({"error": {"message": error.message}}, status=STATUS.get(type(error), 503))

        return handle

    async def _search(self, body: dict[str, Any]) -> dict[str, Any]:
        found = await self._stored.search(
            credentials_of(body),
            body["query"],
            tuple(body["knowledge_base_ids"]),
            limit=body["limit"],
            whole_below_tokens=body["whole_below_tokens"],
        )
        chunks = [chunk.model_dump() for chunk in found.chunks]
        return {"access_mode": found.access_mode.value, "whole": False, "data": chunks, "more": 1}

    async def _documents(self, body: dict[str, Any]) -> dict[str, Any]:
        listed = await self._stored.list_documents(credentials_of(body), tuple(body["knowledge_base_ids"]))
        return {"data": [document.model_dump() for document in listed]}

    async def _read(self, body: dict[str, Any]) -> dict[str, Any]:
        page = await self._stored.read_document(
            credentials_of(body), body["file_id"], offset=body["offset"], limit=body["limit"]
        )
        return page.model_dump()

    async def _read_file(self, body: dict[str, Any]) -> dict[str, Any]:
        page = await self._stored.read_file(
            credentials_of(body), body["file_id"], offset=body["offset"], limit=body["limit"]
        )
        return page.model_dump()


def credentials_of(body: dict[str, Any]) -> TurnCredentials:
    return TurnCredentials(ticket=body["ticket"], request_id="")


@pytest.fixture
def stored() -> KnowledgeInMemory:
    return KnowledgeInMemory(STORED)


@pytest.fixture
def api(stored: KnowledgeInMemory) -> InternalApi:
    return InternalApi(stored)


@pytest.fixture
async def address(api: InternalApi) -> AsyncIterator[str]:
    runner = web.AppRunner(api.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def backend(session: aiohttp.ClientSession, address: str) -> BackendKnowledge:
    return BackendKnowledge(session, address + "/", TOKEN)


@pytest.fixture(params=["stored", "backend"])
def port(request: pytest.FixtureRequest, stored: KnowledgeInMemory, backend: BackendKnowledge) -> Knowledge:
    return stored if request.param == "stored" else backend


async def search(knowledge: Knowledge, *base_ids: str) -> KnowledgeAnswer:
    return await knowledge.search(CREDENTIALS, "多久", base_ids, limit=1, whole_below_tokens=100)


async def test_a_search_brings_chunks(port: Knowledge):
    answer = await search(port, "kb_a")
    assert answer.access_mode is AccessMode.FULL
    assert [(chunk.filename, chunk.heading_path, chunk.text) for chunk in answer.chunks] == [
        ("leave.md", ("Top",), "Thirty days.")
    ]


async def test_a_restricted_search_brings_nothing(port: Knowledge, stored: KnowledgeInMemory):
    stored.mode = AccessMode.RESTRICTED
    assert await search(port, "kb_a") == KnowledgeAnswer(access_mode=AccessMode.RESTRICTED, chunks=())


async def test_documents_are_listed_and_read(port: Knowledge):
    listed = await port.list_documents(CREDENTIALS, ("kb_a",))
    assert [document.filename for document in listed] == ["leave.md", "紧急.md"]
    page = await port.read_document(CREDENTIALS, listed[1].file_id, offset=6, limit=3)
    assert (page.text, page.offset, page.next_offset, page.total_characters) == ("mon", 6, 9, 13)
    end = await port.read_document(CREDENTIALS, listed[1].file_id, offset=6, limit=100)
    assert (end.text, end.next_offset) == ("months.", None)


async def test_an_attached_file_is_read_in_pages(port: Knowledge):
    page = await port.read_file(CREDENTIALS, "doc_kb_a_leave.md", offset=7, limit=2)
    assert (page.text, page.offset, page.next_offset, page.total_characters) == ("da", 7, 9, 12)
    with pytest.raises(NotFound):
        await port.read_file(CREDENTIALS, "file-other", offset=0, limit=1)


async def test_an_unknown_document_is_not_found(port: Knowledge):
    with pytest.raises(NotFound):
        await port.read_document(CREDENTIALS, "doc_other", offset=0, limit=1)


async def test_a_base_that_is_not_in_the_ticket_is_refused(port: Knowledge):
    with pytest.raises(PermissionDenied):
        await search(port, "kb_a", "kb_x")
    with pytest.raises(PermissionDenied):
        await port.list_documents(CREDENTIALS, ("kb_x",))


@pytest.mark.parametrize("error", [Unauthenticated("forged"), Unavailable("down")])
async def test_failures_keep_their_class(port: Knowledge, stored: KnowledgeInMemory, error: BallastError):
    stored.failure = error
    with pytest.raises(type(error)):
        await search(port, "kb_a")


async def test_the_request_is_as_agreed(backend: BackendKnowledge, api: InternalApi):
    await search(backend, "kb_a")
    assert api.requests == [
        (
            "/internal/v1/knowledge/search",
            f"Bearer {TOKEN}",
            {
                "ticket": "ticket",
                "query": "多久",
                "knowledge_base_ids": ["kb_a"],
                "limit": 1,
                "whole_below_tokens": 100,
            },
        )
    ]


async def test_every_request_carries_the_id_of_the_turns_request(backend: BackendKnowledge, api: InternalApi):
    await search(backend, "kb_a")
    (document, *_) = await backend.list_documents(CREDENTIALS, ("kb_a",))
    await backend.read_document(CREDENTIALS, document.file_id, offset=0, limit=1)
    assert api.request_ids == ["req_1"] * 3


@pytest.mark.parametrize("request_id", ["", "two words", "a\r\nx-admin: 1", "é", "x" * 129])
async def test_an_id_that_no_header_should_hold_is_not_sent(
    backend: BackendKnowledge, api: InternalApi, request_id: str
):
    await backend.list_documents(TurnCredentials(ticket="ticket", request_id=request_id), ("kb_a",))
    assert api.request_ids == [None]


@pytest.mark.parametrize("mode", ["", '"access_mode": null, ', '"access_mode": "FULL", ', '"access_mode": ["full"], '])
async def test_a_missing_or_unknown_mode_is_restricted(backend: BackendKnowledge, api: InternalApi, mode: str):
    chunk = (
        '{"knowledge_base_id": "kb_a", "file_id": "f", "filename": "n", "heading_path": [], "text": "t", "score": 1}'
    )
    api.override = lambda: web.Response(text=f'{{{mode}"whole": true, "data": [{chunk}]}}')
    assert await search(backend, "kb_a") == KnowledgeAnswer(access_mode=AccessMode.RESTRICTED, chunks=())


@pytest.mark.parametrize(
    ("status", "text", "error"),
    [
        (200, "no json", Unavailable),
        (200, '{"access_mode": "full", "data": [{"text": "protected"}]}', Unavailable),
        (400, "{}", InternalError),
        (422, "{}", InternalError),
        (302, "", Unavailable),
        (500, "boom", Unavailable),
    ],
)
async def test_strange_answers(
    backend: BackendKnowledge, api: InternalApi, status: int, text: str, error: type[BallastError]
):
    api.override = lambda: web.Response(status=status, text=text, headers={"Location": "/elsewhere"})
    with pytest.raises(error) as caught:
        await search(backend, "kb_a")
    assert "protected" not in f"{caught.value} {caught.value.__cause__}"


async def test_nobody_there(session: aiohttp.ClientSession):
    with pytest.raises(Unavailable):
        await search(BackendKnowledge(session, "http://127.0.0.1:1", TOKEN), "kb_a")


async def test_an_answer_that_takes_too_long(session: aiohttp.ClientSession, address: str):
    with pytest.raises(Unavailable):
        await search(BackendKnowledge(session, address, TOKEN, timeout_seconds=0.000_001), "kb_a")
