"""The official client in front of a pair of each kind; all that came over the wire is checked at the end."""

from collections.abc import AsyncIterator, Iterator

import pytest
from openai import AsyncOpenAI

from tests.e2e.client.wire import Wire, wired_client
from tests.e2e.pair import Pair


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Everything that the clients of a test were answered."""
    wire = Wire()
    yield wire
    wire.check()


@pytest.fixture
async def ann(pair: Pair, wire: Wire) -> AsyncIterator[AsyncOpenAI]:
    """The client of one user."""
    async with wired_client(pair, "ann", wire) as client:
        yield client


@pytest.fixture
async def bob(pair: Pair, wire: Wire) -> AsyncIterator[AsyncOpenAI]:
    """The client of another user of the same tenant."""
    async with wired_client(pair, "bob", wire) as client:
        yield client
