"""API keys, their roles, and authenticated callers."""

from datetime import datetime
from enum import StrEnum

from shared.models.values import Value


class KeyRole(StrEnum):
    """The purpose of an API key: calls of its own user, administration, or calls on behalf of users."""

    USER = "user"
    ADMIN = "admin"
    SERVICE = "service"


class Caller(Value):
    """The authenticated user of a request; with a service key, this is the user on whose behalf it calls.

    `key_id` is the id of the key; it is empty where no key was presented.
    """

    user_id: str
    tenant: str
    role: KeyRole
    key_id: str = ""


class KeyOrigin(StrEnum):
    """Where a key comes from: an administrator, the setting BACKEND_ADMIN_KEY, or a first run without that setting."""

    ISSUED = "issued"
    SETTING = "setting"
    GENERATED = "generated"


class ApiKey(Value):
    """An API key as stored; of the secret only the hash is stored.

    `origin` is None where the first release stored it. `last_used_at` is up to two minutes behind. `replaced_by` is the
    id of the key that a rotation has put in its place.
    """

    id: str
    key_hash: str
    user_id: str
    tenant: str
    role: KeyRole
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    origin: KeyOrigin | None = None
    replaced_by: str | None = None

    def has_expired(self, now: datetime) -> bool:
        """Whether the key is refused because of its age."""
        return self.expires_at is not None and now >= self.expires_at
