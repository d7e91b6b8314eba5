"""The dependencies of routes: use cases, which are found by their class, and the HTTP settings of an operator."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, TypeVar, cast

from fastapi import Depends, FastAPI, Request

DEFAULT_MAX_BODY_BYTES = 33_554_432

Service = TypeVar("Service")


@dataclass(frozen=True)
class HttpOptions:
    """An operator's HTTP settings; `service_token` is the bearer token of chat_shell for paths under `/internal`."""

    service_token: str
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES


def install_services(app: FastAPI, *services: object) -> None:
    """Store in an application the objects that `service_of` finds by their class, one of each class."""
    app.state.services = {type(service): service for service in services}


def service_of(kind: type[Service]) -> Callable[[Request], Coroutine[None, None, Service]]:
    """Return a dependency that finds the object of this class in the application that serves a request.

    Each room thereby imports its own use cases only, and `foundation` none. The dependency raises `KeyError` where the
    application was built without such an object.
    """

    async def find(request: Request) -> Service:
        return cast(dict[type[Service], Service], request.app.state.services)[kind]

    return find


OptionsDep = Annotated[HttpOptions, Depends(service_of(HttpOptions))]
