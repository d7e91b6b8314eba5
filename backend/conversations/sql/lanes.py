"""The conversations in which lanes answer, in a SQL database."""

from collections.abc import Sequence

import orjson
from sqlalchemy import Connection, bindparam, select

from backend.conversations.domain.responses import JOINED_IN, lane_conversations, shows
from backend.conversations.sql import tables
from backend.foundation.sql.statements import Statement

_conversation, _item, _response = tables.conversation, tables.item, tables.response

_OF_LANES = Statement(
    select(_response.c.body).where(
        _response.c.id.in_(
            select(_item.c.response_id).where(_item.c.conversation_id == bindparam("where_id")).distinct()
        ),
        _response.c.body.like(f'%"{JOINED_IN}":"%'),
    )
)
_JOINED = select(_response.c.conversation_id, _response.c.body).where(
    _response.c.id.in_(bindparam("ids", expanding=True))
)
_own = _conversation.alias("own")
_OF_SAME_CREATOR = (
    select(_own.c.id)
    .join(_conversation, (_conversation.c.tenant == _own.c.tenant) & (_conversation.c.user_id == _own.c.user_id))
    .where(_conversation.c.id == bindparam("where_id"), _own.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(_own.c.id)
)


def branches_of(connection: Connection, conversation_id: str) -> Sequence[str]:
    """Return the conversations of the same creator in which lanes of the joined responses shown in it have answered."""
    bodies = [orjson.loads(row["body"]) for row in _OF_LANES.rows(connection, {"where_id": conversation_id})]
    joined = sorted({str(body[JOINED_IN]) for body in bodies if JOINED_IN in body})
    if not joined:
        return ()
    rows = connection.execute(_JOINED, {"ids": joined}).mappings().all()
    found = [(row["conversation_id"], orjson.loads(row["body"])) for row in rows]
    shown = [(place, body) for place, body in found if shows(body, conversation_id)]
    others = sorted({each for place, body in shown for each in (place, *lane_conversations(body))} - {conversation_id})
    of_creator = {"where_id": conversation_id, "ids": others}
    return connection.execute(_OF_SAME_CREATOR, of_creator).scalars().all()
