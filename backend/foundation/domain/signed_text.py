"""Texts that this server has made, and that others carry: signed, so that nobody else can make or change one."""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from hashlib import sha256


def sign_text(purpose: bytes, payload: bytes, secret: str) -> str:
    """Return a payload as URL-safe text: the payload and an HMAC-SHA256 (RFC 2104), joined by a dot.

    `purpose` keeps signatures apart from all others made with the same secret; it ends with a byte of 0.
    """
    return f"{_encode(payload)}.{_encode(_signature(purpose, payload, secret))}"


def read_signed(purpose: bytes, text: str, secret: str) -> bytes | None:
    """Return the payload that `sign_text` made into this text; None where it has not."""
    try:
        payload, signature = (_decode(part) for part in text.split("."))
    except (Base64Error, ValueError):
        return None
    return payload if hmac.compare_digest(signature, _signature(purpose, payload, secret)) else None


def _signature(purpose: bytes, payload: bytes, secret: str) -> bytes:
    return hmac.digest(secret.encode(), purpose + payload, sha256)


def _encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(part: str) -> bytes:
    return urlsafe_b64decode(part.encode("ascii") + b"=" * (-len(part) % 4))
