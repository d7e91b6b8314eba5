"""The behaviour of gRPC when a service starts a child process."""

from collections.abc import MutableMapping

_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"


def let_grpc_ignore_children(environ: MutableMapping[str, str]) -> None:
    """Switch off what gRPC does at each fork, unless the operator wants it; before gRPC is imported.

    A child of ours becomes another program at once and never calls gRPC. All the same gRPC halts its threads before a
    fork, which waits for those that do not halt, and starts them in the child as well, where they may crash before it
    comes to its program. Where a call runs gRPC only writes that it cannot, among log lines that are JSON. uvloop forks
    at each start of a child, and Python where the child gets another user.
    """
    environ.setdefault(_FORK_SUPPORT, "0")
