"""The bytes of requests: how long one may be, how many may be held at a time, and how many requests may be arriving."""

from shared.errors import TooManyRequests, Unavailable
from shared.message_size import SHORT_MESSAGE_BYTES, STREAM_MESSAGE_BYTES
from shared.shares import Lease, SharedBudget

SHORT_SHARE = 8
"""Short messages that arrive may take such a part of all room, in bytes, and those on streams as much."""

READING_SECONDS = 30.0
"""How long a message may take to arrive, and another may wait until it may begin to."""

SHORT_READING_SECONDS = 3.0
"""How long a message that is announced as short may take: whoever lets many of them hang holds up others no longer."""


class MessageBounds:
    """Bounds what the requests of a process may take of its memory; one instance serves both servers.

    A request's bytes are held until its turn ends, because the turn's values are made of them. What is arriving over
    gRPC cannot be counted before it is whole: of such messages only so many are read at a time as have room together.
    Those that are announced as short have places of their own: they never wait for long ones that come slowly.
    """

    def __init__(
        self,
        max_message_bytes: int,
        max_messages_bytes: int,
        *,
        reading_seconds: float = READING_SECONDS,
        short_reading_seconds: float = SHORT_READING_SECONDS,
    ) -> None:
        self.max_message_bytes = max_message_bytes
        self.max_messages_bytes = max_messages_bytes
        self.reading_seconds = reading_seconds
        self.short_reading_seconds = short_reading_seconds
        self._budget = SharedBudget("room for requests", max_messages_bytes)
        self._arriving = SharedBudget("room for arriving requests", max(1, max_messages_bytes // max_message_bytes))
        short_places = max_messages_bytes // SHORT_SHARE // SHORT_MESSAGE_BYTES
        self._arriving_short = SharedBudget("room for arriving requests", max(1, short_places))
        self._streams = SharedBudget("streams", max(1, max_messages_bytes // SHORT_SHARE // STREAM_MESSAGE_BYTES))

    @property
    def held_bytes(self) -> int:
        """How many bytes of requests are held now."""
        return self._budget.taken

    @property
    def arriving(self) -> int:
        """How many messages may be arriving over gRPC now."""
        return self._arriving.taken + self._arriving_short.taken

    def hold(self) -> Lease:
        """Return a lease of bytes that grows with a request; use it as `with`."""
        return self._budget.lease()

    def hold_stream(self) -> Lease:
        """Return the lease of a stream, on which a message may arrive at any time; use it as `with`.

        Raises:
            TooManyRequests: as many are open as have room; whoever asks can send each message with a call of its own.
        """
        lease = self._streams.lease()
        try:
            lease.grow(1)
        except Unavailable:
            raise TooManyRequests("The model runner has as many streams open as it may.") from None
        return lease

    async def place_to_arrive(self, *, is_short: bool) -> Lease:
        """Wait until one more message may arrive; whoever asks must release the place, and bound the wait."""
        return await (self._arriving_short if is_short else self._arriving).wait_for(1)
