"""The Prometheus metric of requests that are held."""

from prometheus_client import Gauge

from chat_shell.foundation.services.message_bounds import MessageBounds

MESSAGE_BYTES = Gauge("ballast_message_bytes", "Bytes of requests held now, each until its turn ends")
MESSAGE_BYTES_MOST = Gauge("ballast_message_bytes_most", "Bytes of requests that may be held")


def watch_messages(bounds: MessageBounds) -> None:
    """Show from now on how many bytes are held."""
    MESSAGE_BYTES.set_function(lambda: bounds.held_bytes)
    MESSAGE_BYTES_MOST.set(bounds.max_messages_bytes)
