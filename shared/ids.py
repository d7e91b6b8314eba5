"""Opaque, unguessable identifiers with a prefix for the kind of object."""

import os
import re
import secrets
from enum import StrEnum

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""The form of a request id that the backend accepts; it is always a valid value of an HTTP header."""


class IdPrefix(StrEnum):
    """The prefix of an identifier, which says what kind of object it identifies."""

    RESPONSE = "resp"
    CONVERSATION = "conv"
    MESSAGE = "msg"
    FUNCTION_CALL = "fc"
    FUNCTION_CALL_OUTPUT = "fco"
    FILE_SEARCH = "fs"
    REASONING = "rs"
    KNOWLEDGE_BASE = "kb"
    DOCUMENT = "doc"
    EDITION = "ed"
    CHUNK = "chunk"
    SEALED_SEARCH = "search"
    AUDIT_RECORD = "audit"
    API_KEY = "key"
    REQUEST = "req"


_ID_DIGITS = 32
_IDS_AT_ONCE = 64
_unused: list[str] = []
"""Random digits of identifiers to come: asking the system for them gives up the interpreter's lock each time."""

# A child process that was forked must not use the same ones.
os.register_at_fork(after_in_child=_unused.clear)


def new_id(prefix: IdPrefix) -> str:
    """Create an identifier with 128 random bits, such as `resp_3f…` (RFC 4086 asks for no more)."""
    return f"{prefix}_{_random_digits()}"


def _random_digits() -> str:
    while True:
        try:
            return _unused.pop()
        except IndexError:
            digits = secrets.token_hex(_IDS_AT_ONCE * _ID_DIGITS // 2)
            _unused.extend(digits[at : at + _ID_DIGITS] for at in range(0, len(digits), _ID_DIGITS))


def request_id_headers(request_id: str) -> dict[str, str]:
    """Return the header that passes a request id on; empty where the backend would not accept the id."""
    return {"x-request-id": request_id} if REQUEST_ID.fullmatch(request_id) else {}
