"""A rolling upgrade from the last release and back again under load: no turn fails, and nothing answers 5xx.

`make test-upgrade` runs it. It needs the commit that `previous_release.txt` names in the repository's history.
"""

import asyncio
from collections import Counter
from pathlib import Path

import httpx2

from tests.e2e.pair import ADMIN_KEY
from tests.servers.ports import free_port
from tests.servers.services import Launch
from tests.upgrade.columns import NEW, Column
from tests.upgrade.previous import unpack_previous_release
from tests.upgrade.traffic import Traffic, User

USERS = 4
TURNS_BETWEEN = 12
"""Turns that are taken in each mixture of releases."""


async def test_a_rolling_upgrade_and_a_rollback_under_load(
    launch: Launch, tmp_path: Path, empty_postgres_url: str, valkey_url: str
) -> None:
    old = unpack_previous_release(tmp_path / "previous")
    model_port = free_port()
    model_url = f"http://127.0.0.1:{model_port}/v1"
    model = launch(
        "deploy.demo.model",
        *("--host", "127.0.0.1", "--port", str(model_port)),
        settings={},
        directory=tmp_path,
        ready_url=f"{model_url}/models",
    )
    settings = {"BACKEND_DATABASE_URL": empty_postgres_url, "BACKEND_REDIS_URL": valkey_url}
    first, second = (Column(name, tmp_path, launch, settings, model_url) for name in ("first", "second"))
    await asyncio.to_thread(model.wait_ready, 120)
    # One after the other: the first release does not bear two that make the tables of a database together.
    for column in (first, second):
        for service in (column.start_chat_shell(old), column.start_backend(old)):
            await asyncio.to_thread(service.wait_ready, 120)
        await column.take_into_use()

    traffic = Traffic((first, second))
    users = [User(traffic, await new_key(first, f"user-{number}")) for number in range(USERS)]
    async with asyncio.timeout(600):
        for user in users:
            await user.settle()
        async with asyncio.TaskGroup() as group:
            acting = [group.create_task(user.act()) for user in users]
            await taken(traffic)
            await roll(traffic, (first, second), NEW)
            await roll(traffic, (first, second), old)
            traffic.is_over = True
            await asyncio.wait(acting)
        assert traffic.wrong == []
        for user in users:
            kinds = Counter(item["type"] for item in await user.history())
            assert kinds["message"] >= min(2 * user.turns, 60)
    assert all("Traceback" not in (tmp_path / name / "backend.log").read_text() for name in ("first", "second"))
    print(f"\n{sum(user.turns for user in users)} turns, requests by kind: {dict(traffic.sent)}")  # noqa: T201


async def roll(traffic: Traffic, columns: tuple[Column, Column], code: Path) -> None:
    """Replace all four processes, so that each release meets the other on both sides between the services."""
    first, second = columns
    await first.replace_backend(code)
    await taken(traffic)
    await second.replace_chat_shell(code)
    await taken(traffic)
    await first.replace_chat_shell(code)
    await second.replace_backend(code)
    await taken(traffic)


async def taken(traffic: Traffic) -> None:
    """Wait until turns have been taken in this mixture."""
    await traffic.until("POST responses", TURNS_BETWEEN)


async def new_key(column: Column, user_id: str) -> str:
    """Issue a key through the API."""
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with httpx2.AsyncClient(base_url=column.url, headers=headers, timeout=60, trust_env=False) as admin:
        answer = await admin.post("/v1/api_keys", json={"user_id": user_id})
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]
