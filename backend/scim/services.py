"""Who may write a directory over SCIM."""

import hmac

from backend.scim.domain import ScimAnswer, ScimCall, ScimTerms
from backend.scim.ports import ScimServer
from shared.errors import Unauthenticated

OPEN_PATH = "/ServiceProviderConfig"
"""Anybody may read what the service can do (RFC 7643, 5)."""


class ScimAccess:
    """Lets those call who present the operator's token."""

    def __init__(self, terms: ScimTerms, server: ScimServer) -> None:
        self._token = terms.token.encode()
        self._server = server

    def require(self, presented: str | None) -> None:
        """Require the token.

        Raises:
            Unauthenticated: another one is presented, or none.
        """
        if presented is None or not hmac.compare_digest(presented.encode("utf-8", "surrogatepass"), self._token):
            raise Unauthenticated("Send the token of BACKEND_SCIM_TOKEN as a bearer token.")

    async def answer(self, call: ScimCall) -> ScimAnswer:
        """Answer a request whose token has been looked at."""
        return await self._server.answer(call)
