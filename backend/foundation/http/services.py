"""The dependencies of routes: use cases, which are found by their class, and the HTTP settings of an operator."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from typing import Annotated, TypeVar, cast

from fastapi import Depends, FastAPI, Request
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from backend.foundation.domain.origins import ANY_ORIGIN
from backend.foundation.http.bodies import HolderOf
from backend.foundation.services.refusal_pace import RefusalPace
from shared.shares import SharedBudget

DEFAULT_MAX_BODY_BYTES = 33_554_432
DEFAULT_MAX_BODIES_BYTES = 268_435_456
MOST_SOCKETS = 512
MOST_SOCKET_BYTES = 134_217_728
GOING_AWAY = "ballast.going_away"
"""The type of the message by which the other end of a WebSocket hears that its client is to go behind what it does."""


Service = TypeVar("Service")


async def digest_of(presented: str | None) -> str:
    """Name a caller by what they present, where nobody can say whether it is a key."""
    return sha256((presented or "").encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class HttpOptions:
    """An operator's HTTP settings; `service_token` is the bearer token of chat_shell for paths under `/internal`.

    `holder_of` names the caller who presents a key or token, before a large body is read. `cors_origins` are the
    origins whose scripts may read answers; `*` is any. `needs_certificate` says that these paths take connections with
    a client certificate only. `before_bodies` are middleware that sees a request before anything of its body
    is read, and `refusals` says how fast refusals leave. `sockets` counts the open WebSockets, and `socket_bytes` their
    messages until these are answered.
    """

    service_token: str
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    max_bodies_bytes: int = DEFAULT_MAX_BODIES_BYTES
    holder_of: HolderOf = digest_of
    cors_origins: tuple[str, ...] = ()
    needs_certificate: bool = False
    before_bodies: tuple[Callable[[ASGIApp], ASGIApp], ...] = ()
    refusals: RefusalPace = field(default_factory=lambda: RefusalPace(monotonic))
    sockets: SharedBudget = field(default_factory=lambda: SharedBudget("room for WebSockets", MOST_SOCKETS))
    socket_bytes: SharedBudget = field(
        default_factory=lambda: SharedBudget("room for messages of WebSockets", MOST_SOCKET_BYTES)
    )

    def allows(self, origin: str) -> bool:
        """Return whether scripts of an origin may call."""
        return origin in self.cors_origins or ANY_ORIGIN in self.cors_origins


def install_services(app: FastAPI, *services: object) -> None:
    """Store in an application the objects that `service_of` finds by their class, one of each class."""
    app.state.services = {type(service): service for service in services}


def service_of(kind: type[Service]) -> Callable[[Request], Coroutine[None, None, Service]]:
    """Return a dependency that finds the object of this class in the application that serves a request.

    Each package thereby imports its own use cases only, and `foundation` none. The dependency raises `KeyError` where
    the application was built without such an object.
    """

    async def find(request: Request) -> Service:
        return service_in(request, kind)

    return find


def service_in(request: HTTPConnection, kind: type[Service]) -> Service:
    """Return the object of this class, for dependencies on the way of each turn: one of its own would take longer."""
    return cast(dict[type[Service], Service], request.app.state.services)[kind]


OptionsDep = Annotated[HttpOptions, Depends(service_of(HttpOptions))]
