"""Requests that may be sent again under a key, and what is kept of them: hashes, and ids of what they created."""

import hashlib
import hmac
from collections.abc import Iterator
from datetime import datetime, timedelta
from operator import itemgetter

import orjson

from backend.foundation.domain.json_objects import Steps
from shared.models.values import JsonObject, JsonValue, Value

KEPT_FOR = timedelta(hours=24)
"""How long a key is remembered after the request that used it first."""

SLICE_CHARACTERS = 65_536
STEP_BYTES = 2**18
"""JSON text that is written and hashed in one step: about 2 ms."""

PIECE_BYTES = 64
"""What a piece of text costs at least, as if it were so long."""


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


def claim_cooperatively(request: KeyedRequest, secret: str, now: datetime) -> Steps[KeyClaim]:
    """Return the claim of a request; equal fields make equal fingerprints, in whatever order they were sent.

    Writing and hashing the fields of a long body at once would hold the event loop, even from another thread, because
    the writer of JSON holds the interpreter's lock.
    """
    fingerprint, unpaused = _new_hash(secret, b"idempotent request "), 0
    for piece in _write_sorted(request.fields):
        fingerprint.update(piece)
        unpaused += len(piece) + PIECE_BYTES
        if unpaused > STEP_BYTES:
            unpaused = 0
            yield
    # JSON text holds no zero byte, so that nothing but its end is followed by one.
    fingerprint.update(b"\x00" + request.call.encode())
    claim_id = claim_id_of((request.tenant, request.user_id), request.key, secret)
    return KeyClaim(id=claim_id, fingerprint=fingerprint.hexdigest(), claimed_at=now)


def claim_id_of(principal: tuple[str, str], key: str, secret: str) -> str:
    """Return the id of the claim that a tenant's user has with a key, whatever the request asks for."""
    names = [name.encode("utf-8", "surrogatepass") for name in (*principal, key)]
    return _new_hash(secret, b"\x00".join([b"idempotency key", *names])).hexdigest()


def _write_sorted(root: JsonValue) -> Iterator[bytes]:
    """Yield the one JSON text of a value, its objects sorted by key, in pieces that are each written in a moment."""
    waiting: list[JsonValue | bytes] = [root]
    while waiting:
        value = waiting.pop()
        match value:
            case bytes():
                yield value
            case str():
                yield b'"'
                for start in range(0, len(value), SLICE_CHARACTERS):
                    # A character is written alike wherever it stands, so that slices join to the whole.
                    yield orjson.dumps(value[start : start + SLICE_CHARACTERS])[1:-1]
                yield b'"'
            case dict():
                waiting += _members(value)
            case list():
                waiting += _elements(value)
            case _:
                yield orjson.dumps(value)


def _members(value: JsonObject) -> list[JsonValue | bytes]:
    """Return the parts of an object, the first one last."""
    parts: list[JsonValue | bytes] = [b"{"]
    for place, (name, member) in enumerate(sorted(value.items(), key=itemgetter(0))):
        parts += (b"," if place else b"", name, b":", member)
    return [*parts, b"}"][::-1]


def _elements(value: list[JsonValue]) -> list[JsonValue | bytes]:
    """Return the parts of an array, the first one last."""
    parts: list[JsonValue | bytes] = [b"["]
    for place, element in enumerate(value):
        parts += (b"," if place else b"", element)
    return [*parts, b"]"][::-1]


def _new_hash(secret: str, beginning: bytes) -> hmac.HMAC:
    return hmac.new(secret.encode(), beginning, hashlib.sha256)
