"""Resolving and checking everything about a turn before anything is stored or sent."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from backend.conversations.domain.epochs import CallerAccess, plan_epoch
from backend.conversations.domain.responses import ConversationSettings, PresetUse
from backend.identity.domain import Caller
from backend.knowledge.domain.access import strictest_mode
from backend.knowledge.domain.kb_meta import rendered_bases
from backend.knowledge.domain.knowledge import Binding
from backend.turns.domain.presets import ModelMeaning, only_usable, with_defaults, with_preset
from backend.turns.domain.requested_settings import asked_model, check_choice, forbid_filters, own_settings
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.domain.turn_request import TurnRequest
from backend.turns.ports.dynamic_blocks import TurnFacts
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.input_files import FilesOfRequest, InputFiles
from backend.turns.services.item_references import ReferencedItems, ResolvedInput
from backend.turns.services.model_names import ModelNames
from backend.turns.services.origin_reader import OriginReader
from backend.turns.services.turn_assembly import TurnDraft, TurnPolicy
from backend.turns.services.turn_ports import TurnPorts
from shared.ids import IdPrefix, new_id
from shared.models.execution import AccessMode


@dataclass(frozen=True)
class AskedTurn:
    """Who asks for a turn, his request without references and files, and these files."""

    caller: Caller
    resolved: ResolvedInput
    files: FilesOfRequest


class _AskedSettings(NamedTuple):
    """What a turn asks for: its model, its request with a preset's defaults, its own settings and those joined."""

    meaning: ModelMeaning
    request: TurnRequest
    own: ConversationSettings
    joined: ConversationSettings


class TurnDrafting:
    """Prepares turns; it stores nothing."""

    def __init__(self, ports: TurnPorts, context: ContextSources, models: ModelNames, policy: TurnPolicy) -> None:
        self._clock = ports.clock
        self._origins = OriginReader(ports, self._asked_settings, policy.secret)
        self._references = ReferencedItems(ports.conversations, context)
        self._files = InputFiles(ports.documents, ports.files)
        self._context = context
        self._models = models
        self._policy = policy

    async def asked(self, caller: Caller, request: TurnRequest) -> AskedTurn:
        """Return a request whose input names no stored items any more, apart from the files that it gives.

        Raises:
            InvalidRequest: there is no such item of this caller, or a file is neither given nor named; `param` names
                the place.
        """
        resolved = await self._references.resolved(caller, request)
        plain, files = await self._files.separated(resolved.request)
        return AskedTurn(caller, replace(resolved, request=plain), files)

    async def start(self, asked: AskedTurn) -> TurnStart:
        """Return where a turn begins.

        Raises:
            InvalidRequest: the input is not valid there; `param` names the place.
            NotFound: the conversation or the response does not exist for this caller.
            TurnRunning: a turn holds the conversation.
        """
        start = await self._origins.find(asked.caller, asked.resolved.request)
        return replace(start, labels=asked.resolved.labels_of(start.request))

    async def draft(self, asked: AskedTurn, start: TurnStart, request_id: str) -> TurnDraft:
        """Resolve the model, the settings, the files, the bases and the context of a turn that begins now.

        Raises:
            InvalidRequest: the tool that must be called is not there, or a file cannot be read.
            NotFound: a model or base does not exist for this caller.
            PermissionDenied: the turn is restricted and filters by attributes.
            Unavailable: a service that the turn depends on is unavailable. Retryable.
        """
        caller, origin, now = asked.caller, start.origin, self._clock.now()
        meaning, request, own, joined = await self._asked(caller, start)
        bindings = await self._context.bindings(caller, request, joined.knowledge_base_ids)
        if strictest_mode(bindings) is not AccessMode.FULL:
            forbid_filters(request, own, joined)
        settings = only_usable(joined, own, [binding.base.id for binding in bindings])
        check_choice(request, settings, has_bases=bool(bindings))
        read = await self._files.put_into(caller, start.read, asked.files, meaning.card)
        access = await self._access(caller, start, bindings)
        facts = self._facts(caller, start, settings, now)
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
            meaning=meaning,
            needs_calls=bool(start.waiting),
            seen=start.seen,
            given=start.labels,
            preset_use=_use(facts.turn_id, meaning, own),
        )

    async def _asked(self, caller: Caller, start: TurnStart) -> _AskedSettings:
        """Resolve what a turn asks for, without looking at the bases that it names."""
        meaning = await self._models.meaning(caller, asked_model(start.request, start.before))
        request = with_defaults(start.request, meaning.preset)
        own = own_settings(request, start.before, start.read.instructions, meaning.card.name)
        return _AskedSettings(meaning, request, own, with_preset(own, meaning.preset))

    async def _asked_settings(self, caller: Caller, start: TurnStart) -> ConversationSettings:
        return (await self._asked(caller, start)).joined

    async def _access(self, caller: Caller, start: TurnStart, bindings: tuple[Binding, ...]) -> CallerAccess:
        withheld = await self._context.withheld(caller, start.origin.log)
        return CallerAccess(
            mode=strictest_mode(bindings),
            withheld=tuple(sorted(withheld)),
            modes={binding.base.id: binding.role.access_mode for binding in bindings},
        )

    def _facts(self, caller: Caller, start: TurnStart, settings: ConversationSettings, now: datetime) -> TurnFacts:
        return TurnFacts(
            caller=caller,
            turn_id=new_id(IdPrefix.RESPONSE),
            conversation_id=start.origin.conversation.id,
            metadata=dict(start.request.metadata or {}),
            knowledge_base_ids=settings.knowledge_base_ids,
            sent_at=now,
            time_zone=self._policy.time_zone,
        )


def _use(response_id: str, meaning: ModelMeaning, own: ConversationSettings) -> PresetUse | None:
    return None if meaning.preset is None else PresetUse(response_id=response_id, name=meaning.name, own=own)
