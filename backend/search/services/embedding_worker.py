"""Giving chunks their vectors, beside the requests: documents are found by words before that, and by meaning after.

What is to be embedded stands in the database. Replicas share it: each takes texts for a while, and what a process that
ended has taken is taken again by another.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import ceil
from typing import Protocol

from backend.embeddings.domain import EmbeddingModel, TextKind, Vector
from backend.embeddings.ports import Embedder
from backend.foundation.services.wakeups import Wakeups
from backend.search.domain.tokenizing import tokenize
from backend.search.ports.vectors import ChunkVectors, TextWithoutVector
from shared.clock import Clock
from shared.errors import ModelRequestRejected, Unavailable

TEXTS_AT_ONCE = 32
"""Few enough that a batch takes seconds on a slow model, and that storing it is a short transaction."""

LEASE = timedelta(minutes=2)
"""Longer than a batch and its retries take; what a process that ended has taken waits so long."""

LOOK_SECONDS = 10.0
"""How soon is found what another replica has left."""

SEARCH_SECONDS = 600.0
"""How soon documents are found that the release before has stored, or a process that ended at once after."""

_PACE_BATCHES = 16
"""Over how many of the last batches the pace is measured: some minutes of a slow model."""

_PROBE = "text"
_REFUSES_ALL = "the embedder refuses every text"


class EmbeddingObserver(Protocol):
    """What is told of embedding."""

    def note_embedded(self, outcome: str, count: int) -> None:
        """Chunks were given vectors (`embedded`, or `reused` ones of equal texts), or their texts were `refused`."""
        ...

    def note_waiting(self, count: int) -> None:
        """So many chunks wait for a vector."""
        ...

    def cannot_store(self, missing: str) -> None:
        """The database lacks something, so that search is by words alone."""
        ...


class ChangedBases:
    """The bases that this process has changed since it looked last."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._wakeups = Wakeups()

    def note(self, base_id: str) -> None:
        """Have a base looked at, at once."""
        self._ids.add(base_id)
        self._wakeups.note()

    def take(self) -> set[str]:
        """Return the bases that were noted, and forget them."""
        ids, self._ids = self._ids, set()
        return ids

    async def wait_within(self, seconds: float) -> bool:
        """Wait until a base is noted; return whether one was in time."""
        return bool(self._ids) or await self._wakeups.wait_within(seconds)


class EmbeddingPace:
    """The speed at which this process has embedded the last batches, and an estimate of the time that remains."""

    def __init__(self) -> None:
        self._batches = deque[tuple[int, float]](maxlen=_PACE_BATCHES)

    def note(self, tokens: int, seconds: float) -> None:
        """Note a batch: how many index tokens were given vectors, and how long it took: long chunks take longer."""
        self._batches.append((tokens, seconds))

    def seconds_for(self, tokens: int) -> int | None:
        """Return how long chunks of so many tokens take, rounded up; None before anything was measured."""
        if not tokens:
            return 0
        made = sum(count for count, _ in self._batches)
        return max(ceil(tokens * sum(seconds for _, seconds in self._batches) / made), 1) if made else None


@dataclass
class _Batch:
    """Texts that this process has taken, and what has become of them: made, refused for good, or neither."""

    texts: Sequence[TextWithoutVector]
    made: list[tuple[TextWithoutVector, Vector]] = field(default_factory=list[tuple[TextWithoutVector, Vector]])
    refused: Sequence[TextWithoutVector] = ()

    @property
    def left(self) -> list[TextWithoutVector]:
        """The texts that are to be taken again."""
        settled = {text.digest for text, _ in self.made} | {text.digest for text in self.refused}
        return [text for text in self.texts if text.digest not in settled]


