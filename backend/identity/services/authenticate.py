"""Who calls: from a key to the user on whose behalf a request is answered."""

from backend.identity.domain.identity import ApiKey, Caller, KeyRole
from backend.identity.ports.identity import ApiKeyStore
from backend.identity.services.api_keys import hash_of
from shared.errors import InvalidRequest, PermissionDenied, Unauthenticated

ACT_FOR_HEADER = "X-Ballast-User"
MAX_USER_ID_CHARS = 256


class Authenticate:
    """Looks the key up at every request, so that a revoked one is refused at once."""

    def __init__(self, store: ApiKeyStore) -> None:
        self._store = store

    async def user(self, secret: str | None, act_for: str | None) -> Caller:
        """Return the user who calls, or for whom a service calls.

        Raises:
            Unauthenticated: no key, or one that is not known.
            InvalidRequest: a service key that does not say for whom it acts.
            PermissionDenied: a user's key that wants to act for somebody else.
        """
        key = await self._known(secret)
        if key.role is KeyRole.SERVICE:
            return Caller(user_id=_checked_user_id(act_for), tenant=key.tenant, role=key.role)
        if act_for not in (None, key.user_id):
            raise PermissionDenied(f"Only a service key may act for a user with {ACT_FOR_HEADER}.")
        return Caller(user_id=key.user_id, tenant=key.tenant, role=key.role)

    async def admin(self, secret: str | None) -> Caller:
        """Return the administrator who calls.

        Raises:
            Unauthenticated: no key, or one that is not known.
            PermissionDenied: a key of another role.
        """
        key = await self._known(secret)
        if key.role is not KeyRole.ADMIN:
            raise PermissionDenied("This takes an API key with role admin.")
        return Caller(user_id=key.user_id, tenant=key.tenant, role=key.role)

    async def _known(self, secret: str | None) -> ApiKey:
        if not secret:
            raise Unauthenticated("No API key: send it as 'Authorization: Bearer <key>'.")
        key = await self._store.find_by_hash(hash_of(secret))
        if key is None:
            raise Unauthenticated("The API key is not valid.")
        return key


def _checked_user_id(act_for: str | None) -> str:
    if not act_for:
        raise InvalidRequest(f"A service key says for whom it acts: send {ACT_FOR_HEADER}.", param=ACT_FOR_HEADER)
    if len(act_for) > MAX_USER_ID_CHARS or not act_for.isprintable():
        raise InvalidRequest(
            f"{ACT_FOR_HEADER} is at most {MAX_USER_ID_CHARS} printable characters.", param=ACT_FOR_HEADER
        )
    return act_for
