"""The claims of idempotency keys in SQL."""

from datetime import datetime

from sqlalchemy import Connection, Integer, bindparam, delete, select, text

from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.sql.database import Database
from backend.foundation.sql.schema import Instant
from backend.foundation.sql.statements import Change, Statement
from backend.foundation.sql.tables import idempotency_key
from shared.errors import KeyHeld

# A second transaction with the same key waits for the first one, and then changes no row. An expired claim that nobody
# has forgotten yet is overwritten.
_TAKE = Statement(
    text("""
        INSERT INTO idempotency_key (id, fingerprint, created, claimed_at)
        VALUES (:id, :fingerprint, :created, :claimed_at)
        ON CONFLICT (id) DO UPDATE
            SET fingerprint = excluded.fingerprint, created = excluded.created, claimed_at = excluded.claimed_at
            WHERE idempotency_key.claimed_at < :expired_before
    """).bindparams(bindparam("claimed_at", type_=Instant), bindparam("expired_before", type_=Instant))
)
_FIND = Statement(select(idempotency_key).where(idempotency_key.c.id == bindparam("where_id")))
_oldest = (
    select(idempotency_key.c.id)
    .where(idempotency_key.c.claimed_at < bindparam("where_before", type_=Instant))
    .order_by(idempotency_key.c.claimed_at)
    .limit(bindparam("where_most", type_=Integer))
)
_FORGET = Statement(delete(idempotency_key).where(idempotency_key.c.id.in_(_oldest)))


def take_key(connection: Connection, claim: KeyClaim | None) -> None:
    """Store the claim, if there is one, in the transaction that stores what its request creates.

    Raises:
        KeyHeld: another request has used the key already.
    """
    for change in build_claim(claim):
        if not change.statement.change(connection, *change.parameters):
            raise _refuse()


def build_claim(claim: KeyClaim | None) -> list[Change]:
    """Return the change that stores a claim, which must be committed first of those that it is made with."""
    if claim is None:
        return []
    return [Change(_TAKE, [{**claim.model_dump(), "expired_before": claim.expired_before}], must_meet=True)]


def check_key(connection: Connection, claim: KeyClaim | None) -> None:
    """Find out whether a claim is why changes were not made.

    Raises:
        KeyHeld: another request has used the key already.
    """
    row = _FIND.first(connection, {"where_id": claim.id}) if claim is not None else None
    if claim is not None and row is not None and row["claimed_at"] >= claim.expired_before:
        raise _refuse()


def _refuse() -> KeyHeld:
    return KeyHeld("Another request with this Idempotency-Key is being answered.", retry_after_seconds=1)


class SqlClaimStore:
    """The `ClaimStore` over a `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, claim_id: str) -> KeyClaim | None:
        """Return a stored claim, or None."""
        row = await self._database.find(_FIND, {"where_id": claim_id})
        return KeyClaim.model_validate(dict(row)) if row is not None else None

    async def forget(self, before: datetime, most: int) -> int:
        """Delete the oldest claims from before an instant."""
        which = {"where_before": before, "where_most": most}
        return await self._database.write(lambda connection: _FORGET.change(connection, which))
