"""Choosing the gRPC or HTTP client by the address of chat_shell; the other client's library is never loaded."""

from urllib.parse import urlsplit

from backend.turns.ports.chat_shell import ChatShell
from shared.clock import Clock


def connect_chat_shell(url: str, service_token: str, *, clock: Clock, max_message_bytes: int) -> ChatShell:
    """Build a client for `grpc://host:port`, `dns:///host:port` or `http(s)://host:port`; it connects lazily.

    Call this inside the event loop that will use the client; the caller closes the client.

    Raises:
        ValueError: another scheme, no host, or a token that no header can carry.
    """
    if not (service_token.isascii() and service_token.isprintable()):
        raise ValueError("the service token may hold printable ASCII characters only")
    address = urlsplit(url)
    match address.scheme:
        case "grpc" if address.netloc:
            target = f"dns:///{address.netloc}"
        case "dns" if address.path.strip("/"):
            target = url
        case "http" | "https" if address.netloc:
            from backend.turns.chat_shell.http_client import HttpChatShell

            return HttpChatShell(url, service_token, clock, max_message_bytes)
        case _:
            raise ValueError(f"{url!r} is no address of chat_shell: give grpc://host:port or http://host:port")
    from backend.turns.chat_shell.grpc_client import GrpcChatShell

    return GrpcChatShell(target, service_token, clock, max_message_bytes)
