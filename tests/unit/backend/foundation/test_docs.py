"""The pages about the API: they load nothing from elsewhere, so they work behind a closed network."""

import re
import threading
from typing import Any
from urllib.parse import urljoin

import httpx2
import pytest
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from backend.foundation.http.app import create_app
from backend.foundation.http.services import HttpOptions
from tests.fakes.http_api import client_of

LOADED = re.compile(r"""(?:src|href)=["']([^"']+)["']""")
SPECIFICATION = re.compile(r"""(?:url: |spec-url=)["']([^"']+)["']""")
FOREIGN = re.compile(r"https?:|[\"']//")


@pytest.mark.parametrize(("page", "script"), [("/docs", "swagger-ui-bundle.js"), ("/redoc", "redoc.standalone.js")])
async def test_a_page_and_all_that_it_loads_come_from_here(
    stranger: httpx2.AsyncClient, page: str, script: str
) -> None:
    html = (await stranger.get(page)).text
    assert not FOREIGN.search(html)
    loaded = LOADED.findall(html)
    assert any(address.endswith(script) for address in loaded)
    for address in loaded:
        answer = await stranger.get(urljoin(page, address))
        assert answer.status_code == 200, address
        assert len(answer.content) > 1_000
        kind = {"js": "text/javascript", "css": "text/css", "png": "image/png"}[address.rsplit(".")[-1]]
        assert answer.headers["content-type"].startswith(kind)
    (specification,) = SPECIFICATION.findall(html)
    assert (await stranger.get(urljoin(page, specification))).json()["info"]["title"] == "Ballast"


async def test_no_page_asks_a_foreign_server_to_check_the_description(stranger: httpx2.AsyncClient) -> None:
    assert '"validatorUrl": "none"' in (await stranger.get("/docs")).text


@pytest.mark.parametrize("path", ["/docs/static/", "/docs/static/nothing.js", "/docs/static/%2e%2e/core.py"])
async def test_nothing_but_the_pages_files_is_served(stranger: httpx2.AsyncClient, path: str) -> None:
    answer = await stranger.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


WRITERS: set[int] = set()
WORKED_OUT: list[str] = []


class _Described(BaseModel):
    """Tells which threads have written its description, and how often its form was worked out."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        WORKED_OUT.append(cls.__name__)
        return handler(source)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        WRITERS.add(threading.get_ident())
        return handler(schema)


def application() -> FastAPI:
    router = APIRouter()

    @router.get("/described")
    async def described() -> _Described:
        return _Described()

    del described
    return create_app([router], [], HttpOptions(service_token="token of the tests"))


async def test_the_description_is_written_beside_the_event_loop() -> None:
    app = application()
    WRITERS.clear()
    async with client_of(app) as client:
        assert "_Described" in (await client.get("/openapi.json")).json()["components"]["schemas"]
    assert WRITERS
    assert threading.get_ident() not in WRITERS


async def test_the_first_request_finds_all_routes_built() -> None:
    app = application()
    WORKED_OUT.clear()
    async with client_of(app) as client:
        assert (await client.get("/described")).status_code == 200
    assert not WORKED_OUT
