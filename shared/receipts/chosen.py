"""The library that signs, imported with the first receipt: it takes 7 MB, and most processes write none."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@cache
def open_key(seed: bytes) -> "Ed25519PrivateKey":
    """Return the private key that these 32 bytes are."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed)


def is_signature(signature: bytes, body: bytes, public_key: bytes) -> bool:
    """Whether this key has signed these bytes.

    Raises:
        ValueError: it is no key.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, body)
    except InvalidSignature:
        return False
    return True
