"""Storing what running turns have said so far: those of all turns of this process together, in few transactions."""

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from backend.conversations.domain.responses import Checkpoint
from backend.conversations.ports.conversations import TurnStore
from backend.foundation.services.supervision import Supervisor, result_or_error, stop_task
from backend.openai_api.domain.output_items import characters_in
from shared.errors import Unavailable

CHECKPOINT_SECONDS = 0.5
CHECKPOINT_CHARACTERS_A_SECOND = 32_768
"""Each checkpoint writes the whole output again. The pause after a long one grows, so that a turn writes no more than
this on average; for all but the longest answers it stays at `CHECKPOINT_SECONDS`."""

CHECKPOINTS_AT_ONCE = 100
CHARACTERS_AT_ONCE = 2_000_000
"""Bounds of a transaction, for which the ends of turns may have to wait."""


class CheckpointSource(Protocol):
    """A running turn."""

    def new_checkpoint(self) -> Checkpoint | None:
        """Return the output so far, None where it is stored already."""
        ...

    def note_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Note that a checkpoint was stored."""
        ...

    def note_taken(self) -> None:
        """Note that it was refused, because the turn has ended, or another process has taken it over."""
        ...


@dataclass(eq=False)
class _Followed:
    source: CheckpointSource
    due_at: float


@dataclass(frozen=True)
class _Taken:
    followed: _Followed
    checkpoint: Checkpoint
    characters: int


class CheckpointWriter:
    """Stores the checkpoints of the turns that it follows; `start` begins, `stop` ends it.

    One is stored after the other: what is under way already is not stored twice.
    """

    def __init__(self, turns: TurnStore, background: Supervisor, seconds: float = CHECKPOINT_SECONDS) -> None:
        self._turns = turns
        self._background = background
        self._seconds = seconds
        self._followed: dict[int, _Followed] = {}
        self._task: asyncio.Task[None] | None = None
        self._storing = asyncio.Lock()

    def start(self) -> None:
        """Begin to store, in a task of its own."""
        self._task = self._background.start("checkpoints", self.store_due, self._seconds)

    async def stop(self) -> None:
        """End the task."""
        await stop_task(self._task)

    @contextmanager
    def following(self, source: CheckpointSource) -> Generator[None]:
        """Store checkpoints of a turn while the block runs."""
        followed = _Followed(source, 0.0)
        self._followed[id(followed)] = followed
        try:
            yield
        finally:
            del self._followed[id(followed)]

    async def store_due(self) -> None:
        """Store what is new in the turns whose pause is over.

        Raises:
            Unavailable: the database is away. What could not be stored is due again at once.
        """
        async with self._storing:
            now = asyncio.get_running_loop().time()
            due = [followed for followed in self._followed.values() if followed.due_at <= now]
            for group in _groups(self._take(due)):
                await self._store(group)

    async def store(self, source: CheckpointSource) -> None:
        """Store the checkpoint of one turn now; where the database is away, it is due as all others are."""
        async with self._storing:
            mine = [followed for followed in self._followed.values() if followed.source is source]
            for group in _groups(self._take(mine)):
                await self._background.attempt("checkpoints", partial(self._store, group))

    def _take(self, due: Iterable[_Followed]) -> Generator[_Taken]:
        for followed in due:
            if id(followed) not in self._followed:
                continue
            checkpoint = followed.source.new_checkpoint()
            if checkpoint is not None:
                yield _Taken(followed, checkpoint, characters_in(checkpoint.output))

    async def _store(self, group: list[_Taken]) -> None:
        """Store a group; where it is refused, each for itself, so that one turn's does not hold up the others'."""
        refused = await result_or_error(self._turns.checkpoint_many([taken.checkpoint for taken in group]))
        if isinstance(refused, Unavailable):
            raise refused
        if not isinstance(refused, BaseException):
            for taken in group:
                self._note(taken, refused)
        elif len(group) > 1:
            for taken in group:
                await self._store([taken])
        else:
            self._background.report("checkpoints", refused)
            self._note(group[0], frozenset())

    def _note(self, taken: _Taken, refused: frozenset[str]) -> None:
        if taken.checkpoint.hold.response_id in refused:
            taken.followed.source.note_taken()
            return
        pause_seconds = taken.characters / CHECKPOINT_CHARACTERS_A_SECOND
        taken.followed.due_at = asyncio.get_running_loop().time() + pause_seconds
        taken.followed.source.note_checkpoint(taken.checkpoint)


def _groups(taken: Iterable[_Taken]) -> Generator[list[_Taken]]:
    """Cut into groups within the bounds; a checkpoint that is larger than they are is a group for itself."""
    group: list[_Taken] = []
    characters = 0
    for each in taken:
        is_full = len(group) == CHECKPOINTS_AT_ONCE or characters + each.characters > CHARACTERS_AT_ONCE
        if group and is_full:
            yield group
            group, characters = [], 0
        group.append(each)
        characters += each.characters
    if group:
        yield group
