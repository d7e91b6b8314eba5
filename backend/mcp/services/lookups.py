"""Lookups in all bases of a caller: passages and documents where they may read them, else a safe summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic import ValidationError

from backend.chat_shell_client.ports.chat_shell import ChatShell
from backend.foundation.services.admission import Admission
from backend.identity.domain import Caller
from backend.identity.services import holders_of
from backend.knowledge.domain.knowledge import Binding, Document
from backend.knowledge.domain.tickets import SearchOptions, Ticket, sign_ticket
from backend.knowledge.services.knowledge_bases import KnowledgeCatalogue
from backend.knowledge.services.knowledge_documents import DocumentPage, KnowledgeDocuments, SearchKnowledge, TextPage
from backend.mcp.domain.resource_addresses import ListPlace
from backend.restricted.domain.released_results import budget_session_id
from backend.restricted.services.outgoing_scan import OutgoingTexts
from backend.search.domain.chunks import ChunkHit
from shared.clock import Clock
from shared.errors import ChatShellUnavailable, InvalidRequest, NotFound
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
        passed = await self._outgoing.let_pass(
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


RESOURCES_A_PAGE = 100


class BasesSearch(NamedTuple):
    """What is searched: the query, the bases or None for all of the caller's, and how many passages they want."""

    query: str
    base_ids: Sequence[str] | None
    max_results: int


class BasesFound(NamedTuple):
    """The passages, best first, of the bases that were read, and the summary of those that are restricted.

    `summary` is None where nothing may be said of the restricted bases, whatever the cause. `passed_over` are
    restricted bases that were not searched.
    """

    hits: tuple[ChunkHit, ...]
    read: tuple[Binding, ...]
    restricted: tuple[Binding, ...]
    summary: ReleasedSummary | None
    passed_over: tuple[Binding, ...] = ()


class ResourcePage(NamedTuple):
    """Some documents by base and name, and the place where the next page begins, or None at the end."""

    documents: tuple[Document, ...]
    next_place: ListPlace | None


class Lookups:
    """What programs ask of the knowledge of a caller, by the caller's present roles."""

    def __init__(
        self,
        bases: KnowledgeCatalogue,
        documents: KnowledgeDocuments,
        passages: SearchKnowledge,
        restricted: RestrictedLookup,
        resources_a_page: int = RESOURCES_A_PAGE,
    ) -> None:
        self._bases = bases
        self._documents = documents
        self._passages = passages
        self._restricted = restricted
        self._resources_a_page = resources_a_page

    async def search(self, caller: Caller, search: BasesSearch, request_id: str) -> BasesFound:
        """Search; where no base is named and some that they may read answer, the restricted ones are passed over.

        Their few searches a day are for questions that need them.

        Raises:
            NotFound: the caller is not a member of a named base.
            Unavailable: what `RestrictedLookup` needs is away, where a base is restricted. Retryable.
        """
        bindings = await self._bases.find_named(caller, search.base_ids)
        read = tuple(binding for binding in bindings if binding.role.access_mode is AccessMode.FULL)
        restricted = tuple(binding for binding in bindings if binding.role.access_mode is not AccessMode.FULL)
        hits = await self._passages.search_in(read, search.query, search.max_results) if read else ()
        if search.base_ids is None and hits:
            return BasesFound(hits, read, (), None, passed_over=restricted)
        summary = await self._restricted(caller, restricted, search.query, request_id) if restricted else None
        return BasesFound(hits, read, restricted, summary)

    async def bases(self, caller: Caller, after: str | None, limit: int) -> tuple[Sequence[Binding], bool]:
        """Return bases of the caller behind one, the oldest first, and whether there are more.

        Raises:
            NotFound: `after` names none of them.
        """
        return await self._bases.page(caller, after=after, limit=limit, descending=False)

    async def documents(self, caller: Caller, base_id: str, after: str | None, limit: int) -> DocumentPage:
        """Return documents of a base by name, behind one.

        Raises:
            NotFound: the caller is not a member, or `after` names none of them.
            PermissionDenied: the caller is restricted.
        """
        return await self._documents.page(caller, base_id, after=after, limit=limit, descending=False)

    async def text(self, caller: Caller, base_id: str, document: str, *, offset: int, limit: int) -> TextPage:
        """Return a page of a document's text; `document` is its name or id.

        Raises:
            NotFound: the caller is not a member, or there is no such document.
            PermissionDenied: the caller is restricted.
        """
        return await self._documents.text(caller, base_id, document, offset=offset, limit=limit)

    async def resources(self, caller: Caller, after: ListPlace | None) -> ResourcePage:
        """Return a page of the documents that the caller may read; those of restricted bases are not listed.

        Raises:
            InvalidRequest: the place is no longer in the list; `param` is `cursor`.
        """
        bindings = await self._bases.find_named(caller, None)
        readable = [binding.base.id for binding in bindings if binding.role.access_mode is AccessMode.FULL]
        if after is not None and after.knowledge_base_id not in readable:
            raise _refuse_cursor()
        found, wanted = list[Document](), self._resources_a_page + 1
        for base_id in readable[readable.index(after.knowledge_base_id) if after is not None else 0 :]:
            behind = after.document_id if after is not None and after.knowledge_base_id == base_id else None
            try:
                found += (await self.documents(caller, base_id, behind, wanted - len(found))).documents
            except NotFound:
                raise _refuse_cursor() from None
            if len(found) == wanted:
                last = found[-2]
                return ResourcePage(tuple(found[:-1]), ListPlace(last.knowledge_base_id, last.id))
        return ResourcePage(tuple(found), None)


def _refuse_cursor() -> InvalidRequest:
    return InvalidRequest("cursor: what it names is not in the list any more; begin without a cursor", param="cursor")
