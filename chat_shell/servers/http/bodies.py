"""Read request bodies, which must be JSON objects of limited size."""

from starlette.requests import Request

from shared.errors import InvalidRequest, PayloadTooLarge
from shared.models.json_bounds import JsonBounds, JsonScanner
from shared.models.json_text import decode_json
from shared.models.values import JsonObject
from shared.shares import Lease

BOUNDS = JsonBounds(values=1_000_000, string_bytes=67_108_864, outside_bytes=67_108_864)
"""Far more than a conversation of any length has: this server is for the backend, which bounds what callers send."""


async def read_json_object(request: Request, max_body_bytes: int, held: Lease) -> JsonObject:
    """Read the body of a request, whose bytes `held` takes as they arrive.

    Raises:
        Unavailable: there is no room for its bytes. Retryable.
        PayloadTooLarge: the body is longer than the limit, whatever length its header declares.
        InvalidRequest: the body is not a JSON object, or a bound of JSON text is exceeded.
    """
    body = decode_json(await _read(request, max_body_bytes, held))
    if not isinstance(body, dict):
        raise InvalidRequest("body: must be a JSON object")
    return body


async def _read(request: Request, max_body_bytes: int, held: Lease) -> bytes:
    pieces: list[bytes] = []
    length_bytes = 0
    scan = JsonScanner(BOUNDS)
    async for piece in request.stream():
        length_bytes += len(piece)
        if length_bytes > max_body_bytes:
            raise PayloadTooLarge(f"body: is longer than {max_body_bytes} bytes")
        held.grow(len(piece))
        scan.feed(piece)
        pieces.append(piece)
    scan.end()
    return b"".join(pieces)
