"""Pods: real processes that come and go as a Deployment makes them, one more before one less."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.rehearsal.service_proxy import ServiceProxy
from tests.servers.ports import free_port
from tests.servers.services import Launch, RunningService

REMOVED_AFTER_SECONDS = 1.0
PRE_STOP_SECONDS = 5.0
"""When the proxy hears that a pod goes, and when the pod's process does: half the time that the manifests give, which
is enough for whoever was connected just before, and has yet to finish their handshake on a busy machine."""


@dataclass(frozen=True)
class Pod:
    """One process, and the ports by which the Services reach it."""

    service: RunningService
    ports: Mapping[str, int]


@dataclass
class Deployment:
    """A service in several pods; `proxies` stand before its ports, by the settings that name these, HTTP first."""

    module: str
    launch: Launch
    directory: Path
    settings: Mapping[str, str]
    proxies: Mapping[str, ServiceProxy]
    pods: list[Pod] = field(default_factory=list[Pod])
    exit_codes: list[int] = field(default_factory=list[int])
    _numbers: "count[int]" = field(default_factory=count)

    async def scale_up(self) -> None:
        """Add a pod, and tell the proxies of it once it is ready."""
        place = self.directory / f"{self.module}-{next(self._numbers)}"
        place.mkdir(parents=True)
        ports = {name: free_port() for name in self.proxies}
        settings = {**self.settings, **{name: str(port) for name, port in ports.items()}}
        url = f"https://127.0.0.1:{next(iter(ports.values()))}/readyz"
        service = self.launch(self.module, settings=settings, directory=place, ready_url=url)
        await asyncio.to_thread(service.wait_ready)
        self.pods.append(Pod(service, ports))
        for name, port in ports.items():
            self.proxies[name].add(port)

    async def roll(self) -> None:
        """Replace every pod; those that go end beside each other, as long as their turns take."""
        async with asyncio.TaskGroup() as group:
            for pod in list(self.pods):
                await self.scale_up()
                group.create_task(self._end(pod))

    async def _end(self, pod: Pod) -> None:
        self.pods.remove(pod)
        await asyncio.sleep(REMOVED_AFTER_SECONDS)
        for name, port in pod.ports.items():
            self.proxies[name].remove(port)
        await asyncio.sleep(PRE_STOP_SECONDS - REMOVED_AFTER_SECONDS)
        self.exit_codes.append(await asyncio.to_thread(pod.service.stop, 120))
