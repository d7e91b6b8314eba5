"""The load of a run: actors who talk, come back, cancel, repeat, write and send rubbish until told to stop."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from tests.chaos.archivist import keep_archive
from tests.chaos.cluster import ADMIN_KEY, REPLICAS, Cluster
from tests.chaos.hostile import send_rubbish
from tests.chaos.librarian import keep_library
from tests.chaos.talks import repeat_with_keys, talk_on
from tests.chaos.world import World

OWNER, TALKER, REPEATER, LIBRARIAN, RESTRICTED, STRANGER = "olga", "ann", "ron", "lib", "rita", "mallory"
MEMBERS = {"shared": {TALKER: "reader", LIBRARIAN: "editor"}, "restricted": {RESTRICTED: "restricted_analyst"}}
OWNERS = {"shared": OWNER, "restricted": OWNER, "hostile": STRANGER}
REPEATERS = 2
TEXT = "# Harbour\n\nThe tide turns at nine, and pilots board at the outer buoy. Berth four is for ferries.\n"
STOP_SECONDS = 60.0
"""Within this after the last fault every call has been answered and every stream has ended."""


async def new_world(cluster: Cluster, seed: int) -> World:
    """Make users, bases and a document; the cluster must be whole."""
    async with httpx2.AsyncClient(base_url=cluster.replica_urls[REPLICAS[0]], timeout=60, trust_env=False) as http:
        keys = {user: await _new_key(http, user) for user in (OWNER, TALKER, REPEATER, LIBRARIAN, RESTRICTED, STRANGER)}
        bases = {name: await _new_base(http, keys[owner], name) for name, owner in OWNERS.items()}
        for name, roles in MEMBERS.items():
            for user, role in roles.items():
                path = f"/v1/knowledge_bases/{bases[name]}/members/{user}"
                await _sent(http, "PUT", path, keys[OWNERS[name]], json={"role": role})
    return World(cluster.replica_urls, keys, bases, seed)


@asynccontextmanager
async def under_load(world: World, talkers: int) -> AsyncGenerator[None]:
    """Let all actors act; at the end tell them to stop, and wait for that."""
    actors = {
        **{f"talker-{place}": talk_on(world, f"talker-{place}", TALKER) for place in range(talkers)},
        "restricted": talk_on(world, "restricted", RESTRICTED, is_restricted=True),
        **{f"repeater-{place}": repeat_with_keys(world, f"repeater-{place}", REPEATER) for place in range(REPEATERS)},
        "librarian": keep_library(world, "librarian", LIBRARIAN),
        "archivist": keep_archive(world, "archivist", LIBRARIAN),
        "stranger": send_rubbish(world, "stranger", STRANGER),
    }
    world.stopped.clear()
    async with asyncio.TaskGroup() as group:
        acting = [group.create_task(actor, name=name) for name, actor in actors.items()]
        yield
        world.stopped.set()
        _, late = await asyncio.wait(acting, timeout=STOP_SECONDS)
        if late:
            world.hung += [*world.tally.open_calls(), ", ".join(task.get_name() for task in late)]
        for task in late:
            task.cancel()


async def _new_key(http: httpx2.AsyncClient, user: str) -> str:
    answer = await _sent(http, "POST", "/v1/api_keys", ADMIN_KEY, json={"user_id": user, "role": "user"})
    return answer.json()["key"]


async def _new_base(http: httpx2.AsyncClient, key: str, name: str) -> str:
    answer = await _sent(http, "POST", "/v1/knowledge_bases", key, json={"name": name, "summary": f"All about {name}."})
    base: str = answer.json()["id"]
    await _sent(http, "PUT", f"/v1/knowledge_bases/{base}/documents/harbour.md", key, content=TEXT.encode())
    return base


async def _sent(http: httpx2.AsyncClient, method: str, path: str, key: str, **options: Any) -> httpx2.Response:
    answer = await http.request(method, path, headers={"Authorization": f"Bearer {key}"}, **options)
    answer.raise_for_status()
    return answer
