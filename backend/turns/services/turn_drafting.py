"""Resolving and checking everything about a turn before anything is stored or sent."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast

from backend.conversations.domain.authors import authored
from backend.conversations.domain.conversation_log import newest_epoch_state, summary_of
from backend.conversations.domain.passed_over import IGNORED_KEY, PassedOver
from backend.conversations.domain.placed_blocks import AgentRef
from backend.conversations.domain.responses import (
    Conversation,
    ConversationSettings,
    PresetUse,
    ResponseStatus,
    SettingsDigest,
    StoredResponse,
)
from backend.conversations.domain.waiting_turns import IfRunning
from backend.foundation.domain.json_objects import scan_json
from backend.foundation.services.steps import run_cooperatively, run_in_thread_if_large
from backend.identity.domain import Caller
from backend.knowledge.domain.access import strictest_mode
from backend.knowledge.domain.kb_meta import rendered_bases
from backend.knowledge.domain.knowledge import Binding
from backend.knowledge.domain.labels import decode_labels
from backend.openai_api.domain.client_left import unstored_id
from backend.openai_api.domain.presets import (
    Preset,
    ResolvedModel,
    blocks_of,
    only_usable,
    with_defaults,
    with_preset,
    with_skills,
)
from backend.openai_api.domain.requested_settings import (
    asked_model,
    check_choice,
    forbid_filters,
    forbid_logprobs,
    name_untaken,
    own_settings,
)
from backend.openai_api.domain.response_object import new_body
from backend.openai_api.domain.turn_request import TurnRequest, turn_request_cooperatively
from backend.prompt.domain.block_policy import agents_stated
from backend.prompt.domain.epochs import CallerAccess, plan_epoch, with_unknown_tools
from backend.prompt.domain.listed_files import has_unshown
from backend.prompt.domain.settings_digest import settings_digest
from backend.prompt.domain.system_message import PromptForm, prompt_form
from backend.turns.domain.file_room import files_room
from backend.turns.domain.queued_request import QueuedRequest, check_may_enter
from backend.turns.domain.turn_origin import TurnStart, at_unknown_end
from backend.turns.ports.dynamic_blocks import TurnFacts
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.origin_reader import OriginReader, started
from backend.turns.services.request.carried_summaries import CarriedSummaries
from backend.turns.services.request.input_files import FilesOfRequest, InputFiles
from backend.turns.services.request.item_references import ReferencedItems, ResolvedInput
from backend.turns.services.request.model_names import ModelNames
from backend.turns.services.request.project_files import ProjectFiles
from backend.turns.services.request.tool_catalogue import ToolCatalogue, check_function_names
from backend.turns.services.turn_assembly import shown_input
from backend.turns.services.turn_draft import TurnDraft, TurnPolicy
from backend.turns.services.turn_ports import TurnPorts
from shared.errors import InvalidRequest
from shared.ids import IdPrefix, new_id
from shared.models.execution import AccessMode
from shared.models.messages import UserMessage
from shared.prompts.message_order import with_time_suffix


@dataclass(frozen=True)
class AskedTurn:
    """Who asks for a turn, their request without references and files, and these files.

    Of a turn that has waited, `waited` is the response as it was shown.
    """

    caller: Caller
    resolved: ResolvedInput
    files: FilesOfRequest
    waited: StoredResponse | None = None


class QueuedDraft(NamedTuple):
    """The response of a turn that has to wait, and the messages that may enter the running turn instead."""

    response: StoredResponse
    messages: tuple[UserMessage, ...]


class _Settings(NamedTuple):
    """What a turn runs with: its model, a preset with its skills, its request with the preset's defaults, its settings.

    `own` are the settings without the preset's. `bindings` are the bases in scope, none until they are looked at.
    """

    meaning: ResolvedModel
    preset: Preset | None
    request: TurnRequest
    own: ConversationSettings
    settings: ConversationSettings
    bindings: tuple[Binding, ...] = ()


class TurnDrafting:
    """Prepares turns; it stores nothing."""

    def __init__(self, ports: TurnPorts, context: ContextSources, models: ModelNames, policy: TurnPolicy) -> None:
        self._clock = ports.clock
        self._origins = OriginReader(ports, self._asked_digest, policy.secret)
        self._references = ReferencedItems(ports.conversations, context)
        self._summaries = CarriedSummaries(context, policy.secret)
        self._files = InputFiles(ports.documents, ports.files)
        self._projects = ProjectFiles(ports.agent_files)
        self._context = context
        self._models = models
        self._tools = ToolCatalogue(ports.chat_shell, ports.clock)
        self._policy = policy

    async def asked(self, caller: Caller, request: TurnRequest) -> AskedTurn:
        """Return a request whose input names no stored items any more, apart from the files that it gives.

        Raises:
            InvalidRequest: there is no such item of this caller, or a file is neither given nor named; `param` names
                the place.
        """
        return await self._separated(caller, await self.resolved(caller, request))

    async def asked_again(self, later: QueuedRequest, waited: StoredResponse) -> AskedTurn:
        """Return the request of a turn that has waited, as `asked` does."""
        metadata = cast("dict[str, str]", waited.body["metadata"])
        # What was passed over at first is not in the request any more; the response was shown with it.
        passed_over = PassedOver(metadata.get(IGNORED_KEY, ""))
        again = await run_cooperatively(turn_request_cooperatively(scan_json(later.request.encode()), passed_over))
        request = again.model_copy(update={"metadata": metadata})
        labels = {item_id: decode_labels(encoded) for item_id, encoded in later.labels.items()}
        return replace(await self._separated(later.caller, ResolvedInput(request, labels)), waited=waited)

    async def resolved(self, caller: Caller, request: TurnRequest) -> ResolvedInput:
        """Return a request with stored items in the places of those that name them.

        Raises:
            InvalidRequest: there is no such item of this caller; `param` names the place.
        """
        return await self._references.resolved(caller, request)

    async def queued(self, caller: Caller, resolved: ResolvedInput, conversation: Conversation) -> QueuedDraft:
        """Check what can be known of a turn before the one that runs has ended, and return its response, queued.

        Raises:
            InvalidRequest: the input is not valid, the tool that must be called is not there, or what should enter the
                running turn is more than messages of the user.
            NotFound: a model or base does not exist for this caller.
            PermissionDenied: the turn is restricted and filters by attributes.
        """
        asked = await self._separated(caller, resolved)
        start = await started(at_unknown_end(conversation), asked.resolved.request)
        known = await self._known(caller, start)
        has_files = known.preset is not None and bool(known.preset.file_ids)
        mode = strictest_mode(known.bindings)
        check_choice(known.request, known.settings, has_bases=bool(known.bindings) or has_files, mode=mode)
        now, response_id = self._clock.now(), new_id(IdPrefix.RESPONSE)
        shown = known.settings.model_copy(update={"instructions": known.own.instructions})
        body = new_body(known.request, shown, response_id, conversation.id, now)
        steering = start.request.if_running == IfRunning.STEER
        messages = await self._messages(asked, start) if steering else ()
        response = StoredResponse(
            id=response_id,
            tenant=caller.tenant,
            user_id=caller.user_id,
            conversation_id=conversation.id,
            created_at=now,
            status=ResponseStatus.QUEUED,
            background=start.request.is_background,
            body={**body, "model": known.meaning.name, "status": ResponseStatus.QUEUED.value},
            input_items=shown_input(start.request),
            log_end=None,
            items_end=None,
            last_event=-1,
            replica="",
            label=asked.resolved.labels_of(start.request),
        )
        return QueuedDraft(response, messages)

    async def _messages(self, asked: AskedTurn, start: TurnStart) -> tuple[UserMessage, ...]:
        """Return the messages of an input as a running turn gets them."""
        is_plain = all(isinstance(each, UserMessage) for each in start.read.messages)
        if asked.files.files or start.read.instructions or not is_plain:
            message = "What enters a running turn are messages of the user alone; give nothing else, or let it queue."
            raise InvalidRequest(message, param="input")
        if asked.resolved.labels_of(start.request):
            # The label of the running turn, which says who may read it, is stored already.
            message = "What enters a running turn names no stored items that come from knowledge; let it queue."
            raise InvalidRequest(message, param="input")
        author = start.origin.conversation.people.author_of(asked.caller.user_id)
        read = await run_in_thread_if_large(start.size, lambda: authored(start.read, author))
        now, zone = self._clock.now(), self._policy.time_zone
        said = [each for each in read.messages if isinstance(each, UserMessage)]
        check_may_enter(said)
        return tuple(UserMessage(content=with_time_suffix(each.content, now, zone)) for each in said)

    async def _separated(self, caller: Caller, resolved: ResolvedInput) -> AskedTurn:
        opened = await self._summaries.opened(caller, resolved)
        plain, files = await self._files.separated(opened.request)
        return AskedTurn(caller, replace(opened, request=plain), files)

    async def start(self, asked: AskedTurn) -> TurnStart:
        """Return where a turn begins.

        Raises:
            InvalidRequest: the input is not valid there; `param` names the place.
            NotFound: the conversation or the response does not exist for this caller.
            TurnRunning: a turn holds the conversation.
        """
        waits_for = asked.waited.conversation_id if asked.waited is not None else None
        start = await self._origins.find(asked.caller, asked.resolved.request, waits_for)
        return replace(start, labels=asked.resolved.labels_of(start.request))

    async def branch(self, asked: AskedTurn, start: TurnStart, model: str) -> TurnStart:
        """Return where a turn of another model begins that branches off from where a turn does."""
        branch = await self._origins.branch(asked.caller, start)
        return replace(branch, request=start.request.model_copy(update={"model": model}))

    async def draft(self, asked: AskedTurn, start: TurnStart, request_id: str) -> TurnDraft:
        """Resolve the model, the settings, the files, the bases and the context of a turn that begins now.

        Raises:
            InvalidRequest: the tool that must be called is not there, or a file cannot be read.
            ContextTooLong: a file of the input does not fit the model's window.
            NotFound: a model or base does not exist for this caller.
            PermissionDenied: the turn is restricted and filters by attributes.
            Unavailable: a service that the turn depends on is unavailable. Retryable.
        """
        caller, origin, now = asked.caller, start.origin, self._clock.now()
        meaning, preset, request, own, settings, bindings = await self._known(caller, start)
        blocks, form = blocks_of(preset), self._form(caller, meaning)
        project = await self._projects.in_turn(caller.tenant, meaning.preset, meaning.card, origin.log)
        has_bases, mode = bool(bindings) or project.base is not None, strictest_mode(bindings)
        check_choice(request, settings, has_bases=has_bases, mode=mode)
        texts = (project.text, blocks.instructions, form.opening, blocks.reminder)
        room = partial(files_room, start, settings, meaning.card, texts)
        given = await self._files.put_into(caller, start.read, asked.files, room)
        author = origin.conversation.people.author_of(caller.user_id)
        read = await run_in_thread_if_large(start.size, lambda: authored(given, author))
        blocks = blocks.model_copy(update={"project_files": project.text, "files": read.files})
        access = await self._access(caller, start, bindings, meaning)
        facts = self._facts(asked, start, settings, now)
        epoch = plan_epoch(origin.conversation, origin.log, settings, access, form, reads_files=has_unshown(read))
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
            epoch=with_unknown_tools(epoch) if origin.has_unknown_tools else epoch,
            meaning=meaning,
            needs_log_end=start.needs_log_end,
            seen=start.seen,
            given=start.labels,
            preset_use=_use(facts.turn_id, meaning, own, settings),
            waited=asked.waited,
            blocks=blocks,
            project_base=project.base,
            charged_to=start.charged_to,
        )

    async def _known(self, caller: Caller, start: TurnStart) -> _Settings:
        """Resolve and check what a turn runs with, apart from its messages."""
        asked = await self._asked(caller, start)
        own, joined = asked.own, asked.settings
        request = name_untaken(asked.request, asked.meaning.card)
        bindings = await self._context.bindings(caller, request, joined.knowledge_base_ids)
        mode = strictest_mode(bindings)
        preset = with_skills(asked.meaning.preset, joined.served, mode)
        if mode is not AccessMode.FULL:
            forbid_filters(request, own, joined)
            forbid_logprobs(request)
            joined = with_preset(own, preset, joined.served)
        settings = only_usable(joined, own, [binding.base.id for binding in bindings])
        return asked._replace(preset=preset, request=request, settings=settings, bindings=bindings)

    async def _asked(self, caller: Caller, start: TurnStart) -> _Settings:
        """Resolve what a turn asks for, without looking at the bases that it names."""
        meaning = await self._models.meaning(caller, asked_model(start.request, start.before))
        request = with_defaults(start.request, meaning.preset)
        own = own_settings(request, start.before, start.read.instructions, meaning.card.name)
        fixed_before = start.origin.conversation.served
        served = await self._tools.fixed(request, own.served.own, meaning.preset, fixed_before)
        preset = with_skills(meaning.preset, served)
        joined = with_preset(own, preset, served)
        check_function_names(joined.functions, served)
        return _Settings(meaning, preset, request, own, joined)

    async def _asked_digest(self, caller: Caller, start: TurnStart) -> SettingsDigest:
        asked = await self._asked(caller, start)
        return settings_digest(asked.settings, blocks_of(asked.preset))

    def _form(self, caller: Caller, meaning: ResolvedModel) -> PromptForm:
        values = {
            "user.name": caller.user_id,
            "user.id": caller.user_id,
            "user.tenant": caller.tenant,
            "agent.name": meaning.preset.name if meaning.preset is not None else "",
            "model": meaning.card.name,
        }
        return prompt_form(blocks_of(meaning.preset), self._policy.system_prompt, values)

    async def _access(
        self, caller: Caller, start: TurnStart, bindings: tuple[Binding, ...], meaning: ResolvedModel
    ) -> CallerAccess:
        log = start.origin.log
        known = frozenset([meaning.preset.ref] if meaning.preset is not None else list[AgentRef]())
        reset = newest_epoch_state(log)
        others = agents_stated(log, reset) - known
        withheld = await self._context.withheld(caller, log)
        for summary in summary_of(log, reset):
            if await self._models.has_lost(caller, summary.agents - known):
                withheld |= {summary.turn_id}
        return CallerAccess(
            mode=strictest_mode(bindings),
            withheld=tuple(sorted(withheld)),
            withholds_users=bool(withheld) and start.origin.conversation.people.is_shared,
            modes={binding.base.id: binding.role.access_mode for binding in bindings},
            has_lost_agent=await self._models.has_lost(caller, others),
        )

    def new_response_id(self, asked: AskedTurn) -> str:
        """Create the id of a response; a request can stop a turn that is not stored by the id alone."""
        if asked.resolved.request.is_stored:
            return new_id(IdPrefix.RESPONSE)
        return unstored_id(self._policy.secret, asked.caller)

    def _facts(self, asked: AskedTurn, start: TurnStart, settings: ConversationSettings, now: datetime) -> TurnFacts:
        return TurnFacts(
            caller=asked.caller,
            turn_id=asked.waited.id if asked.waited is not None else self.new_response_id(asked),
            conversation_id=start.origin.conversation.id,
            metadata=dict(start.request.metadata or {}),
            knowledge_base_ids=settings.knowledge_base_ids,
            sent_at=now,
            time_zone=self._policy.time_zone,
        )


def _use(
    response_id: str, meaning: ResolvedModel, own: ConversationSettings, settings: ConversationSettings
) -> PresetUse | None:
    if meaning.preset is None:
        return None
    return PresetUse(
        response_id=response_id,
        name=meaning.name,
        own=own,
        agent_id=meaning.preset.id,
        instructions=settings.instructions,
    )
