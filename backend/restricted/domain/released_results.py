"""Keyed hashes: where a released result is kept, and under which name a user stands in the audit.

A result is kept for the one who got it. The gate spares what the user himself wrote (a name, a figure), so what was
released to one user may tell another what he never wrote.
"""

import hmac
import unicodedata
from collections.abc import Sequence
from hashlib import sha256

import orjson

from backend.restricted.domain.restricted import SealedSearch, SearchedBase
from shared.models.safe_summary import SummaryVersions

USER_HASH_DIGITS = 32
_OF_RESULTS = b"ballast released result 1\0"
_OF_USERS = b"ballast audited user 1\0"
_OF_OUTCOMES = b"ballast reported outcome 1\0"


def normalised_query(query: str) -> str:
    """Return what equal queries have in common: compatible forms, case and white space do not tell them apart."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", query).casefold()).split())


def result_key(
    secret: str, user: tuple[str, str], bases: Sequence[SearchedBase], versions: SummaryVersions, query: str
) -> str:
    """Return where the result of this search is kept, in which no query can be read; `user` is tenant and id."""
    searched = sorted((base.id, base.version) for base in bases)
    parts = [*user, searched, versions.model_dump(), normalised_query(query)]
    return _keyed(secret, _OF_RESULTS, orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))


def user_hash(secret: str, tenant: str, user_id: str) -> str:
    """Return the name of a user in the audit."""
    return _keyed(secret, _OF_USERS, f"{tenant}\0{user_id}".encode())[:USER_HASH_DIGITS]


def outcome_digest(secret: str, search: SealedSearch, reported: bytes) -> str:
    """Return what tells a repeated outcome of a search from another one."""
    return _keyed(secret, _OF_OUTCOMES, search.id.encode() + b"\0" + reported)


def _keyed(secret: str, purpose: bytes, content: bytes) -> str:
    return hmac.digest(secret.encode(), purpose + content, sha256).hex()
