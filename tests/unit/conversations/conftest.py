"""The door, with a user's client."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.fakes.http_door import FakeHouse, client_of


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse()


@pytest.fixture
async def user(house: FakeHouse) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(house.app(), await house.key("ada")) as client:
        yield client
