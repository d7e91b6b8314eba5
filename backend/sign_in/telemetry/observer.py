"""How sign-ins go, in the log."""

import structlog

from backend.identity.domain import Caller
from shared.telemetry import LogEvent

log: structlog.stdlib.BoundLogger = structlog.get_logger("backend.sign_in")


class LoggingSignInObserver:
    """Implements `SignInObserver`."""

    def note_sign_in(self, caller: Caller) -> None:
        """Log who, by the name that limits have for them."""
        log.info(LogEvent.SIGNED_IN, caller=caller.key_id, role=caller.role.value)

    def note_refusal(self, reason: str) -> None:
        """Log why."""
        log.warning(LogEvent.SIGN_IN_REFUSED, reason=reason)

    def note_ended_sessions(self, sessions: int, reason: str) -> None:
        """Log how many and why."""
        log.info(LogEvent.SESSIONS_ENDED, sessions=sessions, reason=reason)
