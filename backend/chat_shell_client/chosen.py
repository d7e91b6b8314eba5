"""Choosing the gRPC or HTTP client by the address of chat_shell; the other client's library is never loaded."""

from urllib.parse import urlsplit

from backend.chat_shell_client.failover import FailoverChatShell
from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.foundation.services.supervision import Supervisor
from shared.certificates import Certificates
from shared.clock import Clock


def connect_chat_shell(
    url: str,
    service_token: str,
    *,
    clock: Clock,
    max_message_bytes: int,
    certificates: Certificates,
    supervisor: Supervisor,
) -> ChatShell:
    """Build a client for `grpc(s)://host:port`, `dns:///host:port` or `http(s)://host:port`; it connects lazily.

    With `grpcs` and `https` it speaks TLS. Call this inside the event loop that will use the client; the caller closes
    the client. `supervisor` runs what the client does beside the turns.

    Raises:
        ValueError: another scheme, no host, or a token that no header can carry.
    """
    if not (service_token.isascii() and service_token.isprintable()):
        raise ValueError("the service token may hold printable ASCII characters only")
    address = urlsplit(url)
    match address.scheme:
        case "grpc" | "grpcs" if address.netloc:
            target = f"dns:///{address.netloc}"
        case "dns" if address.path.strip("/"):
            target = url
        case "http" | "https" if address.netloc:
            from backend.chat_shell_client.http_client import HttpChatShell

            return FailoverChatShell(
                HttpChatShell(url, service_token, clock, max_message_bytes, certificates.for_client())
            )
        case _:
            raise ValueError(f"{url!r} is no address of chat_shell: give grpc(s)://host:port or http(s)://host:port")
    from backend.chat_shell_client.grpc_client import GrpcChatShell

    shown = certificates if address.scheme == "grpcs" else None
    return FailoverChatShell(GrpcChatShell(target, service_token, clock, max_message_bytes, supervisor, shown))
