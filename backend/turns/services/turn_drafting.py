"""Resolving and checking everything about a turn before anything is stored or sent."""

from datetime import datetime
from functools import partial
from typing import NamedTuple

from backend.conversations.domain.authors import add_author
from backend.conversations.domain.responses import Conversation, ConversationSettings, ResponseStatus, StoredResponse
from backend.conversations.domain.waiting_turns import IfRunning
from backend.foundation.services.steps import run_in_thread_if_large
from backend.identity.domain import Caller
from backend.knowledge.domain.kb_meta import render_bases
from backend.knowledge.domain.knowledge import strictest_mode
from backend.openai_api.domain.client_left import create_unstored_id
from backend.openai_api.domain.presets import ResolvedModel, blocks_of
from backend.openai_api.domain.requested_settings import check_choice
from backend.openai_api.domain.response_object import new_body
from backend.prompt.domain.epochs import plan_epoch, with_unknown_tools
from backend.prompt.domain.listed_files import has_unshown
from backend.prompt.domain.system_message import PromptForm, prompt_form
from backend.turns.domain.file_room import files_room
from backend.turns.domain.queued_request import check_may_enter
from backend.turns.domain.turn_origin import TurnStart, at_unknown_end
from backend.turns.ports.dynamic_blocks import TurnFacts
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.origin_reader import read_start
from backend.turns.services.request.input_files import InputFiles
from backend.turns.services.request.project_files import ProjectFiles
from backend.turns.services.request.settings_reader import SettingsReader
from backend.turns.services.turn_assembly import show_input
from backend.turns.services.turn_draft import AskedTurn, TurnDraft, TurnPolicy
from shared.clock import Clock
from shared.errors import InvalidRequest
from shared.ids import IdPrefix, new_id
from shared.models.messages import UserMessage
from shared.prompts.message_order import with_time_suffix


class QueuedDraft(NamedTuple):
    """The response of a turn that has to wait, and the messages that may enter the running turn instead."""

    response: StoredResponse
    messages: tuple[UserMessage, ...]


class TurnDrafting:
    """Prepares turns; it stores nothing."""

    def __init__(
        self,
        settings: SettingsReader,
        context: ContextSources,
        files: InputFiles,
        projects: ProjectFiles,
        clock: Clock,
        policy: TurnPolicy,
    ) -> None:
        self._settings = settings
        self._context = context
        self._files = files
        self._projects = projects
        self._clock = clock
        self.policy = policy

    async def draft_queued(self, asked: AskedTurn, conversation: Conversation) -> QueuedDraft:
        """Check what can be known of a turn before the one that runs has ended, and return its response, queued.

        Raises:
            InvalidRequest: the input is not valid, the tool that must be called is not there, or what should enter the
                running turn is more than messages of the user.
            NotFound: a model or base does not exist for this caller.
            PermissionDenied: the turn is restricted and filters by attributes.
        """
        caller, start = asked.caller, await read_start(at_unknown_end(conversation), asked.request)
        known = await self._settings.read(caller, start)
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
            input_items=show_input(start.request),
            log_end=None,
            items_end=None,
            last_event=-1,
            replica="",
            label=asked.labels_of(start.request),
        )
        return QueuedDraft(response, messages)

    async def _messages(self, asked: AskedTurn, start: TurnStart) -> tuple[UserMessage, ...]:
        """Return the messages of an input as a running turn gets them."""
        is_plain = all(isinstance(each, UserMessage) for each in start.read.messages)
        if asked.files.files or start.read.instructions or not is_plain:
            message = "What enters a running turn are messages of the user alone; give nothing else, or let it queue."
            raise InvalidRequest(message, param="input")
        if asked.labels_of(start.request):
            # The label of the running turn, which says who may read it, is stored already.
            message = "What enters a running turn names no stored items that come from knowledge; let it queue."
            raise InvalidRequest(message, param="input")
        author = start.origin.conversation.people.author_of(asked.caller.user_id)
        read = await run_in_thread_if_large(start.size, lambda: add_author(start.read, author))
        now, zone = self._clock.now(), self.policy.time_zone
        said = [each for each in read.messages if isinstance(each, UserMessage)]
        check_may_enter(said)
        return tuple(UserMessage(content=with_time_suffix(each.content, now, zone)) for each in said)

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
        chosen = await self._settings.read(caller, start)
        meaning, settings, bindings = chosen.meaning, chosen.settings, chosen.bindings
        blocks, form = blocks_of(chosen.preset), self._form(caller, meaning)
        project = await self._projects.in_turn(caller.tenant, meaning.preset, meaning.card, origin.log)
        has_bases, mode = bool(bindings) or project.base is not None, strictest_mode(bindings)
        check_choice(chosen.request, settings, has_bases=has_bases, mode=mode)
        texts = (project.text, blocks.instructions, form.opening, blocks.reminder)
        room = partial(files_room, start, settings, meaning.card, texts)
        given = await self._files.put_into(caller, start.read, asked.files, room)
        author = origin.conversation.people.author_of(caller.user_id)
        read = await run_in_thread_if_large(start.size, lambda: add_author(given, author))
        blocks = blocks.model_copy(update={"project_files": project.text, "files": read.files})
        access = await self._settings.access(caller, start, chosen)
        facts = self._facts(asked, start, settings, now)
        epoch = plan_epoch(origin.conversation, origin.log, settings, access, form, reads_files=has_unshown(read))
        return TurnDraft(
            policy=self.policy,
            asked=asked,
            start=start,
            chosen=chosen,
            request_id=request_id,
            response_id=facts.turn_id,
            now=now,
            read=read,
            base_texts=render_bases(bindings),
            dynamic_blocks=await self._context.dynamic_blocks(access.mode, facts),
            epoch=with_unknown_tools(epoch) if origin.has_unknown_tools else epoch,
            blocks=blocks,
            project_base=project.base,
        )

    def _form(self, caller: Caller, meaning: ResolvedModel) -> PromptForm:
        values = {
            "user.name": caller.user_id,
            "user.id": caller.user_id,
            "user.tenant": caller.tenant,
            "agent.name": meaning.preset.name if meaning.preset is not None else "",
            "model": meaning.card.name,
        }
        return prompt_form(blocks_of(meaning.preset), self.policy.system_prompt, values)

    def new_response_id(self, asked: AskedTurn) -> str:
        """Create the id of a response; a request can stop a turn that is not stored by the id alone."""
        if asked.request.is_stored:
            return new_id(IdPrefix.RESPONSE)
        return create_unstored_id(self.policy.secret, asked.caller)

    def _facts(self, asked: AskedTurn, start: TurnStart, settings: ConversationSettings, now: datetime) -> TurnFacts:
        return TurnFacts(
            caller=asked.caller,
            turn_id=asked.waited.id if asked.waited is not None else self.new_response_id(asked),
            conversation_id=start.origin.conversation.id,
            metadata=dict(start.request.metadata or {}),
            knowledge_base_ids=settings.knowledge_base_ids,
            sent_at=now,
            time_zone=self.policy.time_zone,
        )
