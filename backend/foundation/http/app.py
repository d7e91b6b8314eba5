"""The HTTP application of the backend."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi_offline import FastAPIOffline
from starlette.middleware import Middleware
from starlette.types import Scope

from backend.foundation.http.bodies import UNPACKED_PART, BodyLimit, DecodingRoom
from backend.foundation.http.cross_origin import CrossOrigin, marks_for
from backend.foundation.http.errors import install_error_handlers
from backend.foundation.http.middleware import AccessLog, CleanAddress, LastCatch, RequestIds, bodies_held, bodies_most
from backend.foundation.http.reference import FILE_NAME, describe_operations, read_reference
from backend.foundation.http.refusal_throttle import RefusalThrottle
from backend.foundation.http.services import HttpOptions, install_services
from backend.foundation.http.shapes import ERROR_RESPONSES
from shared.http_server.connection import DEFAULT_LIMITS, ConnectionRules
from shared.http_server.server import HttpServer, WebSockets, build_server
from shared.http_server.timing import ReadLimits
from shared.http_server.tls_listener import TlsListener
from shared.shares import SharedBudget
from shared.tracing import TracedRequests, is_tracing

_PACKAGES = Path(__file__).parents[2]


def create_app(routers: Iterable[APIRouter], services: Iterable[object], options: HttpOptions) -> FastAPI:
    """Build the ASGI application: routers are tried in their order, and their routes call `services`.

    The caller closes the services.
    """
    bodies = SharedBudget("room for bodies", options.max_bodies_bytes, least=options.max_body_bytes)
    decoding = max(options.max_body_bytes, options.max_bodies_bytes // UNPACKED_PART)
    limit = partial(
        BodyLimit,
        max_body_bytes=options.max_body_bytes,
        budget=bodies,
        decoding=DecodingRoom(SharedBudget("room for bodies at work", decoding)),
        holder_of=options.holder_of,
    )
    bodies_held.set_function(lambda: bodies.taken)
    bodies_most.set(options.max_bodies_bytes)
    # The documentation pages serve their own scripts, so that they work without internet access.
    app = FastAPIOffline(
        title="Ballast",
        summary="OpenAI's Responses and Chat Completions over knowledge bases.",
        strict_content_type=False,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False},  # ours are made beside it
        static_url="/docs/static",
        swagger_ui_parameters={"validatorUrl": "none"},
        middleware=[
            *([Middleware(TracedRequests)] if is_tracing() else []),
            Middleware(RequestIds),
            Middleware(AccessLog),
            *([Middleware(CrossOrigin, options.cors_origins)] if options.cors_origins else []),
            Middleware(LastCatch),
            Middleware(CleanAddress),
            Middleware(RefusalThrottle),
            *map(Middleware, options.before_bodies),
            Middleware(limit),
        ],
    )
    install_services(app, options, *services)
    install_error_handlers(app)
    for router in routers:
        app.include_router(router, responses=ERROR_RESPONSES)
    app.openapi = _with_words(app.openapi)
    _describe_in_threads(app)
    _build_routes(app)
    return app


def _with_words(document_of_code: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Return what builds the OpenAPI document, once, with the words that stand beside the routes of each package."""

    @cache
    def document() -> dict[str, Any]:
        return describe_operations(document_of_code(), read_reference(sorted(_PACKAGES.glob(f"*/http/{FILE_NAME}"))))

    return document


def _build_routes(app: FastAPI) -> None:
    """Have the library build now what it would build at the first request, for which all others would wait too."""
    request: Scope = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": [], "query_string": b""}
    for route in app.routes:
        route.matches(request)


def _describe_in_threads(app: FastAPI) -> None:
    """Answer with the OpenAPI document from a thread, in place of the library's route, which builds it on the loop."""
    address = str(app.openapi_url)
    one_at_a_time = Lock()

    @cache
    def text() -> bytes:
        return orjson.dumps(app.openapi())

    def description(_: Request) -> Response:
        with one_at_a_time:
            return Response(text(), media_type="application/json")

    app.router.routes[:] = (route for route in app.router.routes if getattr(route, "path", None) != address)
    app.router.add_route(address, description, include_in_schema=False)


def create_admin_app(routers: Iterable[APIRouter], services: Iterable[object]) -> FastAPI:
    """Build the application of a port that only operators and orchestrators reach."""
    middleware = [Middleware(RequestIds), Middleware(AccessLog), Middleware(LastCatch)]
    app = FastAPI(title="Ballast", docs_url=None, redoc_url=None, openapi_url=None, middleware=middleware)
    install_services(app, *services)
    install_error_handlers(app)
    for router in routers:
        app.include_router(router)
    return app


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
