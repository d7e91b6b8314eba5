"""The queue of attached files in SQL: which reader has which file, for how long, in the time of the database.

A file in the queue is leased to one process. The transaction that shows its document takes it from the queue, and only
under the newest lease; so a file becomes one document, however many processes have begun to read it.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import orjson
from sqlalchemy import (
    Connection,
    Integer,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from backend.foundation.sql.clock import database_time
from backend.foundation.sql.parameters import to_json
from backend.foundation.sql.statements import Statement
from backend.knowledge.domain.attachments import (
    AttachedStatus,
    Attachment,
    AttachmentClaim,
    FileError,
    TakenAttachment,
    number_name,
)
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.sql import rows, tables
from backend.knowledge.sql.editions import hold_base
from shared.errors import Conflict

NAMES_AT_ONCE = 64

MOST_LEASED = 64
"""So many of a user's earliest files are looked at for leases: the earliest are leased first, few at a time."""

NOBODY = ("", "")
"""Comes before every user."""

_attachment, _document = tables.attachment, tables.document
# Written out, not bound: the partial index of waiting files serves only statements that name its status.
_IS_WAITING = _attachment.c.status == literal_column(f"'{AttachedStatus.IN_PROGRESS.value}'")
_IS_FREE = or_(_attachment.c.leased_until.is_(None), _attachment.c.leased_until <= database_time("zero"))
_IS_IT = (_attachment.c.knowledge_base_id == bindparam("where_base_id")) & (
    _attachment.c.file_id == bindparam("where_file_id")
)
_IS_CLAIMED = _IS_IT & (_attachment.c.fence == bindparam("where_fence")) & _IS_WAITING

# Users are found one by one through the index of waiting files: how many files wait makes no difference. One statement
# with a comparison of pairs would not do: SQLite walks over all files of the pair that it compares with.
_NEXT_USERS = (
    select(_attachment.c.tenant, _attachment.c.user_id)
    .where(_IS_WAITING)
    .order_by(_attachment.c.tenant, _attachment.c.user_id)
    .limit(1)
)
_USER_OF_TENANT = Statement(
    _NEXT_USERS.where(
        _attachment.c.tenant == bindparam("behind_tenant"), _attachment.c.user_id > bindparam("behind_user_id")
    )
)
_USER_OF_NEXT_TENANT = Statement(_NEXT_USERS.where(_attachment.c.tenant > bindparam("behind_tenant")))
_IS_OF_USER = (_attachment.c.tenant == bindparam("where_tenant")) & (
    _attachment.c.user_id == bindparam("where_user_id")
)
_EARLIEST = (
    select(_attachment.c.leased_until)
    .where(_IS_WAITING, _IS_OF_USER)
    .order_by(_attachment.c.created_at)
    .limit(bindparam("most", type_=Integer))
    .subquery()
)
_LEASED = Statement(select(func.count()).where(_EARLIEST.c.leased_until > database_time("zero")))
_OLDEST = Statement(
    select(_attachment)
    .where(_IS_WAITING, _IS_FREE, _IS_OF_USER)
    .order_by(_attachment.c.created_at, _attachment.c.file_id)
    .limit(bindparam("most", type_=Integer))
    .with_for_update(skip_locked=True)
)
_LEASE = Statement(
    update(_attachment)
    .where(_IS_IT)
    .values(
        fence=_attachment.c.fence + 1,
        attempts=_attachment.c.attempts + 1,
        leased_until=database_time("lease"),
    )
)
_RENEW = Statement(update(_attachment).where(_IS_CLAIMED).values(leased_until=database_time("lease")))
_RELEASE = Statement(
    update(_attachment)
    .where(_IS_CLAIMED)
    .values(leased_until=database_time("lease"), fence=_attachment.c.fence + 1, attempts=_attachment.c.attempts - 1)
)
_FAIL = Statement(
    update(_attachment)
    .where(_IS_CLAIMED)
    .values(
        status=AttachedStatus.FAILED.value,
        leased_until=None,
        error_code=bindparam("set_code"),
        error_message=bindparam("set_message"),
    )
)
_COMPLETE = Statement(delete(_attachment).where(_IS_CLAIMED))

WAITING: Mapping[str, object] = {
    "status": AttachedStatus.IN_PROGRESS.value,
    "attempts": 0,
    "leased_until": None,
    "error_code": None,
    "error_message": None,
}
"""The state of a file that begins to wait."""


def queue_new(connection: Connection, attachments: Sequence[Attachment]) -> None:
    """Queue files that are not in the queue yet."""
    if attachments:
        new = [
            {**one.model_dump(), "attributes": to_json(one.attributes), **WAITING, "fence": 0} for one in attachments
        ]
        connection.execute(insert(_attachment), new)


def any_waits(connection: Connection) -> bool:
    """Whether a file waits, leased or not."""
    return _user_behind(connection, NOBODY) is not None


