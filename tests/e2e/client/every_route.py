"""Asks every GET route of the running backend, as its OpenAPI document lists them, for all that a test has made."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import httpx2

QUERIES: Mapping[str, tuple[str, ...]] = {
    "include[]": ("file_search_call.results", "reasoning.encrypted_content"),
    "stream": ("true",),
    "layouts": ("true",),
    "order": ("asc",),
    "limit": ("100",),
}
_PARAMETER = re.compile(r"{(\w+)}")
Made = Sequence[Mapping[str, str]]
"""Ids that belong together, by the names of parameters of paths."""


class Route(NamedTuple):
    """A method and a path with its parameters in braces, and the names of its query."""

    method: str
    path: str
    queries: tuple[str, ...]


async def routes_of(client: httpx2.AsyncClient) -> list[Route]:
    """Return the routes that the running backend says it has."""
    answer = await client.get("/openapi.json")
    assert answer.status_code == 200, answer.text
    described: dict[str, dict[str, Any]] = answer.json()["paths"]
    return [
        Route(method.upper(), path, tuple(of["name"] for of in said.get("parameters", ()) if of["in"] == "query"))
        for path, methods in described.items()
        for method, said in methods.items()
    ]


def addresses(route: Route, made: Made) -> Iterator[str]:
    """Return the addresses of a route for what was made, once plain and once with each query that it takes."""
    names = _PARAMETER.findall(route.path)
    taken = [(name, value) for name in route.queries for value in QUERIES.get(name, ())]
    wanted = {tuple(ids[name] for name in names) for ids in made if all(name in ids for name in names)}
    for values in sorted(wanted):
        path = route.path
        for name, value in zip(names, values, strict=True):
            path = path.replace(f"{{{name}}}", value)
        yield path
        yield from (f"{path}?{name}={value}" for name, value in taken)
        if "starting_after" in route.queries:
            yield f"{path}?stream=true&starting_after=1"


async def find_in_answers(
    client: httpx2.AsyncClient, routes: Sequence[Route], made: Made, wanted: Sequence[str]
) -> dict[str, list[str]]:
    """Return where answers to this reader hold one of the texts: addresses by path, with its parameters in braces."""
    reading = [route for route in routes if route.method == "GET"]
    asked = chain.from_iterable(((route.path, address) for address in addresses(route, made)) for route in reading)
    found: dict[str, list[str]] = {}
    for path, address in asked:
        answer = await client.get(address)
        assert answer.status_code < 500, (address, answer.text)
        if any(text in answer.text for text in wanted):
            found.setdefault(path, []).append(address)
    return found
