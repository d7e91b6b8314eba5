"""Databases with the newest tables, emptied between two tests: making and dropping one takes a third of a second."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection, text

from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from shared.errors import BallastError
from tests.servers.postgres import PostgresServer

Result = TypeVar("Result")

_TABLES = """
    SELECT format('%I', relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
"""
_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_SCHEMA = """
    SELECT string_agg(format('%s %s %s', relname, relkind, relnatts), ',' ORDER BY relname)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT string_agg(format('%s %s', conname, pg_get_constraintdef(oid)), ',' ORDER BY conname)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT string_agg(tgname, ',' ORDER BY tgname) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT string_agg(format('%s %s', extname, extversion), ',' ORDER BY extname) FROM pg_extension
    UNION ALL SELECT string_agg(array_to_string(setconfig, ' '), ',') FROM pg_db_role_setting
    WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class ReusedDatabases:
    """Lends copies of a template, each to one test at a time; one whose schema a test has changed is dropped."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self._template = template
        self._free: list[str] = []

    def take(self) -> str:
        """Return the name of a database as the template is, to which nothing is connected."""
        _ = self._filled  # a database that is connected to cannot be copied: the template is looked at first
        return self._free.pop() if self._free else self._server.new_database(self._template)

    def give_back(self, name: str) -> None:
        """Empty it for the next test, or drop it."""
        try:
            is_as_new = self._run(name, self._empty)
        except BallastError:  # the test has killed the server, or left behind what no other test wants
            is_as_new = False
        if is_as_new:
            self._free.append(name)
        else:
            self._server.drop_database(name)

    @cached_property
    def _filled(self) -> dict[str, str]:
        """The template's tables that have rows, and its schema, as text."""
        return self._run(self._template, _described)

    def _empty(self, connection: Connection) -> bool:
        connection.execute(text(_OTHERS))
        used = [name for name in _tables_with_rows(connection) if name not in self._filled]
        if used:
            connection.execute(text(f"TRUNCATE {', '.join(used)} RESTART IDENTITY CASCADE"))
        return _described(connection) == self._filled

    def _run(self, name: str, work: Callable[[Connection], Result]) -> Result:
        return with_database(self._server.url(name), lambda database: database.write(work))


def with_database(url: str, work: Callable[[Database], Coroutine[None, None, Result]]) -> Result:
    """Open a database, work with it and close it, in a thread of its own, where no event loop of a test runs."""

    async def opened() -> Result:
        database = open_database(url)
        try:
            return await work(database)
        finally:
            await database.close()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(lambda: asyncio.run(opened())).result()


def _described(connection: Connection) -> dict[str, str]:
    rows = {name: _rows(connection, name) for name in _tables_with_rows(connection)}
    return rows | {"": "\n".join(map(str, _column(connection, _SCHEMA)))}


def _tables_with_rows(connection: Connection) -> list[str]:
    """Return their names, asked for in one query: a query for each table costs more than most tests."""
    looks = [f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in _column(connection, _TABLES)]
    return _column(connection, " UNION ALL ".join(looks))


def _rows(connection: Connection, table: str) -> str:
    """Return the rows of a table as text."""
    return "\n".join(sorted(_column(connection, f"SELECT one::text FROM {table} AS one")))


def _column(connection: Connection, query: str) -> list[str]:
    return list(connection.execute(text(query)).scalars())
