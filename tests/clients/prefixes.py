"""How much of each model request of a conversation had been sent before."""

from collections.abc import Sequence
from itertools import pairwise

from tests.e2e.prefixes import opening
from tests.fakes.model_server import RecordedRequest


def reused_share(requests: Sequence[RecordedRequest], mark: str) -> float:
    """Return the smallest share of a request, up to its last message, with which the next one begins.

    Requests belong together when they hold the mark. With fewer than two of them nothing was reused.
    """
    openings = [opening(request) for request in requests if mark.encode() in request.body]
    shares = [_same_bytes(one, other) / len(one) for one, other in pairwise(openings)]
    return min(shares, default=0.0)


def _same_bytes(one: bytes, other: bytes) -> int:
    """Count the bytes with which both begin."""
    different = (index for index, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return next(different, min(len(one), len(other)))
