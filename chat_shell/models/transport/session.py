"""The HTTP session for calls of models, which reuses connections and keeps no other state."""

import aiohttp

from shared.tracing import request_tracing

CONNECT_TIMEOUT_SECONDS = 10.0


def open_session() -> aiohttp.ClientSession:
    """Open a session without cookies, without proxies from the environment, and with a timeout on connecting only.

    The number of connections is not limited here: the number of turns is, when they are admitted.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS),
        trust_env=False,
        middlewares=request_tracing(),
    )
