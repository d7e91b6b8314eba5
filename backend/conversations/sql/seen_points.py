"""History fingerprints of what clients had seen at the end of each response, in a SQL database."""

from collections.abc import Mapping, Sequence
from typing import get_args

from sqlalchemy import ARRAY, ClauseElement, Connection, Text, and_, bindparam, case, column, func, insert, select

from backend.conversations.domain.responses import SettingsDigest, StoredResponse
from backend.conversations.sql import tables
from backend.foundation.sql.parameters import Dialect, list_parameter
from backend.foundation.sql.statements import Change, Statement

_point = tables.seen_point

_ADD = Statement(insert(_point).inline())


MAX_ALIKE = 64
"""Among how many of the newest responses at one chain those with equal settings are looked for."""


def _newest(dialect: Dialect) -> ClauseElement:
    """Look up one row for each digest, however many responses ended at the same chain."""
    if dialect == "postgresql":
        given = func.unnest(bindparam("digests", type_=ARRAY(Text()))).table_valued("value").render_derived()
    else:
        given = func.json_each(bindparam("digests", type_=Text())).table_valued("value")
    digest = column("value", Text(), _selectable=given)
    alike = (
        select(_point.c.id, _point.c.response_id, _point.c.header, _point.c.bases)
        .where(_point.c.digest == digest)
        .order_by(_point.c.id.desc())
        .limit(MAX_ALIKE)
        .correlate(given)
        .subquery()
    )
    has_header = alike.c.header == bindparam("header", type_=Text())
    has_bases = alike.c.bases == bindparam("bases", type_=Text())
    newest = (
        select(alike.c.response_id)
        .order_by(case((and_(has_header, has_bases), 2), (has_header, 1), else_=0).desc(), alike.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return select(digest.label("digest"), newest.label("response_id")).select_from(given)


_NEWEST = {dialect: Statement(_newest(dialect)) for dialect in get_args(Dialect)}


def write_seen(response: StoredResponse) -> list[Change]:
    """Return the change that stores what the client had seen at the end of a response, where that is known."""
    if response.seen is None:
        return []
    place = {"conversation_id": response.conversation_id, "response_id": response.id, "log_end": response.log_end}
    ran_with = response.ran_with._asdict() if response.ran_with is not None else {"header": None, "bases": None}
    return [Change(_ADD, [{"digest": response.seen, **place, **ran_with}])]


def newest_seen(connection: Connection, digests: Sequence[str], wanted: SettingsDigest) -> Mapping[str, str]:
    """Return the newest response that ended at each of these chains, those with the wanted settings first."""
    dialect = connection.dialect.name
    rows = _NEWEST[dialect].rows(connection, {"digests": list_parameter(digests, dialect), **wanted._asdict()})
    return {row["digest"]: row["response_id"] for row in rows if row["response_id"] is not None}
