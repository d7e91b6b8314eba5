"""The receipts of released answers, for administrators."""

from typing import Annotated, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from backend.foundation.domain.paging import DEFAULT_LIMIT, MAX_LIMIT
from backend.foundation.http.json_body import new_router
from backend.foundation.http.services import service_of
from backend.foundation.http.shapes import ListPage
from backend.identity.http.caller import AdminDep
from backend.restricted.domain.receipts import ReceiptQuery, read_number
from backend.restricted.services.restricted_audit import ReadAudit
from shared.receipts import SealedReceipt

AuditDep = Annotated[ReadAudit, Depends(service_of(ReadAudit))]
router = new_router("Audit")


class ReceiptPageQuery(BaseModel):
    """A page of receipts, oldest first, behind the one with the number `after`."""

    document_id: str | None = Field(None, min_length=1, max_length=128)
    after: int = Field(0, ge=0)
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


class ShownReceipt(BaseModel):
    """A receipt: the JSON that was signed, as text, and its signature (Ed25519) in hexadecimal digits."""

    object: Literal["receipt"] = "receipt"
    number: int
    body: str
    signature: str


class EndOfReceipts(BaseModel):
    """The line that ends an export of all receipts, and the public key that verifies it."""

    object: Literal["receipts.end"] = "receipts.end"
    body: str
    signature: str
    public_key: str


class ReceiptList(ListPage[ShownReceipt]):
    """A page of receipts; `first_id` and `last_id` are numbers as text, empty on an empty page."""


@router.get("/v1/audit/receipts", summary="List the receipts of released answers")
async def list_receipts(audit: AuditDep, admin: AdminDep, page: Annotated[ReceiptPageQuery, Query()]) -> ReceiptList:
    """Return receipts of the administrator's tenant: all, or those of answers that rest on a document."""
    found = await audit.receipts(admin, ReceiptQuery(page.document_id, page.after, page.limit))
    shown = [_show(sealed) for sealed in found[: page.limit]]
    return ReceiptList.of(shown, [str(receipt.number) for receipt in shown], has_more=len(found) > page.limit)


@router.get("/v1/audit/receipts/end", summary="Retrieve the end of the receipts")
async def retrieve_end_of_receipts(audit: AuditDep, admin: AdminDep) -> EndOfReceipts:
    """Return the signed end of the tenant's chain: an export with this line lacks no receipt."""
    end, public_key = await audit.end_of_receipts(admin)
    return EndOfReceipts(**end._asdict(), public_key=public_key)


def _show(sealed: SealedReceipt) -> ShownReceipt:
    return ShownReceipt(number=read_number(sealed), **sealed._asdict())
