"""`python -m tests.bench.sealed_room`: what the sealed room adds to the secondary model's own time, on real text.

The backend is a fake that has 24 chunks and 96 siblings at hand; searching is measured by `make bench`. Each search has
other chunks, so that nothing of theirs has been read before, and is made again for what is remembered.
"""

import asyncio
import random
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from chat_shell.sealed.gate import CodeGate
from chat_shell.sealed.gate.codebook import read_shipped
from chat_shell.sealed.outcome import SealedSearchResult
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.room import LatencyPadding, RoomTimes, SealedRoom
from chat_shell.sealed.summary_prompt import Messages, new_token
from chat_shell.sealed.summary_writer import CanaryCircuit, SummaryWriter
from shared.clock import SystemClock
from shared.models.values import JsonObject
from tests.bench.figures import Figure, percentile, render_table, write_json
from tests.bench.gate import CHUNK_CHARACTERS, CHUNKS, CORPORA, ROOT, chunks_of, protected, reply, rows
from tests.fakes.sealed_room import FakeSealedBackend, RecordingRoomObserver, sealed_search

RESULTS: Path = ROOT / "var" / "bench" / "sealed_room.json"
SEARCHES, SIBLINGS, MODEL_SECONDS = 40, 96, 0.3
BAR_MS = 50
SUMMARY = "Ownership of the reviews is unclear, and the practice differs between teams, so that weaknesses show late."


class SlowModel:
    """A secondary model that takes its time and is honest."""

    name = "slow"

    async def reply(self, messages: Messages, schema: JsonObject | None = None) -> bytes:
        await asyncio.sleep(MODEL_SECONDS)
        return reply(SUMMARY)


async def wait_for_nothing(_seconds: float) -> None:
    """Leave out the padding, which is no work."""


async def added_ms(chunks: Sequence[ProtectedChunk]) -> float:
    """Return the milliseconds of a search beside the model's own."""
    clock = SystemClock()
    found = SealedSearchResult("search", chunks=tuple(chunks[:CHUNKS]), siblings=tuple(chunks[CHUNKS:]))
    circuit = CanaryCircuit(3, clock.now)
    observer, padding = RecordingRoomObserver(), LatencyPadding(wait_for_nothing)
    writer = SummaryWriter(SlowModel(), CodeGate(), circuit, observer, new_token, read_shipped())
    room = SealedRoom(FakeSealedBackend(found), writer, observer, clock.now, padding, RoomTimes(20))
    started = time.perf_counter()
    await room.summarise(sealed_search(deadline=clock.now() + timedelta(seconds=60)))
    return 1000 * (time.perf_counter() - started - MODEL_SECONDS)


async def measure(language: str, texts: Sequence[str], bar: float | None) -> list[Figure]:
    """Search everything twice: unread, then remembered."""
    dice = random.Random(5)
    places = [dice.sample(range(len(texts)), CHUNKS + SIBLINGS) for _ in range(SEARCHES)]
    shown = [[protected(texts[place], place) for place in each] for each in places]
    figures: list[Figure] = []
    for state in ("unread", "remembered"):
        added = [await added_ms(chunks) for chunks in shown]
        figures.append(Figure(f"{language}, {state} chunks, added p50", percentile(added, 0.5), "ms", bar))
    return figures


def main() -> None:
    if not CORPORA.exists():
        sys.stdout.write(f"sealed_room: no corpora in {CORPORA}; nothing was measured (set BALLAST_CORPORA).\n")
        return
    english = [chunk for text in rows("handbook-en.jsonl.gz", "text") for chunk in chunks_of(text)]
    chinese = [text[:CHUNK_CHARACTERS] for text in rows("cmrc-zh.jsonl.gz", "context")]
    measured = asyncio.run(measure("English", english, BAR_MS)) + asyncio.run(measure("Chinese", chinese, None))
    write_json(measured, RESULTS)
    print(render_table(measured))


if __name__ == "__main__":
    main()
