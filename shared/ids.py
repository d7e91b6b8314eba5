"""Opaque, unguessable identifiers with a prefix for the kind of object."""

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
    CUSTOM_TOOL_CALL = "ctc"
    CUSTOM_TOOL_CALL_OUTPUT = "ctco"
    FILE_SEARCH = "fs"
    MCP_CALL = "mcp"
    REASONING = "rs"
    COMPACTION = "cmp"
    KNOWLEDGE_BASE = "kb"
    DOCUMENT = "doc"
    AGENT = "agent"
    GROUP = "grp"
    DIRECTORY_USER = "usr"
    FILE_INDEX = "shelf"
    EDITION = "ed"
    CHUNK = "chunk"
    SEALED_SEARCH = "search"
    AUDIT_RECORD = "audit"
    API_KEY = "key"
    REQUEST = "req"
    LOOKUP = "lookup"
    FILE = "file"
    FILE_BATCH = "vsfb"
    RATE_LEASE = "rate"


CELL_PATTERN = "[a-z0-9]{2}"
_CELL = re.compile(f"[a-z]+[_-](?P<cell>{CELL_PATTERN})[0-9a-f]{{32}}")


class _OwnCell:
    """Where ids are made; the first cell has no name, unless it is given one."""

    name = ""


def name_cell(cell: str) -> None:
    """Let all identifiers that this process creates from now on carry the cell, two characters; empty: none."""
    _OwnCell.name = cell


def cell_of(identifier: str) -> str:
    """Return the cell that an identifier carries; empty for one that carries none, which is of the first cell."""
    found = _CELL.fullmatch(identifier)
    return found["cell"] if found is not None else ""


def new_id(prefix: IdPrefix, *, separator: str = "_") -> str:
    """Create an identifier with 128 random bits, such as `resp_3f…` (RFC 4086 asks for no more).

    In a cell with a name it stands before them: `resp_c13f…`. OpenAI writes ids of files with another separator:
    `file-3f…`.
    """
    return f"{prefix}{separator}{_OwnCell.name}{secrets.token_hex(16)}"


def request_id_headers(request_id: str) -> dict[str, str]:
    """Return the header that passes a request id on; empty where the backend would not accept the id."""
    return {"x-request-id": request_id} if REQUEST_ID.fullmatch(request_id) else {}
