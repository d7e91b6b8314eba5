"""What routes call: use cases, found by their class, and the figures of the door itself."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, TypeVar, cast

from fastapi import Depends, FastAPI, Request

DEFAULT_MAX_BODY_BYTES = 33_554_432

Service = TypeVar("Service")


@dataclass(frozen=True)
class HttpOptions:
    """What an operator sets about the door; `service_token` is what chat_shell presents at `/internal`."""

    service_token: str
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES


def install_services(app: FastAPI, *services: object) -> None:
    """Give an application the objects that its routes ask for with `service_of`, one of each class."""
    app.state.services = {type(service): service for service in services}


def service_of(kind: type[Service]) -> Callable[[Request], Coroutine[None, None, Service]]:
    """Return a dependency that finds the object of this class in the application that serves a request.

    A room thereby names its own use cases only, and this room none. The dependency raises `KeyError` where the
    application was built without such an object.
    """

    async def find(request: Request) -> Service:
        return cast(dict[type[Service], Service], request.app.state.services)[kind]

    return find


OptionsDep = Annotated[HttpOptions, Depends(service_of(HttpOptions))]
