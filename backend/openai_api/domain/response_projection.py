"""Translating chat_shell's events to the stream events and output items of OpenAI's API.

Event numbers have no gaps. Items are announced before their parts, and parts before their deltas; items that are
still open when a turn breaks off are closed as incomplete.
"""

from collections.abc import Iterable

import orjson

from backend.conversations.domain.item_bodies import NewId
from backend.conversations.domain.responses import ItemBody, ResponseStatus
from backend.openai_api.domain.output_items import (
    ItemStatus,
    OpenCall,
    OpenCustomCall,
    OpenSearch,
    OpenServedCall,
    OpenText,
    PartKind,
    compaction_body,
    compaction_events,
)
from backend.openai_api.domain.response_events import (
    TERMINAL_EVENTS,
    LoggedEvent,
    UnnumberedEvent,
    encode_event,
    error_event,
)
from backend.openai_api.domain.response_object import (
    Ending,
    ResponseBody,
    build_ended_body,
    custom_tools,
    show_body,
    with_left_out,
)
from backend.openai_api.domain.shown_output import ShownOutput
from shared.ids import IdPrefix
from shared.models.events import (
    CitationAdded,
    ExecutionEvent,
    FinishReason,
    FunctionCallDelta,
    FunctionCallRequested,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    SearchStarted,
    ServedCallFinished,
    ServedCallStarted,
    TextDelta,
    TextLogprobs,
)
from shared.models.values import JsonObject, objects_in

CUT_REASONS = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)


