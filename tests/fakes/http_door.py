"""The HTTP door over in-memory stores, with a client that calls it inside the process."""

from dataclasses import dataclass, field
from datetime import timedelta

import httpx2
from fastapi import FastAPI

from backend.adapters.documents.reader import LibraryDocumentReader
from backend.adapters.http.app import create_app
from backend.adapters.http.services import HttpOptions, Services
from backend.domain.identity import KeyRole
from backend.domain.restricted_budget import RestrictedLimits
from backend.services.admission import Admission
from backend.services.api_keys import ApiKeys
from backend.services.authenticate import Authenticate
from backend.services.conversations import Conversations
from backend.services.knowledge import KnowledgePorts, build_knowledge
from backend.services.model_catalogue import ModelCatalogue
from backend.services.readiness import Readiness
from backend.services.restricted import RestrictedPorts, build_restricted
from tests.fakes.chat_shell_models import FakeModelLister
from tests.fakes.clock import FakeClock
from tests.fakes.openai_house import TurnHouse
from tests.fakes.probe import FakePresence, FakeProbe
from tests.fakes.restricted_ledger import FakeRestrictedLedger, FakeSafeSummaryObserver
from tests.fakes.store_api_keys import FakeApiKeyStore
from tests.fakes.store_conversations import FakeConversationStore
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.store_state import StoreState

SERVICE_TOKEN = "service-token-of-the-tests"
SECRET = "secret"
BASE_URL = "http://ballast.test"
LIMITS = RestrictedLimits(conversation=8, day=20, month=60)


@dataclass
class FakeHouse:
    """All that stands behind the door."""

    state: StoreState = field(default_factory=StoreState)
    clock: FakeClock = field(default_factory=FakeClock)
    chat_shell: FakeModelLister = field(default_factory=lambda: FakeModelLister("demo-model", "vendor/large"))
    probe: FakeProbe = field(default_factory=FakeProbe)
    knowledge: FakeKnowledge = field(default_factory=FakeKnowledge)
    safe_summaries: FakeSafeSummaryObserver = field(default_factory=FakeSafeSummaryObserver)
    limits: RestrictedLimits = LIMITS
    event_store: FakePresence = field(default_factory=FakePresence)
    max_body_bytes: int = 100_000

    def __post_init__(self) -> None:
        """Build what runs turns; who starts some enters `turns.registry`."""
        self.ledger = FakeRestrictedLedger(self.knowledge)
        self.admission = Admission(self.event_store)
        self.turns = TurnHouse(
            chat_shell=self.chat_shell,
            state=self.state,
            clock=self.clock,
            knowledge=self.knowledge,
            admission=self.admission,
        )

    def services(self) -> Services:
        """Build the use cases."""
        keys = FakeApiKeyStore(self.state)
        knowledge = KnowledgePorts(self.knowledge, self.knowledge, LibraryDocumentReader(), self.clock)
        return Services(
            authenticate=Authenticate(keys),
            api_keys=ApiKeys(keys, self.clock),
            admission=self.admission,
            readiness=Readiness(self.admission, self.probe),
            models=ModelCatalogue(self.chat_shell, self.clock),
            conversations=Conversations(FakeConversationStore(self.state), self.clock, SECRET),
            knowledge=build_knowledge(knowledge, self.turns.descriptions),
            restricted=build_restricted(
                RestrictedPorts(self.ledger, self.ledger, self.safe_summaries),
                knowledge,
                self.limits,
                SECRET,
                timedelta(minutes=10),
            ),
            responses=self.turns.services,
        )

    def app(self) -> FastAPI:
        """Build the application."""
        return create_app(self.services(), HttpOptions(SERVICE_TOKEN, self.max_body_bytes))

    async def key(self, user_id: str = "ada", role: KeyRole = KeyRole.USER, tenant: str = "default") -> str:
        """Issue a key."""
        issued = await ApiKeys(FakeApiKeyStore(self.state), self.clock).issue(user_id, role, tenant)
        return issued.secret


def client_of(app: FastAPI, key: str | None = None, **headers: str) -> httpx2.AsyncClient:
    """Open a client that calls the application without a network."""
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE_URL, headers=headers)
