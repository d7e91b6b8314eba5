"""Structured logs, configured in the same way for both services: names of events, and ids on every line."""

import logging
import sys
import traceback
from enum import StrEnum

from shared.memory import left_out
from shared.tracing import current_trace_id

with left_out("rich"):  # 6 MB for tracebacks in colour, where the command line is installed beside the services
    import structlog

get_logger = structlog.get_logger


class LogEvent(StrEnum):
    """Names of log events on which operators may rely; docs/debugging.md explains them."""

    LLM_REQUEST = "LLM_REQUEST"
    LLM_RESPONSE = "LLM_RESPONSE"
    TURN_QUEUED = "Turn queued"
    TURN_STEERED = "Turn steered"
    TURN_STARTED = "Turn started"
    TURN_FINISHED = "Turn finished"
    TURN_TAKEN_OVER = "Turn taken over"
    TURN_LEFT = "Turn left to another process"
    EPOCH_STARTED = "Epoch started"
    HISTORY_COMPACTED = "History compacted"
    PROMPT_DRIFT = "Prompt drift"
    ANSWER_CUT = "Answer cut"
    BACKGROUND_FAILED = "Background work failed"
    TOOL_CALLED = "Tool called"
    TOOL_SERVER_CALLED = "Tool server called"
    KNOWLEDGE_SEARCHED = "Knowledge searched"
    SAFE_SUMMARY_STARTED = "Starting safe summary"
    SAFE_SUMMARY_COMPLETED = "Safe summary completed"
    PERSIST_HTTP_REQUEST = "Persist HTTP request"
    PERSIST_HTTP_RESPONSE = "Persist HTTP response"
    HTTP_REQUEST = "HTTP request"
    REQUEST_FAILED = "Request failed"
    MODEL_FAILED = "Model failed"
    LOOP_HELD = "Event loop held"
    CERTIFICATES_READ = "Certificates read"
    CERTIFICATES_UNUSABLE = "Certificates unusable"
    TLS_REFUSED = "TLS connection refused"
    CALL_REFUSED = "Call refused"
    SIGNED_IN = "Signed in"
    SIGN_IN_REFUSED = "Sign-in refused"
    SESSIONS_ENDED = "Sessions ended"


MAX_CAUSES = 8
MAX_FRAMES = 12
QUIET_LIBRARIES = ("uvicorn", "uvicorn.access", "uvicorn.error", "alembic", "aiosqlite", "asyncio", "grpc", "aiohttp")


def configure_logging(level: int = logging.INFO) -> None:
    """Write log lines to standard error: readable text where it is a terminal, otherwise JSON.

    Every line contains the ids that are bound with `bind_ids`. Tracebacks contain no local variables, because these
    may hold credentials or text of users.
    """
    tracebacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    before = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    for_machines = [
        structlog.processors.ExceptionRenderer(tracebacks),
        structlog.processors.JSONRenderer(ensure_ascii=False, sort_keys=False),
    ]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(
        processors=[*before, plain] if sys.stderr.isatty() else [*before, *for_machines],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line and its end in one write
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)


def bind_ids(*, request_id: str, conversation_id: str, turn_id: str) -> None:
    """Add the ids of a turn to every line that the current task logs from now on."""
    structlog.contextvars.bind_contextvars(request_id=request_id, trace_id=trace_id_of(request_id))
    bind_turn(conversation_id=conversation_id, turn_id=turn_id)


def bind_turn(*, conversation_id: str, turn_id: str) -> None:
    """Add the ids of conversation and turn to those lines, where the ids of the request are bound already."""
    structlog.contextvars.bind_contextvars(conversation_id=conversation_id, turn_id=turn_id)


def origin_of(error: BaseException) -> dict[str, list[str]]:
    """Return where an error came from: the classes of it and of its causes, and the place of the first of them.

    What an exception says is left out, because libraries put values there that no log may hold.
    """
    chain = [error]
    while (before := chain[-1].__cause__ or chain[-1].__context__) is not None and len(chain) < MAX_CAUSES:
        chain.append(before)
    frames = traceback.extract_tb(chain[-1].__traceback__)[-MAX_FRAMES:]
    return {
        "causes": [type(each).__name__ for each in chain],
        "raised_at": [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames],
    }


class LoggingCertificates:
    """Logs what becomes of certificates, and why a connection was not made; implements `CertificateObserver`."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("tls")

    def certificates_read(self) -> None:
        """Log that changed files are in use."""
        self._log.info(LogEvent.CERTIFICATES_READ)

    def certificates_unusable(self, reason: str) -> None:
        """Log that those from before stay in use."""
        self._log.error(LogEvent.CERTIFICATES_UNUSABLE, reason=reason)

    def connection_refused(self, reason: str, *, by_us: bool, is_server: bool) -> None:
        """Log who refused whom, and why."""
        peer = "client" if is_server else "server"
        self._log.warning(LogEvent.TLS_REFUSED, peer=peer, refused_by="us" if by_us else "peer", reason=reason)


def trace_id_of(request_id: str) -> str:
    """Return the id of the trace that the work belongs to; where none is made, the last 32 characters of a request id.

    Our own request ids end in 32 hexadecimal digits, which is a trace id of the W3C recommendation
    "Trace Context", section 3.2.2.3; a caller's own id is kept as it is.
    """
    return current_trace_id() or request_id[-32:]
