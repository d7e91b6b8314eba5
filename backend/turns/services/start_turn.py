"""Starting a turn: everything is resolved, checked and stored before anything is sent."""

from dataclasses import dataclass, replace
from datetime import datetime

from backend.conversations.domain.epochs import CallerAccess, plan_epoch
from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.services.admission import Admission
from backend.foundation.services.steps import beside_others
from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.access import strictest_mode
from backend.knowledge.domain.kb_meta import rendered_bases
from backend.turns.domain.requested_settings import turn_settings
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.ports.dynamic_blocks import TurnFacts
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.input_files import FilesOfRequest, InputFiles
from backend.turns.services.item_references import ReferencedItems, ResolvedInput
from backend.turns.services.model_catalogue import ModelCatalogue
from backend.turns.services.origin_reader import OriginReader
from backend.turns.services.turn_assembly import TurnDraft, TurnPolicy, assembled
from backend.turns.services.turn_ports import TurnPorts
from backend.turns.services.turn_registry import RunningTurn, TurnRegistry
from shared.errors import TurnRunning, UnknownModel
from shared.ids import IdPrefix, new_id
from shared.shares import MOST, Holder


class StartTurn:
    """Starts turns. A failure before `TurnStore.begin` leaves nothing behind.

    A `begin` whose answer is lost may leave a turn that nobody runs. Until its end is known the registry owns the turn;
    afterwards whoever looks for such turns (`Recovery.take`) takes it over.
    """

    def __init__(
        self,
        ports: TurnPorts,
        context: ContextSources,
        models: ModelCatalogue,
        policy: TurnPolicy,
        admission: Admission,
        registry: TurnRegistry,
    ) -> None:
        self._turns = ports.turns
        self._clock = ports.clock
        self._origins = OriginReader(ports, policy.secret)
        self._references = ReferencedItems(ports.conversations, context)
        self._files = InputFiles(ports.documents, ports.files)
        self._context = context
        self._models = models
        self._policy = policy
        self._admission = admission
        self._registry = registry

    async def __call__(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None = None
    ) -> RunningTurn:
        """Store a turn and start it; what a claim has created is the response.

        Raises:
            Draining: this process is shutting down.
            InvalidRequest: the input is not valid; `param` names the place.
            KeyHeld: another request has used the key of the claim.
            NotFound: the conversation, response, model or base does not exist for this caller.
            TurnRunning: a turn holds the conversation. Retryable later.
            TooManyRequests: the caller has as many turns running as one may. Retryable later.
            Unavailable: a service that the turn depends on is unavailable, or too many turns run. Where it is the
                database that did not answer in time, the turn may be stored nevertheless; it is then taken over.
        """
        self._admission.check()
        with self._admission.place(*_holders(caller)) as place:
            with self._registry.preparing():
                running = await self._begun(caller, request, request_id, claim)
            running.at_end(place.keep())
        await running.opened.wait()
        return running

    async def _begun(
        self, caller: Caller, request: TurnRequest, request_id: str, claim: KeyClaim | None
    ) -> RunningTurn:
        resolved = await self._references.resolved(caller, request)
        plain, files = await self._files.separated(resolved.request)
        resolved = replace(resolved, request=plain)
        start = await self._found(caller, resolved)
        try:
            return await self._stored_and_started(_Prepared(caller, start, files), request_id, claim)
        except TurnRunning:
            # Who resends a history names no conversation: where another turn was faster, this one branches off.
            if not start.is_recognised:
                raise
            start = await self._found(caller, resolved)
            return await self._stored_and_started(_Prepared(caller, start, files), request_id, claim)

    async def _found(self, caller: Caller, resolved: ResolvedInput) -> TurnStart:
        start = await self._origins.find(caller, resolved.request)
        return replace(start, labels=resolved.labels_of(start.request))

    async def _stored_and_started(self, prepared: "_Prepared", request_id: str, claim: KeyClaim | None) -> RunningTurn:
        draft = await self._drafted(prepared, request_id, self._clock.now())
        turn, new_turn = await beside_others(prepared.start.size, lambda: assembled(draft))
        with self._registry.owning(turn.response.id):
            if turn.is_stored:
                claimed = claim.of(turn.response.id) if claim is not None else None
                await self._turns.begin(new_turn.model_copy(update={"claim": claimed}))
            return self._registry.start(turn)

    async def _drafted(self, prepared: "_Prepared", request_id: str, now: datetime) -> TurnDraft:
        caller, start = prepared.caller, prepared.start
        origin, request, read = start.origin, start.request, start.read
        default_model = await self._default_model() if not (request.model or origin.conversation.model) else ""
        settings = turn_settings(request, origin.conversation, read.instructions, default_model)
        card = await self._models.find(settings.model)
        read = await self._files.put_into(caller, read, prepared.files, card)
        bindings = await self._context.bindings(caller, request, settings.knowledge_base_ids)
        withheld = await self._context.withheld(caller, origin.log)
        access = CallerAccess(
            mode=strictest_mode(bindings),
            withheld=tuple(sorted(withheld)),
            modes={binding.base.id: binding.role.access_mode for binding in bindings},
        )
        facts = TurnFacts(
            caller=caller,
            turn_id=new_id(IdPrefix.RESPONSE),
            conversation_id=origin.conversation.id,
            metadata=dict(request.metadata or {}),
            knowledge_base_ids=settings.knowledge_base_ids,
            sent_at=now,
            time_zone=self._policy.time_zone,
        )
        return TurnDraft(
            policy=self._policy,
            caller=caller,
            request=request,
            request_id=request_id,
            response_id=facts.turn_id,
            now=now,
            origin=origin,
            read=read,
            settings=settings,
            bindings=bindings,
            base_texts=rendered_bases(bindings),
            dynamic_blocks=await self._context.dynamic_blocks(access.mode, facts),
            epoch=plan_epoch(origin.conversation, origin.log, settings, access),
            card=card,
            needs_calls=bool(start.waiting),
            seen=start.seen,
            given=start.labels,
        )

    async def _default_model(self) -> str:
        cards = await self._models.all()
        if not cards:
            raise UnknownModel("No model is offered.", param="model")
        return cards[0].name


@dataclass(frozen=True)
class _Prepared:
    """Who asks for a turn, where it begins, and the files that its input holds there."""

    caller: Caller
    start: TurnStart
    files: FilesOfRequest


def _holders(caller: Caller) -> tuple[Holder, ...]:
    """Return whose places a turn takes: those of the key, and of each user for whom a service key acts."""
    if caller.role is not KeyRole.SERVICE:
        return (Holder(caller.key_id or f"{caller.tenant}/{caller.user_id}"),)
    return (Holder(f"{caller.key_id}/{caller.user_id}"), Holder(caller.key_id, MOST))
