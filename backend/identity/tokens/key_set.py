"""The public keys of an identity provider (RFC 7517)."""

from collections.abc import Mapping
from typing import cast

import jwt
import orjson

MAX_KEYS = 100


class KeySet:
    """The keys that may sign tokens; symmetric ones, and those for encryption, are left out."""

    def __init__(self, keys: tuple[Mapping[str, object], ...]) -> None:
        self._keys = keys
        self._read: dict[tuple[str | None, str], jwt.PyJWK | None] = {}

    @classmethod
    def read(cls, text: bytes) -> "KeySet":
        """Read a set of keys.

        Raises:
            ValueError: it is none, has more than `MAX_KEYS` keys, or none that signs.
        """
        answer: object = orjson.loads(text)
        listed = cast(Mapping[str, object], answer).get("keys") if isinstance(answer, dict) else None
        if not isinstance(listed, list) or len(cast(list[object], listed)) > MAX_KEYS:
            raise ValueError("is no set of keys")
        keys = tuple(key for key in map(_as_signing, cast(list[object], listed)) if key is not None)
        if not keys:
            raise ValueError("holds no key that signs")
        return cls(keys)

    def find(self, kid: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key of this id for this algorithm; without an id the only key that suits, if it is the only one.

        What was looked up for an id of the set is kept, because building a key takes longer than using it.
        """
        if kid is not None and all(key.get("kid") != kid for key in self._keys):
            return None
        wanted = (kid, algorithm)
        if wanted not in self._read:
            fitting = [key for key in self._keys if kid is None or key.get("kid") == kid]
            built = [key for key in (_build(each, algorithm) for each in fitting) if key is not None]
            self._read[wanted] = built[0] if len(built) == 1 else None
        return self._read[wanted]


def _as_signing(key: object) -> Mapping[str, object] | None:
    if not isinstance(key, dict):
        return None
    known = cast(Mapping[str, object], key)
    return known if known.get("use", "sig") == "sig" and known.get("kty") in ("RSA", "EC", "OKP") else None


def _build(key: Mapping[str, object], algorithm: str) -> jwt.PyJWK | None:
    if key.get("alg", algorithm) != algorithm:
        return None
    try:
        return jwt.PyJWK(dict(key), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
