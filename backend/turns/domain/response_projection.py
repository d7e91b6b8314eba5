"""From what chat_shell reports to what a client of OpenAI's API sees: stream events and output items.

The numbers of events have no gaps. Items are announced before their parts, parts before their deltas; what
is still open when a turn breaks off is closed as incomplete.
"""

from backend.conversations.domain.item_bodies import NewId
from backend.conversations.domain.responses import ItemBody, ResponseStatus
from backend.turns.domain.output_items import (
    Draft,
    ItemStatus,
    OpenSearch,
    OpenText,
    PartKind,
    function_call_body,
    function_call_drafts,
)
from backend.turns.domain.response_events import LoggedEvent, encode_event
from backend.turns.domain.response_object import Ending, ResponseBody, ended_body, response_error, shown_body
from shared.ids import IdPrefix
from shared.models.events import (
    CitationAdded,
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallRequested,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    RefusalDelta,
    SearchFinished,
    SearchStarted,
    TextDelta,
)

TERMINAL_EVENTS = {
    ResponseStatus.COMPLETED: "response.completed",
    ResponseStatus.INCOMPLETE: "response.incomplete",
    ResponseStatus.CANCELLED: "response.incomplete",
    ResponseStatus.FAILED: "response.failed",
}
CUT_REASONS = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER)


class ResponseProjection:
    """The events and items of one response; each call returns the events it brings about."""

    def __init__(self, body: ResponseBody, new_id: NewId, *, with_results: bool) -> None:
        self._body = body
        self._new_id = new_id
        self._with_results = with_results
        self._next_number = 0
        self._items: list[ItemBody | OpenText | OpenSearch] = []
        self._message: OpenText | None = None
        self._reasoning: OpenText | None = None
        self._searches: dict[str, OpenSearch] = {}

    @property
    def last_number(self) -> int:
        """The number of the newest event, -1 before the first."""
        return self._next_number - 1

    def start(self) -> list[LoggedEvent]:
        """Begin the stream: `response.created` is number 0."""
        response = dict(self._body)
        return self._numbered(
            [
                {"type": "response.created", "response": response},
                {"type": "response.in_progress", "response": response},
            ]
        )

    def feed(self, event: ExecutionEvent) -> list[LoggedEvent]:
        """Show what happened; events that concern only the log bring nothing about."""
        match event:
            case TextDelta():
                return self._numbered(self._add_to_message("output_text", event.text))
            case RefusalDelta():
                return self._numbered(self._add_to_message("refusal", event.text))
            case ReasoningDelta():
                return self._numbered(self._add_to_reasoning(event.text))
            case CitationAdded():
                return self._numbered(self._message.cite(event) if self._message is not None else [])
            case ModelCallStarted():
                return self._numbered(self._close_call("completed"))
            case ModelCallFinished():
                cut = event.finish_reason in CUT_REASONS
                return self._numbered(self._close_call("incomplete" if cut else "completed"))
            case _:
                return self._numbered(self._tool_drafts(event))

    def output(self) -> list[ItemBody]:
        """Show the items so far, with all results; open ones are incomplete."""
        return [item if isinstance(item, dict) else item.body("incomplete") for item in self._items]

    def finish(self, ending: Ending, now_seconds: int) -> tuple[ResponseBody, list[LoggedEvent]]:
        """End the stream; return the response as it is to be stored, and the last events.

        A failure is told twice, as an `error` event and in `response.failed`.
        """
        status: ItemStatus = "completed" if ending.status is ResponseStatus.COMPLETED else "incomplete"
        drafts = [*self._close_call(status), *self._close_searches()]
        body = ended_body(self._body, self.output(), ending, now_seconds)
        if ending.error is not None:
            drafts.append(error_event(ending.error))
        shown = shown_body(body, with_results=self._with_results)
        drafts.append({"type": TERMINAL_EVENTS[ending.status], "response": shown})
        return body, self._numbered(drafts)

    def _add_to_message(self, kind: PartKind, text: str) -> list[Draft]:
        if not text:
            return []
        if self._message is not None:
            return self._message.add(kind, text)
        drafts = self._close_reasoning("completed")
        self._message = OpenText("message", self._new_id(IdPrefix.MESSAGE), len(self._items))
        self._items.append(self._message)
        return [*drafts, *self._message.opened(), *self._message.add(kind, text)]

    def _add_to_reasoning(self, text: str) -> list[Draft]:
        if not text:
            return []
        drafts: list[Draft] = []
        if self._reasoning is None:
            self._reasoning = OpenText("reasoning", self._new_id(IdPrefix.REASONING), len(self._items))
            self._items.append(self._reasoning)
            drafts = self._reasoning.opened()
        return [*drafts, *self._reasoning.add("reasoning_text", text)]

    def _tool_drafts(self, event: ExecutionEvent) -> list[Draft]:
        match event:
            case SearchStarted() if event.call_id not in self._searches:
                search = OpenSearch(self._new_id(IdPrefix.FILE_SEARCH), len(self._items), event.queries)
                self._searches[event.call_id] = search
                self._items.append(search)
                return search.opened()
            case SearchFinished() if event.call_id in self._searches:
                search = self._searches.pop(event.call_id)
                search.found(event.results)
                return self._close_search(search, "failed" if event.failed else "completed")
            case FunctionCallRequested():
                item_id = self._new_id(IdPrefix.FUNCTION_CALL)
                drafts = function_call_drafts(item_id, len(self._items), event)
                self._items.append(function_call_body(item_id, event, "completed"))
                return drafts
            case _:
                return []

    def _close_call(self, status: ItemStatus) -> list[Draft]:
        drafts = self._close_reasoning(status)
        message, self._message = self._message, None
        if message is not None:
            self._items[message.output_index] = message.body(status)
            drafts.extend(message.closed(status))
        return drafts

    def _close_reasoning(self, status: ItemStatus) -> list[Draft]:
        reasoning, self._reasoning = self._reasoning, None
        if reasoning is None:
            return []
        self._items[reasoning.output_index] = reasoning.body(status)
        return reasoning.closed(status)

    def _close_searches(self) -> list[Draft]:
        drafts = [draft for search in self._searches.values() for draft in self._close_search(search, "incomplete")]
        self._searches.clear()
        return drafts

    def _close_search(self, search: OpenSearch, status: ItemStatus) -> list[Draft]:
        self._items[search.output_index] = search.body(status)
        return search.closed(status, with_results=self._with_results)

    def _numbered(self, drafts: list[Draft]) -> list[LoggedEvent]:
        events: list[LoggedEvent] = []
        for draft in drafts:
            draft["sequence_number"] = self._next_number
            self._next_number += 1
            events.append(encode_event(draft))
        return events


def error_event(report: ErrorReport) -> Draft:
    """Tell a failure in both forms: nested for the Open Responses rules, flat for OpenAI's types."""
    flat = {"code": response_error(report)["code"], "message": report.message, "param": report.param}
    return {"type": "error", **flat, "error": {"type": report.type, **flat}}
