"""A house of fakes and clients into it."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from backend.foundation.http.services import provide
from backend.identity.domain.identity import KeyRole
from tests.fakes.http_door import FakeHouse, client_of


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse()


@pytest.fixture(scope="session")
def built_app() -> FastAPI:
    return FakeHouse().app()


@pytest.fixture
def app(house: FakeHouse, built_app: FastAPI) -> FastAPI:
    """The one application, with this test's own house behind it: building the routes is what costs."""
    provide(built_app, house.options(), *house.services())
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
