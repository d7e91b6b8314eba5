"""The use cases of turns, built over their ports."""

from backend.foundation.services.admission import Admission
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.limits.services.turn_rates import TurnRates
from backend.streams.services.follow_events import FollowEvents
from backend.streams.services.reader_rights import RightsOfReaders
from backend.turns.domain.quiet_pace import QuietPace
from backend.turns.services.cited_documents import CitedDocuments
from backend.turns.services.compact_input import CompactInput
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.count_input import CountInput
from backend.turns.services.lanes.start_lanes import StartLanes
from backend.turns.services.origin_reader import OriginReader
from backend.turns.services.prepare_turn import PrepareTurn
from backend.turns.services.queue.begin_waiting import BeginWaiting
from backend.turns.services.queue.queue_turn import QueueTurn
from backend.turns.services.request.carried_summaries import CarriedSummaries
from backend.turns.services.request.input_files import InputFiles
from backend.turns.services.request.item_references import ReferencedItems
from backend.turns.services.request.model_names import ModelNames
from backend.turns.services.request.project_files import ProjectFiles
from backend.turns.services.request.request_reader import RequestReader
from backend.turns.services.request.settings_reader import SettingsReader
from backend.turns.services.request.tool_catalogue import ToolCatalogue
from backend.turns.services.responses import Responses
from backend.turns.services.start_turn import StartTurn
from backend.turns.services.turn_draft import TurnPolicy
from backend.turns.services.turn_drafting import TurnDrafting
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import TurnRegistry
from backend.turns.services.turn_runner import RunTurns
from backend.turns.services.unstored_turns import UnstoredTurns
from backend.turns.services.use_cases import TurnServices


def turn_preparation(
    ports: TurnPorts,
    context: ContextSources,
    models: ModelNames,
    files: InputFiles,
    projects: ProjectFiles,
    policy: TurnPolicy,
) -> PrepareTurn:
    """Build what resolves and checks turns before they start."""
    settings = SettingsReader(context, models, ToolCatalogue(ports.chat_shell, ports.clock))
    items, summaries = ReferencedItems(ports.stored.conversations, context), CarriedSummaries(context, policy.secret)
    return PrepareTurn(
        RequestReader(items, summaries, files, policy.images),
        OriginReader(ports.stored.conversations, ports.stored.turns, ports.clock, settings.digest, policy.secret),
        TurnDrafting(settings, context, files, projects, ports.clock, policy),
    )


def turn_services(
    ports: TurnPorts,
    prepare: PrepareTurn,
    models: ModelNames,
    knowledge: KnowledgeStore,
    admission: Admission,
    rates: TurnRates,
) -> TurnServices:
    """Build the use cases of turns."""
    policy = prepare.drafting.policy
    registry = TurnRegistry(RunTurns(ports), drain_seconds=(policy.drain or policy.timeout).total_seconds())
    stored, access = ports.stored, ports.stored.access()
    queue = QueueTurn(ports, prepare, policy.timeout)
    start = StartTurn(prepare, stored.turns.begin, registry, admission, rates, queue)
    return TurnServices(
        start_one=start,
        start_lanes=StartLanes(prepare, stored.turns, stored.conversations, registry, admission, rates),
        waiting=BeginWaiting(ports, start, registry, admission),
        count=CountInput(prepare),
        compact=CompactInput(ports, prepare, registry, admission, rates, policy.secret),
        follow=FollowEvents(stored.turns, ports.events),
        responses=Responses(ports, access),
        models=models,
        registry=registry,
        withheld=stored.withheld,
        cited=CitedDocuments(knowledge),
        rights=RightsOfReaders(access, stored.withheld),
        rates=rates,
        unstored=UnstoredTurns(ports.events, ports.signals, ports.clock, policy.secret),
        on_disconnect=policy.on_disconnect,
        strict_requests=policy.strict_requests,
        pace=QuietPace(policy.quiet_seconds) if policy.quiet_seconds else None,
    )
