"""Every background loop of the backend outlives every error that a driver can raise, and counts it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from time import sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backend.conversations.domain.leases import LeaseTerms
from backend.conversations.domain.responses import Checkpoint, Hold
from backend.files.wiring import build_files
from backend.foundation.redis.commands import RedisClient
from backend.foundation.services.idempotency import OncePerKey
from backend.foundation.services.parts import Part
from backend.identity.services import KeyUses
from backend.identity.wiring import identity_part
from backend.knowledge.services.knowledge_bases import ActiveBases
from backend.knowledge.services.package import KnowledgePackage
from backend.knowledge.wiring import knowledge_loops
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.wiring import RestrictedTerms, build_restricted
from backend.retention.domain import RetentionTerms
from backend.retention.services.sweeping import Retention
from backend.retention.wiring import RetentionPackage
from backend.search.services.embedding_worker import ChangedBases, EmbeddingWorker
from backend.search.telemetry.embedding import CountingEmbeddingObserver
from backend.streams.redis.event_log import RedisEventLog
from backend.streams.redis.presence import ANSWER_SECONDS, RedisPresence
from backend.streams.redis.stop_signals import RedisStopSignals
from backend.turns.services.resume.recover_turn import RecoverTurn
from backend.turns.services.resume.recovery import Recovery
from backend.turns.services.run.checkpoints import CheckpointWriter
from backend.turns.services.run.lease import TurnLease
from backend.use_cases import Backend
from backend.vector_stores.wiring import build_vector_stores
from shared.errors import BallastError
from tests.contract.event_cases import make_events
from tests.fakes.clock import FakeClock
from tests.fakes.driver_errors import all_errors
from tests.fakes.openai_house import TurnHouse
from tests.fakes.supervision import RecordingFailures, make_supervisor
from tests.patience import PATIENCE_SECONDS


class Broken:
    """Stands for a store or a Redis whose every call raises the next error, until all were raised."""

    def __init__(self) -> None:
        self._errors = iter(all_errors())
        self.is_through = asyncio.Event()

    async def fail(self, *_arguments: Any, **_options: Any) -> Any:
        for error in self._errors:
            raise error
        self.is_through.set()
        await asyncio.Event().wait()

    def __getattr__(self, name: str) -> Any:
        return self.fail

    def __len__(self) -> int:
        return 1

    def register_script(self, _script: str) -> Any:
        return self.fail

    def pipeline(self, **_options: object) -> "BrokenPipeline":
        return BrokenPipeline(self)


class BrokenPipeline:
    """Takes commands and fails to send them."""

    def __init__(self, broken: Broken) -> None:
        self.execute = broken.fail

    def __len__(self) -> int:
        return 1

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_arguments, **_options: None


class Speaking:
    """A turn that always has something new."""

    def new_checkpoint(self) -> Checkpoint:
        return Checkpoint(Hold(response_id="resp_a", conversation_id="conv_a", fence=0), (), 1)

    def note_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Note nothing."""

    def note_taken(self) -> None:
        """Note nothing."""


Loop = Callable[[Broken, RecordingFailures], Coroutine[None, None, None]]


class RenewedLease(TurnLease):
    """A lease that has always just been renewed."""

    async def wait_until_renewed(self) -> None:
        """Wait for nothing."""


def backend_over(broken: Any, failures: RecordingFailures) -> Backend:
    """Put together what the loops of the backend need, over stores that are broken."""
    house = TurnHouse(turns_class=lambda _state: broken, waiting_class=lambda _state: broken, failures=failures)
    lease = RenewedLease("replica-1", LeaseTerms(seconds=9.0))
    ports = replace(house.ports, stored=replace(house.ports.stored, lease=lease))
    clock = FakeClock()
    knowledge = KnowledgePackage(Part(()), broken, broken, broken, broken, broken, broken, broken)
    files = build_files(broken, clock, 1, (), make_supervisor(failures))
    terms = RestrictedTerms(RestrictedLimits(conversation=1, day=1, month=1), timedelta(seconds=1), "secret", None)
    active_bases = ActiveBases(broken, clock)
    active_bases.note(["kb_a"])
    embedding = EmbeddingWorker(broken, broken, ChangedBases(), CountingEmbeddingObserver(), clock)
    authenticate = cast(Any, SimpleNamespace(uses=KeyUses(broken)))
    sweeping = Retention(broken, broken, RetentionTerms(timedelta(days=1), None), clock, broken)
    return Backend(
        admission=house.admission,
        readiness=broken,
        once=OncePerKey(broken, clock, "secret"),
        authenticate=authenticate,
        api_keys=broken,
        prompts=broken,
        turns=replace(house.services, rates=cast(Any, SimpleNamespace(step=broken.fail))),
        conversations=cast(Any, SimpleNamespace(part=Part(()), own=broken, withheld=broken)),
        files=files,
        agents=cast(Any, SimpleNamespace(part=Part(()), agents=broken)),
        retention=RetentionPackage(sweeping, broken, broken, broken),
        parts=(
            Part((), knowledge_loops(active_bases, embedding, broken.fail)),
            identity_part(authenticate, broken, broken.fail, broken.fail),
            build_vector_stores(knowledge, files, clock, is_only_replica=False).part,
            build_restricted(broken, clock, knowledge, broken, broken, terms),
        ),
        recovery=Recovery(ports, RecoverTurn(ports, "secret"), house.registry, house.admission),
        supervisor=make_supervisor(failures),
    )


