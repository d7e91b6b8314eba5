"""The scan of all output of a restricted turn, before any of it is stored or sent."""

from collections.abc import Iterable, Iterator, Sequence

from backend.restricted.domain.outgoing_events import CutCause, WaitingEvents, texts_of
from backend.restricted.domain.outgoing_text import HeldText, OwnWords, PendingCheck
from backend.restricted.services.outgoing_check import OutgoingCheck
from shared.models.coalescing import coalesced
from shared.models.events import (
    CitationAdded,
    ExecutionEvent,
    FinishReason,
    MessagesAdded,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    TextDelta,
    TurnFinished,
    Usage,
)
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.messages import AssistantMessage, TextPart, UserMessage
from shared.plain_text.figures import Figure
from shared.prompts.knowledge_base import ANSWER_CUT

_PARAGRAPH_END = "\n\n"


class OutgoingScan:
    """Passes on the events of one restricted turn, in order, once their texts are found free of restricted text.

    `cut_for` is why the answer was cut, None if it was not; `base_ids` are the restricted bases in scope.
    """

    def __init__(self, check: OutgoingCheck, request: ExecutionRequest) -> None:
        bases = request.knowledge.bases
        self.base_ids = tuple(base.id for base in bases if base.access_mode is not AccessMode.FULL)
        self.cut_for: CutCause | None = None
        self._check = check
        self._user_id = request.user.id
        self._readable_ids = tuple(base.id for base in bases if base.access_mode is AccessMode.FULL)
        self._own = OwnWords(list(_user_texts(request)))
        self._answer, self._thinking = HeldText(self._own), HeldText(self._own)
        self._waiting = WaitingEvents()
        self._sent_in_call: list[str] = []
        self._judged: set[str] = set()
        self._served = check.served_figures(self._user_id, self.base_ids)
        self._is_ended = False

    async def passed(self, events: Iterable[ExecutionEvent]) -> list[ExecutionEvent]:
        """Return the events that may be sent now. A cut ends the turn; later events are dropped.

        Raises:
            Unavailable: the database is away, so that text cannot be checked.
        """
        passed: list[ExecutionEvent] = []
        for event in coalesced(events):
            if self.cut_for is None:
                let_through = await self._let_through(event)
                self._note(let_through)
                passed.extend(let_through)
        return passed + self._last_events() if self.cut_for is not None else passed

    async def rest(self) -> list[ExecutionEvent]:
        """Return the events that are still held of a turn that ended early.

        Raises:
            Unavailable: the database is away, so that text cannot be checked.
        """
        rest = await self._freed(is_word_over=True) if self.cut_for is None else []
        return rest + self._last_events() if self.cut_for is not None else rest

    async def _let_through(self, event: ExecutionEvent) -> list[ExecutionEvent]:
        match event:
            case TextDelta() | RefusalDelta() | ReasoningDelta():
                return await self._held(event)
            case CitationAdded():
                return await self._cited(event)
            case ModelCallStarted():
                await self._served.begin_call()
            case SearchFinished():
                event = event.model_copy(update={"results": ()})
            case _:
                """Other events are passed on unchanged."""
        return await self._judged_event(event)

    async def _held(self, event: TextDelta | RefusalDelta | ReasoningDelta) -> list[ExecutionEvent]:
        """Hold a delta and return what may be sent; answer and reasoning are never held at the same time."""
        thinks = isinstance(event, ReasoningDelta)
        held, other = (self._thinking, self._answer) if thinks else (self._answer, self._thinking)
        freed = await self._freed(is_word_over=False) if other else []
        if self.cut_for is not None:
            return []
        held.add(event.text)
        self._waiting.add(event)
        return freed + await self._taken(held, at_end=False, is_word_over=False)

    async def _cited(self, event: CitationAdded) -> list[ExecutionEvent]:
        if not await self._check.is_in(event.file_id, self._readable_ids):
            return []
        self._waiting.add(event)
        return self._waiting.take(0)

    async def _judged_event(self, event: ExecutionEvent) -> list[ExecutionEvent]:
        """Release the text that is held before an event, then check the event's own texts."""
        freed = await self._freed(is_word_over=True)
        self._judged.add("".join(self._sent_in_call + [_text_of(one) for one in freed]))
        for text in texts_of(event):
            if self.cut_for is None and text not in self._judged:
                whole = HeldText(self._own)
                whole.add(text)
                await self._judge(whole.pending_check(at_end=True))
                self._judged.add(text)
        return freed if self.cut_for is not None else [*freed, event]

    async def _freed(self, *, is_word_over: bool) -> list[ExecutionEvent]:
        freed: list[ExecutionEvent] = []
        for held in (self._answer, self._thinking):
            freed += await self._taken(held, at_end=True, is_word_over=is_word_over)
        return freed

    async def _taken(self, held: HeldText, *, at_end: bool, is_word_over: bool) -> list[ExecutionEvent]:
        pending = held.pending_check(at_end=at_end)
        if pending is None:
            return []
        await self._judge(pending)
        if self.cut_for is not None:
            return []
        return self._waiting.take(held.take(at_end=at_end, is_word_over=is_word_over))

    async def _judge(self, pending: PendingCheck | None) -> None:
        if pending is None:
            return
        self.cut_for = await self._check.passage_or_canary(pending, self.base_ids)
        if self.cut_for is None and pending.figures and await self._is_telling(pending.figures):
            self.cut_for = CutCause.FIGURE
        if self.cut_for is not None:
            await self._check.count_cut(self._user_id, self.base_ids)

    async def _is_telling(self, said: frozenset[Figure]) -> bool:
        """Return whether a figure was served or the user is paused: repeated cuts could otherwise reveal figures."""
        return await self._served.holds(said) or await self._check.is_paused(self._user_id, self.base_ids)

    def _note(self, passed: Sequence[ExecutionEvent]) -> None:
        for event in passed:
            if isinstance(event, ModelCallStarted | MessagesAdded):
                self._sent_in_call.clear()
            self._sent_in_call.append(_text_of(event))

    def _last_events(self) -> list[ExecutionEvent]:
        """End the turn with the fixed sentence; the log gets the text sent in this model call, and the sentence."""
        if self._is_ended:
            return []
        self._is_ended = True
        said = "".join(self._sent_in_call)
        ending = f"{_PARAGRAPH_END}{ANSWER_CUT}" if said else ANSWER_CUT
        return [
            TextDelta(text=ending),
            MessagesAdded(messages=(AssistantMessage(text=said + ending),)),
            TurnFinished(finish_reason=FinishReason.CONTENT_FILTER, usage=Usage()),
        ]


def _text_of(event: ExecutionEvent) -> str:
    return event.text if isinstance(event, TextDelta | RefusalDelta) else ""


def _user_texts(request: ExecutionRequest) -> Iterator[str]:
    contents = [message.content for message in request.history if isinstance(message, UserMessage)]
    for content in (*contents, request.prompt or ""):
        if isinstance(content, str):
            yield content
        else:
            yield from (part.text for part in content if isinstance(part, TextPart))
