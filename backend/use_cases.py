"""All use cases of the backend, and what runs beside its requests."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cached_property, partial

from backend.agents.wiring import AgentPackage
from backend.conversations.wiring import ConversationPackage
from backend.files.services import FilePackage
from backend.foundation.services.admission import Admission
from backend.foundation.services.idempotency import FORGET_KEYS_SECONDS, OncePerKey
from backend.foundation.services.parts import Part
from backend.foundation.services.readiness import Readiness
from backend.foundation.services.supervision import Supervisor
from backend.identity.services import Authenticate, KeyAdministration
from backend.prompt.services.read_prompts import ReadPrompts
from backend.retention.services.exporting import PersonTexts
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
    prompts: ReadPrompts
    conversations: ConversationPackage
    files: FilePackage
    agents: AgentPackage
    parts: tuple[Part, ...]
    turns: TurnServices
    retention: RetentionPackage
    recovery: Recovery
    supervisor: Supervisor

    @cached_property
    def _all_parts(self) -> tuple[Part, ...]:
        conversations, files = self.conversations, self.files
        texts = PersonTexts(conversations.own, conversations.withheld, self.turns.responses, files.services)
        people = self.retention.part(self.agents.agents, self.turns.responses, texts, self.api_keys.forget_known)
        return (*self.parts, conversations.part, files.part, self.agents.part, people)

    @property
    def services(self) -> tuple[object, ...]:
        """What the routes call."""
        parts = (service for part in self._all_parts for service in part.services)
        return (self.readiness, self.once, self.prompts, self.turns, *parts)

    @property
    def background_loops(self) -> tuple[Callable[[], Coroutine[None, None, None]], ...]:
        """What runs beside the requests until this process drains."""
        repeat = self.supervisor.repeat_forever
        return (
            partial(repeat, "heartbeat", self.recovery.renew, self.recovery.seconds_between_renewals),
            partial(repeat, "takeovers", self.recovery.take, self.recovery.seconds_between_looks),
            partial(repeat, "turn_rates", self.turns.rates.step, 0.0),
            partial(repeat, "waiting_turns", self.turns.waiting.step, 0.0),
            *(partial(repeat, *loop) for part in self._all_parts for loop in part.loops),
            partial(repeat, "forget_keys", self.once.forget, FORGET_KEYS_SECONDS),
        )
