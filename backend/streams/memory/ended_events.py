"""The events of ended turns in memory: compressed, for a time, and within a number of bytes."""

import asyncio
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain

from backend.conversations.domain.responses import ConversationSettings
from backend.openai_api.domain.response_events import LoggedEvent
from backend.openai_api.domain.response_object import build_ending, new_body
from backend.openai_api.domain.response_projection import ResponseProjection
from backend.openai_api.domain.turn_request import TurnRequest
from shared.models.events import FinishReason, TextDelta, Usage

CallLater = Callable[[float, Callable[[], None]], object]
"""A timer: calls a function after so many seconds."""

MOST_BYTES = 8 * 2**20
"""Room for some 14,500 turns whose answers are a word, or 13,000 with 50 deltas."""

PACKED_BYTES_HERE = 32_768
"""Unpacked in some 20 ms, where they are a megabyte; more is unpacked beside the event loop."""

BYTES_BESIDE = 340
"""The most that an entry takes beside its compressed events: its id, the headers of both, and its place in a table.

CPython's tables have up to six places an entry after entries came and went (`GROWTH_RATE` in its dictobject.c).
"""

_LARGEST_SHARE = 8
"""A log that takes more than such a share of the room is not kept: one answer must not push out all others."""

_PARTS_OF_RETENTION = 60
"""Logs that end within one such part are deleted together: a timer for each would take more memory than its log."""

_SEPARATOR = b"\n"
"""Never occurs inside an event: JSON text escapes line ends."""

_LEVEL = 3
"""No slower than the fastest level, 1, and a third smaller; level 4 is slower, and smaller for long answers only."""

_WINDOW_BITS = -15
"""All that deflate can look back to, without header and checksum."""

_MEMORY_LEVEL = 6
"""64 KB of tables, to be cleared for each log; zlib's default of 8 takes 256 KB and twice the time."""


class EndedEvents:
    """Keeps the events of each ended turn under its response id.

    They are deleted `retention_seconds` after they were added, or up to a sixtieth later. Where all together take more
    than `most_bytes`, the oldest go first.
    """

    def __init__(self, retention_seconds: float, call_later: CallLater | None, most_bytes: int = MOST_BYTES) -> None:
        self._retention_seconds = retention_seconds
        self._call_later = call_later
        self._most_bytes = most_bytes
        self._parts: list[OrderedDict[str, bytes]] = []
        self._newest: OrderedDict[str, bytes] | None = None
        self._taken_bytes = 0

    def __contains__(self, response_id: str) -> bool:
        """Whether the events of this response are kept."""
        return any(response_id in part for part in self._parts)

    def add(self, response_id: str, packed: bytes) -> None:
        """Keep packed events, which are numbered from 0, and delete the oldest ones where there is no room."""
        if bytes_of(packed) * _LARGEST_SHARE > self._most_bytes:
            return
        self._part_of_now()[response_id] = packed
        self._taken_bytes += bytes_of(packed)
        for part in self._parts:
            while part and self._taken_bytes > self._most_bytes:
                _, oldest = part.popitem(last=False)
                self._taken_bytes -= bytes_of(oldest)

    async def since(self, response_id: str, first_number: int) -> tuple[LoggedEvent, ...]:
        """Return the events from that number on; none where they are not kept."""
        packed = next((part[response_id] for part in self._parts if response_id in part), None)
        if packed is None:
            return ()
        if len(packed) > PACKED_BYTES_HERE:
            return await asyncio.to_thread(unpack_events, packed, first_number)
        return unpack_events(packed, first_number)

    def drop(self, response_id: str) -> None:
        """Delete the events now."""
        for part in self._parts:
            packed = part.pop(response_id, None)
            if packed is not None:
                self._taken_bytes -= bytes_of(packed)

    def _part_of_now(self) -> OrderedDict[str, bytes]:
        """Return the part of the retention that collects logs ending now."""
        if self._newest is None:
            self._newest = OrderedDict()
            self._parts.append(self._newest)
            self._later(self._retention_seconds / _PARTS_OF_RETENTION, self._begin_retention)
        return self._newest

    def _begin_retention(self) -> None:
        self._newest = None
        self._later(self._retention_seconds, self._forget_oldest)

    def _forget_oldest(self) -> None:
        self._taken_bytes -= sum(map(bytes_of, self._parts.pop(0).values()))

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        later = self._call_later or asyncio.get_running_loop().call_later
        later(seconds, call)


def bytes_of(packed: bytes) -> int:
    """Return the memory that compressed events take with their entry."""
    return len(packed) + BYTES_BESIDE


def _lines_of(events: Iterable[LoggedEvent]) -> bytes:
    return _SEPARATOR.join(chain.from_iterable((event.type.encode(), event.body) for event in events))


def _empty_answer() -> bytes:
    """Return the events of an answer that says next to nothing: what all answers have in common."""
    settings = ConversationSettings(model="", instructions="", functions=(), knowledge_base_ids=())
    body = new_body(TurnRequest(input=""), settings, "resp_", "conv_", datetime.fromtimestamp(0, UTC))
    made = ResponseProjection(body, "{}_".format, with_results=False)
    ending = build_ending(FinishReason.STOP, Usage(input_tokens=0, output_tokens=0))
    return _lines_of([*made.start(), *made.feed(TextDelta(text=" ")), *made.finish(ending, 0)[1]])


_DICTIONARY = _empty_answer()
"""Stands before each log that is compressed, which then takes little more than what is its own."""


def pack_events(events: Sequence[LoggedEvent]) -> bytes:
    """Compress events that are numbered from 0.

    Of an answer of one word 4.2 KB of events become 0.2 KB in 9 µs, of one of 50 deltas 6.4 KB become 0.3 KB in 10 µs.
    """
    packer = zlib.compressobj(_LEVEL, wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL, zdict=_DICTIONARY)
    return packer.compress(_lines_of(events)) + packer.flush()


def unpack_events(packed: bytes, first_number: int) -> tuple[LoggedEvent, ...]:
    """Return the events from that number on."""
    lines = zlib.decompressobj(_WINDOW_BITS, zdict=_DICTIONARY).decompress(packed).split(_SEPARATOR)
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return tuple(
        LoggedEvent(sequence_number=number, type=kind.decode(), body=body)
        for number, (kind, body) in enumerate(pairs)
        if number >= first_number
    )
