"""What calls tell each other beside their messages: how long one is, and how often a running turn says something."""

MESSAGE_BYTES_KEY = "ballast-message-bytes"
"""The key of the call's metadata; the value is a number of bytes. A call without it may be of any length."""

HEARTBEAT_KEY = "ballast-heartbeat-milliseconds"
"""A header of HTTP and the metadata of gRPC: chat_shell says something so often while a turn runs.

Who calls over gRPC sends it, with any value, to get empty messages as heartbeats.
"""

SHORT_MESSAGE_BYTES = 262_144
"""Messages up to here, which almost all are, arrive beside longer ones and never wait for them."""

STREAM_MESSAGE_BYTES = 2 * SHORT_MESSAGE_BYTES
"""The longest message on a stream for many turns: each stream may have one arriving at any time."""

LONGEST_MESSAGE_BYTES = 2**31 - 1
"""gRPC takes no higher limit: it counts in 32 bits."""

MOST_HELD_BYTES = 2**40
"""No process holds more: a higher limit is a slip of the pen."""
