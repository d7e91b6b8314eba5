"""What it costs to recognise a client by the history that it resends."""

import asyncio
import time
from pathlib import Path
from typing import Any

from backend.conversations.domain.history_fingerprint import boundaries_cooperatively, root_fingerprint
from backend.conversations.domain.responses import SettingsDigest
from backend.conversations.domain.turn_input import ParsedInput, read_items
from backend.conversations.sql.turns import SqlTurnStore
from backend.foundation.domain.json_objects import result_of
from backend.foundation.sql.chosen import open_database
from backend.migrations.migrate import migrate
from tests.bench.figures import Figure, percentile
from tests.fakes.openai_house import ADA
from tests.unit.backend.conversations.samples import parse_items

MESSAGES = 200
GOAL_MILLISECONDS = 3
MOST_ITEMS = 2_000
LONGEST_CHARACTERS = 16_000_000
GOAL_STEP_MILLISECONDS = 50
ROUNDS = 41
RAN_WITH = SettingsDigest("header", "bases")


def recognising_figures(directory: Path) -> list[Figure]:
    """Measure a history of a long conversation as a whole, and the longest step over the longest input."""
    return asyncio.run(_figures(directory))


async def _figures(directory: Path) -> list[Figure]:
    database = open_database(f"sqlite+aiosqlite:///{directory}/recognising.db")
    try:
        await migrate(database)
        whole, looked_up = await _seconds(SqlTurnStore(database))
    finally:
        await database.close()
    history = f"a history of {MESSAGES} messages"
    steps = {
        f"{MOST_ITEMS:,} items": _longest_step(_items(MOST_ITEMS - 1, 400)),
        f"a text of {LONGEST_CHARACTERS // 1_000_000} M characters": _longest_step(_items(2, LONGEST_CHARACTERS)),
    }
    return [
        Figure(
            f"recognising {history}, hashes and SQLite, p50", percentile(whole, 0.5) * 1000, "ms", GOAL_MILLISECONDS
        ),
        Figure(f". of it the statement, {history}, p50", percentile(looked_up, 0.5) * 1000, "ms", None),
        *[
            Figure(f"longest step of hashing {what}", seconds * 1000, "ms", GOAL_STEP_MILLISECONDS)
            for what, seconds in steps.items()
        ],
    ]


async def _seconds(store: SqlTurnStore) -> tuple[list[float], list[float]]:
    read = _read(_items(MESSAGES, 400))
    root = root_fingerprint(ADA.tenant, ADA.user_id)
    whole, looked_up = list[float](), list[float]()
    for _ in range(ROUNDS):
        began_at = time.perf_counter()
        boundaries = result_of(boundaries_cooperatively(root, read.history))
        hashed_at = time.perf_counter()
        await store.newest_seen([each.digest for each in boundaries], RAN_WITH)
        whole.append(time.perf_counter() - began_at)
        looked_up.append(time.perf_counter() - hashed_at)
    return whole, looked_up


def _longest_step(items: list[dict[str, Any]]) -> float:
    longest = 0.0
    steps = boundaries_cooperatively(root_fingerprint(ADA.tenant, ADA.user_id), _read(items).history)
    while True:
        began_at = time.perf_counter()
        try:
            next(steps)
        except StopIteration:
            return max(longest, time.perf_counter() - began_at)
        longest = max(longest, time.perf_counter() - began_at)


def _read(items: list[dict[str, Any]]) -> ParsedInput:
    return read_items(parse_items(items, "input"), ())


def _items(count: int, characters: int) -> list[dict[str, Any]]:
    """Make a history of so many messages, and a question behind it."""
    said = [
        {"role": "assistant" if place % 2 else "user", "content": f"{place} " + "潮水 turns " * (characters // 9)}
        for place in range(count // 2 * 2)
    ]
    return [*said, {"role": "user", "content": "And now?"}]
