"""structlog, set up once: JSON for machines, readable in a terminal."""

import logging
import sys

import structlog

QUIET_LIBRARIES = ("uvicorn.access", "uvicorn.error", "alembic", "aiosqlite", "asyncio", "grpc")


def configure_logging(level: int = logging.INFO) -> None:
    """Send every line to standard error; ids bound to structlog's context stand on each of them."""
    readable = sys.stderr.isatty()
    before = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    after = (
        [structlog.dev.ConsoleRenderer()]
        if readable
        else [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer(ensure_ascii=False)]
    )
    structlog.configure(
        processors=[*before, *after],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
