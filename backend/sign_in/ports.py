"""The ports of signing in: the identity provider, and who hears how it went."""

from collections.abc import Mapping
from typing import Protocol

from backend.identity.domain import Caller
from backend.sign_in.domain import Endpoints


class IdentityProvider(Protocol):
    """The operator's identity provider."""

    async def endpoints(self) -> Endpoints:
        """Return where it is asked what.

        Raises:
            Unavailable: it is away, or describes itself wrongly.
        """
        ...

    async def exchange(self, code: str, verifier: str) -> str:
        """Return the ID token for a code.

        Raises:
            Unauthenticated: the code is wrong, used or old.
            Unavailable: the provider is away.
        """
        ...

    async def claims(self, token: str) -> Mapping[str, object]:
        """Return what an ID token or a logout token for this client says.

        Raises:
            Unauthenticated: it is not valid.
            Unavailable: the provider is away.
        """
        ...

    async def caller_of(self, claims: Mapping[str, object]) -> Caller:
        """Return whom the claims name, and note their groups.

        Raises:
            Unauthenticated: they name nobody.
        """
        ...


class SignInObserver(Protocol):
    """Hears how sign-ins go; nothing that it is told stands in a token or a cookie."""

    def note_sign_in(self, caller: Caller) -> None:
        """Somebody has signed in."""
        ...

    def note_refusal(self, reason: str) -> None:
        """A sign-in or a logout was refused."""
        ...

    def note_ended_sessions(self, sessions: int, reason: str) -> None:
        """So many sessions were ended."""
        ...
