"""Searches whose outcome never came."""

import asyncio
from datetime import datetime, timedelta

import pytest

from backend.restricted.domain.restricted import ChargedSearch
from backend.restricted.services.close_searches import CloseSearches
from backend.restricted.services.restricted_audit import RestrictedAudit
from shared.errors import Unavailable
from tests.contract.restricted_cases import LIMITS, make_search
from tests.fakes.clock import FakeClock
from tests.fakes.restricted_ledger import FakeRestrictedLedger, FakeSafeSummaryObserver
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.supervision import make_supervisor
from tests.patience import until

TURN_TIME = timedelta(seconds=30)
PATIENCE_SECONDS = 90


class Ledger(FakeRestrictedLedger):
    """Its search `unreadable` is, and it counts how often it was asked what is overdue."""

    asked = 0

    async def find_unreported(self, before: datetime, limit: int) -> tuple[str, ...]:
        self.asked += 1
        return await super().find_unreported(before, limit)

    async def find_search(self, search_id: str) -> ChargedSearch | None:
        if search_id == "unreadable":
            raise ValueError(search_id)
        return await super().find_search(search_id)


class House:
    """A ledger with searches of no base, and what closes two of them in a round."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.ledger = Ledger(FakeKnowledge())
        self.observer = FakeSafeSummaryObserver()
        audit = RestrictedAudit(self.ledger, self.observer, self.clock, "secret")
        self.closing = CloseSearches(self.ledger, audit, self.clock, TURN_TIME, per_round=2)

    async def search(self, name: str) -> None:
        search = make_search(name, at=self.clock.now()).model_copy(update={"bases": ()})
        await self.ledger.charge(search, [], LIMITS)

    @property
    def closed(self) -> list[str | None]:
        return [record.search_id for record in self.ledger.records]


async def test_what_is_overdue_is_closed_round_by_round() -> None:
    house = House()
    for name in ("s1", "s2", "s3"):
        await house.search(name)
    house.clock.advance(PATIENCE_SECONDS)
    await house.search("s4")
    await house.closing.close()
    assert house.closed == ["s1", "s2"]
    await house.closing.close()
    await house.closing.close()
    assert house.closed == ["s1", "s2", "s3"]


async def test_one_that_cannot_be_read_is_told_once_and_stops_no_other() -> None:
    house = House()
    for name in ("unreadable", "s1", "s2", "s3"):
        await house.search(name)
    house.clock.advance(PATIENCE_SECONDS)
    await house.closing.close()
    assert (house.closed, house.observer.not_closed) == (["s1"], ["unreadable"])
    await house.closing.close()
    assert (house.closed, house.observer.not_closed) == (["s1", "s2", "s3"], ["unreadable"])


async def test_it_goes_on_when_the_database_is_back() -> None:
    house = House()
    await house.search("s1")
    house.clock.advance(PATIENCE_SECONDS)
    house.ledger.is_away = True
    with pytest.raises(Unavailable):
        await house.closing.close()
    task = asyncio.create_task(make_supervisor().repeat_forever("close_searches", house.closing.close, 0.001))
    asked_before = house.ledger.asked
    await until(lambda: house.ledger.asked >= asked_before + 3)
    assert not task.done()
    house.ledger.is_away = False
    await until(lambda: bool(house.closed))
    task.cancel()
    assert house.closed == ["s1"]
