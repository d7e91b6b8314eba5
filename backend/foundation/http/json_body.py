"""Strict reading of JSON bodies, so that each accepted body can be stored and sent on."""

from collections.abc import Callable, Coroutine

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from backend.foundation.domain.json_objects import decode_object
from shared.errors import InvalidRequest
from shared.models.execution import JsonObject

Handler = Callable[[Request], Coroutine[None, None, Response]]


class JsonRequest(Request):
    """A request whose body has been read and decoded already."""

    def __init__(self, request: Request, body: bytes, decoded: JsonObject) -> None:
        super().__init__(request.scope, request.receive)
        self._body = body
        self._decoded = decoded

    async def json(self) -> JsonObject:
        """Return the body as `decode_object` decoded it."""
        return self._decoded


class JsonRoute(APIRoute):
    """A route that decodes its JSON body, where it has one, in place of FastAPI."""

    def get_route_handler(self) -> Handler:
        """Wrap FastAPI's handler."""
        answer = super().get_route_handler()
        if self.body_field is None:
            return answer

        async def decode_and_answer(request: Request) -> Response:
            body = await request.body()
            if not body:
                return await answer(request)
            check_media_type(request)
            return await answer(JsonRequest(request, body, decode_object(body)))

        return decode_and_answer


def new_router(tag: str) -> APIRouter:
    """Make a router whose JSON bodies are read strictly; every router of the API is made here."""
    return APIRouter(route_class=JsonRoute, tags=[tag])


def check_media_type(request: Request) -> None:
    """Check that the Content-Type is JSON or absent.

    Raises:
        InvalidRequest: the Content-Type is another one.
    """
    media_type = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise InvalidRequest(f"The body must be JSON, with Content-Type application/json, not '{media_type}'.")
