"""Loading the library of the Model Context Protocol where servers are configured: it takes a second and 50 MB."""

import asyncio
from collections.abc import Sequence

from chat_shell.tools.domain.server_entry import ServerEntry, WebServer
from chat_shell.tools.ports.tools import ToolServer
from shared.outgoing import OutgoingProxy


async def reach_servers(
    entries: Sequence[ServerEntry], proxy: OutgoingProxy
) -> tuple[tuple[ServerEntry, ToolServer], ...]:
    """Return each entry with the server that it stands for; nothing is sent or started yet."""
    return await asyncio.to_thread(_reach_all, entries, proxy) if entries else ()


def _reach_all(entries: Sequence[ServerEntry], proxy: OutgoingProxy) -> tuple[tuple[ServerEntry, ToolServer], ...]:
    from chat_shell.tools.mcp.local_server import LocalToolServer
    from chat_shell.tools.mcp.web_server import WebToolServer

    def reach(entry: ServerEntry) -> ToolServer:
        link = entry.link
        if isinstance(link, WebServer):
            return WebToolServer(entry, link, proxy.for_address(link.address))
        return LocalToolServer(entry, link)

    return tuple((entry, reach(entry)) for entry in entries)
