"""The HTTP session for calls of models, which reuses connections and keeps no other state."""

import aiohttp

from shared.tracing import is_tracing, trace_answer, trace_failure, trace_request

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
        trace_configs=trace_configs(),
    )


def trace_configs() -> list[aiohttp.TraceConfig]:
    """Return what traces the requests of a session; nothing where nothing is traced."""
    if not is_tracing():
        return []
    config = aiohttp.TraceConfig()
    config.on_request_start.append(trace_request)
    config.on_request_end.append(trace_answer)
    config.on_request_exception.append(trace_failure)
    return [config]
