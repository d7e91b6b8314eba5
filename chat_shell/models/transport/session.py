"""The HTTP session that all models share: connections are reused, nothing else is remembered."""

import aiohttp

CONNECT_TIMEOUT_SECONDS = 10.0


class ProviderSession:
    """Open an aiohttp session at first use, inside the running loop; or use one that is given and not ours to close."""

    def __init__(self, session: aiohttp.ClientSession | None = None) -> None:
        self._given = session
        self._own: aiohttp.ClientSession | None = None

    def get(self) -> aiohttp.ClientSession:
        """Return the session."""
        if self._given is not None:
            return self._given
        if self._own is None or self._own.closed:
            self._own = open_session()
        return self._own

    async def close(self) -> None:
        """Close the session that was opened here; may be called again."""
        if self._own is not None:
            await self._own.close()


def open_session() -> aiohttp.ClientSession:
    """Open a session without cookies, proxies from the environment, or timeouts but the one on connecting.

    The number of connections has no bound here: turns are admitted at the door.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS),
        trust_env=False,
    )
