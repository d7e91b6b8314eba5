"""The policy for a turn whose client closes the connection, and ids by which unstored turns are stopped."""

import hashlib
import hmac
from typing import Literal, NamedTuple

from backend.conversations.domain.input_items import Given
from backend.identity.domain import Caller
from shared.ids import IdPrefix, new_id

OnDisconnect = Literal["cancel", "continue"]
"""What a closed stream does to its turn."""

_MARK_CHARACTERS = 16


class DisconnectPolicy(NamedTuple):
    """What a closed stream does in each API where the request does not say."""

    chat: OnDisconnect = "cancel"
    responses: OnDisconnect = "continue"


BY_API = DisconnectPolicy()
"""A chat completion has no other stop than its connection, and no other reader; a response has both."""


class StreamOptions(Given):
    """How the stream is sent, and what its closing does; events are never padded."""

    include_obfuscation: bool | None = None
    on_disconnect: OnDisconnect | None = None


def create_unstored_id(secret: str, caller: Caller) -> str:
    """Create the id of a response that is not stored: the id itself shows whose it is, and that to us alone."""
    drawn = new_id(IdPrefix.RESPONSE)
    return drawn + _mark(secret, caller, drawn)


def is_unstored_of(secret: str, caller: Caller, response_id: str) -> bool:
    """Say whether this is the id of a response of this caller that is not stored."""
    drawn, mark = response_id[:-_MARK_CHARACTERS], response_id[-_MARK_CHARACTERS:]
    return hmac.compare_digest(mark.encode(), _mark(secret, caller, drawn).encode())


def _mark(secret: str, caller: Caller, drawn: str) -> str:
    text = f"unstored\0{caller.tenant}\0{caller.user_id}\0{drawn}"
    return hmac.digest(secret.encode(), text.encode(), hashlib.sha256).hex()[:_MARK_CHARACTERS]
