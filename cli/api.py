"""The public API of the backend as commands call it, with errors that say what mends them."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlsplit

import httpx2

from cli.advice import ExitCode
from cli.answers import Answer, json_object, objects_at, part_at, text_at
from cli.connection import Connection
from cli.failures import CommandFailed, RequestRefused
from shared.outgoing import LOOPBACK_HOSTS

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 150.0
"""Longer than the backend reads a document."""
_QUIET_SECONDS = 60.0
"""Longer than the pause between two heartbeats of a stream."""

_ATTEMPTS = 4
_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_PAGE_ITEMS = 100
_FILE_PIECE_BYTES = 65_536

_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (httpx2.ConnectError, "nobody listens there"),
    (httpx2.TimeoutException, "it gives no answer in time"),
    (httpx2.ProtocolError, "what answers there does not speak HTTP"),
    (httpx2.NetworkError, "the connection breaks"),
)

Parameters = Mapping[str, str | int]


def _causes_of(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def segment(name: str) -> str:
    """Return a name as a part of a path; a `/` in it parts no path."""
    return quote(name, safe="")


class Api:
    """The backend, called with one key; to be used in an `async with`."""

    def __init__(self, connection: Connection):
        self._url = connection.url
        self._client = httpx2.AsyncClient(
            base_url=connection.url,
            headers={"Authorization": f"Bearer {connection.key}"} if connection.key else {},
            timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            transport=connection.transport,
            trust_env=urlsplit(connection.url).hostname not in LOOPBACK_HOSTS,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def call(
        self, method: str, path: str, body: Answer | None = None, parameters: Parameters | None = None
    ) -> Answer:
        """Call it and return its JSON answer.

        Raises:
            CommandFailed: nobody answers, or not as the backend does.
            RequestRefused: an answer of 400 and above.
        """
        return self._read(await self._send(self._client.build_request(method, path, json=body, params=parameters)))

    async def raw(self, path: str) -> httpx2.Response:
        """Get a path, whatever the answer is.

        Raises:
            CommandFailed: nobody answers.
        """
        return await self._send(self._client.build_request("GET", path))

    async def items(self, path: str, parameters: Parameters | None = None) -> AsyncGenerator[Answer]:
        """Yield the items of a list, page by page."""
        wanted: dict[str, str | int] = {"limit": _PAGE_ITEMS, **(parameters or {})}
        while True:
            page = await self.call("GET", path, parameters=wanted)
            for item in objects_at(page, "data"):
                yield item
            if not page.get("has_more"):
                return
            wanted["after"] = text_at(page, "last_id")

    async def put_file(self, path: str, file: Path) -> Answer:
        """Send a file as the body; tried again while the backend is busy or the connection breaks."""
        for attempt in range(1, _ATTEMPTS + 1):
            found = await asyncio.to_thread(file.stat)
            headers = {
                "Content-Length": str(found.st_size),
                "Last-Modified": formatdate(found.st_mtime, usegmt=True),
            }
            request = self._client.build_request("PUT", path, content=_pieces(file), headers=headers)
            try:
                answer = await self._send(request)
            except CommandFailed:
                if attempt == _ATTEMPTS:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS * attempt)
                continue
            if answer.status_code not in (429, 503) or attempt == _ATTEMPTS:
                return self._read(answer)
            await asyncio.sleep(_pause_seconds(answer))
        raise AssertionError("the last attempt returns or raises")

    async def events(self, method: str, path: str, body: Answer | None = None) -> AsyncGenerator[Answer]:
        """Yield the events of a stream.

        Raises:
            CommandFailed: nobody answers, or the stream breaks.
            RequestRefused: an answer of 400 and above.
        """
        timeout = httpx2.Timeout(_QUIET_SECONDS, connect=_CONNECT_SECONDS)
        try:
            async with self._client.stream(method, path, json=body, timeout=timeout) as answer:
                if answer.status_code >= 400:
                    await answer.aread()
                    self._read(answer)
                async for event in httpx2.EventSource(answer, max_event_size=None):
                    if event.data.startswith("{"):
                        yield json_object(json.loads(event.data))
        except (httpx2.RequestError, ValueError) as error:
            raise self._unreachable(error) from None

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._client.send(request)
        except httpx2.RequestError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> CommandFailed:
        why = next((said for kind, said in _REASONS if isinstance(error, kind)), type(error).__name__)
        if any(isinstance(cause, socket.gaierror) for cause in _causes_of(error)):
            why = "no machine of this name is known"
        return CommandFailed(
            f"{self._url} cannot be reached: {why}",
            ExitCode.UNREACHABLE,
            "start the backend (`make run`), or set BALLAST_URL to its address",
        )

    def _read(self, answer: httpx2.Response) -> Answer:
        """Read an answer; that of a backend says what kind of object it is, which hardly another program does."""
        try:
            body = json_object(answer.json())
        except ValueError:
            raise self._stranger(answer) from None
        if answer.status_code < 400:
            if not text_at(body, "object"):
                raise self._stranger(answer)
            return body
        error = part_at(body, "error")
        if not error:
            raise self._stranger(answer)
        path = answer.request.url.path.removeprefix(urlsplit(self._url).path)
        kinds = (text_at(error, "code"), text_at(error, "type"))
        raise RequestRefused(answer.status_code, text_at(error, "message"), kinds=kinds, path=path)

    def _stranger(self, answer: httpx2.Response) -> CommandFailed:
        kind = answer.headers.get("content-type", "no content type")
        return CommandFailed(
            f"{self._url} answers, but not as a backend of Ballast does: {answer.status_code} with {kind}",
            ExitCode.UNREACHABLE,
            "another program has this port, or a proxy answers in its place: set BALLAST_URL to the backend's address",
        )


async def _pieces(file: Path) -> AsyncGenerator[bytes]:
    start = 0
    while piece := await asyncio.to_thread(_piece_of, file, start):
        start += len(piece)
        yield piece


def _piece_of(file: Path, start: int) -> bytes:
    """Read a piece; the file is open no longer than that, so that whoever breaks off leaves none open."""
    with file.open("rb") as opened:
        opened.seek(start)
        return opened.read(_FILE_PIECE_BYTES)


def _pause_seconds(answer: httpx2.Response) -> float:
    asked = answer.headers.get("retry-after", "")
    return min(float(asked), _LONGEST_PAUSE_SECONDS) if asked.isdigit() else _PAUSE_SECONDS
