"""What is stored of a turn at its start, so that another process can continue it.

Most of a request is in the log and in the conversation, whose settings are those of the turn that holds it. The plan
holds the rest.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    messages_of,
    newest_epoch_state,
    sent_before,
    sent_entries,
    user_words,
)
from backend.conversations.domain.placed_blocks import text_digest
from backend.conversations.domain.responses import ConversationSettings, OpenedConversation, StoredResponse
from backend.prompt.domain.prompt_tail import MovedBlock, history_with, placed_again
from shared.models.execution import (
    AccessMode,
    ExecutionRequest,
    Knowledge,
    KnowledgeBaseRef,
    ModelParameters,
    TurnLimits,
    User,
)
from shared.models.messages import Content, SystemMessage, TurnMessage, UserMessage
from shared.models.values import Instant, Value
from shared.prompts.message_order import context_of_request, without_time_suffix


class InputPlaces(NamedTuple):
    """Where a turn's input stands in the log.

    At `history_end` the messages begin that its request carries by themselves, and `input_end` is the length of the log
    with them. What stands behind, the turn has added.
    """

    history_end: int
    input_end: int


class PlannedBlock(Value):
    """A block that stands in no log; its text is stored once for the conversation, under its digest."""

    index: int
    kind: EntryKind
    digest: str


def planned_blocks(moved: Sequence[MovedBlock]) -> tuple[PlannedBlock, ...]:
    """Return what a plan holds of moved blocks."""
    return tuple(PlannedBlock(index=one.index, kind=one.kind, digest=text_digest(one.text)) for one in moved)


class TurnPlan(Value):
    """The parts of a turn's request that are stored nowhere else.

    `history_end` is the position in the log at which the messages begin that the request carries by themselves,
    `input_end` the length of the log with them. `context` is the context message where the log has none. `moved` are
    the blocks of the turn's agent that stand in no log. `charged_to` is as in `Ticket`.
    """

    request_id: str
    parameters: ModelParameters
    time_zone: str
    bases: tuple[KnowledgeBaseRef, ...]
    access_mode: AccessMode
    limits: TurnLimits
    deadline: Instant
    history_end: int
    input_end: int
    context: str
    keeps_context: bool
    with_results: bool
    reminder: str = ""
    charged_to: str | None = None
    moved: tuple[PlannedBlock, ...] = ()

    @property
    def places(self) -> InputPlaces:
        """Where the turn's input stands in the log."""
        return InputPlaces(self.history_end, self.input_end)

    def moved_blocks(self, texts: Mapping[str, str]) -> tuple[MovedBlock, ...]:
        """Return the blocks with their texts, which are given by their digests.

        Raises:
            ValueError: the text of one is missing.
        """
        missing = [one.digest for one in self.moved if one.digest not in texts]
        if missing:
            raise ValueError(f"moved: the texts of {len(missing)} blocks are missing")
        return tuple(MovedBlock(index=one.index, kind=one.kind, text=texts[one.digest]) for one in self.moved)


def plan_of(request: ExecutionRequest, places: InputPlaces, *, keeps_context: bool, with_results: bool) -> TurnPlan:
    """Take from a request what another process cannot find."""
    return TurnPlan(
        request_id=request.request_id,
        parameters=request.parameters,
        time_zone=request.time_zone,
        bases=request.knowledge.bases,
        access_mode=request.knowledge.access_mode,
        # Another process asks for the model's window itself.
        limits=request.limits.model_copy(update={"hand_back_tokens": None}),
        deadline=request.deadline,
        history_end=places.history_end,
        input_end=places.input_end,
        context="" if keeps_context else context_of_request(request),
        keeps_context=keeps_context,
        with_results=with_results,
        reminder=request.reminder,
    )


