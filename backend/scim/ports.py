"""The port to what speaks SCIM."""

from typing import Protocol

from backend.scim.domain import ScimAnswer, ScimCall


class ScimServer(Protocol):
    """What speaks SCIM."""

    async def answer(self, call: ScimCall) -> ScimAnswer:
        """Answer one request; its errors are answers, too.

        Raises:
            Unavailable: the database is away.
        """
        ...
