"""The ports for storing API keys and for checking tokens."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Protocol

from backend.identity.domain import ApiKey, Caller, ProviderSession


class ApiKeyStore(Protocol):
    """Stores API keys, which are found by their hashes; a deleted key is refused from the next request on."""

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        ...

    async def add_first(self, key: ApiKey) -> bool:
        """Store a key where there is none yet; of several processes that try at once, one succeeds."""
        ...

    async def set_configured(self, key: ApiKey) -> None:
        """Store the key of the operator's setting, and delete those from before it.

        A stored key with the same hash becomes this one, and keeps its id and age. Keys from before it are the others
        whose origin is the setting or a first run, and, where the hash is new, those of the same user, tenant and role
        that the first release has stored.
        """
        ...

    async def rotate(self, key_id: str, replacement: ApiKey, ends_at: datetime) -> bool:
        """Store the replacement of a key, which then expires at that instant; False where it is gone or replaced."""
        ...

    async def note_uses(self, uses: Mapping[str, datetime], unless_since: Mapping[str, datetime]) -> None:
        """Store when keys were last used, unless a use is stored that is not before the instant of `unless_since`."""
        ...

    async def find_by_hash(self, key_hash: str) -> ApiKey | None:
        """Return the key with this hash, an expired one too, or None."""
        ...

    async def find(self, key_id: str) -> ApiKey | None:
        """Return the key with this id, or None."""
        ...

    async def page(self, after: ApiKey | None, limit: int, *, descending: bool) -> tuple[ApiKey, ...]:
        """Return up to `limit` keys behind another one, or the first ones: the oldest, or else the newest first."""
        ...

    async def delete(self, key_id: str) -> bool:
        """Delete a key; return False where there is none with this id.

        A key that it has replaced may be replaced again.
        """
        ...

    async def end_sessions(self, ended: ProviderSession) -> int:
        """Delete the keys of a session, or of all sessions of its subject where it has no id; return how many."""
        ...

    async def delete_expired_sessions(self, before: datetime) -> None:
        """Delete the keys of sessions that had expired before an instant."""
        ...


ClaimsOfToken = Callable[[str], Awaitable[Mapping[str, object]]]
"""Returns what a token of the operator's identity provider says.

Raises:
    Unauthenticated: the token is not valid; the message tells nothing that stands in it.
    Unavailable: the keys that would tell are not known, because the provider is away.
"""


TokenReading = tuple[
    ClaimsOfToken, Callable[[Mapping[str, object]], Awaitable[Caller]], Callable[[str], Awaitable[bytes]]
]
"""For one client of the identity provider: what a token says, whom its claims name, and what is at an address."""

ReadTokens = Callable[[str], TokenReading]
"""Returns what reads the tokens that are meant for a client, by its name at the identity provider."""

CallerOfToken = Callable[[str], Awaitable[Caller]]
"""Returns whom a token of the operator's identity provider names.

Raises:
    Unauthenticated: the token is not valid, or names nobody; the message tells nothing that stands in it.
    Unavailable: the keys that would tell are not known, because the provider is away.
"""

NoteGroups = Callable[[Caller, frozenset[str], int], Awaitable[None]]
"""Notes which groups a token names, and when it was issued (Unix seconds).

Raises:
    Unavailable: the database is away.
"""
