"""The scan of all output of a restricted turn, before any of it is stored or sent."""

import asyncio
from collections.abc import Sequence

from backend.restricted.domain.figure_marks import mark_figures
from backend.restricted.domain.outgoing_events import CutCause, WaitingEvents, texts_of, with_rounded_usage, with_texts
from backend.restricted.domain.outgoing_text import OwnWords, PendingCheck, StreamFilterBuffer
from backend.restricted.services.outgoing_check import CutPlace, OutgoingCheck
from shared.models.coalescing import coalesce
from shared.models.events import (
    CitationAdded,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    TextDelta,
    TextLogprobs,
    TurnFailed,
    TurnFinished,
    TurnHandedBack,
    Usage,
)
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.messages import AssistantMessage
from shared.prompts.knowledge_base import ANSWER_CUT

_PARAGRAPH_END = "\n\n"


class OutgoingScan:
    """Passes on the events of one restricted turn, in order, once their texts are found free of restricted text.

    Figures become marks, unless the user wrote them in this conversation.
    `cut_for` is why the answer was cut, None if it was not; `base_ids` are the restricted bases in scope.
    """

    def __init__(self, check: OutgoingCheck, request: ExecutionRequest) -> None:
        bases = request.knowledge.bases
        self.base_ids = tuple(base.id for base in bases if base.access_mode is not AccessMode.FULL)
        self.cut_for: CutCause | None = None
        self._check = check
        self._user_id = request.user.id
        self._readable_ids = tuple(base.id for base in bases if base.access_mode is AccessMode.FULL)
        self.hear(request.knowledge.user_words)
        self._waiting = WaitingEvents()
        self._said_in_call: list[str] = []
        self._sent_in_call: list[str] = []
        self._shown: dict[str, str] = {}
        self._is_ended = False

    def hear(self, user_words: str) -> None:
        """Take what the user has written by now as their own words; call it where no text is held."""
        self._own = OwnWords(user_words, keeps_citations=bool(self._readable_ids))
        self._answer, self._thinking = StreamFilterBuffer(self._own), StreamFilterBuffer(self._own)

    async def let_pass(self, events: Sequence[ExecutionEvent]) -> list[ExecutionEvent]:
        """Return the events that may be sent now. A cut ends the turn; later events are dropped.

        Raises:
            Unavailable: the database is away, so that text cannot be checked.
        """
        passed: list[ExecutionEvent] = []
        for event in coalesce(events):
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
        rest = await self._free(is_word_over=True) if self.cut_for is None else []
        self._note(rest)
        return rest + self._last_events() if self.cut_for is not None else rest

    async def _let_through(self, event: ExecutionEvent) -> list[ExecutionEvent]:
        match event:
            case TextDelta() | RefusalDelta() | ReasoningDelta():
                return await self._hold(event)
            case CitationAdded():
                return await self._cite(event)
            case FunctionCallDelta() | TextLogprobs():
                return []  # calls are scanned as a whole; the alternatives of a withheld word would tell it
            case SearchFinished():
                event = event.model_copy(update={"results": ()})
            case ModelCallFinished() | TurnFinished() | TurnHandedBack() | TurnFailed():
                event = with_rounded_usage(event)
            case _:
                """Other events are passed on unchanged."""
        return await self._judge_event(event)

    async def _hold(self, event: TextDelta | RefusalDelta | ReasoningDelta) -> list[ExecutionEvent]:
        """Hold a delta and return what may be sent; answer and reasoning are never held at the same time."""
        thinks = isinstance(event, ReasoningDelta)
        held, other = (self._thinking, self._answer) if thinks else (self._answer, self._thinking)
        freed = await self._free(is_word_over=False) if other else []
        if self.cut_for is not None:
            return freed
        held.add(event.text)
        self._said_in_call.append(_text_of(event))
        self._waiting.add(event)
        return freed + await self._take(held, at_end=False, is_word_over=False)

    async def _cite(self, event: CitationAdded) -> list[ExecutionEvent]:
        if not await self._check.is_in(event.file_id, self._readable_ids):
            return []
        self._waiting.add(event)
        return self._waiting.take(())

    async def _judge_event(self, event: ExecutionEvent) -> list[ExecutionEvent]:
        """Release the text that is held before an event, then check the event's own texts and replace their figures."""
        freed = await self._free(is_word_over=True)
        if self.cut_for is not None:
            return freed
        self._shown["".join(self._said_in_call)] = "".join(self._sent_in_call + [_text_of(one) for one in freed])
        for text in texts_of(event):
            if self.cut_for is None and text not in self._shown:
                whole = StreamFilterBuffer(self._own)
                whole.add(text)
                await self._judge(whole.build_pending_check(at_end=True))
                self._shown[text] = mark_figures(text, self._own.figures)
        if isinstance(event, ModelCallStarted | MessagesAdded):
            self._said_in_call.clear()
            self._waiting.begin_call()
        return freed if self.cut_for is not None else [*freed, with_texts(event, self._show_for)]

    def _show_for(self, text: str) -> str:
        """Return a text as the client saw it while it was streamed, else with its figures replaced."""
        shown = self._shown.get(text)
        return mark_figures(text, self._own.figures) if shown is None else shown

    async def _free(self, *, is_word_over: bool) -> list[ExecutionEvent]:
        freed: list[ExecutionEvent] = []
        for held in (self._answer, self._thinking):
            if self.cut_for is None:
                freed += await self._take(held, at_end=True, is_word_over=is_word_over)
        return freed

    async def _take(self, held: StreamFilterBuffer, *, at_end: bool, is_word_over: bool) -> list[ExecutionEvent]:
        pending = held.build_pending_check(at_end=at_end)
        if pending is None:
            return []
        cut = await self._judge(pending)
        if cut is not None:
            return self._waiting.take(held.take_before(cut.span))
        return self._waiting.take(held.take(at_end=at_end, is_word_over=is_word_over))

    async def _judge(self, pending: PendingCheck | None) -> CutPlace | None:
        cut = await self._check.cut_of(pending, self.base_ids) if pending is not None else None
        if cut is not None:
            self.cut_for = cut.cause
            await self._check.count_cut(self._user_id, self.base_ids)
        return cut

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


class OutgoingTexts:
    """Checks texts for canaries and passages of restricted bases, and replaces their figures."""

    def __init__(self, check: OutgoingCheck) -> None:
        self._check = check

    async def let_pass(
        self, texts: Sequence[str], *, user_id: str, user_words: str, base_ids: Sequence[str]
    ) -> tuple[str, ...] | None:
        """Return the texts with their figures replaced, but for those that the user wrote; None where one is cut.

        The texts are also read in one go, so that no passage is spread over several. A cut counts as a refusal.

        Raises:
            Unavailable: the database is away, so that text cannot be checked.
        """
        # In a thread: a long query has many words.
        pending, shown = await asyncio.to_thread(_prepare, texts, user_words)
        if pending is not None and await self._check.cut_of(pending, base_ids) is not None:
            await self._check.count_cut(user_id, base_ids)
            return None
        return shown


def _prepare(texts: Sequence[str], user_words: str) -> tuple[PendingCheck | None, tuple[str, ...]]:
    own = OwnWords(user_words)
    held = StreamFilterBuffer(own)
    held.add("\n".join(texts))
    return held.build_pending_check(at_end=True), tuple(mark_figures(text, own.figures) for text in texts)
