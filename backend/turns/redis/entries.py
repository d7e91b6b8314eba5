"""How events stand in a Redis stream.

An entry holds the events of one flush, a field each, named `<number> <type>`. Its id is `<last number + 1>-0`, so
that a repeated XADD is refused instead of written twice, and a reader's cursor follows from a sequence number.
The end has the greatest id there is: it is written once, and nothing can be written behind it.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from backend.turns.ports.events import LoggedEvent

END_ID = f"{2**63 - 1}-0"
END_FIELDS = {b"end": b""}

Reply = list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]


def stream_key(response_id: str) -> str:
    """Name the stream of a response."""
    return f"ballast:events:{response_id}"


def dropped_key(response_id: str) -> str:
    """Name the sign that a response's stream was dropped on purpose."""
    return f"ballast:dropped:{response_id}"


def entry_id(last_number: int) -> str:
    """Name the entry that ends with this event."""
    return f"{last_number + 1}-0"


def encode_fields(events: Sequence[LoggedEvent]) -> dict[bytes, bytes]:
    """Make the fields of an entry."""
    return {f"{event.sequence_number} {event.type}".encode(): event.body for event in events}


def decode_fields(fields: dict[bytes, bytes], above: int) -> Iterable[LoggedEvent]:
    """Read the events of an entry whose number is above that one."""
    for name, body in fields.items():
        number, _, kind = name.partition(b" ")
        if int(number) > above:
            yield LoggedEvent(sequence_number=int(number), type=kind.decode(), body=body)


def entries_of(reply: object) -> list[tuple[str, dict[bytes, bytes]]]:
    """Take the entries of the one stream out of XREAD's answer (RESP 2), which is empty after a timeout."""
    streams = cast(Reply, reply or [])
    return [(name.decode(), fields) for _, entries in streams for name, fields in entries]
