"""Showing objects of the API: a list as a table, one object as its members, or either as JSON."""

from collections.abc import AsyncIterator, Sequence
from typing import cast

from cli.answers import Answer
from cli.api import Api
from cli.running import Run
from cli.terminal import cell


async def show_list(run: Run, items: AsyncIterator[Answer], columns: Sequence[str], at_most: int | None = None) -> None:
    """Show the items of a list, all of them or the first ones."""
    found: list[Answer] = []
    async for item in items:
        if at_most is not None and len(found) == at_most:
            break
        found.append(item)
    if run.terminal.is_json:
        run.terminal.json({"object": "list", "data": found})
    else:
        run.terminal.table(found, columns)


def show_one(run: Run, shown: Answer) -> None:
    """Show an object, a line for each member."""
    if run.terminal.is_json:
        run.terminal.json(shown)
        return
    for name, value in shown.items():
        if name != "object" and value not in (None, "", [], {}):
            run.terminal.line(f"{name.replace('_', ' ')}: {cell(name, _drop_empty(value))}")


def _drop_empty(value: object) -> object:
    """Leave out the members of an object that say nothing."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in cast(Answer, value).items() if each is not None}


async def call_and_show(run: Run, method: str, path: str, body: Answer | None = None) -> None:
    """Call the API and show its answer."""
    async with Api(run.connection) as api:
        show_one(run, await api.call(method, path, body))


async def list_and_show(run: Run, path: str, columns: Sequence[str]) -> None:
    """Show a list of the API."""
    async with Api(run.connection) as api:
        await show_list(run, api.items(path), columns)
