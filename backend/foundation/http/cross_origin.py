"""Requests of browser applications from other origins (https://fetch.spec.whatwg.org/#http-cors-protocol)."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from backend.foundation.http.errors import METHODS, error_response
from backend.foundation.http.idempotency import REPLAYED_HEADER
from backend.foundation.http.middleware import IGNORED_HEADER, RESPONSE_HEADER, STEER_HEADER
from shared.errors import PermissionDenied

EXPOSED_HEADERS = (
    "x-request-id",
    RESPONSE_HEADER,
    STEER_HEADER,
    IGNORED_HEADER,
    "retry-after",
    "x-should-retry",
    REPLAYED_HEADER,
    "www-authenticate",
    "allow",
    "content-disposition",
    *(f"x-ratelimit-{what}-{kind}" for what in ("limit", "remaining", "reset") for kind in ("requests", "tokens")),
)
"""What a script of another origin may read of an answer, besides what every script may."""

PREFLIGHT_SECONDS = 600
"""How long a browser may remember that it may send a request."""


def marks_for(origin: str) -> dict[str, str]:
    """Return the headers by which a script of an allowed origin may read an answer that `CrossOrigin` does not see."""
    return {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": ", ".join(EXPOSED_HEADERS),
        "vary": "Origin",
    }


class CrossOrigin(CORSMiddleware):
    """Answers preflights, and marks every answer to an allowed origin, errors included.

    A script may send any header: keys are headers that the script itself has to know, and no cookie is accepted, so
    that an origin gains nothing by them.
    """

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=("*",),
            expose_headers=EXPOSED_HEADERS,
            max_age=PREFLIGHT_SECONDS,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a preflight: 200, or 403 where the browser must not send the request."""
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        refused = "Origin: scripts of this origin may not use this API so; BACKEND_CORS_ORIGINS lists those that may."
        refusal = error_response(PermissionDenied(refused, param="Origin"))
        refusal.headers["vary"] = answer.headers["vary"]
        return refusal
