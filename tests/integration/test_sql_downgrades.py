"""Each upgrade has a way back that keeps the rows, and expands the schema unless it says that it contracts it."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, insert, text

from backend.foundation.sql.chosen import open_database
from backend.foundation.sql.database import Database
from backend.foundation.sql.schema import Instant
from backend.migrations.compatibility import CONTRACTIONS, all_revisions, newest_revision, oldest_code_for
from backend.migrations.migrate import BASE, Position, UnknownSchema, migrate, migrate_back, position_of
from backend.migrations.tables import metadata
from tests.contract.store_cases import empty_database_url
from tests.examples import first_of
from tests.integration.schemas import SQLITE_SHAPE, closing_database, import_every_table

pytestmark = pytest.mark.whole

# As the shape of test_sql_migrations.py, but a column that was dropped and made again stands where it stood.
POSTGRES_SHAPE = """
    SELECT attrelid::regclass || '.' || attname, concat_ws(
        ' ', row_number() OVER (PARTITION BY attrelid ORDER BY attnum), format_type(atttypid, atttypmod), attnotnull,
        attstorage, attcollation::regcollation, attidentity, pg_get_expr(adbin, adrelid), reloptions
    )
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    UNION ALL SELECT conname, conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
"""
T0 = datetime(2026, 11, 23, 9, 30, tzinfo=UTC)
VALUES: tuple[tuple[type[Any], Any], ...] = (
    (sa.Boolean, False),
    (sa.Integer, 7),
    (sa.LargeBinary, b"body"),
    (Instant, T0),
    (sa.DateTime, T0),
)
Rows = Mapping[str, Mapping[str, list[Any]]]


class Column(NamedTuple):
    kind: str
    may_be_left_out: bool


class Table(NamedTuple):
    columns: Mapping[str, Column]
    rules: frozenset[str]


Schema = Mapping[str, Table]


@pytest.fixture(params=first_of("sqlite", "postgresql"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return empty_database_url(request.param, request, tmp_path)


async def test_every_upgrade_has_a_way_back_that_keeps_the_rows(url: str) -> None:
    import_every_table()
    async with closing_database(url) as database:
        shapes = {BASE: await database.read(shape)}
        for revision in all_revisions():
            await migrate(database, revision)
            shapes[revision] = await database.read(shape)
        await database.write(fill_every_table)
        first = rows = await database.read(rows_of)
        assert all(len(next(iter(columns.values()))) == 2 for columns in rows.values())
        for revision in (*reversed(all_revisions()[:-1]), BASE):
            await migrate_back(database, revision)
            assert without_the_lasting(await database.read(shape)) == without_the_lasting(shapes[revision]), revision
            expected = Position(revision, oldest_code_for(revision)) if revision != BASE else Position(None, None)
            assert await database.read(position_of) == expected
            rows = assert_kept(rows, await database.read(rows_of))
        assert rows == {}
        await migrate(database)
        assert await database.read(shape) == shapes[newest_revision()]
        assert await database.read(rows_of) == {table: {key: [] for key in columns} for table, columns in first.items()}


async def test_the_way_up_again_keeps_the_rows(url: str) -> None:
    """From where the release before stands, as after a downgrade for it."""
    import_every_table()
    async with closing_database(url) as database:
        await migrate(database)
        await database.write(fill_every_table)
        before = await database.read(rows_of)
        await migrate_back(database, CONTRACTIONS[-1])
        kept = await database.read(rows_of)
        await migrate(database)
        after = await database.read(rows_of)
    assert_kept(before, kept)
    assert_kept(kept, after)


async def test_an_upgrade_expands_the_schema_or_is_listed_as_a_contraction(url: str) -> None:
    async with closing_database(url) as database:
        await migrate(database, CONTRACTIONS[0])
        before = await database.read(schema_of)
        for revision in all_revisions():
            if revision <= CONTRACTIONS[0]:
                continue
            await migrate(database, revision)
            after = await database.read(schema_of)
            assert revision in CONTRACTIONS or list(taken_away(before, after)) == [], revision
            before = after


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("DROP TABLE api_key", "api_key is gone"),
        ("ALTER TABLE api_key DROP COLUMN tenant", "api_key.tenant is gone"),
        ("ALTER TABLE api_key ADD COLUMN a TEXT NOT NULL DEFAULT ''", ""),
        ("ALTER TABLE api_key RENAME COLUMN tenant TO a", "api_key.tenant is gone, api_key.a must be given"),
        ("CREATE UNIQUE INDEX ux ON api_key (user_id)", "api_key has a new rule"),
        ("CREATE INDEX ix ON api_key (user_id)", ""),
        ("CREATE TABLE a (b TEXT NOT NULL)", ""),
    ],
)
async def test_what_earlier_code_cannot_bear_is_found(change: str, complaint: str, tmp_path: Path) -> None:
    async with closing_database(f"sqlite+aiosqlite:///{tmp_path}/ballast.db") as database:
        await migrate(database)
        before = await database.read(schema_of)
        await database.write(lambda connection: connection.execute(text(change)))
        found = list(taken_away(before, await database.read(schema_of)))
    assert ", ".join(each.partition(":")[0] for each in found) == complaint


def test_a_column_that_earlier_code_does_not_fill_is_found() -> None:
    before = {"a": Table({}, frozenset())}
    after = {"a": Table({"b": Column("TEXT", may_be_left_out=False)}, frozenset())}
    assert list(taken_away(before, after)) == ["a.b must be given"]


async def test_a_schema_that_a_newer_release_has_expanded_is_run(url: str) -> None:
    async with closing_database(url) as database:
        await migrate(database)
        await database.write(lambda connection: connection.execute(SET_REVISION.bindparams(revision="9999")))
        await migrate(database)
        assert await database.read(position_of) == Position("9999", oldest_code_for(newest_revision()))


async def test_a_database_of_the_release_before_is_upgraded_and_still_known_to_it(url: str) -> None:
    """That release starts where `alembic_version` names its own revision, and nowhere else."""
    (previous,) = CONTRACTIONS
    async with closing_database(url) as database:
        await migrate(database, previous)
        await database.write(lambda connection: connection.execute(text("DROP TABLE schema_revision")))
        await migrate(database)
        assert await database.read(position_of) == Position(newest_revision(), previous)
        assert await database.read(
            lambda connection: connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
        ) == [previous]


async def test_there_is_no_way_back_to_what_is_no_earlier_revision(tmp_path: Path) -> None:
    async with closing_database(f"sqlite+aiosqlite:///{tmp_path}/ballast.db") as database:
        await migrate(database, "0003")
        for wrong in ("0003", "0004", "9999", "x", ""):
            with pytest.raises(ValueError, match="is no revision before 0003; these are: 0001, 0002"):
                await migrate_back(database, wrong)
        await database.write(lambda connection: connection.execute(SET_OLDEST_CODE.bindparams(revision="9999")))
        with pytest.raises(UnknownSchema):
            await migrate_back(database, "0001")


async def test_an_upgrade_does_not_hold_up_those_who_use_a_table(empty_postgres_url: str) -> None:
    """It gives way to a long statement, and comes again when that has ended."""
    database, other = open_database(empty_postgres_url), open_database(empty_postgres_url)
    try:
        await migrate(database, CONTRACTIONS[-1])
        await with_a_long_transaction(database, other)
        assert (await database.read(position_of)).revision == newest_revision()
    finally:
        await database.close()
        await other.close()


async def with_a_long_transaction(database: Database, other: Database) -> None:
    """Upgrade while a transaction has read `api_key` for longer than an upgrade waits."""
    begun = asyncio.Event()

    def hold(connection: Connection) -> None:
        connection.execute(text("SELECT 1 FROM api_key"))
        begun.set()
        connection.execute(text("SELECT pg_sleep(3)"))

    async with asyncio.TaskGroup() as group:
        holding = group.create_task(other.write(hold))
        await begun.wait()
        migrating = group.create_task(migrate(database))
        await asyncio.wait({holding, migrating}, return_when=asyncio.FIRST_COMPLETED)
        assert holding.done()
        assert not migrating.done()


SET_REVISION = text("UPDATE schema_revision SET version_num = :revision")
SET_OLDEST_CODE = text("UPDATE alembic_version SET version_num = :revision")


def shape(connection: Connection) -> list[tuple[str, str]]:
    query = SQLITE_SHAPE if connection.dialect.name == "sqlite" else POSTGRES_SHAPE
    return sorted((name, " ".join(told.split())) for name, told in connection.execute(text(query)))


def without_the_lasting(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Leave out what a way back does not touch; SQLite keeps `sqlite_sequence` once a table has needed it."""
    unchanged = ("alembic_version", "schema_revision", "sqlite_sequence")
    return [part for part in parts if not part[0].startswith(unchanged)]


