"""What a quiet cluster holds."""

from typing import Any, cast

import asyncpg
import psutil
from redis.asyncio import Redis

from tests.chaos.cluster import Cluster
from tests.chaos.members import family
from tests.chaos.records import Resources
from tests.chaos.schedule import SERVICES

CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
LOG = """
SELECT turn_id, bool_or(kind = 'void'), count(*) FILTER (WHERE kind = 'tool_result') FROM log_entry GROUP BY turn_id
"""
RUNNING = """
SELECT id FROM response WHERE status IN ('queued', 'in_progress')
UNION ALL SELECT file_id FROM attachment WHERE status = 'in_progress'
UNION ALL SELECT id FROM uploaded_file WHERE state = 'removed'
ORDER BY id
"""
"""Turns that run, attached files that wait to be read, and deleted files that wait to be cleared away."""


async def measured(cluster: Cluster) -> Resources:
    """Measure memory and files of the services with their children, and what the stores hold for them."""
    memory: dict[str, float] = {}
    files: dict[str, int] = {}
    for name in SERVICES:
        members = family(cluster.members[name].child.pid)
        memory[name] = sum(_memory_mb(member) for member in members)
        files[name] = sum(_open_files(member) for member in members)
    return Resources(memory, files, (await rows(cluster, CLIENTS))[0][0], await _lasting_keys(cluster))


async def rows(cluster: Cluster, query: str) -> list[Any]:
    """Return a query's rows."""
    connection: Any = await cast(Any, asyncpg).connect(cluster.database_dsn, timeout=10)
    try:
        return await connection.fetch(query, timeout=30)
    finally:
        await connection.close()


async def _lasting_keys(cluster: Cluster) -> int:
    client: Any = cast(Any, Redis).from_url(cluster.valkey.url)
    try:
        return len([key async for key in client.scan_iter(count=1000) if await client.ttl(key) == -1])
    finally:
        await client.aclose()


def _memory_mb(member: psutil.Process) -> float:
    try:
        return member.memory_info().rss / 1e6
    except psutil.Error:
        return 0.0


def _open_files(member: psutil.Process) -> int:
    try:
        return member.num_fds()
    except psutil.Error:
        return 0
