"""The pair on PostgreSQL and Valkey, the way it is deployed: paced streams, their cost and their connections."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import psutil
from sqlalchemy import Connection, text

from backend.foundation.sql.chosen import open_database
from tests.bench.figures import Figure
from tests.bench.pair import BenchPair, bench_pair
from tests.bench.streaming import STREAMS, load
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

DELTAS_A_TURN = 400
PAUSE_MILLISECONDS = 22
MICROSECONDS = 1_000_000


def deployed_figures(directory: Path) -> list[Figure]:
    """Measure one round of paced streams."""
    with ExitStack() as stack:
        postgres, valkey = PostgresServer(), ValkeyServer()
        for server in (postgres, valkey):
            server.start()
            stack.callback(server.close)
        database = postgres.new_database()
        settings = {"BACKEND_DATABASE_URL": postgres.url(database), "BACKEND_REDIS_URL": valkey.url}
        paced = ("--deltas", str(DELTAS_A_TURN), "--delay-ms", str(PAUSE_MILLISECONDS))
        pair = stack.enter_context(bench_pair(directory, paced, settings))
        return _paced_streams(pair, directory, postgres, database)


def _paced_streams(pair: BenchPair, directory: Path, postgres: PostgresServer, database: str) -> list[Figure]:
    load(pair, directory, direct=False, streams=1, total=1)
    pids = {"backend": pair.backend.pid, "chat_shell": pair.chat_shell.pid}
    seconds_before = {name: _cpu_seconds(pid) for name, pid in pids.items()}
    sessions_before = asyncio.run(_sessions(postgres, database))
    load(pair, directory, direct=False, streams=STREAMS, total=STREAMS)
    deltas = STREAMS * DELTAS_A_TURN
    scale = f"{STREAMS} streams at {1000 // PAUSE_MILLISECONDS} deltas/s, PostgreSQL and Valkey"
    figures = [
        Figure(f"CPU a delta, {scale}, {name}", (_cpu_seconds(pid) - before) / deltas * MICROSECONDS, "µs", 80)
        for (name, pid), before in zip(pids.items(), seconds_before.values(), strict=True)
    ]
    opened = asyncio.run(_sessions(postgres, database)) - sessions_before
    return [*figures, Figure(f"database connections opened, {scale}", opened, "", 20)]


def _cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


async def _sessions(postgres: PostgresServer, name: str) -> int:
    """Return how many sessions the database has seen."""

    def count(connection: Connection) -> int:
        found = text("SELECT sessions FROM pg_stat_database WHERE datname = :name")
        return connection.execute(found, {"name": name}).scalar_one()

    database = open_database(postgres.url("postgres"))
    try:
        await asyncio.sleep(1.5)  # sessions count themselves at most once a second
        return await database.read(count)
    finally:
        await database.close()
