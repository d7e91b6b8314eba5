"""Which records of the audit an administrator asks for."""

from shared.models.safe_summary import Reason
from shared.models.values import Value


class AuditFilter(Value):
    """What records must have, all of it at once; None asks for nothing.

    `user_hash` is a user as the audit names him. The record of a forged ticket has no user and no base.
    """

    user_hash: str | None = None
    knowledge_base_id: str | None = None
    reason: Reason | None = None


EVERY_RECORD = AuditFilter()
