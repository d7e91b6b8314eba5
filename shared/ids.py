"""Opaque, unguessable identifiers with a prefix that says what they name."""

import secrets
from enum import StrEnum


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
