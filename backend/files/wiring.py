"""The services of files, built over the database."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.files.ports import FileStore
from backend.files.services import FileClearing, Files, Withdrawal
from backend.files.sql.files import SqlFileStore
from backend.foundation.sql.database import Database
from shared.clock import Clock


@dataclass(frozen=True)
class FileRoom:
    """The use cases of files, and what the rooms above need to build theirs."""

    store: FileStore
    services: Files
    clearing: FileClearing


def build_file_room(database: Database, clock: Clock, withdrawals: Sequence[Withdrawal]) -> FileRoom:
    """Build the room; each of `withdrawals` deletes what another room has made of a deleted file."""
    store = SqlFileStore(database, clock)
    return FileRoom(store, Files(store, clock), FileClearing(store, clock, withdrawals))
