"""Receipts of released answers: what was shown to whom, and on which versions of which documents it rests."""

from collections.abc import Sequence
from hashlib import sha256
from math import ceil
from typing import NamedTuple

import orjson

from backend.restricted.domain.restricted import AuditRecord
from shared.models.safe_summary import ReleasedSummary
from shared.models.values import Value
from shared.receipts import END, FIRST_LINK, ReceiptSigner, SealedReceipt

BITS_OF_A_CHARACTER, BITS_OF_A_CHINESE_CHARACTER, BITS_OF_CHOICES = 2.72, 12.23, 11
BITS_OF_FINDINGS = 70
"""What fits into an answer of prose, or of coded findings, at most; docs/how-the-gate-decides.md computes them."""

_OBJECT = "receipt"


class RestsOn(Value):
    """A document on which an answer rests, and the digest of its content."""

    document_id: str
    sha256: str


class ChainEnd(NamedTuple):
    """The number and the digest of a tenant's newest receipt."""

    number: int
    digest: str


class ReceiptQuery(NamedTuple):
    """A page of receipts behind a number, oldest first: all, or those of answers that rest on a document."""

    document_id: str | None = None
    after: int = 0
    limit: int = 100


EMPTY_CHAIN = ChainEnd(0, FIRST_LINK)


def write_receipt(
    record: AuditRecord, shown: ReleasedSummary, documents: Sequence[RestsOn], end: ChainEnd, signer: ReceiptSigner
) -> SealedReceipt:
    """Write the receipt of an answer as the next one of a tenant's chain. It holds no text of the answer."""
    said = record.model_dump(
        mode="json", include={"recorded_at", "tenant", "user_hash", "conversation_id", "turn_id", "bases", "versions"}
    )
    text = orjson.dumps(shown.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
    members = {
        **said,
        "object": _OBJECT,
        "audit_id": record.id,
        "documents": [document.model_dump() for document in documents],
        "text_sha256": sha256(text).hexdigest(),
        "bits": count_bits(shown),
        "facts": record.facts,
    }
    return signer.seal(members, end.number + 1, end.digest)


def write_end(tenant: str, end: ChainEnd, signer: ReceiptSigner) -> SealedReceipt:
    """Write the last line of an export: no receipt is missing before it."""
    return signer.seal({"object": END, "tenant": tenant}, end.number + 1, end.digest)


def count_bits(shown: ReleasedSummary) -> int:
    """Return how many bits an answer of this length, or of coded findings, carries at most."""
    if shown.findings:
        return BITS_OF_FINDINGS
    text = "".join((shown.summary, *shown.observations, *shown.risks, *shown.recommended_actions))
    chinese = sum(not character.isascii() for character in text)
    return ceil(BITS_OF_CHOICES + chinese * BITS_OF_A_CHINESE_CHARACTER + (len(text) - chinese) * BITS_OF_A_CHARACTER)


def read_number(sealed: SealedReceipt) -> int:
    """Return the place of a receipt in its chain."""
    return orjson.loads(sealed.body)["number"]
