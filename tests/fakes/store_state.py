"""What the in-memory stores share: one value of it plays one database."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry
from backend.conversations.domain.model_calls import ModelCall
from backend.conversations.domain.responses import Conversation, Item, StoredResponse
from backend.conversations.domain.waiting_turns import Entered, WaitingTurn
from backend.foundation.domain.idempotency import KeyClaim
from backend.identity.domain import ApiKey
from backend.identity.services import KnownKeys
from tests.fakes.clock import FakeClock


@dataclass
class ReplicaLease:
    """When a replica renewed its lease, when that ends, and from when on it may judge others."""

    seen_at: datetime
    expires_at: datetime
    trusted_from: datetime


class KeptPlan(NamedTuple):
    """What is kept of a running turn for whoever takes it over."""

    plan: str | None
    context_parts: str | None
    settled_event: int | None


@dataclass
class StoreState:
    """Rows by their keys; every store over the same value sees the same rows."""

    conversations: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    entries: dict[str, list[Entry]] = field(default_factory=dict[str, list[Entry]])
    items: dict[str, list[Item]] = field(default_factory=dict[str, list[Item]])
    responses: dict[str, StoredResponse] = field(default_factory=dict[str, StoredResponse])
    calls: dict[str, dict[int, ModelCall]] = field(default_factory=dict[str, dict[int, ModelCall]])
    deleted_response_ids: set[str] = field(default_factory=set[str])
    leases: dict[str, ReplicaLease] = field(default_factory=dict[str, "ReplicaLease"])
    plans: dict[str, KeptPlan] = field(default_factory=dict[str, KeptPlan])
    texts: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    clock: FakeClock = field(default_factory=FakeClock)
    api_keys: dict[str, ApiKey] = field(default_factory=dict[str, ApiKey])
    removed: dict[str, list[tuple[int, Item]]] = field(default_factory=dict[str, list[tuple[int, Item]]])
    seen: list[tuple[str, StoredResponse]] = field(default_factory=list[tuple[str, StoredResponse]])
    claims: dict[str, KeyClaim] = field(default_factory=dict[str, KeyClaim])
    waiting: dict[str, WaitingTurn] = field(default_factory=dict[str, WaitingTurn])
    """In the order in which those of one conversation begin."""

    entered: dict[str, Entered] = field(default_factory=dict[str, Entered])
    """What became of waiting turns whose messages have entered others, by their ids."""

    @cached_property
    def known_keys(self) -> KnownKeys:
        """What a process over this database knows of keys."""
        return KnownKeys(self.clock)

    def waiting_of(self, conversation_id: str) -> list[WaitingTurn]:
        """Return the turns that wait for a conversation, the next one first."""
        return [each for each in self.waiting.values() if each.response.conversation_id == conversation_id]