def loop_names() -> list[str]:
    return [loop_name(loop) for loop in backend_over(Broken(), RecordingFailures()).background_loops]


def loop_name(loop: Any) -> str:
    return loop.args[0]


@pytest.mark.parametrize("name", loop_names())
async def test_a_loop_of_the_backend_outlives_every_error(name: str) -> None:
    broken, failures = Broken(), RecordingFailures()
    (loop,) = [each for each in backend_over(broken, failures).background_loops if loop_name(each) == name]
    await check_outlives(name, loop(), broken, failures)


async def checkpoints(broken: Broken, failures: RecordingFailures) -> None:
    storing = CheckpointWriter(cast(Any, broken), make_supervisor(failures), 0.0)
    with storing.following(Speaking()):
        storing.start()
        try:
            await asyncio.Event().wait()
        finally:
            await storing.stop()


async def stop_signals(broken: Broken, failures: RecordingFailures) -> None:
    signals = RedisStopSignals(cast(RedisClient, broken), make_supervisor(failures))
    try:
        await signals.wait("resp_a")
    finally:
        await signals.aclose()


@pytest.mark.parametrize("loop", [checkpoints, stop_signals])
async def test_a_loop_outlives_every_error(loop: Loop) -> None:
    broken, failures = Broken(), RecordingFailures()
    await check_outlives(loop.__name__, loop(broken, failures), broken, failures)


async def check_outlives(
    name: str, work: Coroutine[None, None, None], broken: Broken, failures: RecordingFailures
) -> None:
    running = asyncio.create_task(work)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await broken.is_through.wait()
    assert not running.done()
    assert len(failures.failures) >= len(all_errors()) / 2
    assert {task for task, _ in failures.failures} == {name}
    running.cancel()
    await asyncio.wait([running])


async def test_the_watch_of_redis_outlives_every_error() -> None:
    broken, failures = Broken(), RecordingFailures()
    presence = RedisPresence(cast(RedisClient, broken), interval_seconds=0.0, away_after_seconds=-1.0)
    task = presence.start(make_supervisor(failures))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await broken.is_through.wait()
    assert presence.is_away
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])


class AnswersInSteps:
    """A Redis whose answer is read in some rounds of the event loop."""

    async def set(self, *_arguments: Any, **_options: Any) -> bool:
        for _ in range(3):
            await asyncio.sleep(0)
        return True


async def test_a_process_that_stood_still_takes_nobody_for_away() -> None:
    presence = RedisPresence(cast(RedisClient, AnswersInSteps()), away_after_seconds=0.0)
    asyncio.get_running_loop().call_soon(sleep, 1.2 * ANSWER_SECONDS)
    await presence.look()
    assert not presence.is_away


async def test_the_writer_of_events_outlives_every_error_and_lets_nobody_wait() -> None:
    broken, failures = Broken(), RecordingFailures()
    log = RedisEventLog(cast(RedisClient, broken), make_supervisor(failures), 600.0, patience_seconds=-1.0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        for number in range(len(all_errors())):
            with pytest.raises(BallastError):
                await log.append(f"resp_{number}", make_events(0, 1))
        last = asyncio.create_task(log.append("resp_last", make_events(0, 1)))
        await broken.is_through.wait()
    assert not last.done()
    await log.aclose()
    (outcome,) = await asyncio.gather(last, return_exceptions=True)
    assert isinstance(outcome, BallastError)
