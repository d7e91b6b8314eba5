"""The processes of a cluster, watched: who ends without being told to is noted and started again."""

import asyncio
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from deploy.demo.children import Child
from tests.chaos.records import Death

POLL_SECONDS = 0.1
AGAIN_SECONDS = 0.5
LOG_LINES = 12
START_REFUSED = 2
"""A service's exit code when the database or Redis is not there at its start; whoever started it tries again."""


@dataclass
class Member:
    """A process and whether it has been ready since its start.

    `excuse` is set while the schedule itself may end it; `is_down` while the schedule has killed it.
    """

    name: str
    child: Child
    is_ready: Callable[[], bool]
    may_refuse_start: bool = True
    has_been_ready: bool = False
    is_down: bool = False
    excuse: str = ""
    _frozen: list[psutil.Process] = field(default_factory=list[psutil.Process])

    def start(self) -> None:
        """Start it; `watch` notes when it is ready."""
        self.has_been_ready = self.is_down = False
        self.child.start()

    def kill(self) -> None:
        """Kill it at once; it stays down until `start`."""
        self.is_down = True
        self.child.kill()

    def freeze(self) -> None:
        """Stop it and its children."""
        if not self.is_down:
            self._frozen = family(self.child.pid)
            _signal(self._frozen, signal.SIGSTOP)

    def kill_family(self) -> None:
        """Kill it and its children, all of which stand still, so that none of them writes anything more."""
        self.is_down = True
        _signal(self._frozen, signal.SIGKILL)
        self._frozen = []
        self.child.kill()

    def thaw(self) -> None:
        """Let them go on."""
        _signal(self._frozen, signal.SIGCONT)
        self._frozen = []

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return not self.is_down and self.child.exit_code is not None


class Watch:
    """Restarts members that have ended, as an orchestrator would."""

    def __init__(self, members: list[Member]) -> None:
        self.members = members
        self.deaths: list[Death] = []
        self.refused_starts: Counter[str] = Counter()

    async def run(self) -> None:
        """Watch all until cancelled."""
        async with asyncio.TaskGroup() as group:
            for member in self.members:
                group.create_task(self._watch(member))

    async def all_ready(self, timeout_seconds: float) -> None:
        """Return when all are ready; `run` must be running."""
        async with asyncio.timeout(timeout_seconds):
            while not all(member.has_been_ready for member in self.members):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)

    async def _watch(self, member: Member) -> None:
        while True:
            if member.has_ended:
                self._note(member)
                await asyncio.sleep(AGAIN_SECONDS)
                if member.has_ended:
                    member.start()
            elif not member.is_down and not member.has_been_ready:
                member.has_been_ready = await asyncio.to_thread(member.is_ready) and not member.is_down
            await asyncio.sleep(POLL_SECONDS)

    def _note(self, member: Member) -> None:
        code = member.child.exit_code
        if member.may_refuse_start and not member.has_been_ready and code in (1, START_REFUSED):
            self.refused_starts[f"{member.name} ({code})"] += 1
            return
        log = "\n".join(member.child.log_tail().splitlines()[-LOG_LINES:])
        self.deaths.append(Death(member.name, member.child.ending, log, member.excuse))


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants, none when it is gone."""
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _signal(members: list[psutil.Process], number: signal.Signals) -> None:
    for one in members:
        try:
            one.send_signal(number)
        except psutil.NoSuchProcess:
            continue
