"""The streams of `Connect` to all replicas of chat_shell: one to each, found by asking until they repeat."""

import asyncio
from collections.abc import Callable

import grpc
import grpc.aio

from backend.chat_shell_client.grpc_channels import CurrentChannel, LentChannel
from backend.chat_shell_client.refusals import NO_ANSWER, SHUTS_DOWN, UNREACHABLE, ReplicaDraining
from backend.chat_shell_client.shell_link import ShellLink
from backend.foundation.services.supervision import Supervisor, is_set_within, stop_task
from protos.execution.v1 import chat_shell_pb2
from shared.errors import BallastError, ChatShellUnavailable

PAUSE_SECONDS, LOOK_SECONDS = 0.2, 15.0
"""The least and the longest time between two looks for replicas; it doubles while none has come."""

HELLO_SECONDS = 5.0

CALLS_ONLY = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED)
"""What is said of a stream by a replica of the release before, and by one that has as many open as it may."""

Missed = grpc.aio.AioRpcError | BallastError
Found = ShellLink | Missed | None


class ReplicaLinks:
    """Keeps a link to each replica that a channel reaches, in a task that begins with the first turn.

    `error_of` returns what to raise where no stream could be opened.
    """

    def __init__(
        self,
        channels: CurrentChannel,
        metadata: tuple[tuple[str, str], ...],
        max_message_bytes: int,
        supervisor: Supervisor,
        error_of: Callable[[grpc.aio.AioRpcError], BallastError],
    ) -> None:
        self._channels = channels
        self._metadata = metadata
        self._max_message_bytes = max_message_bytes
        self._supervisor = supervisor
        self._error_of = error_of
        self._keeping: asyncio.Task[None] | None = None
        self._is_asked = asyncio.Event()
        self._waiting: list[asyncio.Future[Missed | None]] = []
        self._links: dict[ShellLink, None] = {}  # in their order, which decides between equals
        self._by_call = 0
        """How many replicas that take turns by calls of their own alone answered in the last look."""

    async def choose(self) -> ShellLink | None:
        """Return the link with the fewest turns; None where a replica of the release before has fewer.

        Raises:
            BallastError: no replica was reached, or all of them shut down.
        """
        while True:
            connection = await self._channels.current()
            links = self._links_of(connection)
            if not links and not self._by_call:
                # All of them go. Where all replicas are behind one address, only another channel reaches another one.
                connection.is_left |= any(link.connection is connection for link in self._links)
                await self._find()
                continue
            best = min(links, key=lambda link: link.running, default=None)
            calls = connection.calls - sum(link.connection is connection for link in self._links)
            return best if best is not None and best.running * self._by_call <= calls else None

    async def close(self) -> None:
        """End all streams, and with them the turns that run."""
        await stop_task(self._keeping)

    def _links_of(self, connection: LentChannel) -> list[ShellLink]:
        """Return the links that take turns; those over a channel that was replaced do so until there are others."""
        taking = [link for link in self._links if link.takes_turns]
        current = [link for link in taking if link.connection is connection]
        if len(current) == len(taking):
            return taking
        self._is_asked.set()
        for link in taking if current else ():
            if link.connection is not connection:
                link.send_away()
        return current or taking

    async def _find(self) -> None:
        """Wait until a replica was found, which may be gone again by then.

        Raises:
            BallastError: none was reached, all of them shut down, or this is closed.
        """
        if self._keeping is not None and self._keeping.done():
            raise ChatShellUnavailable(UNREACHABLE)
        found: asyncio.Future[Missed | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(found)
        self._is_asked.set()
        if self._keeping is None:
            self._keeping = self._supervisor.start("chat_shell_links", self._keep)
        missed = await found
        if isinstance(missed, BallastError):
            raise type(missed)(missed.message)
        if missed is not None:
            raise self._error_of(missed)

    def _tell(self, missed: Missed | None) -> None:
        waiting, self._waiting = self._waiting, []
        for found in waiting:
            if not found.done():
                found.set_result(missed)

    async def _keep(self) -> None:
        """Look for replicas again and again, and carry the links to those that were found."""
        try:
            async with asyncio.TaskGroup() as group:
                pause = PAUSE_SECONDS
                while True:
                    self._is_asked.clear()
                    pause = PAUSE_SECONDS if await self._look(group) else min(2 * pause, LOOK_SECONDS)
                    await asyncio.sleep(PAUSE_SECONDS)
                    await is_set_within(self._is_asked, pause)
        finally:
            self._tell(ChatShellUnavailable(UNREACHABLE))

    async def _look(self, group: asyncio.TaskGroup) -> bool:
        """Open streams until none of as many in a row as there are replicas was new; return whether any was."""
        by_call = again = 0
        before = set(self._links)
        found: Found = None
        while again < max(1, by_call + self._known):
            opened: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
            group.create_task(self._open(opened))
            found = await asyncio.shield(opened)  # a cancelled look leaves the stream's answer to be given
            again = 0 if isinstance(found, ShellLink) else again + 1
            if isinstance(found, grpc.aio.AioRpcError) and found.code() in CALLS_ONLY:
                by_call += 1
            elif isinstance(found, Missed) and not isinstance(found, ReplicaDraining):
                break
            if self._known:
                self._tell(None)
        self._by_call = by_call
        self._tell(found if isinstance(found, Missed) and not by_call and not self._known else None)
        return not self._links.keys() <= before

    @property
    def _known(self) -> int:
        return sum(link.takes_turns for link in self._links)

    async def _open(self, opened: asyncio.Future[Found]) -> None:
        """Open a stream, tell which link it is, and carry that; there is none to a replica that has another one."""
        async with self._channels.lend() as connection:
            call = connection.stub.Connect(metadata=self._metadata)
            try:
                async with asyncio.timeout(HELLO_SECONDS):
                    first = await call.read()
            except TimeoutError:
                opened.set_result(ChatShellUnavailable(NO_ANSWER))
                return
            except grpc.aio.AioRpcError as error:
                opened.set_result(error)
                return
            if not isinstance(first, chat_shell_pb2.FromShell) or first.HasField("go_away"):
                connection.is_left |= not self._known
                call.cancel()
                opened.set_result(ReplicaDraining(SHUTS_DOWN))
            elif any(link.is_to(first.hello.replica, connection) for link in self._links):
                call.cancel()
                opened.set_result(None)
            else:
                await self._carry(ShellLink(call, connection, first.hello, self._max_message_bytes), opened)

    async def _carry(self, link: ShellLink, opened: asyncio.Future[Found]) -> None:
        self._links[link] = None
        opened.set_result(link)
        try:
            await link.carry()
        finally:
            del self._links[link]
            link.connection.is_left |= link.is_silent  # no new channel is made to a replica that stands still
            self._is_asked.set()
