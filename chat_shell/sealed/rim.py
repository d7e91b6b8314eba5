"""The rim of the room: an exception goes in, a code comes out.

Its message, its causes and the locals of its frames may hold text of documents, so nothing of it is logged, kept or
chained; this is the one place in the project that catches everything and says nothing of it.
"""

from collections.abc import Awaitable
from typing import TypeVar

from shared.models.safe_summary import Failure

T = TypeVar("T")


async def sealed(step: Awaitable[T], code: Failure) -> T | Failure:
    """Return what a step brings, or the code where it raises; cancellation goes through."""
    try:
        return await step
    except Exception:  # noqa: BLE001 — see above
        return code
