"""The routes by which administrators issue, list and revoke API keys."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import Body, Depends, Query
from pydantic import BaseModel, Field

from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import Deleted, ListPage, PrincipalName, RequestBody, unix_seconds
from backend.identity.domain import MAX_RATE, ApiKey, KeyOrigin, KeyPageQuery, KeyRole, RateLimits
from backend.identity.http.caller import AdminDep
from backend.identity.services import DEFAULT_TENANT, KeyAdministration

DEFAULT_OVERLAP_SECONDS = 86_400
MAX_OVERLAP_SECONDS = 30 * 86_400
LAST_SECOND = 253_402_300_799
"""The end of the year 9999, the last one that Python and both databases know."""

Expiry = Annotated[int | None, Field(ge=0, le=LAST_SECOND)]
Limit = Annotated[int | None, Field(ge=1, le=MAX_RATE, description="In place of the limit that keys have by default.")]
KeysDep = Annotated[KeyAdministration, Depends(service_of(KeyAdministration))]
router = new_router("API keys")


class CreateKey(RequestBody):
    """The user and the role of a new key. A service key acts for users; its `user_id` is its own name."""

    user_id: PrincipalName
    role: Literal["user", "admin", "service"] = "user"
    tenant: PrincipalName = DEFAULT_TENANT
    expires_at: Expiry = None
    turns_per_minute: Limit = None
    tokens_per_minute: Limit = None
    turns_at_once: Limit = None


class RotateKey(RequestBody):
    """For how long the old key stays valid, and when the new one expires: by default after as long as the old one."""

    overlap_seconds: Annotated[int, Field(ge=0, le=MAX_OVERLAP_SECONDS)] = DEFAULT_OVERLAP_SECONDS
    expires_at: Expiry = None


BY_DEFAULT = RotateKey()


class ShownKey(BaseModel):
    """A key without its secret."""

    id: str
    object: Literal["api_key"] = "api_key"
    user_id: str
    role: KeyRole
    tenant: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None
    origin: KeyOrigin | None
    replaced_by: str | None
    turns_per_minute: int | None
    tokens_per_minute: int | None
    turns_at_once: int | None


class IssuedKey(ShownKey):
    """A key with its secret, which is shown only in this answer."""

    key: str


class KeyList(ListPage[ShownKey]):
    """A page of keys, the oldest first unless asked otherwise."""


@router.post("/v1/api_keys", status_code=201, summary="Issue an API key")
async def create_key(body: CreateKey, keys: KeysDep, admin: AdminDep) -> IssuedKey:
    """Create a key; only its hash is stored."""
    expires_at = _instant(body.expires_at)
    limits = RateLimits(**body.model_dump(include=set(RateLimits.model_fields)))
    key, secret = await keys.issue(body.user_id, KeyRole(body.role), body.tenant, expires_at, limits)
    return IssuedKey(**_show(key).model_dump(), key=secret)


@router.get("/v1/api_keys", summary="List the API keys")
async def list_keys(keys: KeysDep, admin: AdminDep, page: Annotated[KeyPageQuery, Query()]) -> KeyList:
    """Return keys without their secrets."""
    found, has_more = await keys.page(page)
    return KeyList.of([_show(key) for key in found], [key.id for key in found], has_more=has_more)


@router.get("/v1/api_keys/{key_id}", summary="Retrieve an API key")
async def retrieve_key(key_id: str, keys: KeysDep, admin: AdminDep) -> ShownKey:
    """Return one key without its secret."""
    return _show(await keys.find(key_id))


@router.post("/v1/api_keys/{key_id}/rotate", status_code=201, summary="Rotate an API key")
async def rotate_key(
    key_id: str, keys: KeysDep, admin: AdminDep, body: Annotated[RotateKey, Body()] = BY_DEFAULT
) -> IssuedKey:
    """Create a key in place of another one, which stays valid for the overlap."""
    overlap = timedelta(seconds=body.overlap_seconds)
    key, secret = await keys.rotate(key_id, overlap, _instant(body.expires_at))
    return IssuedKey(**_show(key).model_dump(), key=secret)


@router.delete("/v1/api_keys/{key_id}", summary="Revoke an API key")
async def delete_key(key_id: str, keys: KeysDep, admin: AdminDep) -> Deleted:
    """Delete a key; it is refused from the next request on."""
    await keys.revoke(key_id)
    return Deleted(id=key_id, object="api_key.deleted")


def _show(key: ApiKey) -> ShownKey:
    return ShownKey(
        id=key.id,
        user_id=key.user_id,
        role=key.role,
        tenant=key.tenant,
        created_at=unix_seconds(key.created_at),
        expires_at=_seconds(key.expires_at),
        last_used_at=_seconds(key.last_used_at),
        origin=key.origin,
        replaced_by=key.replaced_by,
        **key.limits.model_dump(),
    )


def _instant(seconds: int | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None else None


def _seconds(instant: datetime | None) -> int | None:
    return unix_seconds(instant) if instant is not None else None
