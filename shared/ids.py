"""Opaque, unguessable identifiers with a prefix that says what they name."""

import re
import secrets
from enum import StrEnum

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
"""What the backend takes as a request id, whole; anything else might not even be a header's value."""


class IdPrefix(StrEnum):
    """What an identifier names."""

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


def new_id(prefix: IdPrefix) -> str:
    """Make an identifier with 128 random bits, such as `resp_3f…` (RFC 4086 asks for no more)."""
    return f"{prefix}_{secrets.token_hex(16)}"


def request_id_headers(request_id: str) -> dict[str, str]:
    """Make the header that passes a request id on; none where the backend would not take it."""
    return {"x-request-id": request_id} if REQUEST_ID.fullmatch(request_id) else {}
