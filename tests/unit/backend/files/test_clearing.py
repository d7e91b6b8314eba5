"""Clearing away deleted files: one that cannot be deleted holds up no other."""

from datetime import UTC, datetime

from backend.files.domain import FilePurpose, FileQuota, StoredFile
from backend.files.services import CLEAR_FILE, CLEARED_AT_ONCE, FIRST_PAUSE, LONGEST_PAUSE, FileClearing
from shared.errors import Unavailable
from tests.fakes.clock import FakeClock
from tests.fakes.store_files import FakeFiles
from tests.fakes.supervision import RecordingFailures, make_supervisor


class House:
    """Removed files, and a withdrawal that fails for those that are named."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.files = FakeFiles(self.clock)
        self.failing: set[str] = set()
        self.withdrawn: list[str] = []
        self.failures = RecordingFailures()
        self.clearing = FileClearing(self.files, self.clock, (self.withdraw,), make_supervisor(self.failures))

    async def withdraw(self, file_id: str) -> None:
        self.withdrawn.append(file_id)
        if file_id in self.failing:
            raise Unavailable("The documents of this file cannot be deleted.")

    async def remove(self, *file_ids: str) -> None:
        for file_id in file_ids:
            file = StoredFile(
                id=file_id,
                tenant="acme",
                user_id="ann",
                filename="a.txt",
                purpose=FilePurpose.FOR_USERS,
                content_type=None,
                size_bytes=1,
                sha256="0",
                created_at=datetime(2026, 11, 22, tzinfo=UTC),
            )
            await self.files.add(file, b"x", FileQuota())
            await self.files.remove(file_id)

    async def clear(self) -> list[str]:
        """Clear, and return the files that it tried."""
        self.withdrawn.clear()
        await self.clearing.clear()
        return list(self.withdrawn)

    async def left(self) -> tuple[str, ...]:
        self.clock.advance(LONGEST_PAUSE.total_seconds())
        return await self.files.leftovers(self.clock.now(), 2 * CLEARED_AT_ONCE)


async def test_files_that_cannot_be_deleted_hold_up_no_other() -> None:
    house = House()
    stuck = [f"stuck-{number}" for number in range(CLEARED_AT_ONCE)]
    await house.remove(*stuck)
    house.clock.advance(1)
    await house.remove("file-a", "file-b")
    house.failing = set(stuck)
    assert await house.clear() == [*stuck, "file-a", "file-b"]
    assert {(task, str(error)) for task, error in house.failures.failures} == {
        (CLEAR_FILE, "The documents of this file cannot be deleted.")
    }
    assert set(await house.left()) == set(stuck)


async def test_the_pause_of_a_file_grows_with_its_failures_alone() -> None:
    house = House()
    await house.remove("stuck")
    house.failing = {"stuck"}
    pause = FIRST_PAUSE.total_seconds()
    for seconds in (pause, 2 * pause, 4 * pause):
        assert await house.clear() == ["stuck"]
        house.clock.advance(seconds - 1)
        await house.remove("file-a")
        assert await house.clear() == ["file-a"]
        house.clock.advance(1)
    house.failing.clear()
    assert await house.clear() == ["stuck"]
    assert await house.left() == ()


async def test_no_pause_is_longer_than_the_longest() -> None:
    house = House()
    await house.remove("stuck")
    house.failing = {"stuck"}
    for _ in range(40):
        assert await house.clear() == ["stuck"]
        house.clock.advance(LONGEST_PAUSE.total_seconds())
