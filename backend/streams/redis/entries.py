"""The encoding of events in a Redis stream.

An entry holds the events of one flush, one field for each, named `<number> <type>`. Its id is `<last number + 1>-0`, so
that a repeated XADD is refused instead of written twice, and a reader's cursor follows from a sequence number.
A writer that has taken a response over adds its fencing number to the ids of its entries, far above all numbers of
events, after it has written an entry without events, which makes the stream where there is none: from then on Redis
refuses the entries of earlier writers, their first one as well.
The end marker has the greatest possible id: it is written once, and nothing can be appended after it.
"""

from collections.abc import Iterable, Sequence
from typing import cast

from backend.openai_api.domain.response_events import LoggedEvent

END_ID = f"{2**63 - 1}-0"
END_FIELDS = {b"end": b""}

SEAL_FIELDS = {b"-1 seal": b""}
"""The fields of an entry without events: no reader asks for events above a number less than -1."""

_FENCE_STEP = 2**40
"""More than the number of any event."""

Reply = list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]


def stream_key(response_id: str) -> str:
    """Name the stream of a response."""
    return f"ballast:events:{response_id}"


def name_dropped_key(response_id: str) -> str:
    """Name the key that marks a response's stream as dropped on purpose."""
    return f"ballast:dropped:{response_id}"


def entry_id(last_number: int, fence: int = 0) -> str:
    """Return the id of the entry whose last event has this number, written under this fencing number.

    A reader that does not know the fencing number reads on from the id without one: it gets some entries again, whose
    events it skips by their numbers.
    """
    return f"{fence * _FENCE_STEP + last_number + 1}-0"


def seal_id(fence: int) -> str:
    """Return the id of the entry behind which only writers with this fencing number, or a higher one, append."""
    return entry_id(-1, fence)


def is_behind(name: str, other: str) -> bool:
    """Say whether an entry stands behind another, by their ids."""
    return int(name.partition("-")[0]) > int(other.partition("-")[0])


def encode_fields(events: Sequence[LoggedEvent]) -> dict[bytes, bytes]:
    """Encode the fields of an entry."""
    return {f"{event.sequence_number} {event.type}".encode(): event.body for event in events}


def decode_entries(entries: Iterable[tuple[str, dict[bytes, bytes]]], above: int) -> Iterable[LoggedEvent]:
    """Decode the events whose numbers are greater than `above` and than those of all events before them."""
    for entry, fields in entries:
        for name, body in () if entry == END_ID else fields.items():
            number, _, kind = name.partition(b" ")
            if int(number) > above:
                above = int(number)
                yield LoggedEvent(sequence_number=above, type=kind.decode(), body=body)


def entries_of(reply: object) -> list[tuple[str, dict[bytes, bytes]]]:
    """Take the entries of the one stream out of XREAD's answer (RESP 2), which is empty after a timeout."""
    streams = cast(Reply, reply or [])
    return [(name.decode(), fields) for _, entries in streams for name, fields in entries]
