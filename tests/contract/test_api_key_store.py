"""One contract for every `ApiKeyStore`."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from backend.identity.domain import ApiKey, KeyRole
from backend.identity.ports import ApiKeyStore
from tests.contract.store_cases import KINDS, T0, open_stores


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ApiKeyStore]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield opened.api_keys


def make_key(name: str, age_seconds: int = 0, role: KeyRole = KeyRole.USER) -> ApiKey:
    return ApiKey(
        id=f"key_{name}",
        key_hash=f"hash-{name}",
        user_id="ann",
        tenant="acme",
        role=role,
        created_at=T0 - timedelta(seconds=age_seconds),
    )


async def test_a_key_is_found_by_its_hash(store: ApiKeyStore) -> None:
    await store.add(make_key("a", role=KeyRole.SERVICE))
    assert await store.find_by_hash("hash-a") == make_key("a", role=KeyRole.SERVICE)
    assert await store.find_by_hash("hash-b") is None


async def test_keys_are_listed_oldest_first(store: ApiKeyStore) -> None:
    for key in (make_key("b", 5), make_key("c"), make_key("a", 9)):
        await store.add(key)
    assert await store.list() == (make_key("a", 9), make_key("b", 5), make_key("c"))


async def test_a_deleted_key_is_gone_at_once(store: ApiKeyStore) -> None:
    await store.add(make_key("a"))
    assert await store.delete("key_a")
    assert await store.find_by_hash("hash-a") is None
    assert not await store.delete("key_a")
    assert await store.list() == ()