class EmbeddingWorker:
    """Embeds what waits, and deletes vectors that nothing needs; without an embedder it does the latter alone.

    What an embedder has made is kept until it is stored: an outage of the database lets nothing be made again.
    """

    def __init__(
        self,
        vectors: ChunkVectors,
        embedder: Embedder | None,
        changed: ChangedBases,
        observer: EmbeddingObserver,
        clock: Clock,
    ) -> None:
        self._vectors = vectors
        self.embedder = embedder
        self._changed = changed
        self._observer = observer
        self._clock = clock
        self._sought_at: float | None = None
        self._pending: set[str] = set()
        self._model: EmbeddingModel | None = None
        self._batch: _Batch | None = None
        self.pace = EmbeddingPace()

    async def step(self) -> None:
        """Do all that is to be done, then wait for a change; a failure is tried again after a pause of the caller's.

        Raises:
            Unavailable: the embedder or the database is away.
            ModelRequestRejected: the embedder refuses texts of ours.
        """
        self._pending |= self._changed.take()
        if self.embedder is None:
            await self._vectors.sweep(None, keeps_reusable=False)
        else:
            await self._work(self.embedder, self._pending)
        self._pending = set()
        await self._changed.wait_within(LOOK_SECONDS if self.embedder is not None else SEARCH_SECONDS)

    async def _work(self, embedder: Embedder, base_ids: set[str]) -> None:
        missing = await self._vectors.find_missing()
        if missing is not None:
            self._observer.cannot_store(missing)
            return
        try:
            has_changed = await self._embed_all(embedder, base_ids)
        except (Unavailable, ModelRequestRejected):
            await self._vectors.sweep(self._model)  # what is to go does not wait for an embedder
            raise
        if has_changed or base_ids:
            await self._vectors.sweep(self._model)
            await self._vectors.upkeep()

    async def _embed_all(self, embedder: Embedder, base_ids: set[str]) -> bool:
        """Embed what waits; return whether anything did."""
        self._model = model = await embedder.model()
        await self._settle(model)
        await embedder.prepare()
        await self._discover(model, base_ids)
        self._observer.note_waiting(await self._vectors.count_waiting(model))
        has_embedded = False
        while await self._embed_some(embedder, model):
            has_embedded = True
            changed = self._changed.take()
            self._pending |= changed
            await self._discover(model, changed)
        return has_embedded

    async def _discover(self, model: EmbeddingModel, base_ids: set[str]) -> None:
        now = self._clock.now().timestamp()
        if self._sought_at is None or now - self._sought_at >= SEARCH_SECONDS:
            await self._vectors.discover(model)
            await self._vectors.sweep(model)
            self._sought_at = now
            return
        for base_id in sorted(base_ids):
            await self._vectors.discover(model, base_id)

    async def _embed_some(self, embedder: Embedder, model: EmbeddingModel) -> bool:
        """Embed a batch; return whether there was one."""
        taken = await self._vectors.take_unembedded(model, TEXTS_AT_ONCE, LEASE)
        if taken.reused:
            self._observer.note_embedded("reused", taken.reused)
        if taken.texts:
            # Neighbours of one length: a model pads what it embeds together to the longest.
            self._batch = batch = _Batch(sorted(taken.texts, key=lambda text: len(text.text)))
            began = self._clock.now()
            try:
                await self._embed(embedder, batch)
            except Unavailable:
                self._observer.note_embedded("failed", len(batch.left))
                await self._settle(model)
                raise
            await self._settle(model)
            made = sum(len(text.places) * max(len(tokenize(text.text)), 1) for text, _ in batch.made)
            self.pace.note(made, (self._clock.now() - began).total_seconds())
            self._observer.note_waiting(await self._vectors.count_waiting(model))
        return bool(taken.texts or taken.reused)

    async def _settle(self, model: EmbeddingModel) -> None:
        """Store what has become of a batch; where the database is away, the next step does it."""
        batch = self._batch
        if batch is None:
            return
        if batch.made:
            self._observer.note_embedded("embedded", await self._vectors.put(model, batch.made))
        if batch.refused:
            await self._vectors.refuse(model, batch.refused)
            self._observer.note_embedded("refused", sum(len(text.places) for text in batch.refused))
        if batch.left:
            await self._vectors.give_back(batch.left)
        self._batch = None

    async def _embed(self, embedder: Embedder, batch: _Batch) -> None:
        try:
            found = await embedder.embed([text.text for text in batch.texts], TextKind.PASSAGE)
        except ModelRequestRejected:
            await self._embed_singly(embedder, batch)
        else:
            batch.made = list(zip(batch.texts, found, strict=True))

    async def _embed_singly(self, embedder: Embedder, batch: _Batch) -> None:
        """Find out which texts of a batch are refused; an embedder that refuses everything is one that is away."""
        refused: list[TextWithoutVector] = []
        for text in batch.texts:
            try:
                found = await embedder.embed([text.text], TextKind.PASSAGE)
            except ModelRequestRejected:
                refused.append(text)
            else:
                batch.made.append((text, found[0]))
        if refused:
            await self._require_working(embedder)
            batch.refused = refused

    async def _require_working(self, embedder: Embedder) -> None:
        try:
            await embedder.embed([_PROBE], TextKind.PASSAGE)
        except ModelRequestRejected as error:
            raise Unavailable(_REFUSES_ALL) from error
