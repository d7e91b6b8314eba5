"""The command that moves a tenant, as a process that is killed where a test wants it."""

import asyncio
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.servers.services import service_environment

KILLED = -9
LINES = (
    *("begun", "copy 1:", "copy 1 indexed", "stopped", "last copy"),
    *("held", "arrived", "switched", "routes", "followed"),
)
"""How the lines begin in which the command says how far it is, in their order."""


class Mover:
    """Runs `move-tenant`; `lines` is all that it has said."""

    def __init__(self, tenant: str, cell: str, routes: Path, settings: Mapping[str, str]) -> None:
        self._command = ("-m", "backend", "move-tenant", tenant, "--to", cell)
        self._routes = str(routes)
        self._environment = service_environment(settings)
        self.lines: list[str] = []
        self.kills = 0

    @property
    def ran_on(self) -> int:
        """How many turns ran at the stop that was the last one."""
        return int([found[1] for line in self.lines if (found := re.search(r"stopped, (\d+) turns", line))][-1])

    @property
    def stopped_seconds(self) -> float:
        """How long writes were stopped until the tenant had arrived."""
        said = [found[1] for line in self.lines if (found := re.search(r"writes stopped for ([\d.]+) s", line))]
        return float(said[-1])

    async def run(self, *, until: str = "") -> None:
        """Move on, to the end or until a line that begins so: there the command is killed, if it comes so far."""
        await self._run("--routes", self._routes, until=until)

    async def drop(self) -> None:
        """Drop the old copy."""
        await self._run("--drop")

    async def _run(self, *options: str, until: str = "") -> None:
        child = await asyncio.create_subprocess_exec(
            sys.executable, *self._command, *options, env=self._environment, stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        async for line in child.stdout:
            self.lines.append(line.decode().strip())
            if until and self.lines[-1].startswith(until):
                child.kill()
        code = await child.wait()
        self.kills += code == KILLED
        assert code in (0, KILLED if until else 0), (code, self.lines[-5:])
