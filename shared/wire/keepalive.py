"""Keepalive of gRPC connections: how each end finds out that the other is gone, and how often it may ask.

Both ends take it from here: a server ends connections, with the calls on them, on which it is asked more often than it
expects, and expects nothing below five minutes unless it is told.
"""

PING_SECONDS = 30.0
_ANSWER_SECONDS = 10
_TOLERANCE = 3
"""A busy machine delays one question and not the next one, so that they come closer together than they were asked."""

Options = tuple[tuple[str, int], ...]


def options_of_client(ping_seconds: float = PING_SECONDS) -> Options:
    """Return what lets an end of a connection ask, with calls on it or without."""
    return (
        ("grpc.keepalive_time_ms", int(1000 * ping_seconds)),
        ("grpc.keepalive_timeout_ms", 1000 * _ANSWER_SECONDS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )


def options_of_server(ping_seconds: float = PING_SECONDS) -> Options:
    """Return what lets a server ask, and be asked."""
    least = ("grpc.http2.min_ping_interval_without_data_ms", int(1000 * ping_seconds / _TOLERANCE))
    return (*options_of_client(ping_seconds), least)
