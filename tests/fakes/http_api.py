"""The HTTP API over in-memory stores, with a client that calls it inside the process."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

import httpx2
from fastapi import FastAPI

from backend.agents.services.agent_files import AgentFiles
from backend.agents.services.agents import AgentCatalogue, AgentMembers, open_agent_files
from backend.embeddings.services.embeddings import Embeddings
from backend.embeddings.services.moderations import Moderations
from backend.extraction.formats.reader import LibraryDocumentReader
from backend.files.domain import FileQuota
from backend.files.services import Files
from backend.foundation.http.app import create_app
from backend.foundation.http.services import DEFAULT_MAX_BODIES_BYTES, HttpOptions, install_services
from backend.foundation.services.admission import Admission
from backend.foundation.services.idempotency import OncePerKey
from backend.foundation.services.readiness import Readiness
from backend.groups.services import GroupDirectory, GroupNames
from backend.identity.domain import Caller, KeyRole
from backend.identity.ports import CallerOfToken
from backend.identity.services import Authenticate, KeyAdministration
from backend.knowledge.services.knowledge_access import KnowledgeMembers
from backend.knowledge.services.knowledge_bases import ActiveBases, KnowledgeCatalogue
from backend.knowledge.services.knowledge_documents import IngestDocument, KnowledgeDocuments, SearchKnowledge
from backend.knowledge.services.knowledge_progress import KnowledgeProgress
from backend.knowledge.telemetry.retrieval import TimedRetrieval
from backend.mcp.chosen import McpLibrary
from backend.mcp.services.lookups import RESOURCES_A_PAGE, LookupPolicy, Lookups, RestrictedLookup
from backend.restricted.domain.restricted_budget import RestrictedLimits
from backend.restricted.services.meaning_scale import MeaningScale
from backend.restricted.services.outgoing_scan import OutgoingTexts
from backend.restricted.services.restricted_audit import ReadAudit, RestrictedAudit
from backend.restricted.services.sealed_outcomes import SealedOutcomes
from backend.restricted.services.sealed_search import SealedSearches, SearchTerms
from backend.restricted.services.ticketed_knowledge import TicketAccess, TicketedFiles, TicketedKnowledge
from backend.restricted.services.weigh_answers import AnswerWeighing
from backend.retention.services.exporting import PersonExport, PersonTexts
from backend.retention.services.user_erasure import UserErasure
from backend.routes import BEFORE_BODIES, OPEN_METRICS, ROUTERS
from backend.search.ports.index import Retrieval
from backend.search.services.embedding_worker import EmbeddingPace
from backend.turns.services.request.tool_catalogue import ToolCatalogue
from backend.vector_stores.services.file_indexes import FileIndexes, UploadsById
from backend.vector_stores.services.reading import AttachedFileReading, ReadingTerms
from backend.vector_stores.services.store_files import StoreFiles
from backend.vector_stores.services.stores import SearchStore, VectorStores
from shared.models.safe_summary import RestrictedGrade
from tests.fakes.chat_shell_models import FakeModelLister
from tests.fakes.chunk_vectors import FakeChunkVectors
from tests.fakes.meaning import FakeEmbedder, FakeModerator
from tests.fakes.openai_house import TurnHouse
from tests.fakes.probe import FakePresence, FakeProbe
from tests.fakes.restricted_ledger import FakeRestrictedLedger, FakeSafeSummaryObserver
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.fakes.store_attachments import FakeAttachments
from tests.fakes.store_claims import FakeClaimStore
from tests.fakes.store_files import FakeFiles
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.store_people import FakePeople
from tests.fakes.store_state import StoreState

FILES = "/v1/files"
SERVICE_TOKEN = "service-token-of-the-tests"
SECRET = "secret"
BASE_URL = "http://ballast.test"
EMBEDDING_MODEL = "house-embedder"
MODERATION_MODEL = "house-moderator"
LIMITS = RestrictedLimits(conversation=8, day=20, month=60)


@dataclass
class FakeHouse:
    """All that the API is built of."""

    state: StoreState = field(default_factory=StoreState)
    chat_shell: FakeModelLister = field(default_factory=lambda: FakeModelLister("demo-model", "vendor/large"))
    probe: FakeProbe = field(default_factory=FakeProbe)
    knowledge: FakeKnowledge = field(default_factory=FakeKnowledge)
    files: FakeFiles = field(default_factory=FakeFiles)
    safe_summaries: FakeSafeSummaryObserver = field(default_factory=FakeSafeSummaryObserver)
    limits: RestrictedLimits = LIMITS
    event_store: FakePresence = field(default_factory=FakePresence)
    max_body_bytes: int = 100_000
    max_bodies_bytes: int = DEFAULT_MAX_BODIES_BYTES
    quota: FileQuota = field(default_factory=FileQuota)
    origins: tuple[str, ...] = ()
    caller_of_token: CallerOfToken | None = None
    embedder: FakeEmbedder | None = None
    moderator: FakeModerator | None = None
    strict_requests: bool = False
    grade: RestrictedGrade = RestrictedGrade.OPEN
    scale: MeaningScale | None = None

    def __post_init__(self) -> None:
        """Build what runs turns; who starts some enters `turns.registry`."""
        self.clock = self.state.clock
        self.groups = self.knowledge.groups
        self.knowledge.claims = self.files.claims = self.state.claims
        self.attachments = FakeAttachments(self.knowledge, self.clock)
        self.ledger = FakeRestrictedLedger(self.knowledge)
        self.admission = Admission(self.event_store)
        self.turns = TurnHouse(
            chat_shell=self.chat_shell,
            state=self.state,
            knowledge=self.knowledge,
            admission=self.admission,
            strict_requests=self.strict_requests,
        )
        self.turns.agents.groups = self.groups

    def services(self, resources_a_page: int = RESOURCES_A_PAGE) -> tuple[object, ...]:
        """Build the use cases."""
        keys, known = FakeApiKeyStore(self.state), self.state.known_keys
        active = ActiveBases(self.attachments, self.clock)
        retrieval = TimedRetrieval(self.knowledge, self.knowledge, active.note)
        files, reader, wake_signal = Files(self.files, self.clock, self.quota), LibraryDocumentReader(), asyncio.Event()
        bases = KnowledgeCatalogue(self.knowledge, self.turns.descriptions, self.clock, self.grade)
        documents, passages = KnowledgeDocuments(self.knowledge), SearchKnowledge(self.knowledge, retrieval)
        store_files = StoreFiles(self.knowledge, self.attachments, files, wake_signal, self.clock)
        terms = ReadingTerms(is_only_replica=False)
        self.reading = AttachedFileReading(self.attachments, self.files, self.knowledge, reader, wake_signal, terms)
        file_indexes = FileIndexes(self.knowledge, self.attachments, self.files, wake_signal, self.clock)
        agent_files = AgentFiles(files, file_indexes)
        outgoing = OutgoingTexts(self.turns.ports.outgoing)
        policy = LookupPolicy(SECRET, timedelta(minutes=10), "Europe/Berlin")
        restricted = RestrictedLookup(self.chat_shell, outgoing, self.admission, self.clock, policy)
        models, tools = self.turns.services.models, ToolCatalogue(self.chat_shell, self.clock)
        agents = AgentCatalogue(self.turns.agents, self.knowledge, models, tools, agent_files, self.clock)
        return (
            McpLibrary(),
            *self._people(agents, files),
            Lookups(bases, documents, passages, restricted, resources_a_page),
            Authenticate(keys, self.clock, known, self.caller_of_token),
            KeyAdministration(keys, self.clock, known),
            OncePerKey(FakeClaimStore(self.state), self.clock, SECRET),
            Readiness(self.admission, self.probe),
            self.turns.caller_conversations,
            self.turns.members,
            self.turns.ports.stored.withheld,
            self.turns.read_prompts,
            self.turns.services,
            agents,
            AgentMembers(self.turns.agents),
            Embeddings(self.embedder, EMBEDDING_MODEL if self.embedder else "", self.admission),
            Moderations(self.moderator, MODERATION_MODEL if self.moderator else "", self.admission),
            bases,
            documents,
            passages,
            KnowledgeMembers(self.knowledge, GroupNames(self.groups)),
            GroupNames(self.groups),
            GroupDirectory(self.groups, self._owned_alone, self.clock),
            IngestDocument(self.knowledge, reader, self.clock),
            KnowledgeProgress(FakeChunkVectors(self.knowledge, self.clock), None, EmbeddingPace()),
            files,
            VectorStores(bases, self.attachments, store_files, active),
            store_files,
            SearchStore(self.knowledge, retrieval),
            *self._restricted(retrieval, UploadsById(files, file_indexes)),
        )

    def _restricted(self, retrieval: Retrieval, uploads: UploadsById) -> tuple[object, ...]:
        audit = RestrictedAudit(self.ledger, self.safe_summaries, self.clock, SECRET)
        open_files = partial(open_agent_files, self.turns.agents)
        access = TicketAccess(self.knowledge, open_files, self.turns.descriptions, audit, self.clock, SECRET)
        weighing = AnswerWeighing(access, self.ledger, self.scale, self.limits.facts, SECRET)
        return (
            TicketedKnowledge(self.knowledge, retrieval, access),
            TicketedFiles(uploads, self.knowledge, access),
            SealedSearches(access, retrieval, self.ledger, audit, weighing, SearchTerms(self.limits, SECRET)),
            SealedOutcomes(access, self.ledger, audit, weighing, self.clock, SECRET),
            weighing,
            ReadAudit(self.ledger, SECRET),
        )

    def _people(self, agents: AgentCatalogue, files: Files) -> tuple[UserErasure, PersonExport]:
        people, responses, known = FakePeople(), self.turns.services.responses, self.turns.state.known_keys
        erasure = UserErasure(
            people, self.turns.ports.stored.conversations, self.knowledge, agents, responses, known.change
        )
        texts = PersonTexts(self.turns.caller_conversations, self.turns.ports.stored.withheld, responses, files)
        return erasure, PersonExport(people, texts, agents, self.knowledge)

    async def _owned_alone(self, tenant: str, member: str) -> tuple[str, ...]:
        owned = self.knowledge.owned_alone(tenant, member)
        return tuple(owned)

    def options(self) -> HttpOptions:
        """Build the figures of the API."""
        return HttpOptions(
            SERVICE_TOKEN,
            self.max_body_bytes,
            self.max_bodies_bytes,
            cors_origins=self.origins,
            before_bodies=BEFORE_BODIES,
        )

    def app(self) -> FastAPI:
        """Build the application."""
        return create_app((*ROUTERS, *OPEN_METRICS), self.services(), self.options())

    def stand_behind(self, app: FastAPI) -> None:
        """Take the place of the house that an application was built for: building the routes is what costs."""
        install_services(app, self.options(), *self.services())

    async def key(self, user_id: str = "ada", role: KeyRole = KeyRole.USER, tenant: str = "default") -> str:
        """Issue a key."""
        _, secret = await KeyAdministration(FakeApiKeyStore(self.state), self.clock, self.state.known_keys).issue(
            user_id, role, tenant
        )
        return secret

    async def caller(self, user_id: str) -> Caller:
        """Return a user as their key names them."""
        return await Authenticate(FakeApiKeyStore(self.state), self.clock, self.state.known_keys).user(
            await self.key(user_id), None
        )


def client_of(app: FastAPI, key: str | None = None, **headers: str) -> httpx2.AsyncClient:
    """Open a client that calls the application without a network."""
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE_URL, headers=headers)


async def uploaded(client: httpx2.AsyncClient, text: str, name: str = "tea.md") -> str:
    form = {"data": {"purpose": "assistants"}, "files": {"file": (name, text.encode())}}
    answer = await client.post(FILES, **form)  # type: ignore[arg-type]
    return str(answer.json()["id"])