def fill_every_table(connection: Connection) -> None:
    """Put two rows into each table; all texts of a row are equal, so that foreign keys hold."""
    for table in metadata.sorted_tables:
        for number, name in enumerate(("first", "second")):
            row = {column.name: value_of(column, name) for column in table.columns}
            key = table.primary_key.columns.values()
            if key and all(isinstance(column.type, sa.Integer) for column in key):
                row[key[0].name] = number
            connection.execute(insert(table), row)


def value_of(column: sa.Column[Any], name: str) -> Any:
    return next((value for kind, value in VALUES if isinstance(column.type, kind)), name)


def rows_of(connection: Connection) -> Rows:
    """Return the values of each column, ordered by all columns that stay."""
    found: dict[str, dict[str, list[Any]]] = {}
    for name in sorted(set(sa.inspect(connection).get_table_names()) & set(metadata.tables)):
        rows = connection.execute(text(f'SELECT * FROM "{name}"')).mappings().all()
        columns = [column["name"] for column in sa.inspect(connection).get_columns(name)]
        found[name] = {column: sorted(map(str, (row[column] for row in rows))) for column in columns}
    return found


def assert_kept(before: Rows, after: Rows) -> Rows:
    for table in set(before) & set(after):
        staying = set(before[table]) & set(after[table])
        assert staying
        for column in staying:
            assert before[table][column] == after[table][column], f"{table}.{column}"
    return after


