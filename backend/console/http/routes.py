"""The page at `/`, and the files that it is made of. They ask for no key: the person gives the page one."""

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response

from backend.console.http.page_files import PAGE, PageFile, load_page
from backend.foundation.http.json_body import new_router
from shared.errors import NotFound


def console_routers(*, is_on: bool, signs_in: bool) -> tuple[APIRouter, ...]:
    """Return the routes of the page, none where the operator has switched it off; `signs_in` is offered in it."""
    return (page_router(load_page(signs_in=signs_in)),) if is_on else ()


def page_router(files: Mapping[str, PageFile]) -> APIRouter:
    """Return the routes of a page with these files; they are no part of the API, and stand in no description of it."""
    router = new_router("Console")

    @router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page(request: Request) -> Response:
        return files[PAGE].answer(request.headers, None)

    @router.api_route("/console/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def file(name: str, request: Request, v: str | None = None) -> Response:
        if name not in files or name == PAGE:
            raise NotFound(f"The page has no file '{name}'.")
        return files[name].answer(request.headers, v)

    return router
