"""Runs visits against a real pair, and scans after each batch all that the batch has left anywhere."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path

import httpx2

from tests.fakes.model_server import FakeModelServer
from tests.leaks.bases import OWNER, Base, base_of_case, corpus_base, planted_base
from tests.leaks.coded import list_sentences
from tests.leaks.corpus.reading import Attack, benign_questions
from tests.leaks.embedding import all_embedded, staged_embedder
from tests.leaks.hostile.secondary_server import SecondaryServer
from tests.leaks.hostile.stub import Stub
from tests.leaks.oracle.oracle import Circumstances, Oracle
from tests.leaks.pair import (
    ADMIN_KEY,
    DEFAULT_WAY,
    MODEL,
    LeakPair,
    ModelAddresses,
    MoreSettings,
    Way,
    running_pair,
)
from tests.leaks.planting import chinese_passages, corpora, english_handbook
from tests.leaks.results import Results
from tests.leaks.sinks import LogSink, SinkText, TableSink, metric_texts
from tests.leaks.trials import SEARCHES_A_TURN, Registry, Trial
from tests.leaks.visits import ACT_FOR, Sighting, Visit, Visitor, scan_visit, tellers

AT_ONCE = 4
BATCH = 16
REAL_DOCUMENTS, FEWER_REAL_DOCUMENTS = 40, 6
"""In each language, others at each protocol and database: the gate still remembers what it has read of 40. The local
embedder, which takes some 0.2 s a chunk, gets fewer."""


@dataclass
class Stage:
    """A running pair with restricted bases in it, and all that plays and scans on it."""

    pair: LeakPair
    registry: Registry
    owner: httpx2.AsyncClient
    service: httpx2.AsyncClient
    visitor: Visitor
    bases: Mapping[str, Base]
    oracle: Oracle
    logs: LogSink
    tables: TableSink
    results: Results
    _scanning: asyncio.Task[None] | None = None

    def base_for(self, case: Attack, number: int) -> Base:
        """Return the case's own base, or by turns the corpus and real text in its language."""
        real = self.bases.get(f"real {case.language}")
        return self.bases.get(case.id) or (real if real and number % 2 else self.bases["corpus"])

    def planned(self, case: Attack, number: int, stubs: Sequence[Stub]) -> Visit:
        """Plan a visit in which each of these models answers once."""
        base = self.base_for(case, number)
        document = (case.document or "").rpartition("/")[2]
        wanted = document if document in base.document_ids else None
        trials = [self.registry.new_trial(stub, case, base, wanted) for stub in stubs]
        return self.visitor.planned(case, base, trials)

    async def play(self, visits: Sequence[Visit]) -> None:
        """Play a batch side by side, while the one before is scanned; then read what it has left."""
        turns = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for visit in visits:
                group.create_task(self._play_one(visit, turns))
        await self.scanned()
        self.oracle.add_canaries(self.registry.canaries)
        self.registry.canaries.clear()
        self.results.trials.extend(trial for visit in visits for trial in visit.trials)
        left = [*self.logs.new_texts(), *await self.tables.new_texts(), *await metric_texts(self.pair)]
        self._scanning = asyncio.create_task(asyncio.to_thread(self._scan, visits, left))

    async def scanned(self) -> None:
        """Return when everything that was played has been scanned."""
        if self._scanning is not None:
            await self._scanning
            self._scanning = None

    async def _play_one(self, visit: Visit, turns: asyncio.Semaphore) -> None:
        async with turns:
            await self.visitor.play(visit, _carrier(visit))

    def _scan(self, visits: Sequence[Visit], left: Sequence[SinkText]) -> None:
        seen: list[Sighting] = []
        for visit in visits:
            found = list(scan_visit(visit, self.oracle))
            self.results.take(visit, found)
            seen += found
        given = Circumstances(
            frozenset[str]().union(*(visit.circumstances.shown for visit in visits)),
            tuple(text for visit in visits for text in visit.user_texts),
            tuple(text for visit in visits for text in visit.base.owner_texts),
        )
        self.results.sightings.extend(dict.fromkeys(leaks_in(left, self.oracle, given, tellers(seen))))
        self.results.tables = self.tables.tables


def leaks_in(
    found: Iterable[SinkText], oracle: Oracle, given: Circumstances, told: Mapping[str, Trial]
) -> Iterator[Sighting]:
    """Yield the leaks in texts that belong to no visit alone; `told` are the trials that have told some of them."""
    for text in found:
        for leak in oracle.leaks(text.text, given):
            yield Sighting(text.sink, leak, None, told.get(leak.text))