class ResponseProjection:
    """Builds the events and items of one response; each method returns the new events."""

    def __init__(self, body: ResponseBody, new_id: NewId, *, with_results: bool) -> None:
        self._body = body
        self._new_id = new_id
        self._with_results = with_results
        self._next_number = 0
        self._items: list[ItemBody | OpenText | OpenSearch | OpenServedCall | OpenCall] = []
        self._message: OpenText | None = None
        self._reasoning: OpenText | None = None
        self._searches: dict[str, OpenSearch] = {}
        self._served_calls: dict[str, OpenServedCall] = {}
        self._calls: dict[str, OpenCall] = {}
        self._left_out: dict[str, None] = {}
        self._logprobs: list[JsonObject] = []

    def restore(self, shown: ShownOutput, left_out: Iterable[str] = ()) -> None:
        """Continue behind the events that another process has sent; `feed` and `finish` then number onward.

        `left_out` is what could not be kept of the answers that it has got.
        """
        self._left_out = dict.fromkeys(left_out)
        self._next_number = shown.next_number
        self._items = list(shown.items)
        self._message, self._reasoning = shown.message, shown.reasoning
        self._searches = {search.item_id: search for search in shown.searches}
        self._served_calls = {call.item_id: call for call in shown.served_calls}
        self._calls = {call.call_id: call for call in shown.calls}

    @property
    def last_number(self) -> int:
        """The number of the newest event, -1 before the first."""
        return self._next_number - 1

    def start(self) -> list[LoggedEvent]:
        """Build the first events; `response.created` has number 0."""
        response = dict(self._body)
        return self._number(
            [
                {"type": "response.created", "response": response},
                {"type": "response.in_progress", "response": response},
            ]
        )

    def feed(self, event: ExecutionEvent) -> list[LoggedEvent]:
        """Translate an event; events that concern only the log give no stream events."""
        match event:
            case TextDelta():
                return self._add_text(event.text)
            case TextLogprobs():
                self._logprobs += objects_in(orjson.loads(event.tokens))
                return []
            case RefusalDelta():
                return self._number(self._add_to_message("refusal", event.text))
            case ReasoningDelta():
                return self._number(self._add_to_reasoning(event.text))
            case CitationAdded():
                return self._number(self._message.cite(event) if self._message is not None else [])
            case ModelCallStarted():
                return self._number(self._close_call("completed"))
            case ModelCallFinished():
                self._left_out.update(dict.fromkeys(event.left_out))
                cut = event.finish_reason in CUT_REASONS
                return self._number(self._close_call("incomplete" if cut else "completed"))
            case _:
                return self._number(self._tool_events(event))

    def show_compaction(self) -> list[LoggedEvent]:
        """Show that an earlier part of the conversation was left out."""
        closed = self._close_call("completed")
        item = compaction_body(self._new_id(IdPrefix.COMPACTION))
        self._items.append(item)
        return self._number([*closed, *compaction_events(len(self._items) - 1, item)])

    def output(self) -> list[ItemBody]:
        """Build the bodies of the items so far, with all results; open items are incomplete."""
        return [item if isinstance(item, dict) else item.body("incomplete") for item in self._items]

    def finish(self, ending: Ending, now_seconds: int) -> tuple[ResponseBody, list[LoggedEvent]]:
        """End the stream; return the response as it is to be stored, and the last events.

        A failure is reported twice, as an `error` event and in `response.failed`.
        """
        status: ItemStatus = "completed" if ending.status is ResponseStatus.COMPLETED else "incomplete"
        events = [*self._close_call(status), *self._close_tool_calls()]
        begun = with_left_out(self._body, self._left_out)
        body = build_ended_body(begun, self.output(), ending, now_seconds)
        if ending.error is not None:
            events.append(error_event(ending.error))
        shown = show_body(body, with_results=self._with_results)
        events.append({"type": TERMINAL_EVENTS[ending.status], "response": shown})
        return body, self._number(events)

    def _add_text(self, text: str) -> list[LoggedEvent]:
        if self._message is not None and text and not self._logprobs:
            event = self._message.add_piece(text, self._next_number)
            if event is not None:
                self._next_number += 1
                return [event]
        return self._number(self._add_to_message("output_text", text))

    def _add_to_message(self, kind: PartKind, text: str) -> list[UnnumberedEvent]:
        if not text:
            return []
        logprobs, self._logprobs = self._logprobs, []
        if self._message is not None:
            return self._message.add(kind, text, logprobs)
        events = self._close_reasoning("completed")
        self._message = OpenText("message", self._new_id(IdPrefix.MESSAGE), len(self._items))
        self._items.append(self._message)
        return [*events, *self._message.announce(), *self._message.add(kind, text, logprobs)]

    def _add_to_reasoning(self, text: str) -> list[UnnumberedEvent]:
        if not text:
            return []
        events: list[UnnumberedEvent] = []
        if self._reasoning is None:
            self._reasoning = OpenText("reasoning", self._new_id(IdPrefix.REASONING), len(self._items))
            self._items.append(self._reasoning)
            events = self._reasoning.announce()
        return [*events, *self._reasoning.add("reasoning_text", text)]

    def _tool_events(self, event: ExecutionEvent) -> list[UnnumberedEvent]:
        match event:
            case ServedCallStarted() if event.call_id not in self._served_calls:
                call = OpenServedCall(self._new_id(IdPrefix.MCP_CALL), len(self._items), event)
                self._served_calls[event.call_id] = call
                self._items.append(call)
                return call.announce()
            case ServedCallFinished() if event.call_id in self._served_calls:
                call = self._served_calls.pop(event.call_id)
                call.end(event)
                return self._close_tool_call(call, "failed" if event.failed else "completed")
            case SearchStarted() if event.call_id not in self._searches:
                search = OpenSearch(self._new_id(IdPrefix.FILE_SEARCH), len(self._items), event.queries)
                self._searches[event.call_id] = search
                self._items.append(search)
                return search.announce()
            case SearchFinished() if event.call_id in self._searches:
                search = self._searches.pop(event.call_id)
                search.keep_results(event.results)
                return self._close_search(search, "failed" if event.failed else "completed")
            case FunctionCallDelta():
                call, events = self._function_call(event)
                return [*events, *call.write(event.arguments)]
            case FunctionCallRequested():
                call, events = self._function_call(event)
                del self._calls[event.call_id]
                return [*events, *call.end(event.arguments), *self._close_tool_call(call, "completed")]
            case _:
                return []

    def _function_call(
        self, event: FunctionCallDelta | FunctionCallRequested
    ) -> tuple[OpenCall, list[UnnumberedEvent]]:
        """Return the open call of an event, and what announces it where it is new."""
        known = self._calls.get(event.call_id)
        if known is not None:
            return known, []
        is_custom = event.name in custom_tools(self._body)
        kind, prefix = (OpenCustomCall, IdPrefix.CUSTOM_TOOL_CALL) if is_custom else (OpenCall, IdPrefix.FUNCTION_CALL)
        call = kind(self._new_id(prefix), len(self._items), event.call_id, event.name)
        self._calls[event.call_id] = call
        self._items.append(call)
        return call, call.announce()

    def _close_call(self, status: ItemStatus) -> list[UnnumberedEvent]:
        events = self._close_reasoning(status)
        message, self._message = self._message, None
        logprobs, self._logprobs = self._logprobs, []
        if message is not None:
            message.add_logprobs(logprobs)
            self._items[message.output_index] = message.body(status)
            events.extend(message.finish(status))
        return events

    def _close_reasoning(self, status: ItemStatus) -> list[UnnumberedEvent]:
        reasoning, self._reasoning = self._reasoning, None
        if reasoning is None:
            return []
        self._items[reasoning.output_index] = reasoning.body(status)
        return reasoning.finish(status)

    def _close_tool_calls(self) -> list[UnnumberedEvent]:
        events = [event for search in self._searches.values() for event in self._close_search(search, "incomplete")]
        self._searches.clear()
        for call in self._served_calls.values():
            events += self._close_tool_call(call, "incomplete")
        self._served_calls.clear()
        for call in self._calls.values():
            events += self._close_tool_call(call, "incomplete")
        self._calls.clear()
        return events

    def _close_tool_call(self, call: OpenServedCall | OpenCall, status: ItemStatus) -> list[UnnumberedEvent]:
        self._items[call.output_index] = call.body(status)
        return call.finish(status)

    def _close_search(self, search: OpenSearch, status: ItemStatus) -> list[UnnumberedEvent]:
        self._items[search.output_index] = search.body(status)
        return search.finish(status, with_results=self._with_results)

    def _number(self, events: list[UnnumberedEvent]) -> list[LoggedEvent]:
        numbered: list[LoggedEvent] = []
        for event in events:
            event["sequence_number"] = self._next_number
            self._next_number += 1
            numbered.append(encode_event(event))
        return numbered
