"""A house of fakes and clients into it; members of one base, each with a client of their own."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx2
import pytest
from fastapi import FastAPI

from backend.identity.domain import KeyRole
from tests.fakes.http_api import SERVICE_TOKEN, FakeHouse, client_of

BASES = "/v1/knowledge_bases"
MANUAL = "# Travel\n\nTrains are booked early. 差旅费报销需要发票。\n\n## Hotels\n\nHotels cost at most ninety."


@dataclass
class Members:
    """A base with an owner, an editor, a reader and a restricted analyst; `stranger` is no member.

    `foreigner` has the owner's user id in another tenant.
    """

    house: FakeHouse
    app: FastAPI
    base: str
    owner: httpx2.AsyncClient
    editor: httpx2.AsyncClient
    reader: httpx2.AsyncClient
    restricted: httpx2.AsyncClient
    stranger: httpx2.AsyncClient
    foreigner: httpx2.AsyncClient
    chat_shell: httpx2.AsyncClient

    async def put(self, name: str, body: str, media_type: str = "text/markdown") -> httpx2.Response:
        """Put a document as the owner."""
        return await self.owner.put(
            f"{self.base}/documents/{name}", content=body.encode(), headers={"content-type": media_type}
        )

    def rebuild(self) -> None:
        """Serve from now on with the house's settings of today."""
        self.house.stand_behind(self.app)

    @property
    def base_id(self) -> str:
        """The id of the base."""
        return self.base.rpartition("/")[2]


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse()


@pytest.fixture(scope="session")
def built_app() -> FastAPI:
    return FakeHouse().app()


@pytest.fixture
def app(house: FakeHouse, built_app: FastAPI) -> FastAPI:
    """The one application, with this test's own house behind it: building the routes is what costs."""
    house.stand_behind(built_app)
    return built_app


@pytest.fixture
async def user(house: FakeHouse, app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app, await house.key("ada")) as client:
        yield client


@pytest.fixture
async def admin(house: FakeHouse, app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app, await house.key("root", KeyRole.ADMIN)) as client:
        yield client


@pytest.fixture
async def stranger(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture
async def members(house: FakeHouse, app: FastAPI) -> AsyncIterator[Members]:
    async with AsyncExitStack() as opened:

        async def client(user_id: str, tenant: str = "default") -> httpx2.AsyncClient:
            return await opened.enter_async_context(client_of(app, await house.key(user_id, tenant=tenant)))

        owner = await client("olga")
        described = {
            "name": "Travel",
            "summary": "All about trips",
            "topics": ["trains"],
            "routing_hint": "Ask about trips",
            "routing_keywords": ["trip", "差旅"],
        }
        created = await owner.post(BASES, json=described)
        assert created.status_code == 201, created.text
        base = f"{BASES}/{created.json()['id']}"
        for user_id, role in (("ed", "editor"), ("rae", "reader"), ("ana", "restricted_analyst")):
            assert (await owner.put(f"{base}/members/{user_id}", json={"role": role})).status_code == 201
        yield Members(
            house=house,
            app=app,
            base=base,
            owner=owner,
            editor=await client("ed"),
            reader=await client("rae"),
            restricted=await client("ana"),
            stranger=await client("sam"),
            foreigner=await client("olga", "elsewhere"),
            chat_shell=await opened.enter_async_context(client_of(app, SERVICE_TOKEN)),
        )
