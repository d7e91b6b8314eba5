"""What gRPC does when a service starts a child process."""

from collections.abc import MutableMapping

_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"


def let_grpc_ignore_children(environ: MutableMapping[str, str]) -> None:
    """Switch off what gRPC does at each fork, unless the operator wants it; before gRPC is imported.

    A child of ours becomes another program at once and never calls gRPC. gRPC would halt its threads for it all the
    same, and where a call runs it only writes that it cannot, among log lines that are JSON.
    """
    environ.setdefault(_FORK_SUPPORT, "0")
