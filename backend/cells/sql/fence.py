"""The fence: triggers by which PostgreSQL itself refuses what would be written for a tenant that moves.

A writer of the tenant's rows holds the row of the move until it commits. So who stops the tenant waits for the writers
of that moment, and later ones meet the stop, in whatever process they are. Turns that run at the stop may write on:
what is theirs follows when they have ended.
"""

from sqlalchemy import Connection, Table, text

from backend.cells.domain import Phase
from backend.cells.sql.owned import NOT_WAITED_FOR, is_of_conversation, parent_key, tables_of_tenants
from backend.foundation.sql.database import Database
from backend.foundation.sql.driver_errors import TENANT_MOVES

_LOCK_WAIT = "SET LOCAL lock_timeout = '1s'"
_MOVER = "SELECT set_config('ballast.mover', 'on', true)"
_FENCED = ", ".join(f"'{phase}'" for phase in (Phase.SWITCHING, Phase.MOVED, Phase.DROPPING))

_FUNCTION = """
CREATE OR REPLACE FUNCTION ballast_fence_{name}() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    touched {name}%ROWTYPE;
    move tenant_move%ROWTYPE;
BEGIN
    IF TG_OP = 'INSERT' THEN touched := NEW; ELSE touched := OLD; END IF;
    IF current_setting('ballast.mover', true) IS DISTINCT FROM 'on' THEN
        SELECT * INTO move FROM tenant_move WHERE tenant = {tenant} FOR SHARE;
        IF FOUND AND (move.phase IN ({fenced})
                      OR (move.phase = '{stopped}' AND move.stopped_until > clock_timestamp()))
           AND NOT ({is_held}) THEN
            RAISE EXCEPTION 'the tenant moves to another cell' USING ERRCODE = '{state}';
        END IF;
    END IF;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $body$
"""


async def raise_fence(database: Database) -> None:
    """Make the triggers, which let everything pass until a tenant is stopped; each table is locked for a moment.

    Raises:
        Unavailable: a table was in use for a second.
    """
    for table in tables_with_fence():
        await database.write(lambda connection, table=table: _raise_at(connection, table))


async def take_fence_down(database: Database) -> None:
    """Take the triggers away where no tenant needs them any more.

    Raises:
        Unavailable: a table was in use for a second.
    """
    for table in tables_with_fence():
        await database.write(lambda connection, table=table: _take_down_at(connection, table))


def pass_fence(connection: Connection) -> None:
    """Let the rest of this transaction write what the fence refuses to others."""
    connection.execute(text(_MOVER))


def tables_with_fence() -> tuple[Table, ...]:
    """Return the tables whose rows tell whose they are; the others are written together with such rows."""
    return tuple(table for table in tables_of_tenants() if "tenant" in table.c or parent_key(table) is not None)


def _raise_at(connection: Connection, table: Table) -> None:
    connection.execute(text(_LOCK_WAIT))
    connection.exec_driver_sql(_function(table))
    columns = ", ".join(column.name for column in table.columns if column.name not in NOT_WAITED_FOR)
    connection.exec_driver_sql(
        f"CREATE OR REPLACE TRIGGER ballast_fence BEFORE INSERT OR DELETE OR UPDATE OF {columns}"
        f" ON {table.name} FOR EACH ROW EXECUTE FUNCTION ballast_fence_{table.name}()"
    )


def _take_down_at(connection: Connection, table: Table) -> None:
    connection.execute(text(_LOCK_WAIT))
    connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS ballast_fence ON {table.name}")
    connection.exec_driver_sql(f"DROP FUNCTION IF EXISTS ballast_fence_{table.name}()")


def _function(table: Table) -> str:
    return _FUNCTION.format(
        name=table.name,
        tenant=_tenant_of(table, "touched"),
        fenced=_FENCED,
        stopped=Phase.STOPPED.value,
        is_held=_is_held(table),
        state=TENANT_MOVES,
    )


def _tenant_of(table: Table, row: str) -> str:
    """Return the SQL of the tenant of a row that a trigger sees."""
    key = parent_key(table)
    if "tenant" in table.c or key is None:
        return f"{row}.tenant"
    parent = key.referred_table
    pairs = zip(key.columns, key.elements, strict=True)
    meets = " AND ".join(f"{parent.name}.{element.column.name} = {row}.{column.name}" for column, element in pairs)
    return f"(SELECT {_tenant_of(parent, parent.name)} FROM {parent.name} WHERE {meets})"  # noqa: S608


def _is_held(table: Table) -> str:
    """Return the SQL for rows of turns that ran at the stop; none begins behind it."""
    if not is_of_conversation(table):
        return "false"
    column = "id" if table.name == "conversation" else "conversation_id"
    is_begun = "TG_OP <> 'INSERT' AND " if table.name in ("conversation", "response") else ""
    return f"{is_begun}strpos(move.held, touched.{column}) > 0"
