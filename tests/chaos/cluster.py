"""Two backends and two chat_shells on PostgreSQL and Valkey, each connection through a link that can be broken."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.chaos.disk import DiskUnavailable, SmallDisk
from tests.chaos.members import Member, Watch
from tests.chaos.model import MODEL, ChaosModel
from tests.chaos.proxy import Link
from tests.fakes.model_server import FakeModelServer
from tests.servers.forks import ForkServers
from tests.servers.pgbouncer import PgBouncer
from tests.servers.ports import free_port
from tests.servers.postgres import PostgresServer
from tests.servers.services import RunningService, service_environment
from tests.servers.valkey import ValkeyServer

ADMIN_KEY = "admin-key-of-the-chaos-run"
TOKEN = "service-token-of-the-chaos-run"
REPLICAS = ("backend_1", "backend_2")
TURN_SECONDS = 30
MODEL_IDLE_SECONDS = 6
START_SECONDS = 180
RETENTION_SECONDS = 86_400
"""Events are kept beyond the run: the checks replay them."""


class Cluster:
    """What the faults act on and the load talks to."""

    def __init__(self, directory: Path, forks: ForkServers | None) -> None:
        self.directory = directory
        self.forks = forks
        self.postgres = PostgresServer()
        self.valkey = ValkeyServer()
        self.model = ChaosModel()
        self.ports = {f"{name}_{place}": free_port() for name in ("backend", "grpc", "http") for place in (1, 2)}
        self.disk: SmallDisk | None = None
        self.why_no_disk = "not asked for"
        self.pooler: PgBouncer | None = None
        self.links: dict[str, Link] = {}
        self.members: dict[str, Member] = {}
        self.database = ""
        self.model_server: FakeModelServer

    @property
    def replica_urls(self) -> dict[str, str]:
        """The addresses of the backends."""
        return {name: f"http://127.0.0.1:{self.ports[name]}" for name in REPLICAS}

    @property
    def database_dsn(self) -> str:
        """The database's own address, past the link."""
        return self.postgres.url(self.database, driver="")

    def logs(self) -> dict[str, str]:
        """Return what each service has logged."""
        return {name: member.child.log() for name, member in self.members.items() if name not in ("postgres", "valkey")}

    def mount_disk(self) -> None:
        """Give PostgreSQL a file system of its own, where that is possible."""
        disk = SmallDisk(self.directory / "disk.img", self.postgres.owned_directory)
        try:
            disk.mount()
        except DiskUnavailable as reason:
            self.why_no_disk = str(reason)
        else:
            self.disk = disk

    async def start_stores(self, *, is_pooled: bool = False) -> None:
        """Start both stores and all links; a pooler lends PostgreSQL's sessions where that is wanted."""
        self.postgres.start()
        self.database = self.postgres.new_database()
        self.valkey.start()
        targets = {
            "to_postgres": (self._start_pooler() if is_pooled else self.postgres.port,),
            "to_valkey": (self.valkey.port,),
            "to_chat_shell_grpc": (self.ports["grpc_1"], self.ports["grpc_2"]),
            "to_chat_shell_http": (self.ports["http_1"], self.ports["http_2"]),
            "to_backend": tuple(self.ports[name] for name in REPLICAS),
            "to_model": (int(self.model_server.base_url.split(":")[2].removesuffix("/v1")),),
        }
        for name, ports in targets.items():
            self.links[name] = Link(ports)
            await self.links[name].listen()
        self.members["postgres"] = Member("postgres", self.postgres.child, self.postgres.is_ready)
        self.members["valkey"] = Member("valkey", self.valkey.child, self.valkey.is_ready)

    def _start_pooler(self) -> int:
        self.pooler = PgBouncer(self.postgres.port)
        self.pooler.child.start()
        return self.pooler.port

    def start_services(self) -> None:
        """Start the four services; they are not ready yet."""
        for place in (1, 2):
            self._add(f"chat_shell_{place}", "chat_shell", self._chat_shell_settings(place), f"http_{place}")
        for place in (1, 2):
            self._add(f"backend_{place}", "backend", self._backend_settings(place), f"backend_{place}")

    def _add(self, name: str, module: str, settings: Mapping[str, str], port: str) -> None:
        directory = self.directory / name
        directory.mkdir(parents=True)
        ready_url = f"http://127.0.0.1:{self.ports[port]}/readyz"
        service = RunningService(module, settings=settings, directory=directory, ready_url=ready_url, forks=self.forks)
        self.members[name] = Member(name, service, service.is_ready)
        self.members[name].start()

    def _chat_shell_settings(self, place: int) -> dict[str, str]:
        return {
            "CHAT_SHELL_GRPC_PORT": str(self.ports[f"grpc_{place}"]),
            "CHAT_SHELL_HTTP_PORT": str(self.ports[f"http_{place}"]),
            "CHAT_SHELL_BACKEND_URL": f"http://127.0.0.1:{self.links['to_backend'].port}",
            "CHAT_SHELL_MODEL": MODEL,
            "CHAT_SHELL_MODEL_BASE_URL": f"http://127.0.0.1:{self.links['to_model'].port}/v1",
            "CHAT_SHELL_MODEL_IDLE_TIMEOUT_SECONDS": str(MODEL_IDLE_SECONDS),
            "SERVICE_TOKEN": TOKEN,
        }

    def _backend_settings(self, place: int) -> dict[str, str]:
        database = self.postgres.url(self.database).replace(
            f":{self.postgres.port}/", f":{self.links['to_postgres'].port}/"
        )
        shells = {
            1: f"grpc://127.0.0.1:{self.links['to_chat_shell_grpc'].port}",
            2: f"http://127.0.0.1:{self.links['to_chat_shell_http'].port}",
        }
        return {
            "BACKEND_PORT": str(self.ports[f"backend_{place}"]),
            "BACKEND_CHAT_SHELL_URL": shells[place],
            "BACKEND_DATABASE_URL": database,
            "BACKEND_REDIS_URL": f"redis://127.0.0.1:{self.links['to_valkey'].port}/0",
            "BACKEND_ADMIN_KEY": ADMIN_KEY,
            "BACKEND_SECRET": "secret-of-the-chaos-run",
            "BACKEND_TURN_TIMEOUT_SECONDS": str(TURN_SECONDS),
            "BACKEND_EVENT_RETENTION_SECONDS": str(RETENTION_SECONDS),
            "BACKEND_RESTRICTED_BUDGETS": "conversation=100000,day=100000,month=100000",
            "SERVICE_TOKEN": TOKEN,
        }

    def close(self) -> None:
        """Kill everything and take the file system away."""
        for member in reversed(self.members.values()):
            member.thaw()
            member.kill()
        if self.pooler is not None:
            self.pooler.close()
        if self.disk is not None:
            self.disk.unmount()
        for server in (self.postgres, self.valkey):
            server.close()


@asynccontextmanager
async def running_cluster(
    directory: Path, *, with_disk: bool, is_forked: bool, is_pooled: bool = False
) -> AsyncGenerator[tuple[Cluster, Watch]]:
    """Start a cluster, watched, and wait until all of it is ready."""
    forks = ForkServers(directory, service_environment({})) if is_forked else None
    cluster = Cluster(directory, forks)
    async with AsyncExitStack() as stack:
        if forks is not None:
            stack.enter_context(forks.running)
        cluster.model_server = await stack.enter_async_context(FakeModelServer(cluster.model, models=(MODEL,)))
        if with_disk:
            cluster.mount_disk()
        stack.callback(cluster.close)
        await cluster.start_stores(is_pooled=is_pooled)
        cluster.start_services()
        watch = Watch(list(cluster.members.values()))
        watching = asyncio.create_task(watch.run())
        stack.callback(watching.cancel)
        await watch.all_ready(START_SECONDS)
        yield cluster, watch
