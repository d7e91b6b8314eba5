"""The model calls of turns in a SQL database; a checkpoint and the end of a turn may both write the same call."""

from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b

import orjson
from pydantic import TypeAdapter
from sqlalchemy import Connection, bindparam, delete, select, text

from backend.conversations.domain.conversation_log import EntryKind
from backend.conversations.domain.model_calls import (
    NO_MISS,
    UNLOGGED_KINDS,
    CacheMiss,
    CallsMade,
    Excerpt,
    Gauge,
    ModelCall,
    PromptHeader,
    TailMessage,
)
from backend.conversations.domain.placed_blocks import ANCHORED, Placement, text_digest
from backend.conversations.domain.prompt_record import Reuse, Shortfall
from backend.conversations.sql import tables
from backend.conversations.sql.codec import Parameters
from backend.foundation.sql.parameters import to_json
from backend.foundation.sql.statements import Change, Row, Statement, change_together
from shared.errors import CorruptRecord
from shared.models.events import Cost, Usage
from shared.models.values import Value

_call = tables.model_call
_header = tables.prompt_header
_text = tables.placed_text

_IS_RESPONSE = _call.c.response_id == bindparam("where_response_id")

# Plain SQL works with both databases; SQLAlchemy has a different construct for each of them.
_INSERT_CALL = """
    INSERT INTO model_call (
        response_id, call, conversation_id, epoch, epoch_reason, log_end, header, tail, reuse, shortfall, usage, cost,
        placed, gauge, summary_of, left_out, miss
    ) VALUES (
        :response_id, :call, :conversation_id, :epoch, :epoch_reason, :log_end,
        :header, :tail, :reuse, :shortfall, :usage, :cost, :placed, :gauge, :summary_of, :left_out, :miss
    ) ON CONFLICT (response_id, call)
"""
_ADD_CALL = Statement(text(f"{_INSERT_CALL} DO NOTHING"))
_SET_CALL = Statement(
    text(f"""
        {_INSERT_CALL} DO UPDATE SET
            epoch = excluded.epoch, epoch_reason = excluded.epoch_reason, log_end = excluded.log_end,
            header = excluded.header, tail = excluded.tail, reuse = excluded.reuse, placed = excluded.placed,
            shortfall = excluded.shortfall, usage = excluded.usage, cost = excluded.cost,
            gauge = excluded.gauge, summary_of = excluded.summary_of, left_out = excluded.left_out,
            miss = excluded.miss
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

_ADD_TEXT = Statement(
    text("""
        INSERT INTO placed_text (conversation_id, digest, content) VALUES (:conversation_id, :digest, :content)
        ON CONFLICT (conversation_id, digest) DO NOTHING
    """)
)
_TEXT = Statement(
    select(_text.c.content).where(
        _text.c.conversation_id == bindparam("where_conversation"), _text.c.digest == bindparam("where_digest")
    )
)

_TAIL = TypeAdapter(tuple[TailMessage, ...])
_KNOWN_FIELDS = {"index", "text"}
_KNOWN_KIND = EntryKind.DYNAMIC_CONTEXT.value
"""The only kind of message outside of the log that the release before knows, and the fields that it does."""


class _PlacedMessage(Value):
    index: int
    kind: str
    digest: str


class _Placed(Value):
    """What the release before does not know of a call."""

    tail: tuple[_PlacedMessage, ...] = ()
    placement: Placement = ANCHORED
    rewritten_tokens: int = 0


_NOWHERE = _Placed()


def write_calls(made: CallsMade) -> list[Change]:
    """Return the changes that write calls; one that is stored already was sent again, or has ended since."""
    return _changes(made, _SET_CALL)


def add_calls(connection: Connection, made: CallsMade) -> None:
    """Write the calls that are not stored yet; the stored form of the others may be newer than these."""
    change_together(connection, _changes(made, _ADD_CALL))


def read_calls(connection: Connection, response_id: str) -> tuple[ModelCall, ...]:
    """Read the calls of a turn, in order."""
    rows = _CALLS.rows(connection, {"where_response_id": response_id})
    placed = [_decode_placed(row) for row in rows]
    digests = {message.digest for each in placed for message in each.tail}
    conversation_id = rows[0]["conversation_id"] if rows else ""
    texts = read_texts(connection, conversation_id, sorted(digests))
    return tuple(_to_call(row, each, texts) for row, each in zip(rows, placed, strict=True))


def delete_calls(connection: Connection, response_id: str) -> None:
    """Delete the calls of a turn."""
    _DELETE.change(connection, {"where_response_id": response_id})


def _changes(made: CallsMade, statement: Statement) -> list[Change]:
    digests = {header: _digest(header) for header in dict.fromkeys(call.header for call in made.calls)}
    named = [
        {"conversation_id": made.conversation_id, "digest": digest, **vars(header)}
        for header, digest in digests.items()
    ]
    # The turn has stored the blocks of its agent as it began; what else stands in no log is as short as it is rare.
    texts = {message.text for call in made.calls for message in call.tail if message.kind in UNLOGGED_KINDS}
    return [
        Change(_ADD_HEADER, named),
        *add_texts(made.conversation_id, sorted(texts)),
        Change(statement, _parameters(made, digests)),
    ]


def add_texts(conversation_id: str, texts: Sequence[str]) -> list[Change]:
    """Return the changes that store texts which stand in prompts, but in no log; each is stored once."""
    rows = [
        {"conversation_id": conversation_id, "digest": text_digest(text), "content": to_json(text)} for text in texts
    ]
    return [Change(_ADD_TEXT, rows)] if rows else []


def read_texts(connection: Connection, conversation_id: str, digests: Collection[str]) -> Mapping[str, str]:
    """Return those of these texts that are stored."""
    keys = {digest: {"where_conversation": conversation_id, "where_digest": digest} for digest in digests}
    found = {digest: _TEXT.first(connection, key) for digest, key in keys.items()}
    return {digest: orjson.loads(row["content"]) for digest, row in found.items() if row is not None}


def _parameters(made: CallsMade, digests: Mapping[PromptHeader, str]) -> Sequence[Parameters]:
    return [
        {
            "response_id": made.response_id,
            "call": call.call,
            "conversation_id": made.conversation_id,
            "epoch": call.epoch,
            "epoch_reason": call.epoch_reason,
            "log_end": call.log_end,
            "header": digests[call.header],
            "tail": _tail_json(call),
            "reuse": call.reuse.model_dump_json(),
            "shortfall": call.shortfall.value if call.shortfall is not None else None,
            "usage": call.usage.model_dump_json() if call.usage is not None else None,
            "cost": call.cost.model_dump_json() if call.cost is not None else None,
            "placed": _encode_placed(call),
            "gauge": call.gauge.model_dump_json() if call.gauge is not None else None,
            "summary_of": call.summary_of.model_dump_json(exclude_defaults=True) if call.summary_of else None,
            "left_out": to_json(list(call.left_out)) if call.left_out else None,
            "miss": call.miss.model_dump_json(exclude_defaults=True) if call.miss != NO_MISS else None,
        }
        for call in made.calls
    ]


def _tail_json(call: ModelCall) -> str | None:
    known = tuple(message for message in call.tail if message.kind == _KNOWN_KIND)
    return _TAIL.dump_json(known, include={"__all__": _KNOWN_FIELDS}).decode() if known else None


def _encode_placed(call: ModelCall) -> str | None:
    tail = tuple(
        _PlacedMessage(index=message.index, kind=message.kind, digest=text_digest(message.text))
        for message in call.tail
        if message.kind != _KNOWN_KIND
    )
    placed = _Placed(tail=tail, placement=call.placement, rewritten_tokens=call.rewritten_tokens)
    return placed.model_dump_json(exclude_defaults=True) if placed != _NOWHERE else None


def _decode_placed(row: Row) -> _Placed:
    try:
        return _Placed.model_validate_json(row["placed"]) if row["placed"] else _Placed()
    except ValueError as error:
        raise _unreadable(row) from error


def _to_call(row: Row, placed: _Placed, texts: Mapping[str, str]) -> ModelCall:
    try:
        known = _TAIL.validate_json(row["tail"]) if row["tail"] else ()
        others = [TailMessage(index=one.index, kind=one.kind, text=texts[one.digest]) for one in placed.tail]
        return ModelCall(
            call=row["call"],
            epoch=row["epoch"],
            epoch_reason=row["epoch_reason"],
            log_end=row["log_end"],
            header=PromptHeader(tools=row["tools"], system_prompt=row["system_prompt"]),
            tail=tuple(sorted((*known, *others), key=lambda message: message.index)),
            reuse=Reuse.model_validate_json(row["reuse"]),
            shortfall=Shortfall(row["shortfall"]) if row["shortfall"] else None,
            usage=Usage.model_validate_json(row["usage"]) if row["usage"] else None,
            cost=Cost.model_validate_json(row["cost"]) if row["cost"] else None,
            placement=placed.placement,
            rewritten_tokens=placed.rewritten_tokens,
            gauge=Gauge.model_validate_json(row["gauge"]) if row["gauge"] else None,
            summary_of=Excerpt.model_validate_json(row["summary_of"]) if row["summary_of"] else None,
            left_out=tuple(orjson.loads(row["left_out"])) if row["left_out"] else (),
            miss=CacheMiss.model_validate_json(row["miss"]) if row["miss"] else NO_MISS,
        )
    except (LookupError, ValueError) as error:
        raise _unreadable(row) from error


def _unreadable(row: Row) -> CorruptRecord:
    return CorruptRecord(f"Model call {row['call']} of response {row['response_id']} cannot be read.")


def _digest(header: PromptHeader) -> str:
    return blake2b(header.model_dump_json().encode(), digest_size=12).hexdigest()
