"""What database drivers are given to send."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def noted_statements() -> Generator[list[str]]:
    """Note the statements of all connections that are opened in the block; on PostgreSQL each is a round trip."""
    sent: list[str] = []

    def note(record: Any) -> None:
        sent.append(record.query)

    def note_connection(connection: Any, _record: object) -> None:
        if hasattr(connection, "set_trace_callback"):
            connection.set_trace_callback(sent.append)
        else:
            connection.driver_connection.add_query_logger(note)

    def note_prepared(connection: Any, _cursor: object, statement: str, _values: object, _: object, many: bool) -> None:
        if connection.dialect.name == "postgresql" and not many:  # of which the driver does not tell
            sent.append(statement)

    event.listen(Engine, "connect", note_connection)
    event.listen(Engine, "before_cursor_execute", note_prepared)
    try:
        yield sent
    finally:
        event.remove(Engine, "connect", note_connection)
        event.remove(Engine, "before_cursor_execute", note_prepared)


def transactions_in(sent: Sequence[str]) -> int:
    """Count the transactions of several statements; that one begins is told when its first statement is sent."""
    return sum(statement.startswith("BEGIN") for statement in sent)
