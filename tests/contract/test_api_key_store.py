"""One contract for every `ApiKeyStore`."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backend.identity.domain import ApiKey, KeyOrigin, KeyRole, ProviderSession, RateLimits
from backend.identity.ports import ApiKeyStore
from tests.contract.store_cases import KINDS, T0, open_stores


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ApiKeyStore]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield opened.api_keys


def make_key(name: str, age_seconds: int = 0, role: KeyRole = KeyRole.USER, **changes: Any) -> ApiKey:
    key = ApiKey(
        id=f"key_{name}",
        key_hash=f"hash-{name}",
        user_id="ann",
        tenant="acme",
        role=role,
        created_at=T0 - timedelta(seconds=age_seconds),
    )
    return key.model_copy(update=changes)


async def listed(store: ApiKeyStore) -> tuple[ApiKey, ...]:
    return await store.page(None, 100, descending=False)


async def test_a_key_is_found_by_its_hash(store: ApiKeyStore) -> None:
    await store.add(make_key("a", role=KeyRole.SERVICE))
    assert await store.find_by_hash("hash-a") == make_key("a", role=KeyRole.SERVICE)
    assert await store.find_by_hash("hash-b") is None


async def test_a_key_keeps_its_limits(store: ApiKeyStore) -> None:
    limited = make_key("a", limits=RateLimits(turns_per_minute=3, turns_at_once=1))
    await store.add(limited)
    assert await store.find_by_hash("hash-a") == limited


async def test_keys_are_listed_oldest_first(store: ApiKeyStore) -> None:
    for key in (make_key("b", 5), make_key("c"), make_key("a", 9)):
        await store.add(key)
    assert await listed(store) == (make_key("a", 9), make_key("b", 5), make_key("c"))


async def test_pages_of_keys_follow_each_other(store: ApiKeyStore) -> None:
    oldest, middle, newest = (make_key("b", 9), make_key("a", 5), make_key("c", 5))
    for key in (newest, oldest, middle):
        await store.add(key)
    assert await store.find("key_a") == middle
    assert await store.find("key_z") is None
    assert await store.page(None, 2, descending=False) == (oldest, middle)
    assert await store.page(middle, 2, descending=False) == (newest,)
    assert await store.page(None, 1, descending=True) == (newest,)
    assert await store.page(newest, 2, descending=True) == (middle, oldest)
    assert await store.page(oldest, 2, descending=True) == ()


async def test_a_deleted_key_is_gone_at_once(store: ApiKeyStore) -> None:
    await store.add(make_key("a"))
    assert await store.delete("key_a")
    assert await store.find_by_hash("hash-a") is None
    assert not await store.delete("key_a")
    assert await listed(store) == ()


def admin_key(name: str, origin: KeyOrigin | None = KeyOrigin.SETTING, **changes: Any) -> ApiKey:
    return make_key(name, role=KeyRole.ADMIN, user_id="admin", tenant="default", origin=origin, **changes)


async def test_all_that_is_known_of_a_key_is_kept(store: ApiKeyStore) -> None:
    ends_at = T0 + timedelta(days=1)
    key = make_key("a", origin=KeyOrigin.ISSUED, replaced_by="key_b", expires_at=ends_at, last_used_at=T0)
    await store.add(key)
    assert await store.find_by_hash("hash-a") == key


async def test_the_first_key_is_one_however_many_try(store: ApiKeyStore) -> None:
    tries = [store.add_first(admin_key(name, KeyOrigin.GENERATED)) for name in "abcd"]
    assert sorted(await asyncio.gather(*tries)) == [False, False, False, True]
    assert len(await listed(store)) == 1


async def test_a_changed_setting_takes_the_place_of_the_key_before(store: ApiKeyStore) -> None:
    issued = make_key("issued", 5, role=KeyRole.ADMIN, origin=KeyOrigin.ISSUED)
    others = make_key("others", 6, role=KeyRole.ADMIN, user_id="admin")
    for key in (issued, others, admin_key("generated", KeyOrigin.GENERATED), admin_key("old", None)):
        await store.add(key)
    await store.set_configured(admin_key("a"))
    assert await listed(store) == (others, issued, admin_key("a"))
    await store.set_configured(admin_key("b"))
    assert await listed(store) == (others, issued, admin_key("b"))


async def test_the_same_setting_again_changes_nothing(store: ApiKeyStore) -> None:
    """Nor does it end keys that the first release has issued to the same user."""
    old, issued_before = admin_key("a", None, last_used_at=T0), admin_key("issued", None)
    for key in (old, issued_before):
        await store.add(key)
    starts = [store.set_configured(admin_key("a", id=f"key_{number}", expires_at=None)) for number in range(4)]
    await asyncio.gather(*starts)
    assert await listed(store) == (old.model_copy(update={"origin": KeyOrigin.SETTING}), issued_before)


async def test_a_new_setting_is_stored_once_however_many_start(store: ApiKeyStore) -> None:
    await asyncio.gather(*(store.set_configured(admin_key("a", id=f"key_{number}")) for number in range(4)))
    assert [key.key_hash for key in await listed(store)] == ["hash-a"]


async def test_a_key_is_replaced_once_until_its_replacement_is_deleted(store: ApiKeyStore) -> None:
    await store.add(make_key("a", 9))
    tries = [store.rotate("key_a", make_key(name), T0 + timedelta(hours=1)) for name in "bcd"]
    assert sorted(await asyncio.gather(*tries)) == [False, False, True]
    old, new = await listed(store)
    assert (old.replaced_by, old.expires_at) == (new.id, T0 + timedelta(hours=1))
    assert not await store.rotate("key_none", make_key("e"), T0)
    assert await store.delete(new.id)
    assert await store.rotate("key_a", make_key("f"), T0)


async def test_a_use_is_written_unless_one_is_known_from_just_before(store: ApiKeyStore) -> None:
    await store.add(make_key("a"))
    minute = timedelta(minutes=1)
    for seconds, seen in ((0, 0), (59, 0), (61, 61), (30, 61)):
        at = T0 + timedelta(seconds=seconds)
        await store.note_uses({"key_a": at, "key_gone": at}, {"key_a": at - minute, "key_gone": at - minute})
        (key,) = await listed(store)
        assert key.last_used_at == T0 + timedelta(seconds=seen)
    await store.note_uses({}, {})


def session_key(name: str, subject: str, session_id: str | None, **changes: Any) -> ApiKey:
    session = ProviderSession(subject=subject, session_id=session_id)
    return make_key(name, origin=KeyOrigin.SESSION, session=session, **changes)


async def test_sessions_end_by_their_id_or_by_their_subject(store: ApiKeyStore) -> None:
    keys = (session_key("a", "ann", "s-1"), session_key("b", "ann", "s-2"), session_key("c", "bob", None))
    for key in (*keys, make_key("d")):
        await store.add(key)
    assert await store.find("key_a") == keys[0]
    assert await store.end_sessions(ProviderSession(subject="ann", session_id="s-1")) == 1
    assert [key.id for key in await listed(store)] == ["key_b", "key_c", "key_d"]
    assert await store.end_sessions(ProviderSession(subject="", session_id="s-9")) == 0
    assert await store.end_sessions(ProviderSession(subject="ann")) == 1
    assert await store.end_sessions(ProviderSession(subject="bob")) == 1
    assert [key.id for key in await listed(store)] == ["key_d"]


async def test_of_expired_keys_only_those_of_sessions_are_deleted(store: ApiKeyStore) -> None:
    ends = T0 + timedelta(hours=1)
    for key in (
        session_key("a", "ann", None, expires_at=ends),
        session_key("b", "ann", None, expires_at=ends + timedelta(hours=1)),
        make_key("c", expires_at=ends),
    ):
        await store.add(key)
    await store.delete_expired_sessions(ends + timedelta(minutes=1))
    assert [key.id for key in await listed(store)] == ["key_b", "key_c"]
