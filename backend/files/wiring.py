"""The services of files, built over the database."""

from collections.abc import Sequence

from backend.files.domain import FileQuota
from backend.files.services import CLEAR_FILES_SECONDS, FileClearing, FilePackage, Files, Withdrawal
from backend.files.sql.files import SqlFileStore
from backend.foundation.services.parts import Loop, Part
from backend.foundation.services.supervision import Supervisor
from backend.foundation.sql.database import Database
from shared.clock import Clock


def build_files(
    database: Database, clock: Clock, max_files: int, withdrawals: Sequence[Withdrawal], supervisor: Supervisor
) -> FilePackage:
    """Build the package, in which a user may have `max_files`.

    Each of `withdrawals` deletes what another package has made of a deleted file.
    """
    store = SqlFileStore(database, clock)
    files, clearing = Files(store, clock, FileQuota(max_files)), FileClearing(store, clock, withdrawals, supervisor)
    return FilePackage(Part((files,), (Loop("clear_files", clearing.clear, CLEAR_FILES_SECONDS),)), store, files)
