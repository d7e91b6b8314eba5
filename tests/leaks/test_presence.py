"""Two worlds through both services: what a restricted member gets of either is the same, byte by byte."""

from pathlib import Path

import pytest

from tests.examples import first_of
from tests.leaks.pair import Way
from tests.leaks.presence import compare
from tests.leaks.worlds import ONE, OTHER, queries
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.whole

EVERY = 29


@pytest.mark.parametrize("protocol", first_of("grpc", "http"))
async def test_streams_are_alike_whether_a_word_stands_in_the_base(
    tmp_path: Path, request: pytest.FixtureRequest, protocol: str
) -> None:
    way = Way(embedder="fake")
    if protocol == "http":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        way = Way("http", server.url(server.new_database()))
    asked = queries()[::EVERY]
    assert any(word in query for word in ONE for query in asked)
    assert any(word in query for word in OTHER for query in asked)
    assert await compare(tmp_path, way, asked) == []
