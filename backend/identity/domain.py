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


class ApiKey(Value):
    """An API key as stored; of the secret only the hash is stored."""

    id: str
    key_hash: str
    user_id: str
    tenant: str
    role: KeyRole
    created_at: datetime
