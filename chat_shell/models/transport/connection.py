"""The bytes of one answer, with the errors of the connection as ours."""

import asyncio
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

import aiohttp

from shared.errors import ModelProtocolViolated, ModelUnavailable

ERROR_BODY_BYTES = 65_536
ERROR_BODY_SECONDS = 5.0

REQUEST_HEADERS = {
    "Accept": "text/event-stream, application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "ballast",
}

_REQUEST_ID_HEADERS = ("x-request-id", "request-id")
"""OpenAI's name and Anthropic's, in both of which servers with their protocols send it."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id_in(headers: Mapping[str, str]) -> str | None:
    """Return the provider's id of a request; None where it sent none, or something that is no id."""
    given = next((headers[name] for name in _REQUEST_ID_HEADERS if name in headers), "")
    return given if _REQUEST_ID.fullmatch(given) else None


async def await_end_of_body(response: aiohttp.ClientResponse, grace_seconds: float) -> None:
    """Wait a little for the end of the body, so that the connection can be used again."""
    if not response.content.at_eof():
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(grace_seconds):
                await response.content.readany()


async def read_error_body(response: aiohttp.ClientResponse) -> bytes:
    """Read as much of an error's body as classifying needs, and close it; a failure to read it is ignored."""
    body = b""
    try:
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(ERROR_BODY_SECONDS):
                while len(body) < ERROR_BODY_BYTES and (received := await response.content.readany()):
                    body += received
    finally:
        response.close()
    return body


@contextmanager
def connection_errors() -> Generator[None]:
    """Convert errors before the beginning of an answer to ours, whose messages contain no address."""
    try:
        yield
    except aiohttp.ClientHttpProxyError as error:
        raise ModelUnavailable("the proxy on the way to the model's provider refuses the connection") from error
    except (aiohttp.ClientResponseError, aiohttp.ClientPayloadError) as error:
        raise ModelProtocolViolated("the model's provider does not speak HTTP") from error
    except aiohttp.ServerDisconnectedError as error:
        raise ModelUnavailable("the model's provider closed the connection without an answer") from error
    except (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch) as error:
        raise ModelUnavailable("no secure connection to the model's provider") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ModelUnavailable("no connection to the model's provider") from error