def continued_request(
    response: StoredResponse,
    plan: TurnPlan,
    opened: OpenedConversation,
    moved: Sequence[MovedBlock],
    ticket: str,
) -> ExecutionRequest:
    """Build the request by which another process continues a turn: the model gets the same bytes.

    Raises:
        ValueError: the log does not hold what the plan says of it.
    """
    conversation, log = opened.conversation, opened.log
    reset = newest_epoch_state(log)
    parts = _parts_of(log, plan.places)
    settings = ConversationSettings(
        model=conversation.model,
        instructions=conversation.instructions,
        functions=conversation.functions,
        knowledge_base_ids=conversation.knowledge_base_ids,
    )
    return ExecutionRequest(
        request_id=plan.request_id,
        conversation_id=conversation.id,
        turn_id=response.id,
        epoch=conversation.epoch,
        user=User(id=response.user_id, tenant=response.tenant, display_name=response.user_id),
        model=settings.model,
        parameters=plan.parameters,
        system_prompt=settings.system_prompt(reset),
        history=history_with(parts.history, placed_again(parts.input, moved)),
        kb_meta_prompt=_text_of(parts.carried) or plan.context,
        dynamic_blocks=(),
        prompt=_prompt(parts.carried, response, plan.time_zone),
        sent_at=response.created_at,
        time_zone=plan.time_zone,
        knowledge=Knowledge(
            bases=plan.bases,
            access_mode=plan.access_mode,
            ticket=ticket,
            user_words="" if plan.access_mode is AccessMode.FULL else user_words(log, response.user_id),
        ),
        tools=settings.functions,
        reads_files=reset.reads_files,
        limits=plan.limits,
        cache_key=conversation.cache_key,
        deadline=plan.deadline,
        served_tools=conversation.served.tools,
        added=parts.added,
        reminder=plan.reminder,
    )


def later_request(
    request: ExecutionRequest, log: Sequence[Entry], places: InputPlaces, moved: Sequence[MovedBlock] = ()
) -> ExecutionRequest:
    """Build the request by which a running turn goes on: `request` was its last, `log` is the log that it has grown to.

    What the model has been sent of the epoch is sent again, byte for byte, with all that the turn has added since.
    """
    parts, knowledge = _parts_of(log, places), request.knowledge
    if knowledge.access_mode is not AccessMode.FULL:
        knowledge = knowledge.model_copy(update={"user_words": user_words(log, request.user.id)})
    history = history_with(parts.history, placed_again(parts.input, moved))
    changes = {"epoch": log[-1].epoch, "history": history, "added": parts.added, "knowledge": knowledge}
    return request.model_copy(update=changes)


def moved_in(log: Sequence[Entry], places: InputPlaces, moved: Sequence[MovedBlock]) -> tuple[MovedBlock, ...]:
    """Return the blocks of a turn that stand in no log, with their indexes in the newest request."""
    return placed_again(_parts_of(log, places).input, moved)


class _LogParts(NamedTuple):
    """What a request takes from the log; `input` is what of it stood there when the turn began, with its input."""

    input: tuple[Entry, ...]
    history: tuple[Entry, ...]
    carried: Sequence[Entry]
    added: tuple[TurnMessage, ...]


def _parts_of(log: Sequence[Entry], places: InputPlaces) -> _LogParts:
    sent = sent_entries(log, newest_epoch_state(log))
    added = messages_of(
        entry for entry in sent if entry.position >= places.input_end and entry.kind is not EntryKind.SUMMARY
    )
    return _LogParts(
        input=sent_before(sent, places.input_end),
        history=sent_before(sent, places.history_end),
        carried=log[places.history_end : places.input_end],
        added=tuple(message for message in added if not isinstance(message, SystemMessage)),
    )


def _text_of(carried: Sequence[Entry]) -> str:
    """Return the text of the context message; "" where none was sent."""
    stated = [entry.message for entry in carried if entry.kind is EntryKind.DYNAMIC_CONTEXT]
    return "".join(
        message.content for message in stated if isinstance(message, UserMessage) and isinstance(message.content, str)
    )


def _prompt(carried: Sequence[Entry], response: StoredResponse, time_zone: str) -> Content | None:
    current = next((entry.message for entry in carried if entry.kind is EntryKind.USER), None)
    if not isinstance(current, UserMessage):
        return None
    return without_time_suffix(current.content, response.created_at, time_zone)
