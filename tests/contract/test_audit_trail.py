"""One contract for what every `AuditTrail` finds; test_restricted_ledger.py has its pages."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from backend.restricted.domain.restricted import AuditQuery
from shared.errors import NotFound
from shared.models.safe_summary import AnswerReason, Failure, GateBlock, PolicyRefusal, Reason
from tests.contract.restricted_cases import (
    SIGNER,
    Restricted,
    make_record,
    make_search,
    opened_restricted,
    settlement,
)
from tests.contract.store_cases import KINDS


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Restricted]:
    async with opened_restricted(request, tmp_path) as opened:
        await fill(opened)
        yield opened


async def fill(stores: Restricted) -> None:
    """Two users of a tenant in two bases, a forged ticket, and a neighbour whose hash is forged to be ann's."""
    for record in (
        make_record("a0", make_search("s0"), PolicyRefusal.VERBATIM, user_hash="ann"),
        make_record("a1", make_search("s1", "kb_b"), AnswerReason.RISK, user_hash="bob"),
        make_record("a2", make_search("s2", "kb_b", "kb_a"), PolicyRefusal.VERBATIM, user_hash="bob"),
        make_record("a3", make_search("s3", "kb_ab"), GateBlock.CANARY, user_hash="ann"),
        make_record("a4", None, Failure.BAD_TICKET, user_hash=""),
        make_record("a5", make_search("s5", tenant="other"), PolicyRefusal.VERBATIM, user_hash="ann"),
    ):
        await stores.ledger.settle(settlement(record), SIGNER)


class Wanted(NamedTuple):
    user_hash: str | None = None
    knowledge_base_id: str | None = None
    reason: Reason | None = None


async def found(stores: Restricted, wanted: Wanted, after: str | None = None, limit: int = 9) -> list[str]:
    base_id, reason = wanted.knowledge_base_id, wanted.reason
    query = AuditQuery(limit=limit, order="asc", after=after, knowledge_base_id=base_id, reason=reason)
    return [record.id for record in (await stores.trail.page("acme", query, wanted.user_hash)).records]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        (Wanted(), ["a0", "a1", "a2", "a3", "a4"]),
        (Wanted(user_hash="ann"), ["a0", "a3"]),
        (Wanted(user_hash="Ann"), []),
        (Wanted(knowledge_base_id="kb_a"), ["a0", "a2"]),
        (Wanted(knowledge_base_id="kb_b"), ["a1", "a2"]),
        (Wanted(knowledge_base_id="KB_A"), []),
        (Wanted(knowledge_base_id="kb"), []),
        (Wanted(knowledge_base_id="%"), []),
        (Wanted(knowledge_base_id='kb_a","version":1},{"id":"kb_b'), []),
        (Wanted(reason=PolicyRefusal.VERBATIM), ["a0", "a2"]),
        (Wanted(reason=AnswerReason.RISK), ["a1"]),
        (Wanted(reason=Failure.BAD_TICKET), ["a4"]),
        (Wanted(user_hash="ann", reason=Failure.BAD_TICKET), []),
        (Wanted(knowledge_base_id="kb_a", reason=PolicyRefusal.VERBATIM, user_hash="bob"), ["a2"]),
    ],
)
async def test_what_is_wanted_is_found_and_nothing_else(stores: Restricted, wanted: Wanted, ids: list[str]) -> None:
    assert await found(stores, wanted) == ids


async def test_pages_count_what_is_wanted_and_begin_behind_any_record(stores: Restricted) -> None:
    wanted = Wanted(user_hash="bob")
    assert await found(stores, wanted, limit=1) == ["a1"]
    assert await found(stores, wanted, after="a1", limit=1) == ["a2"]
    assert await found(stores, wanted, after="a0") == ["a1", "a2"]
    assert await found(stores, wanted, after="a3") == []
    with pytest.raises(NotFound):
        await found(stores, wanted, after="a5")
