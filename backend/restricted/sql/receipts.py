"""Receipts in SQL: a chain for each tenant, which grows in the transactions that store the outcomes."""

from collections.abc import Sequence

from sqlalchemy import Connection, Integer, bindparam, insert, select, text, update

from backend.foundation.sql.statements import Statement
from backend.knowledge.sql.tables import document
from backend.restricted.domain.receipts import ChainEnd, RestsOn, write_receipt
from backend.restricted.domain.restricted import Settlement
from backend.restricted.sql import tables
from shared.models.safe_summary import ReleasedSummary
from shared.receipts import ReceiptSigner, SealedReceipt

_receipt, _of_document, _chain = tables.receipt, tables.receipt_document, tables.receipt_chain
_served = tables.served_chunk

_OF_TENANT = _chain.c.tenant == bindparam("where_tenant")
_BEGIN_CHAIN = Statement(
    text("""
        INSERT INTO receipt_chain (tenant, number, digest) VALUES (:where_tenant, 0, '')
        ON CONFLICT (tenant) DO NOTHING
    """)
)
_FIND_END = select(_chain.c.number, _chain.c.digest).where(_OF_TENANT)
_HOLD_END = Statement(_FIND_END.with_for_update())
_READ_END = Statement(_FIND_END)
_MOVE_END = Statement(update(_chain).where(_OF_TENANT))
_ADD = Statement(insert(_receipt))
_ADD_DOCUMENT = Statement(insert(_of_document))
_FIND_SHOWN = Statement(
    select(_served.c.document_id, document.c.sha256)
    .join(document, document.c.id == _served.c.document_id)
    .where(_served.c.search_id == bindparam("where_search_id"))
    .distinct()
    .order_by(_served.c.document_id)
)
_FIND_FORMER = Statement(
    select(_of_document.c.document_id, _of_document.c.sha256)
    .join(_receipt)
    .where(_receipt.c.cache_key == bindparam("where_cache_key"))
    .distinct()
    .order_by(_of_document.c.document_id)
)
_AFTER = (_receipt.c.tenant == bindparam("where_tenant"), _receipt.c.number > bindparam("after", type_=Integer))
_PAGE = (
    select(_receipt.c.number, _receipt.c.body, _receipt.c.signature)
    .where(*_AFTER)
    .order_by(_receipt.c.number)
    .limit(bindparam("most", type_=Integer))
)
_FIND_PAGE = Statement(_PAGE)
_FIND_PAGE_OF_DOCUMENT = Statement(
    _PAGE.join(_of_document).where(_of_document.c.document_id == bindparam("where_document_id"))
)


def add_receipt(connection: Connection, settlement: Settlement, shown: ReleasedSummary, signer: ReceiptSigner) -> None:
    """Add the receipt of an answer to its tenant's chain.

    The end of the chain is locked last of all rows of the transaction, and until its end alone, so that replicas add
    one after the other and wait for nothing but a commit.
    """
    record = settlement.record
    tenant = {"where_tenant": record.tenant}
    documents = _find_documents(connection, settlement)
    _BEGIN_CHAIN.change(connection, tenant)
    (held,) = _HOLD_END.rows(connection, tenant)
    end = ChainEnd(held["number"], held["digest"])
    sealed, number = write_receipt(record, shown, documents, end, signer), end.number + 1
    key = {"tenant": record.tenant, "number": number}
    columns = {"recorded_at": record.recorded_at, "cache_key": settlement.cache_key or "", **sealed._asdict()}
    _ADD.change(connection, {**key, "turn_id": record.turn_id, **columns})
    if documents:
        _ADD_DOCUMENT.change(connection, *({**key, **document.model_dump()} for document in documents))
    _MOVE_END.change(connection, {**tenant, "number": number, "digest": sealed.digest})


def find_receipts(
    connection: Connection, tenant: str, document_id: str | None, after: int, most: int
) -> Sequence[SealedReceipt]:
    """Return up to so many receipts behind a number, in order: all, or those that rest on a document."""
    given = {"where_tenant": tenant, "after": after, "most": most}
    if document_id is None:
        found = _FIND_PAGE.rows(connection, given)
    else:
        found = _FIND_PAGE_OF_DOCUMENT.rows(connection, {**given, "where_document_id": document_id})
    return [SealedReceipt(row["body"], row["signature"]) for row in found]


def find_end(connection: Connection, tenant: str) -> ChainEnd | None:
    """Return the end of a chain; None where there is none yet."""
    row = _READ_END.first(connection, {"where_tenant": tenant})
    return ChainEnd(row["number"], row["digest"]) if row is not None else None


def _find_documents(connection: Connection, settlement: Settlement) -> list[RestsOn]:
    """Return the documents of the chunks that were shown, or those of the earlier answer that is given again."""
    if settlement.record.is_cached:
        rows = _FIND_FORMER.rows(connection, {"where_cache_key": settlement.cache_key})
    else:
        rows = _FIND_SHOWN.rows(connection, {"where_search_id": settlement.record.search_id})
    return [RestsOn(document_id=row["document_id"], sha256=row["sha256"]) for row in rows]
