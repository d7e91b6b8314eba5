"""Building the event store and the use cases of turns."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.withheld_turns import WithheldText
from backend.foundation.services.admission import Admission
from backend.foundation.services.supervision import Supervisor
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import LabelAccess
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.turns.dynamic_blocks.entry_points import installed_blocks
from backend.turns.memory.event_log import MemoryEventLog
from backend.turns.memory.rates import MemoryRateStore
from backend.turns.memory.stop_signals import MemoryStopSignals
from backend.turns.ports.events import EventStore
from backend.turns.services.begin_waiting import BeginWaiting
from backend.turns.services.cited_documents import CitedDocuments
from backend.turns.services.compact_input import CompactInput
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.count_input import CountInput
from backend.turns.services.follow_events import FollowEvents
from backend.turns.services.model_names import ModelNames
from backend.turns.services.queue_turn import QueueTurn
from backend.turns.services.reader_rights import RightsOfReaders
from backend.turns.services.responses import Responses
from backend.turns.services.start_turn import StartTurn
from backend.turns.services.turn_draft import TurnPolicy
from backend.turns.services.turn_drafting import TurnDrafting
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from backend.turns.services.unstored_turns import UnstoredTurns
from backend.turns.services.use_cases import TurnServices
from shared.clock import Clock


async def event_store(
    redis_url: str, retention_seconds: float, supervisor: Supervisor, clock: Clock, stack: AsyncExitStack
) -> EventStore:
    """Open the event store, which `stack` closes: Redis where an address is given, else this process's memory.

    Raises:
        ValueError: Redis cannot be used at this address; the text holds neither user nor password.
    """
    if not redis_url:
        return EventStore(MemoryEventLog(retention_seconds), MemoryStopSignals(), MemoryRateStore(clock), None)
    from backend.turns.redis.client import check_redis_reachable, connect
    from backend.turns.redis.event_log import RedisEventLog
    from backend.turns.redis.presence import watching
    from backend.turns.redis.rates import RedisRateStore
    from backend.turns.redis.stop_signals import RedisStopSignals

    client = connect(redis_url)
    stack.push_async_callback(client.aclose)
    await check_redis_reachable(client, redis_url)
    events = RedisEventLog(client, supervisor, retention_seconds)
    signals = RedisStopSignals(client, supervisor)
    stack.push_async_callback(events.aclose)
    stack.push_async_callback(signals.aclose)
    rates = RedisRateStore(client)
    return EventStore(events, signals, rates, await stack.enter_async_context(watching(client, supervisor)))


def turn_context(
    ports: TurnPorts, knowledge: KnowledgeStore, access: LabelAccess, descriptions: SafeDescriptions
) -> ContextSources:
    """Build the sources of the dynamic context, with the dynamic blocks of all installed packages.

    Raises:
        TypeError: an installed package registers an object that is no block source.
    """
    return ContextSources(knowledge, access, descriptions, installed_blocks(), ports.observer)


@dataclass(frozen=True)
class TurnSources:
    """What turns read besides their own ports."""

    context: ContextSources
    models: ModelNames
    withheld: WithheldText
    cited: CitedDocuments


def turn_services(ports: TurnPorts, sources: TurnSources, policy: TurnPolicy, admission: Admission) -> TurnServices:
    """Build the use cases of turns."""
    registry = TurnRegistry(ports, drain_seconds=(policy.drain or policy.timeout).total_seconds())
    drafting = TurnDrafting(ports, sources.context, sources.models, policy)
    access = ConversationAccess(ports.conversations, ports.turns)
    queue = QueueTurn(ports, drafting, policy.timeout)
    start = StartTurn(ports, drafting, queue, admission, registry)
    return TurnServices(
        start=start,
        waiting=BeginWaiting(ports, start, registry, admission),
        count=CountInput(drafting),
        compact=CompactInput(ports, drafting, registry, admission, policy.secret),
        follow=FollowEvents(ports.turns, ports.events),
        responses=Responses(ports, access),
        models=sources.models,
        registry=registry,
        withheld=sources.withheld,
        cited=sources.cited,
        rights=RightsOfReaders(access, sources.withheld),
        rates=ports.rates,
        unstored=UnstoredTurns(ports, policy.secret),
        on_disconnect=policy.on_disconnect,
        strict_requests=policy.strict_requests,
    )
