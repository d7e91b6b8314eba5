"""The routes by which administrators issue, list and revoke API keys."""

from typing import Literal

from pydantic import BaseModel

from backend.foundation.http.json_body import new_router
from backend.foundation.http.shapes import Deleted, ListPage, PrincipalName, RequestBody, unix_seconds
from backend.identity.domain import ApiKey, KeyRole
from backend.identity.http.caller import AdminDep, ServicesDep
from backend.identity.services import DEFAULT_TENANT

router = new_router("API keys")


class CreateKey(RequestBody):
    """The user and the role of a new key. A service key acts for users; its `user_id` is its own name."""

    user_id: PrincipalName
    role: Literal["user", "admin", "service"] = "user"
    tenant: PrincipalName = DEFAULT_TENANT


class ShownKey(BaseModel):
    """A key without its secret."""

    id: str
    object: Literal["api_key"] = "api_key"
    user_id: str
    role: KeyRole
    tenant: str
    created_at: int


class IssuedKey(ShownKey):
    """A key with its secret, which is shown only in this answer."""

    key: str


class KeyList(ListPage[ShownKey]):
    """All keys, oldest first, in one page."""

    has_more: bool = False


@router.post("/v1/api_keys", status_code=201, summary="Issue an API key")
async def create_key(body: CreateKey, services: ServicesDep, admin: AdminDep) -> IssuedKey:
    """Create a key; only its hash is stored."""
    key, secret = await services.api_keys.issue(body.user_id, KeyRole(body.role), body.tenant)
    return IssuedKey(**_shown(key).model_dump(), key=secret)


@router.get("/v1/api_keys", summary="List the API keys")
async def list_keys(services: ServicesDep, admin: AdminDep) -> KeyList:
    """Return all keys without their secrets."""
    keys = [_shown(key) for key in await services.api_keys.all()]
    return KeyList.of(keys, [key.id for key in keys])


@router.get("/v1/api_keys/{key_id}", summary="Retrieve an API key")
async def retrieve_key(key_id: str, services: ServicesDep, admin: AdminDep) -> ShownKey:
    """Return one key without its secret."""
    return _shown(await services.api_keys.find(key_id))


@router.delete("/v1/api_keys/{key_id}", summary="Revoke an API key")
async def delete_key(key_id: str, services: ServicesDep, admin: AdminDep) -> Deleted:
    """Delete a key; it is refused from the next request on."""
    await services.api_keys.revoke(key_id)
    return Deleted(id=key_id, object="api_key.deleted")


def _shown(key: ApiKey) -> ShownKey:
    return ShownKey(
        id=key.id, user_id=key.user_id, role=key.role, tenant=key.tenant, created_at=unix_seconds(key.created_at)
    )
