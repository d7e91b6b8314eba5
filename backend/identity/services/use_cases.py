"""The use cases of identity, as one value for the application and the HTTP door."""

from dataclasses import dataclass

from backend.identity.services.api_keys import KeyAdministration
from backend.identity.services.authenticate import Authenticate


@dataclass(frozen=True)
class IdentityServices:
    """What routes ask of callers and their keys."""

    authenticate: Authenticate
    api_keys: KeyAdministration
