"""Exceptions of the sealed room become codes.

The message of an exception, its causes and the locals of its frames may hold text of documents, so nothing of it is
logged, kept or chained. This is the one place in the project that catches every exception without reporting it.
"""

from collections.abc import Awaitable
from typing import TypeVar

from shared.models.safe_summary import Failure

T = TypeVar("T")


async def failure_for_exceptions(step: Awaitable[T], failure: Failure) -> T | Failure:
    """Return what a step returns, or the failure where it raises; cancellation is raised."""
    try:
        return await step
    except Exception:  # noqa: BLE001 — see above
        return failure
