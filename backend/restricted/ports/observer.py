"""What an operator watches of restricted searches."""

from typing import Protocol

from backend.restricted.domain.restricted import AuditRecord


class SafeSummaryObserver(Protocol):
    """Told what became of restricted searches; must not raise and must not block."""

    def decided(self, record: AuditRecord) -> None:
        """A search was answered or refused."""
        ...

    def not_closable(self, search_id: str, error: BaseException) -> None:
        """A search whose outcome never came could not be put on record: a defect, to be logged with its traceback."""
        ...
