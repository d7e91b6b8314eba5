"""Which kinds a sweep goes through, and how far."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from backend.retention.domain import DuePage, Kept, RetentionTerms
from backend.retention.services.sweeping import Retention
from tests.fakes.clock import FakeClock

MONTH = timedelta(days=30)


class FakeExpiry:
    """An `ExpiryStore` that shows two things a page, and of them deletes none that were touched again."""

    def __init__(self, kept: Mapping[Kept, Sequence[str]], touched: Sequence[str] = ()) -> None:
        self._kept = kept
        self._touched = touched
        self.asked: list[tuple[Kept, datetime]] = []

    async def due(self, kind: Kept, before: datetime, after: str) -> DuePage:
        self.asked.append((kind, before))
        page = tuple(each for each in self._kept.get(kind, ()) if each > after)[:2]
        return DuePage(page, page[-1] if page else None)

    async def delete(self, kind: Kept, ids: Sequence[str], before: datetime) -> int:
        return len(set(ids) - set(self._touched))


class Remains:
    """What is left of conversations that were deleted."""

    def __init__(self, *ids: str) -> None:
        self.ids = list(ids)

    async def find_left_of_deleted(self) -> tuple[str, ...]:
        return tuple(self.ids)

    async def clear(self, conversation_id: str) -> None:
        self.ids.remove(conversation_id)


class Sweeps(list[Mapping[Kept, int]]):
    """Keeps what it is told."""

    def swept(self, deleted: Mapping[Kept, int]) -> None:
        self.append(deleted)


async def sweep(expiry: FakeExpiry, terms: RetentionTerms, remains: Remains) -> Sweeps:
    told = Sweeps()
    await Retention(expiry, cast(Any, remains), terms, FakeClock(), told).sweep()
    return told


async def test_a_sweep_reads_on_until_nothing_is_left_and_counts_what_it_deletes() -> None:
    expiry = FakeExpiry({Kept.FILES: ["a", "b", "c", "d", "e"]}, touched=["b"])
    told = await sweep(expiry, RetentionTerms(MONTH, None), Remains())
    assert told == [{Kept.CONVERSATIONS: 0, Kept.RESPONSES: 0, Kept.FILES: 4}]
    assert {before for _, before in expiry.asked} == {FakeClock().now() - MONTH}


@pytest.mark.parametrize(
    ("terms", "kinds"),
    [(RetentionTerms(None, None), []), (RetentionTerms(None, MONTH), [Kept.AUDIT_RECORDS])],
    ids=["nothing", "audit"],
)
async def test_only_kinds_with_a_term_are_swept_and_what_is_left_of_conversations_goes_whatever_the_terms(
    terms: RetentionTerms, kinds: list[Kept]
) -> None:
    expiry, remains = FakeExpiry({}), Remains("conv_a", "conv_b")
    told = await sweep(expiry, terms, remains)
    assert ([kind for kind, _ in expiry.asked], remains.ids) == (kinds, [])
    assert told == [dict.fromkeys(kinds, 0)] * bool(kinds)
