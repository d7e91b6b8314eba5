"""Who calls, and what his key lets him do."""

from datetime import datetime
from enum import StrEnum

from shared.models.values import Value


class KeyRole(StrEnum):
    """What an API key is for: its own user, administration, or acting for users."""

    USER = "user"
    ADMIN = "admin"
    SERVICE = "service"


class Caller(Value):
    """The authenticated author of a request; a service key has taken on its user already."""

    user_id: str
    tenant: str
    role: KeyRole


class ApiKey(Value):
    """A key as stored: its secret is known by hash only."""

    id: str
    key_hash: str
    user_id: str
    tenant: str
    role: KeyRole
    created_at: datetime