def schema_of(connection: Connection) -> Schema:
    inspector = sa.inspect(connection)
    return {
        name: Table(
            columns={
                column["name"]: Column(str(column["type"]), column["nullable"] or column["default"] is not None)
                for column in inspector.get_columns(name)
            },
            rules=frozenset(
                [f"unique {each['column_names']}" for each in inspector.get_unique_constraints(name)]
                + [f"unique {each['column_names']}" for each in inspector.get_indexes(name) if each["unique"]]
                + [f"key {each['constrained_columns']}" for each in inspector.get_foreign_keys(name)]
                + [f"primary {inspector.get_pk_constraint(name)['constrained_columns']}"]
                + [f"check {each['sqltext']}" for each in inspector.get_check_constraints(name)]
            ),
        )
        for name in inspector.get_table_names()
    }


def taken_away(before: Schema, after: Schema) -> list[str]:
    """Tell what code that knows the schema as it was cannot do on it as it is."""
    found = [f"{name} is gone" for name in before if name not in after]
    for name in sorted(set(before) & set(after)):
        old, new = before[name], after[name]
        found += [f"{name}.{column} is gone" for column in old.columns if column not in new.columns]
        for column, now in new.columns.items():
            was = old.columns.get(column)
            if was is None and not now.may_be_left_out:
                found.append(f"{name}.{column} must be given")
            elif was is not None and was != now:
                found.append(f"{name}.{column} is another: {was} is now {now}")
        found += [f"{name} has a new rule: {rule}" for rule in sorted(new.rules - old.rules)]
    return found
