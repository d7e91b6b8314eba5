"""How databases answer the queries that a piece of work sends to them."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, event

_EXPLAINED = ("SELECT", "WITH", "UPDATE", "DELETE")


class SentQuery(NamedTuple):
    """A query as a driver was given it; SQLite writes the values into the text."""

    statement: str
    values: Any = ()


class Plan(NamedTuple):
    """The steps by which a database answers a query: in SQLite's words, or PostgreSQL's kind, table and index."""

    statement: str
    steps: tuple[str, ...]


@contextmanager
def noted_queries() -> Generator[list[SentQuery]]:
    """Note the queries and changes of all connections that are opened in the block."""
    sent: list[SentQuery] = []

    def note(statement: str, values: Any = ()) -> None:
        if statement.lstrip().startswith(_EXPLAINED):
            sent.append(SentQuery(statement, values))

    def note_connection(connection: Any, _record: object) -> None:
        if hasattr(connection, "set_trace_callback"):
            connection.set_trace_callback(note)

    def note_sent(connection: Any, _cursor: object, statement: str, values: Any, *_: object) -> None:
        if connection.dialect.name == "postgresql":
            note(statement, values)

    event.listen(Engine, "connect", note_connection)
    event.listen(Engine, "before_cursor_execute", note_sent)
    try:
        yield sent
    finally:
        event.remove(Engine, "connect", note_connection)
        event.remove(Engine, "before_cursor_execute", note_sent)


def plans_of(connection: Connection, sent: Sequence[SentQuery]) -> list[Plan]:
    """Ask for the plans of queries, each statement once."""
    queries = list({query.statement: query for query in sent}.values())
    steps = _steps_of_sqlite if connection.dialect.name == "sqlite" else _steps_of_postgresql
    return [Plan(query.statement, tuple(steps(connection, query))) for query in queries]


def _steps_of_sqlite(connection: Connection, query: SentQuery) -> Generator[str]:
    for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query.statement}"):
        yield row[3]


def _steps_of_postgresql(connection: Connection, query: SentQuery) -> Generator[str]:
    explained = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {query.statement}", query.values)
    yield from _parts(explained.scalar_one()[0]["Plan"])


def _parts(plan: dict[str, Any]) -> Generator[str]:
    names = ("Node Type", "Relation Name", "Index Name")
    yield " ".join(str(plan[name]) for name in names if name in plan)
    for part in plan.get("Plans", ()):
        yield from _parts(part)
