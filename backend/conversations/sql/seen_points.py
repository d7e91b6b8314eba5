"""What clients had seen at the ends of responses, in a SQL database."""

from collections.abc import Mapping, Sequence
from typing import get_args

from sqlalchemy import ARRAY, ClauseElement, Connection, Text, bindparam, column, func, insert, select

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.sql import tables
from backend.foundation.sql.parameters import Dialect, list_parameter
from backend.foundation.sql.statements import Change, Statement

_point = tables.seen_point

_ADD = Statement(insert(_point).inline())


def _newest(dialect: Dialect) -> ClauseElement:
    """Look up one row for each digest, however many responses ended at the same chain."""
    if dialect == "postgresql":
        given = func.unnest(bindparam("digests", type_=ARRAY(Text()))).table_valued("value").render_derived()
    else:
        given = func.json_each(bindparam("digests", type_=Text())).table_valued("value")
    digest = column("value", Text(), _selectable=given)
    newest = (
        select(_point.c.response_id)
        .where(_point.c.digest == digest)
        .order_by(_point.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return select(digest.label("digest"), newest.label("response_id")).select_from(given)


_NEWEST = {dialect: Statement(_newest(dialect)) for dialect in get_args(Dialect)}


def written_seen(response: StoredResponse) -> list[Change]:
    """Return the change that stores what the client had seen at the end of a response, where that is known."""
    if response.seen is None:
        return []
    place = {"conversation_id": response.conversation_id, "response_id": response.id, "log_end": response.log_end}
    return [Change(_ADD, [{"digest": response.seen, **place}])]


def newest_seen(connection: Connection, digests: Sequence[str]) -> Mapping[str, str]:
    """Return the newest response that ended at each of these chains, by the chain."""
    dialect = connection.dialect.name
    rows = _NEWEST[dialect].rows(connection, {"digests": list_parameter(digests, dialect)})
    return {row["digest"]: row["response_id"] for row in rows if row["response_id"] is not None}
