"""All use cases of the backend, and what runs beside its requests."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial

from backend.agents.wiring import AgentPackage
from backend.conversations.services.conversations import ConversationServices
from backend.embeddings.wiring import EmbeddingPackage
from backend.files.services import CLEAR_FILES_SECONDS
from backend.files.wiring import FilePackage
from backend.foundation.services.admission import Admission
from backend.foundation.services.idempotency import FORGET_KEYS_SECONDS, OncePerKey
from backend.foundation.services.parts import Part
from backend.foundation.services.readiness import Readiness
from backend.foundation.services.supervision import Supervisor
from backend.identity.services import REFRESH_TOKEN_KEYS_SECONDS, WRITE_USES_SECONDS, Authenticate, KeyAdministration
from backend.identity.wiring import RefreshKeys
from backend.knowledge.services.active_bases import WRITE_ACTIVITY_SECONDS
from backend.knowledge.wiring import KnowledgePackage
from backend.prompt.services.read_prompts import ReadPrompts
from backend.retention.services.sweeping import SWEEP_SECONDS
from backend.retention.wiring import RetentionPackage
from backend.turns.services.resume.recovery import Recovery
from backend.turns.services.use_cases import TurnServices


@dataclass(frozen=True)
class Backend:
    """All use cases over their adapters."""

    admission: Admission
    readiness: Readiness
    once: OncePerKey
    authenticate: Authenticate
    api_keys: KeyAdministration
    refresh_token_keys: RefreshKeys | None
    conversations: ConversationServices
    prompts: ReadPrompts
    meaning: EmbeddingPackage
    knowledge: KnowledgePackage
    files: FilePackage
    parts: tuple[Part, ...]
    turns: TurnServices
    agents: AgentPackage
    recovery: Recovery
    supervisor: Supervisor
    retention: RetentionPackage
    maintenance: Callable[[], Awaitable[None]]

    @property
    def services(self) -> tuple[object, ...]:
        """What the routes call."""
        beneath = (self.readiness, self.once, self.authenticate, self.api_keys)
        knowledge = (self.knowledge.services, self.files.services)
        parts = (service for part in self.parts for service in part.services)
        providers = (self.meaning.embeddings, self.meaning.moderations)
        agents, files = self.agents.agents, self.files.services
        turns = (self.conversations, self.prompts, self.turns, agents, self.agents.members)
        people = self.retention.services(agents, self.conversations, self.turns.responses, files)
        return (*beneath, *parts, *knowledge, *providers, *turns, *people)

    @property
    def background_loops(self) -> tuple[Callable[[], Coroutine[None, None, None]], ...]:
        """What runs beside the requests until this process drains."""
        repeat, refresh = self.supervisor.repeat_forever, self.refresh_token_keys
        if_tokens = (partial(repeat, "token_keys", refresh, REFRESH_TOKEN_KEYS_SECONDS),) if refresh else ()
        return (
            partial(repeat, "heartbeat", self.recovery.renew, self.recovery.seconds_between_renewals),
            partial(repeat, "takeovers", self.recovery.take, self.recovery.seconds_between_looks),
            partial(repeat, "turn_rates", self.turns.rates.step, 0.0),
            partial(repeat, "waiting_turns", self.turns.waiting.step, 0.0),
            *(partial(repeat, *loop) for part in self.parts for loop in part.loops),
            partial(repeat, "forget_keys", self.once.forget, FORGET_KEYS_SECONDS),
            partial(repeat, "write_key_uses", self.authenticate.uses.write, WRITE_USES_SECONDS),
            partial(repeat, "clear_files", self.files.clearing.clear, CLEAR_FILES_SECONDS),
            partial(repeat, "write_activity", self.knowledge.active.write, WRITE_ACTIVITY_SECONDS),
            *if_tokens,
            partial(repeat, "retention", self.retention.retention.sweep, SWEEP_SECONDS),
            partial(repeat, "keep_index", self.maintenance, 0.0),
            partial(repeat, "embed_chunks", self.knowledge.embedding.step, 0.0),
        )
