"""The HTTP application of chat_shell."""

from collections.abc import Awaitable, Callable
from hmac import compare_digest

import orjson
import structlog
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.params import Depends as DependsParameter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from chat_shell.foundation.services.message_bounds import MessageBounds
from chat_shell.servers.http.bodies import read_json_object
from chat_shell.servers.http.errors import error_response, http_status
from chat_shell.servers.http.turn_response import TurnResponse
from chat_shell.turns.services.event_buffer import HEARTBEAT_SECONDS
from chat_shell.turns.services.turn_service import TurnService
from shared.certificates import HAS_CERTIFICATE
from shared.errors import BallastError, InternalError, InvalidRequest, MethodNotAllowed, NotFound, Unauthenticated
from shared.models.events import REMINDERS_HEADER, REMINDERS_STAY, ModelCard
from shared.models.openai_converter import OpenAIRequestConverter
from shared.models.single_tools import call_from_body
from shared.models.values import JsonObject
from shared.telemetry import LogEvent, origin_of
from shared.tracing import TracedRequests, is_tracing

log = structlog.get_logger("chat_shell.http")

CLIENT_CLOSED_REQUEST = 499
"""The status that nginx logs when the client has disconnected; no client reads it."""


def create_http_app(
    turns: TurnService,
    service_token: str,
    bounds: MessageBounds,
    *,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    has_metrics: bool = True,
    needs_certificate: bool = False,
) -> FastAPI:
    """Build the application: turns and models need the service token, health checks and metrics do not.

    With `needs_certificate` they need a connection with a client certificate as well.
    """
    authenticated = Depends(_authentication(service_token, needs_certificate=needs_certificate))
    turn_routes = _turn_routes(turns, authenticated, bounds, heartbeat_seconds)
    return _app_of(turn_routes, _operator_routes(turns, has_metrics=has_metrics))


def create_admin_app(turns: TurnService) -> FastAPI:
    """Build the application of a port that only operators and orchestrators reach."""
    return _app_of(_operator_routes(turns, has_metrics=True))


def _app_of(*routers: APIRouter) -> FastAPI:
    app = FastAPI(title="chat_shell", docs_url=None, redoc_url=None, openapi_url=None)
    for router in routers:
        app.include_router(router)
    if is_tracing():
        app.add_middleware(TracedRequests)
    app.add_exception_handler(BallastError, _refuse)
    app.add_exception_handler(HTTPException, _refuse_route)
    app.add_exception_handler(ClientDisconnect, _ignore_disconnect)
    app.add_exception_handler(Exception, _report_defect)
    return app


def _authentication(service_token: str, *, needs_certificate: bool) -> Callable[[Request], Awaitable[None]]:
    authorization = f"Bearer {service_token}".encode()

    async def authenticate(request: Request) -> None:
        if needs_certificate and not request.scope["state"].get(HAS_CERTIFICATE):
            log.warning("Call without a client certificate", path=request.url.path)
            raise Unauthenticated("Connections need a client certificate here.")
        given = request.headers.get("authorization", "").encode()
        if not compare_digest(given, authorization):
            log.warning(LogEvent.CALL_REFUSED, path=request.url.path, error=Unauthenticated.__name__)
            raise Unauthenticated("The service token is missing or wrong.")

    return authenticate


def _turn_routes(
    turns: TurnService, authenticated: DependsParameter, bounds: MessageBounds, heartbeat_seconds: float
) -> APIRouter:
    router = APIRouter(prefix="/v1", dependencies=[authenticated])

    @router.post("/responses")
    async def run_turn(request: Request) -> Response:
        with bounds.hold() as held:
            body = await read_json_object(request, bounds.max_message_bytes, held)
            execution = OpenAIRequestConverter.to_execution_request(body)
            if request.headers.get(REMINDERS_HEADER) == REMINDERS_STAY:
                execution = execution.model_copy(update={"keeps_reminders": True})
            return TurnResponse(turns, execution, heartbeat_seconds, at_end=held.keep())

    @router.post("/tools/{tool}")
    async def run_tool(request: Request, tool: str) -> Response:
        with bounds.hold() as held:
            call = call_from_body(tool, await read_json_object(request, bounds.max_message_bytes, held))
            return _json((await turns.run_tool(call)).model_dump())

    @router.get("/tools")
    async def list_tools() -> Response:
        return _json((await turns.list_offered_tools()).model_dump(mode="json"))

    @router.get("/models")
    async def list_models() -> Response:
        return _json({"object": "list", "data": [_model_object(card) for card in turns.models()]})

    return router


def _operator_routes(turns: TurnService, *, has_metrics: bool) -> APIRouter:
    router = APIRouter()

    @router.api_route("/healthz", methods=["GET", "HEAD"])
    async def healthz() -> Response:
        return _json({"status": "ok"})

    @router.api_route("/readyz", methods=["GET", "HEAD"])
    async def readyz() -> Response:
        return _json({"status": "ready"}) if turns.accepting else _json({"status": "draining"}, status=503)

    async def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    if has_metrics:
        router.add_api_route("/metrics", metrics)
    return router


def _json(content: JsonObject, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status_code=status, media_type="application/json")


def _model_object(card: ModelCard) -> JsonObject:
    return {
        "id": card.name,
        "object": "model",
        "created": 0,
        "owned_by": "ballast",
        "context_window_tokens": card.context_window_tokens,
        "max_output_tokens": card.max_output_tokens,
        "extra_parameters": card.extra_parameters,
        **{name: value for name, value in card if name.startswith(("cache_", "compact_")) and value},
    }


async def _refuse(request: Request, error: Exception) -> Response:
    refusal = error if isinstance(error, BallastError) else InternalError("An internal error.")
    if (status := http_status(refusal)) >= 500:
        log.error(LogEvent.REQUEST_FAILED, path=request.url.path, status=status, **origin_of(error))
    return error_response(refusal)


async def _refuse_route(_request: Request, error: Exception) -> Response:
    match error:
        case HTTPException(status_code=404):
            return error_response(NotFound("There is nothing at this path."))
        case HTTPException(status_code=405):
            return error_response(MethodNotAllowed("This is not done at this path."))
        case _:
            return error_response(InvalidRequest("The request cannot be read."))


async def _ignore_disconnect(_request: Request, _error: Exception) -> Response:
    return Response(status_code=CLIENT_CLOSED_REQUEST)


async def _report_defect(_request: Request, error: Exception) -> Response:
    log.error("Request broke", exc_info=error)
    return error_response(InternalError(f"An internal error ended the request ({type(error).__name__})."))
