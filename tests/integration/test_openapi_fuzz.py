"""Whatever the description of the API allows, and what it forbids: no 500, and answers as described."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (types of schemathesis are generic over what it leaves unsaid)

import asyncio
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
import schemathesis
import structlog
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi import checks as openapi_checks

from backend.extraction.domain.media_types import CSV, DOCX, EMAIL, JSON_LINES, PDF, PPTX, RTF, XLSX
from backend.foundation.http.app import http_server
from backend.identity.domain import KeyRole
from shared.listening import open_listening_socket
from tests.fakes.http_api import FakeHouse

pytestmark = pytest.mark.whole

EXAMPLES_PER_OPERATION = 10
ANSWER_TIMEOUT_SECONDS = 60
"""Only an answer that never comes is a failure: reading a PDF starts a process, on a busy machine too."""
CHECKS: list[Any] = [
    not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
    openapi_checks.unsupported_method,
    openapi_checks.allow_header_conformance,
]
schemathesis.serializer.alias([PDF, DOCX, PPTX, XLSX, CSV, JSON_LINES, EMAIL, RTF], "application/octet-stream")


class FuzzedHouse:
    """A house of fakes behind a real server, with one object of each kind that an address can name."""

    def __init__(self, house: FakeHouse, address: str) -> None:
        self.address = address
        self.key = asyncio.run(house.key("ada", KeyRole.ADMIN))
        self._client = httpx2.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=ANSWER_TIMEOUT_SECONDS,
            verify=False,
        )
        self._ids: dict[str, str] = {}

    def fill(self) -> None:
        """Make one object of each kind."""
        items = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
        conversation_id = self._make("POST", "/v1/conversations", {"items": items})
        base_id = self._make("POST", "/v1/knowledge_bases", {"name": "Tea", "summary": "All about tea."})
        self._make("PUT", f"/v1/knowledge_bases/{base_id}/members/bob", {"role": "reader"}, key="user_id")
        put = self._client.put(f"/v1/knowledge_bases/{base_id}/documents/tea.md", content=b"# Tea\n\nGreen.")
        assert put.status_code == 201, put.text
        self._ids = {
            "conversation_id": conversation_id,
            "item_id": self._client.get(f"/v1/conversations/{conversation_id}/items").json()["last_id"],
            "response_id": self._make("POST", "/v1/responses", {"input": "hello", "model": "demo-model"}),
            "key_id": self._make("POST", "/v1/api_keys", {"user_id": "eve"}),
            "model_id": "vendor/large",
            "base_id": base_id,
            "name": "tea.md",
            "user_id": "bob",
        }

    def aim(self, case: Any) -> None:
        """Let about half of the cases name something that exists."""
        for name, given in list(case.path_parameters.items()):
            if len(str(given)) % 2:
                case.path_parameters[name] = self._ids.get(name, given)

    def close(self) -> None:
        """Close the client."""
        self._client.close()

    def _make(self, method: str, address: str, body: object, key: str = "id") -> str:
        answer = self._client.request(method, address, json=body)
        assert answer.is_success, answer.text
        return str(answer.json()[key])


@contextmanager
def _served(house: FakeHouse) -> Generator[str]:
    """Serve in a thread of its own, turns included, until the block ends."""
    listener = open_listening_socket("127.0.0.1", 0)
    server = http_server(APP)
    house.stand_behind(APP)

    async def serve() -> None:
        async with house.turns.registry:
            await server.serve(sockets=[listener])

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield "http://{}:{}".format(*listener.getsockname())
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def _silent() -> Generator[None]:
    """Let nobody write logs: a thread that writes while pytest changes where output goes can end the process."""
    before = structlog.get_config()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield
    structlog.configure(**before)


APP = FakeHouse().app()


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[FuzzedHouse]:
    house = FakeHouse()
    with _silent(), _served(house) as address:
        opened = FuzzedHouse(house, address)
        opened.fill()
        yield opened
        opened.close()


@settings(
    max_examples=EXAMPLES_PER_OPERATION,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # that documented examples fit is shown without requests, in test_reference.py
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def _stands(case: Any, fuzzed: FuzzedHouse) -> None:
    fuzzed.aim(case)
    answer = case.call_and_validate(
        base_url=fuzzed.address,
        checks=CHECKS,
        headers={"Authorization": f"Bearer {fuzzed.key}"},
        timeout=ANSWER_TIMEOUT_SECONDS,
    )
    if case.method == "DELETE" and answer.status_code == 200:
        fuzzed.fill()


@pytest.mark.timeout(3600)
def test_no_request_breaks_the_server(fuzzed: FuzzedHouse, subtests: pytest.Subtests) -> None:
    """Thousands of cases follow from the description: they are made here, by the one worker that tries them."""
    schema: Any = schemathesis.openapi.from_dict(APP.openapi())
    tries: Any = get_all_tests(schema=schema, test_func=_stands, settings=None, given_kwargs=None)
    for made in tries:
        operation, tried = made.ok()
        with subtests.test(operation.label):
            tried(fuzzed=fuzzed)
