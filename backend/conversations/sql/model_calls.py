"""The model calls of turns in a SQL database; a checkpoint and the end of a turn may both write the same call."""

from collections.abc import Sequence
from hashlib import blake2b

from pydantic import TypeAdapter
from sqlalchemy import Connection, bindparam, delete, select, text

from backend.conversations.domain.model_calls import CallsMade, ModelCall, PromptHeader, TailMessage
from backend.conversations.domain.prompt_record import Reuse, Shortfall
from backend.conversations.sql import tables
from backend.conversations.sql.codec import Parameters
from backend.foundation.sql.statements import Change, Row, Statement, change_together
from shared.errors import CorruptRecord
from shared.models.events import Cost, Usage

_call = tables.model_call
_header = tables.prompt_header

_IS_RESPONSE = _call.c.response_id == bindparam("where_response_id")

# Plain SQL works with both databases; SQLAlchemy has a different construct for each of them.
_INSERT_CALL = """
    INSERT INTO model_call (
        response_id, call, conversation_id, epoch, epoch_reason, log_end, header, tail, reuse, shortfall, usage, cost
    ) VALUES (
        :response_id, :call, :conversation_id, :epoch, :epoch_reason, :log_end,
        :header, :tail, :reuse, :shortfall, :usage, :cost
    ) ON CONFLICT (response_id, call)
"""
_ADD_CALL = Statement(text(f"{_INSERT_CALL} DO NOTHING"))
_SET_CALL = Statement(
    text(f"""
        {_INSERT_CALL} DO UPDATE SET
            shortfall = excluded.shortfall, usage = excluded.usage, cost = excluded.cost
    """)
)
_ADD_HEADER = Statement(
    text("""
        INSERT INTO prompt_header (conversation_id, digest, tools, system_prompt)
        VALUES (:conversation_id, :digest, :tools, :system_prompt) ON CONFLICT (conversation_id, digest) DO NOTHING
    """)
)
_CALLS = Statement(
    select(_call, _header.c.tools, _header.c.system_prompt)
    .join(_header, (_header.c.conversation_id == _call.c.conversation_id) & (_header.c.digest == _call.c.header))
    .where(_IS_RESPONSE)
    .order_by(_call.c.call)
)
_DELETE = Statement(delete(_call).where(_IS_RESPONSE))

_TAIL = TypeAdapter(tuple[TailMessage, ...])


def written_calls(made: CallsMade) -> list[Change]:
    """Return the changes that write calls; the usage of those that are stored already is updated."""
    return _changes(made, _SET_CALL)


def add_calls(connection: Connection, made: CallsMade) -> None:
    """Write the calls that are not stored yet; the stored form of the others may be newer than these."""
    change_together(connection, _changes(made, _ADD_CALL))


def read_calls(connection: Connection, response_id: str) -> tuple[ModelCall, ...]:
    """Read the calls of a turn, in order."""
    return tuple(_to_call(row) for row in _CALLS.rows(connection, {"where_response_id": response_id}))


def delete_calls(connection: Connection, response_id: str) -> None:
    """Delete the calls of a turn."""
    _DELETE.change(connection, {"where_response_id": response_id})


def _changes(made: CallsMade, statement: Statement) -> list[Change]:
    headers = {_digest(call.header): call.header for call in made.calls}
    named = [
        {"conversation_id": made.conversation_id, "digest": digest, **header.model_dump()}
        for digest, header in headers.items()
    ]
    return [Change(_ADD_HEADER, named), Change(statement, _parameters(made))]


def _parameters(made: CallsMade) -> Sequence[Parameters]:
    return [
        {
            "response_id": made.response_id,
            "call": call.call,
            "conversation_id": made.conversation_id,
            "epoch": call.epoch,
            "epoch_reason": call.epoch_reason,
            "log_end": call.log_end,
            "header": _digest(call.header),
            "tail": _TAIL.dump_json(call.tail).decode() if call.tail else None,
            "reuse": call.reuse.model_dump_json(),
            "shortfall": call.shortfall.value if call.shortfall is not None else None,
            "usage": call.usage.model_dump_json() if call.usage is not None else None,
            "cost": call.cost.model_dump_json() if call.cost is not None else None,
        }
        for call in made.calls
    ]


def _to_call(row: Row) -> ModelCall:
    try:
        return ModelCall(
            call=row["call"],
            epoch=row["epoch"],
            epoch_reason=row["epoch_reason"],
            log_end=row["log_end"],
            header=PromptHeader(tools=row["tools"], system_prompt=row["system_prompt"]),
            tail=_TAIL.validate_json(row["tail"]) if row["tail"] else (),
            reuse=Reuse.model_validate_json(row["reuse"]),
            shortfall=Shortfall(row["shortfall"]) if row["shortfall"] else None,
            usage=Usage.model_validate_json(row["usage"]) if row["usage"] else None,
            cost=Cost.model_validate_json(row["cost"]) if row["cost"] else None,
        )
    except ValueError as error:
        raise CorruptRecord(f"Model call {row['call']} of response {row['response_id']} cannot be read.") from error


def _digest(header: PromptHeader) -> str:
    return blake2b(header.model_dump_json().encode(), digest_size=12).hexdigest()