@asynccontextmanager
async def staged(
    directory: Path,
    cases: Sequence[Attack],
    timeout_seconds: float,
    way: Way = DEFAULT_WAY,
    *,
    with_corpora: bool = False,
    is_gated: bool = True,
) -> AsyncGenerator[Stage]:
    """Start models and pair, store every base that the cases need, and read back what they hold."""
    registry = Registry(way)
    async with (
        FakeModelServer(registry.main_answer, models=(MODEL,)) as main,
        SecondaryServer(registry.secondary_answer) as secondary,
        staged_embedder(way.embedder, directory) as embedder,
    ):
        addresses = ModelAddresses(main.base_url, secondary.base_url)
        more = MoreSettings(backend=embedder)
        async with running_pair(directory, addresses, timeout_seconds, way, is_gated=is_gated, more=more) as pair:
            service_key = await _service_key(pair)
            async with pair.client(service_key, **{ACT_FOR: OWNER}) as owner, pair.client(service_key) as service:
                bases = await _stored(owner, pair, cases)
                if with_corpora and (place := corpora()):
                    count = FEWER_REAL_DOCUMENTS if way.embedder == "local" else REAL_DOCUMENTS
                    bases |= await _stored_corpora(owner, pair, (place, str(way)), count)
                if embedder:
                    await all_embedded(owner, [base.id for base in bases.values()])
                passages = {
                    passage.chunk_id: passage.text for base in bases.values() for passage in base.content.passages
                }
                oracle = Oracle.over(passages, chain.from_iterable(base.secrets for base in bases.values()))
                if way.grade == "strict":
                    oracle.publish(list_sentences())
                registry.is_plain = oracle.is_plain
                visitor = Visitor(registry, service, owner)
                sinks = LogSink(pair), TableSink(pair.database)
                await sinks[1].skip()
                yield Stage(pair, registry, owner, service, visitor, bases, oracle, *sinks, Results())


def plan(stage: Stage, cases: Sequence[Attack], stubs: Sequence[Stub], dice: random.Random) -> Iterator[Visit]:
    """Yield visits without end: all cases in any order, again and again, and in turns the models that answer."""
    deck: list[Stub] = []
    for number in count():
        if number % len(cases) == 0:
            cases = dice.sample(cases, len(cases))
        if len(deck) < SEARCHES_A_TURN:
            deck += dice.sample(stubs, len(stubs))
        hand, deck = deck[:SEARCHES_A_TURN], deck[SEARCHES_A_TURN:]
        yield stage.planned(cases[number % len(cases)], number, hand)


async def play_until(stage: Stage, visits: Iterable[Visit], wanted: int, record: Path | None = None) -> None:
    """Play batches until so many trials count, or all visits are over; keep the results so far in a file."""
    began = time.monotonic()
    coming = iter(visits)
    while len(stage.results.counted) < wanted and (batch := list(islice(coming, BATCH))):
        await stage.play(batch)
        stage.results.seconds = time.monotonic() - began
        if record is not None:
            stage.results.write(record)
        way = batch[0].trials[0].way
        sys.stderr.write(f"{way}: {len(stage.results.counted)} of {wanted} trials, {stage.results.seconds:.0f} s\n")
    await stage.scanned()


async def _service_key(pair: LeakPair) -> str:
    async with pair.client(ADMIN_KEY) as admin:
        answer = await admin.post("/v1/api_keys", json={"user_id": "leak-test", "role": "service"})
    assert answer.status_code == 201, answer.text
    return answer.json()["key"]


async def _stored(owner: httpx2.AsyncClient, pair: LeakPair, cases: Sequence[Attack]) -> dict[str, Base]:
    bases = {"corpus": await corpus_base(owner, pair)}
    for case in cases:
        if _needs_own_base(case):
            bases[case.id] = await base_of_case(owner, pair, case)
    return bases


async def _stored_corpora(
    owner: httpx2.AsyncClient, pair: LeakPair, source: tuple[Path, str], count: int
) -> dict[str, Base]:
    place, seed = source
    pages = list(english_handbook(place, count, seed))
    passages = list(chinese_passages(place, count, seed))
    return {
        "real en": await planted_base(owner, pair, "Handbook", pages),
        "real zh": await planted_base(owner, pair, "合集", passages),
    }


def _needs_own_base(case: Attack) -> bool:
    setup = case.setup
    planted = (setup.plant_in_chunk, setup.plant_in_file_name, setup.base_name, setup.routing_hint)
    return any(planted) or bool(setup.routing_keywords)


def _carrier(visit: Visit) -> str:
    fitting = [question.text for question in benign_questions() if question.language == visit.case.language]
    return fitting[visit.lane.number % len(fitting)]
