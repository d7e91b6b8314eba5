"""The conversations that a user may read, page by page."""

from collections.abc import Iterator

from sqlalchemy import Connection, Integer, bindparam, or_, select, tuple_

from backend.conversations.domain.responses import Conversation
from backend.conversations.sql import tables
from backend.conversations.sql.codec import Parameters, to_conversation, to_json
from backend.conversations.sql.shared_statements import IS_CONVERSATION
from backend.foundation.sql.statements import Statement
from shared.errors import NotFound

_conversation = tables.conversation
_created_at, _id = _conversation.c.created_at, _conversation.c.id

# The conversation of a joined response has no log, and nobody knows of it.
_is_shown = or_(_conversation.c.log_length > 0, _conversation.c.latest_response_id.is_(None))
# Whether the user has a role in a shared one is read from its members; this only leaves out most others.
_may_be_read = or_(
    _conversation.c.user_id == bindparam("where_user"),
    _conversation.c.members.contains(bindparam("where_named")),
)
_listed = (
    select(_conversation)
    .where(_conversation.c.tenant == bindparam("where_tenant"), _is_shown, _may_be_read)
    .limit(bindparam("where_limit", type_=Integer))
)
_place = tuple_(_created_at, _id)
_given = tuple_(bindparam("where_created_at", type_=_created_at.type), bindparam("where_place"))
_UP, _DOWN = _listed.order_by(_created_at, _id), _listed.order_by(_created_at.desc(), _id.desc())
_PAGES = {
    (False, False): Statement(_UP),
    (False, True): Statement(_UP.where(_place > _given)),
    (True, False): Statement(_DOWN),
    (True, True): Statement(_DOWN.where(_place < _given)),
}
_FIND = Statement(select(_conversation).where(IS_CONVERSATION))


def read_page(
    connection: Connection, tenant: str, user_id: str, after: str | None, limit: int, *, descending: bool
) -> tuple[Conversation, ...]:
    """Return up to `limit` conversations behind the conversation `after`.

    Raises:
        NotFound: `after` names no conversation that this user may read.
    """
    user: Parameters = {"where_tenant": tenant, "where_user": user_id, "where_named": to_json(user_id)}
    start = _find(connection, tenant, user_id, after) if after is not None else None
    found: list[Conversation] = []
    for each in _candidates(connection, user | {"where_limit": limit}, start, descending=descending):
        if user_id in each.people.roles:
            found.append(each)
        if len(found) == limit:
            break
    return tuple(found)


def _candidates(
    connection: Connection, parameters: Parameters, start: Conversation | None, *, descending: bool
) -> Iterator[Conversation]:
    while True:
        place: Parameters = {"where_created_at": start.created_at, "where_place": start.id} if start else {}
        rows = _PAGES[descending, start is not None].rows(connection, parameters | place)
        for row in rows:
            start = to_conversation(row)
            yield start
        if len(rows) < int(str(parameters["where_limit"])):
            return


def _find(connection: Connection, tenant: str, user_id: str, conversation_id: str) -> Conversation:
    row = _FIND.first(connection, {"where_id": conversation_id})
    found = to_conversation(row) if row is not None else None
    if found is None or found.tenant != tenant or user_id not in found.people.roles:
        raise NotFound(f"There is no conversation '{conversation_id}'.", param="after")
    return found
