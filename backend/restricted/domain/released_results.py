"""Keyed hashes (HMAC-SHA256): cache keys of released results, pseudonyms of users, and names of their budget sessions.

A cache key includes the user. The gate lets through what the user wrote (a name, a figure), so a summary that
was released to one user could reveal that to another.
"""

import hmac
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256

import orjson

from backend.restricted.domain.restricted import SealedSearch, SearchedBase
from shared.models.safe_summary import SummaryVersions

USER_HASH_DIGITS = 32
_OF_RESULTS = b"ballast released result 1\0"
_OF_USERS = b"ballast audited user 1\0"
_OF_SESSIONS = b"ballast stretch of lookups 1\0"
_OF_FACTS = b"ballast told fact 1\0"
_OF_OUTCOMES = b"ballast reported outcome 1\0"


def normalise_query(query: str) -> str:
    """Return a query in NFKC, case-folded and with single spaces; queries alike in this form share a result."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", query).casefold()).split())


def result_key(
    secret: str, user: tuple[str, str], bases: Sequence[SearchedBase], versions: SummaryVersions, query: str
) -> str:
    """Return the cache key of this search's result, which does not reveal the query; `user` is tenant and id."""
    searched = sorted((base.id, base.version) for base in bases)
    parts = [*user, searched, versions.model_dump(), normalise_query(query)]
    return _hash(secret, _OF_RESULTS, orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))


def user_hash(secret: str, tenant: str, user_id: str) -> str:
    """Return the pseudonym of a user in the audit: 32 hexadecimal digits."""
    return _hash(secret, _OF_USERS, f"{tenant}\0{user_id}".encode())[:USER_HASH_DIGITS]


def budget_session_id(secret: str, tenant: str, user_id: str, now: datetime) -> str:
    """Return what stands in the place of a conversation's id where a user searches without a conversation.

    It is the same for all searches of a user within a day in UTC, whatever key or connection they use, so that the
    budget of a conversation cannot be had anew.
    """
    whose = f"{tenant}\0{user_id}\0{now.astimezone(UTC).date().isoformat()}"
    return f"stretch_{_hash(secret, _OF_SESSIONS, whose.encode())[:USER_HASH_DIGITS]}"


def outcome_digest(secret: str, search: SealedSearch, reported: bytes) -> str:
    """Return the digest by which a repeated outcome of a search is told from a different one."""
    return _hash(secret, _OF_OUTCOMES, search.id.encode() + b"\0" + reported)


def fact_digest(secret: str, document_id: str, sentence: str) -> str:
    """Return the digest by which a sentence of a document is known again, which reveals nothing of it."""
    return _hash(secret, _OF_FACTS, f"{document_id}\0{sentence}".encode())


def _hash(secret: str, purpose: bytes, content: bytes) -> str:
    return hmac.digest(secret.encode(), purpose + content, sha256).hex()
