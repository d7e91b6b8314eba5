"""The HTTP server of this API: with WebSockets, and with refusals that scripts of allowed origins may read."""

from collections.abc import Callable, Mapping

from fastapi import FastAPI

from backend.foundation.http.cross_origin import marks_for
from shared.http_server.connection import DEFAULT_LIMITS, ConnectionRules
from shared.http_server.server import HttpServer, WebSockets, build_server
from shared.http_server.timing import ReadLimits
from shared.http_server.tls_listener import TlsListener

LONGEST_SOCKET_MESSAGE_BYTES = 4_194_304
"""A message is held whole, beside those of all other sockets; what is longer comes as the body of a request."""

SOCKETS = WebSockets("backend.foundation.http.sockets:DrainingSocket", LONGEST_SOCKET_MESSAGE_BYTES)


def http_server(
    app: FastAPI,
    limits: ReadLimits = DEFAULT_LIMITS,
    allows: Callable[[str], bool] = lambda _: False,
    tls: TlsListener | None = None,
) -> HttpServer:
    """Build the server; `allows` tells of an origin whether its scripts may read what the application never sees."""

    def marks_if_allowed(origin: str) -> Mapping[str, str]:
        return marks_for(origin) if allows(origin) else {}

    return build_server(app, ConnectionRules(limits, marks_if_allowed), tls, SOCKETS)
