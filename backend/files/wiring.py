"""The services of files, built over the database."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.files.domain import FileQuota
from backend.files.ports import FileStore
from backend.files.services import FileClearing, Files, Withdrawal
from backend.files.sql.files import SqlFileStore
from backend.foundation.services.supervision import Supervisor
from backend.foundation.sql.database import Database
from shared.clock import Clock


@dataclass(frozen=True)
class FilePackage:
    """The use cases of files, and what the packages above need to build theirs."""

    store: FileStore
    services: Files
    clearing: FileClearing


def build_files(
    database: Database, clock: Clock, max_files: int, withdrawals: Sequence[Withdrawal], supervisor: Supervisor
) -> FilePackage:
    """Build the package, in which a user may have `max_files`.

    Each of `withdrawals` deletes what another package has made of a deleted file.
    """
    store = SqlFileStore(database, clock)
    clearing = FileClearing(store, clock, withdrawals, supervisor)
    return FilePackage(store, Files(store, clock, FileQuota(max_files)), clearing)
