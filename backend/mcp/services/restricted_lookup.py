"""Searching restricted bases without a conversation: the summary that leaves the sealed room, or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from backend.restricted.domain.released_results import budget_session_id
from backend.restricted.services.outgoing_texts import OutgoingTexts
from shared.clock import Clock
from shared.errors import ChatShellUnavailable
from shared.ids import IdPrefix, new_id
from shared.models.execution import (
    AccessMode,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    ModelParameters,
    TurnLimits,
    User,
)
from shared.models.safe_summary import ReleasedSummary
from shared.models.single_tools import SingleToolCall
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_SEARCH

LONGEST_LOOKUP = timedelta(minutes=2)
"""A safe summary and its recording take 25 s unless an operator allows more; a turn's own time is a bound as well."""

_NO_PARAMETERS = ModelParameters(
    temperature=None,
    top_p=None,
    presence_penalty=None,
    frequency_penalty=None,
    max_output_tokens=None,
    reasoning_effort=None,
    text_format=None,
    verbosity=None,
    tool_choice="auto",
    parallel_tool_calls=True,
)


@dataclass(frozen=True)
class LookupPolicy:
    """The operator's settings: the key of tickets and budget sessions, how long turns may take, the time zone."""

    secret: str
    turn_time: timedelta
    time_zone: str


class RestrictedLookup:
    """Has chat_shell search restricted bases under a ticket, as a turn would whose only message is the query.

    The query is the user's own message: it is pre-screened, and its words are those that may be said to them again. The
    search is charged, audited and gated as in a turn. What comes back is scanned as what a turn says.
    """

    def __init__(
        self, chat_shell: ChatShell, outgoing: OutgoingTexts, admission: Admission, clock: Clock, policy: LookupPolicy
    ) -> None:
        self._chat_shell = chat_shell
        self._outgoing = outgoing
        self._admission = admission
        self._clock = clock
        self._policy = policy

    async def __call__(
        self, caller: Caller, bindings: Sequence[Binding], query: str, request_id: str
    ) -> ReleasedSummary | None:
        """Return the summary that may be shown, or None, whatever the cause.

        Raises:
            Draining: this process is shutting down.
            TooManyRequests: the caller has as many searches and turns running as one may. Retryable.
            Unavailable: chat_shell or the database is away, or chat_shell is of an earlier release. Retryable.
        """
        self._admission.check_open()
        with self._admission.place(*holders_of(caller)):
            turn = self._turn(caller, bindings, query, request_id)
            call = SingleToolCall(turn=turn, tool=KNOWLEDGE_BASE_SEARCH, arguments={"query": query})
            result = await self._chat_shell.run_tool(call)
        if result.structured is None:
            return None
        try:
            released = ReleasedSummary.model_validate(result.structured)
        except ValidationError:
            raise ChatShellUnavailable("The model runner sent what is no summary.") from None
        return await self._scan(released, turn)

    async def _scan(self, released: ReleasedSummary, turn: ExecutionRequest) -> ReleasedSummary | None:
        lists = (released.observations, released.risks, released.recommended_actions)
        passed = await self._outgoing.passed(
            [released.summary, *(item for items in lists for item in items)],
            user_id=turn.user.id,
            user_words=turn.knowledge.user_words,
            base_ids=[base.id for base in turn.knowledge.bases],
        )
        if passed is None:
            return None
        summary, *rest = passed
        shown = iter(rest)
        observations, risks, actions = (tuple(next(shown) for _ in items) for items in lists)
        texts = {"summary": summary, "observations": observations, "risks": risks, "recommended_actions": actions}
        return released.model_copy(update=texts)

    def _turn(self, caller: Caller, bindings: Sequence[Binding], query: str, request_id: str) -> ExecutionRequest:
        now, policy = self._clock.now(), self._policy
        lookup_id = new_id(IdPrefix.LOOKUP)
        session_id = budget_session_id(policy.secret, caller.tenant, caller.user_id, now)
        deadline = now + min(policy.turn_time, LONGEST_LOOKUP)
        return ExecutionRequest(
            request_id=request_id,
            conversation_id=session_id,
            turn_id=lookup_id,
            epoch=0,
            user=User(id=caller.user_id, tenant=caller.tenant, display_name=caller.user_id),
            model="",
            parameters=_NO_PARAMETERS,
            system_prompt="",
            history=(),
            kb_meta_prompt="",
            dynamic_blocks=(),
            prompt=query,
            sent_at=now,
            time_zone=policy.time_zone,
            knowledge=_knowledge(bindings, query, self._ticket(caller, bindings, (session_id, lookup_id), deadline)),
            tools=(),
            limits=TurnLimits(max_knowledge_calls=1, max_model_calls=None),
            cache_key="",
            deadline=deadline,
        )

    def _ticket(self, caller: Caller, bindings: Sequence[Binding], ids: tuple[str, str], expires_at: datetime) -> str:
        ticket = Ticket(
            user_id=caller.user_id,
            tenant=caller.tenant,
            conversation_id=ids[0],
            turn_id=ids[1],
            base_ids=tuple(binding.base.id for binding in bindings),
            search=SearchOptions(),
            expires_at=expires_at,
        )
        return sign_ticket(ticket, self._policy.secret)


def _knowledge(bindings: Sequence[Binding], query: str, ticket: str) -> Knowledge:
    bases = tuple(
        KnowledgeBaseRef(id=binding.base.id, name=binding.base.name, access_mode=AccessMode.RESTRICTED)
        for binding in bindings
    )
    return Knowledge(bases=bases, access_mode=AccessMode.RESTRICTED, ticket=ticket, user_words=query)
