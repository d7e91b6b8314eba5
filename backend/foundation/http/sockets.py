"""WebSockets on the connections of the HTTP server, which imports this as it begins to serve."""

from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from backend.foundation.http.services import GOING_AWAY


class DrainingSocket(WebSocketsSansIOProtocol):
    """A WebSocket whose application closes it when clients are sent away; uvicorn would do so at once."""

    _is_going = False

    def shutdown(self) -> None:
        """Tell the application, or close the connection where it was told before."""
        if self._is_going:
            super().shutdown()
        else:
            self._is_going = True
            self.queue.put_nowait(cast(Any, {"type": GOING_AWAY}))
