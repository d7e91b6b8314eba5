"""A database whose units of work are spans of the work that waits for them; imported where traces are made."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from backend.foundation.sql.database import Database
from shared.tracing import inner_span_of

_VERBS = {
    "find": "find",
    "read": "read",
    "snapshot": "snapshot",
    "write": "write",
    "change": "change",
    "write_apart": "write",
}
"""The calls that are spans, each with the verb in its name."""


class TracedDatabase:
    """A `Database` over another one; a span names the unit of work, and no statement or value."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._attributes = {"db.system.name": database.dialect}

    def __getattr__(self, name: str) -> Any:
        """Return a part of the other database; a call that does work makes a span."""
        part = getattr(self._database, name)
        return partial(self._in_span, _VERBS[name], part) if name in _VERBS else part

    async def _in_span(
        self, verb: str, call: Callable[..., Awaitable[Any]], work: object, *args: Any, **bounds: Any
    ) -> Any:
        name = f"sql {verb} {_name_of(work)}" if callable(work) else f"sql {verb}"
        with inner_span_of(name, self._attributes):
            return await call(work, *args, **bounds)


def _name_of(work: object) -> str:
    """Return the name of the function that does the work, or that it was made in."""
    function = work
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return name.replace(".<locals>", "").removesuffix(".<lambda>").removesuffix(".work")
