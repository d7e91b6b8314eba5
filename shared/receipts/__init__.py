"""Receipts: signed records in a chain, each of which holds the digest of the one before it.

Anybody who has the public key can tell, without a service, whether one was changed or is missing.
"""

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

import orjson

from shared.receipts.chosen import is_signature, open_key

_LABEL = b"ballast receipts 1\0"
FIRST_LINK = ""
"""What stands as the digest of the one before in the first receipt of a chain."""

END = "receipts.end"
"""The `object` of the last line of an export, which holds the digest of the last receipt: none is missing behind it."""


class SealedReceipt(NamedTuple):
    """A receipt as it was signed: its JSON, which holds `number` and `previous`, and the signature in hex."""

    body: str
    signature: str

    @property
    def digest(self) -> str:
        """What the next receipt holds of this one."""
        return sha256(f"{self.body}\n{self.signature}".encode()).hexdigest()

    @property
    def line(self) -> bytes:
        """The receipt as a line of an export."""
        return orjson.dumps(self._asdict())


class ReceiptSigner:
    """Signs with a key (Ed25519) that is derived from a secret when it is first asked for."""

    def __init__(self, secret: str) -> None:
        self._seed = hmac.digest(secret.encode(), _LABEL, sha256)

    @property
    def public_key(self) -> str:
        """The key, in hex, by which anybody may check what was signed."""
        return open_key(self._seed).public_key().public_bytes_raw().hex()

    def seal(self, members: Mapping[str, object], number: int, previous: str) -> SealedReceipt:
        """Sign a receipt that follows the one with this digest."""
        body = orjson.dumps({**members, "number": number, "previous": previous}, option=orjson.OPT_SORT_KEYS)
        return SealedReceipt(body.decode(), open_key(self._seed).sign(body).hex())


class BrokenChain(Exception):
    """A receipt of an export was changed or is missing."""


class _Due(NamedTuple):
    """What the next line has to hold."""

    number: int
    previous: str
    is_end: bool


def verify_chain(lines: Iterable[bytes], public_key: str) -> int:
    """Return how many receipts an export holds.

    Each digest covers the signature before it, so that the signature of the end proves all.

    Raises:
        BrokenChain: A receipt was changed or is missing, or another key has signed them.
    """
    due, sealed = _Due(1, FIRST_LINK, is_end=False), None
    for place, line in enumerate(lines, start=1):
        sealed = _read(line)
        if sealed is None:
            raise BrokenChain(f"line {place} is no receipt")
        due = _follow(sealed, due)
    if sealed is None or not due.is_end:
        raise BrokenChain("the end is missing")
    if not _is_signed(sealed, public_key):
        raise BrokenChain("the end is not signed by this key")
    return due.number - 2


def _read(line: bytes) -> SealedReceipt | None:
    """Return the receipt of a line, None where the line is not written as an export writes it."""
    try:
        sealed = SealedReceipt(**orjson.loads(line))
        return sealed if sealed.line == line.removesuffix(b"\n") else None
    except (TypeError, orjson.JSONDecodeError):
        return None


def _follow(sealed: SealedReceipt, due: _Due) -> _Due:
    """Return what has to follow a receipt that follows the one before."""
    try:
        body = orjson.loads(sealed.body)
        number, previous, kind = body["number"], body["previous"], body["object"]
    except (TypeError, KeyError, orjson.JSONDecodeError):
        raise BrokenChain(f"what should be receipt {due.number} cannot be read") from None
    if due.is_end:
        raise BrokenChain("something follows the end")
    if number != due.number:
        raise BrokenChain(f"receipt {due.number} is missing")
    if previous != due.previous:
        raise BrokenChain(f"receipt {number - 1} was changed")
    return _Due(number + 1, sealed.digest, kind == END)


def _is_signed(sealed: SealedReceipt, public_key: str) -> bool:
    try:
        return is_signature(bytes.fromhex(sealed.signature), sealed.body.encode(), bytes.fromhex(public_key))
    except ValueError:
        return False