def lease_next(
    connection: Connection, last_served: tuple[str, str] | None, lease_seconds: float
) -> TakenAttachment | None:
    """Lease the next file of the user whose turn it is.

    It looks at one user more than there are with leased files, which are few: a process has few readers.
    """
    passed_over: list[tuple[int, tuple[str, str]]] = []
    for user in _users_from(connection, last_served):
        leased = _count_leased(connection, user)
        if not leased and (taken := _lease_oldest(connection, user, lease_seconds)) is not None:
            return taken
        passed_over.append((leased, user))
    passed_over.sort(key=itemgetter(0))
    found = (_lease_oldest(connection, user, lease_seconds) for _, user in passed_over)
    return next((taken for taken in found if taken is not None), None)


def _users_from(connection: Connection, last_served: tuple[str, str] | None) -> Iterator[tuple[str, str]]:
    """Yield each user of waiting files, in their order, beginning behind the one who was served last."""
    seen: set[tuple[str, str]] = set()
    for begin in (last_served, NOBODY) if last_served is not None else (NOBODY,):
        user = _user_behind(connection, begin)
        while user is not None and user not in seen:
            seen.add(user)
            yield user
            user = _user_behind(connection, user)


def _user_behind(connection: Connection, user: tuple[str, str]) -> tuple[str, str] | None:
    behind = {"behind_tenant": user[0], "behind_user_id": user[1]}
    row = _USER_OF_TENANT.first(connection, behind)
    if row is None:
        row = _USER_OF_NEXT_TENANT.first(connection, {"behind_tenant": user[0]})
    return (row["tenant"], row["user_id"]) if row is not None else None


def _count_leased(connection: Connection, user: tuple[str, str]) -> int:
    row = _LEASED.first(connection, {**_of_user(user), "zero": 0.0, "most": MOST_LEASED})
    return next(iter(row.values())) if row is not None else 0


def _lease_oldest(connection: Connection, user: tuple[str, str], lease_seconds: float) -> TakenAttachment | None:
    row = _OLDEST.first(connection, {**_of_user(user), "zero": 0.0, "most": 1})
    if row is None:
        return None
    attachment = to_attachment(row)
    claim = AttachmentClaim(attachment.knowledge_base_id, attachment.file_id, row["fence"] + 1)
    its = {"where_base_id": claim.base_id, "where_file_id": claim.file_id}
    _LEASE.change(connection, {**its, "lease": lease_seconds})
    return TakenAttachment(attachment, claim, row["attempts"] + 1)


def _of_user(user: tuple[str, str]) -> dict[str, object]:
    return {"where_tenant": user[0], "where_user_id": user[1]}


def extend_lease(connection: Connection, claim: AttachmentClaim, lease_seconds: float) -> bool:
    """Extend a lease; False where the claim is lost."""
    return bool(_RENEW.change(connection, {**_encode_claim(claim), "lease": lease_seconds}))


def give_back(connection: Connection, claim: AttachmentClaim, after_seconds: float) -> None:
    """Give a lease back; the file is taken no sooner than in so many seconds."""
    _RELEASE.change(connection, {**_encode_claim(claim), "lease": after_seconds})


def fail(connection: Connection, claim: AttachmentClaim, error: FileError) -> None:
    """Note why a file became no document."""
    _FAIL.change(connection, {**_encode_claim(claim), "set_code": error.code, "set_message": error.message})


def complete(connection: Connection, document: Document, claim: AttachmentClaim) -> Document:
    """Take a file from the queue, and return its document with a name that is free in the base, which is locked.

    Raises:
        Conflict: the claim is lost.
    """
    hold_base(connection, claim.base_id)
    row = connection.execute(select(_attachment).where(_IS_CLAIMED), _encode_claim(claim)).mappings().first()
    if row is None or not _COMPLETE.change(connection, _encode_claim(claim)):
        raise Conflict("The file was detached, or is read by another process.", param="file_id")
    queued = to_attachment(row)
    name = next(_free_names(connection, claim.base_id, queued.filename))
    its = {"file_id": queued.file_id, "filename": queued.filename, "attributes": queued.attributes}
    return document.model_copy(update={"name": name, "created_at": queued.created_at, **its})


def _free_names(connection: Connection, base_id: str, filename: str) -> Iterator[str]:
    first = 1
    while True:
        names = [number_name(filename, number) for number in range(first, first + NAMES_AT_ONCE)]
        query = select(_document.c.name).where(_document.c.knowledge_base_id == base_id, _document.c.name.in_(names))
        taken = set(connection.execute(query).scalars())
        yield from (name for name in names if name not in taken)
        first += NAMES_AT_ONCE


def to_attachment(row: rows.Row) -> Attachment:
    """Read an attachment from a row that may hold more."""
    columns = {name: row[name] for name in Attachment.model_fields}
    return Attachment.model_validate({**columns, "attributes": orjson.loads(columns["attributes"])})


def _encode_claim(claim: AttachmentClaim) -> dict[str, object]:
    return {"where_base_id": claim.base_id, "where_file_id": claim.file_id, "where_fence": claim.fence}
