"""The use cases of turns, built over their ports."""

from dataclasses import dataclass
from datetime import timedelta

from backend.conversations.services.conversation_access import ConversationAccess
from backend.conversations.services.withheld_turns import WithheldText
from backend.foundation.services.admission import Admission
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.services.knowledge_access import LabelAccess
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from backend.streams.services.follow_events import FollowEvents
from backend.streams.services.reader_rights import RightsOfReaders
from backend.turns.dynamic_blocks.entry_points import installed_blocks
from backend.turns.services.cited_documents import CitedDocuments
from backend.turns.services.compact_input import CompactInput
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.count_input import CountInput
from backend.turns.services.lanes.start_lanes import StartLanes
from backend.turns.services.prepare_turn import PrepareTurn
from backend.turns.services.queue.begin_waiting import BeginWaiting
from backend.turns.services.queue.queue_turn import QueueTurn
from backend.turns.services.request.model_names import ModelNames
from backend.turns.services.responses import Responses
from backend.turns.services.start_turn import OtherStarts, StartTurn
from backend.turns.services.turn_draft import TurnPolicy
from backend.turns.services.turn_drafting import TurnDrafting
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from backend.turns.services.turn_runner import RunTurns
from backend.turns.services.unstored_turns import UnstoredTurns
from backend.turns.services.use_cases import TurnServices


def turn_context(
    ports: TurnPorts, knowledge: KnowledgeStore, access: LabelAccess, descriptions: SafeDescriptions
) -> ContextSources:
    """Build the sources of the dynamic context, with the dynamic blocks of all installed packages.

    Raises:
        TypeError: an installed package registers an object that is no block source.
    """
    return ContextSources(knowledge, access, descriptions.shown, installed_blocks(), ports.observer)


@dataclass(frozen=True)
class TurnSources:
    """What turns read besides their own ports."""

    context: ContextSources
    models: ModelNames
    withheld: WithheldText
    cited: CitedDocuments


def start_turn(
    ports: TurnPorts, drafting: TurnDrafting, registry: TurnRegistry, admission: Admission, timeout: timedelta
) -> StartTurn:
    """Build what starts turns; `timeout` is the longest time that one may take."""
    others = OtherStarts(
        in_lanes=StartLanes(ports, drafting, admission, registry), queued=QueueTurn(ports, drafting, timeout)
    )
    return StartTurn(PrepareTurn(drafting), ports.turns.begin, registry, admission, ports.rates, others)


def turn_services(ports: TurnPorts, sources: TurnSources, policy: TurnPolicy, admission: Admission) -> TurnServices:
    """Build the use cases of turns."""
    registry = TurnRegistry(RunTurns(ports), drain_seconds=(policy.drain or policy.timeout).total_seconds())
    drafting = TurnDrafting(ports, sources.context, sources.models, policy)
    access = ConversationAccess(ports.conversations, ports.turns)
    prepare = PrepareTurn(drafting)
    start = start_turn(ports, drafting, registry, admission, policy.timeout)
    return TurnServices(
        start=start,
        waiting=BeginWaiting(ports, start, registry, admission),
        count=CountInput(prepare),
        compact=CompactInput(ports, prepare, registry, admission, policy.secret),
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
