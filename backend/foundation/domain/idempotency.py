"""Requests that may be sent again under a key, and what is kept of them: hashes, and ids of what they created."""

import hashlib
import hmac
from datetime import datetime, timedelta

import orjson

from shared.models.values import JsonObject, Value

KEPT_FOR = timedelta(hours=24)
"""How long a key is remembered after the request that used it first."""


class KeyedRequest(Value):
    """A request with an Idempotency-Key; `call` is its method and path, `fields` what its body asks for."""

    tenant: str
    user_id: str
    key: str
    call: str
    fields: JsonObject


class KeyClaim(Value):
    """A key with the request that uses it; `created` is empty until the request knows what it creates."""

    id: str
    fingerprint: str
    claimed_at: datetime
    created: str = ""

    def of(self, created: str) -> "KeyClaim":
        """Return the claim of a request that creates this."""
        return self.model_copy(update={"created": created})

    @property
    def expired_before(self) -> datetime:
        """Claims of the same key from before this instant count no more."""
        return self.claimed_at - KEPT_FOR


def claim_of(request: KeyedRequest, secret: str, now: datetime) -> KeyClaim:
    """Return the claim of a request; equal fields make equal fingerprints, in whatever order they were sent."""
    fields = orjson.dumps(request.fields, option=orjson.OPT_SORT_KEYS)
    return KeyClaim(
        id=_keyed_hash(secret, b"idempotency key", request.tenant, request.user_id, request.key),
        fingerprint=_keyed_hash(secret, b"idempotent request " + fields, request.call),
        claimed_at=now,
    )


def _keyed_hash(secret: str, beginning: bytes, *texts: str) -> str:
    message = b"\x00".join([beginning, *(text.encode() for text in texts)])
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
