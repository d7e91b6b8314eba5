"""Output items under construction: the stream events of each step, and the final bodies."""

from collections.abc import Sequence
from typing import Literal, cast

import orjson

from backend.conversations.domain.responses import ItemBody
from backend.openai_api.domain.response_events import LoggedEvent, UnnumberedEvent
from shared.models.events import CitationAdded, SearchResult, ServedCallFinished, ServedCallStarted
from shared.models.values import JsonObject
from shared.prompts.custom_tools import InputReader, input_of

PartKind = Literal["output_text", "refusal", "reasoning_text"]
ItemStatus = Literal["in_progress", "completed", "incomplete", "failed"]
_TEXT_DELTA = "response.output_text.delta"


class OpenPart:
    """A content part whose text arrives in pieces."""

    def __init__(self, kind: PartKind, content_index: int, start: int) -> None:
        self.kind: PartKind = kind
        self.content_index = content_index
        self.start = start
        self.pieces: list[str] = []
        self.annotations: list[JsonObject] = []
        self.logprobs: list[JsonObject] = []
        self.delta_head = b""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.pieces)

    def body(self) -> JsonObject:
        """Build the body of the part."""
        if self.kind == "refusal":
            return {"type": self.kind, "refusal": self.text}
        if self.kind == "reasoning_text":
            return {"type": self.kind, "text": self.text}
        return {"type": self.kind, "text": self.text, "annotations": [*self.annotations], "logprobs": [*self.logprobs]}


class OpenText:
    """The message, or the reasoning, of one model call."""

    def __init__(self, kind: Literal["message", "reasoning"], item_id: str, output_index: int) -> None:
        self.kind = kind
        self.item_id = item_id
        self.output_index = output_index
        self._parts: list[OpenPart] = []
        self._part: OpenPart | None = None
        self._text_length = 0

    def announce(self) -> list[UnnumberedEvent]:
        """Build the events that announce the item."""
        return [_item_event("response.output_item.added", self.output_index, self.body("in_progress"))]

    def add(self, kind: PartKind, text: str, logprobs: Sequence[JsonObject] = ()) -> list[UnnumberedEvent]:
        """Add text to the open part, with the log probabilities of its tokens where they are told.

        Text of another kind closes that part and opens a new one.
        """
        events: list[UnnumberedEvent] = []
        part = self._part
        if part is None or part.kind != kind:
            events = self._close_part()
            part = self._part = OpenPart(kind, len(self._parts), self._text_length)
            self._parts.append(part)
            events.append({**self._place("response.content_part.added", part), "part": part.body()})
        part.pieces.append(text)
        if kind == "output_text":
            self._text_length += len(text)
        events.append(self._delta(part, text, logprobs))
        return events

    def add_piece(self, text: str, number: int) -> LoggedEvent | None:
        """Add text to the open part, and encode its event; None where that part is no text of an answer.

        What the events of a part have in common is encoded once: this runs for each delta.
        """
        part = self._part
        if part is None or part.kind != "output_text":
            return None
        if not part.delta_head:
            part.delta_head = orjson.dumps({**self._place(_TEXT_DELTA, part), "delta": ""}).removesuffix(b'""}')
        part.pieces.append(text)
        self._text_length += len(text)
        body = b'%b%b,"logprobs":[],"sequence_number":%d}' % (part.delta_head, orjson.dumps(text), number)
        return LoggedEvent(number, _TEXT_DELTA, body)

    def add_logprobs(self, logprobs: Sequence[JsonObject]) -> None:
        """Add the log probabilities of tokens whose text has come, or that have none."""
        if self._part is not None and self._part.kind == "output_text":
            self._part.logprobs.extend(logprobs)

    def cite(self, citation: CitationAdded) -> list[UnnumberedEvent]:
        """Attach a citation to the open text part; its index counts from the part's beginning."""
        part = next((part for part in reversed(self._parts) if part.kind == "output_text"), None)
        if part is None or part is not self._part:
            return []
        index = max(0, citation.index - part.start)
        annotation: JsonObject = {
            "type": "file_citation",
            "file_id": citation.file_id,
            "filename": citation.filename,
            "index": index,
            **_show_where(citation),
        }
        part.annotations.append(annotation)
        place = self._place("response.output_text.annotation.added", part)
        return [{**place, "annotation_index": len(part.annotations) - 1, "annotation": annotation}]

    @property
    def texts(self) -> list[str]:
        """The texts of the parts so far."""
        return [part.text for part in self._parts]

    @property
    def annotations(self) -> list[JsonObject]:
        """The annotations of the open part."""
        return self._part.annotations if self._part is not None else []

    def restore_annotations(self, annotations: Sequence[JsonObject]) -> None:
        """Set the annotations of the open part, of which clients have got those of the part so far."""
        if self._part is not None:
            self._part.annotations = list(annotations)

    def restore_logprobs(self, logprobs: Sequence[JsonObject]) -> None:
        """Set the log probabilities of the open part, of which clients have got some."""
        if self._part is not None:
            self._part.logprobs = list(logprobs)

    def finish(self, status: ItemStatus) -> list[UnnumberedEvent]:
        """Build the events that end the item."""
        return [
            *self._close_part(),
            _item_event("response.output_item.done", self.output_index, self.body(status)),
        ]

    def body(self, status: ItemStatus) -> ItemBody:
        """Build the body of the item."""
        content = [part.body() for part in self._parts]
        if self.kind == "reasoning":
            return {"id": self.item_id, "type": self.kind, "summary": [], "content": content, "status": status}
        return {"id": self.item_id, "type": self.kind, "status": status, "role": "assistant", "content": content}

    def _close_part(self) -> list[UnnumberedEvent]:
        part, self._part = self._part, None
        if part is None:
            return []
        key = "refusal" if part.kind == "refusal" else "text"
        done: UnnumberedEvent = {**self._place(f"response.{part.kind}.done", part), key: part.text}
        if part.kind == "output_text":
            done["logprobs"] = [*part.logprobs]
        return [done, {**self._place("response.content_part.done", part), "part": part.body()}]

    def _delta(self, part: OpenPart, text: str, logprobs: Sequence[JsonObject]) -> UnnumberedEvent:
        """Build a delta event; its cost must not depend on the text so far."""
        event: UnnumberedEvent = {
            "type": f"response.{part.kind}.delta",
            "item_id": self.item_id,
            "output_index": self.output_index,
            "content_index": part.content_index,
            "delta": text,
        }
        if part.kind == "output_text":
            event["logprobs"] = [*logprobs]
            part.logprobs += logprobs
        return event

    def _place(self, event_type: str, part: OpenPart) -> UnnumberedEvent:
        return {
            "type": event_type,
            "item_id": self.item_id,
            "output_index": self.output_index,
            "content_index": part.content_index,
        }


class OpenCall:
    """A call of a client's function, whose arguments arrive in pieces."""

    item_type = "function_call"
    text_field = "arguments"
    text_event = "response.function_call_arguments"

    def __init__(self, item_id: str, output_index: int, call_id: str, name: str) -> None:
        self.item_id = item_id
        self.output_index = output_index
        self.call_id = call_id
        self._name = name
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """What clients have been shown of the arguments so far."""
        return "".join(self._pieces)

    def write(self, piece: str) -> list[UnnumberedEvent]:
        """Add a piece of the arguments as the model writes them."""
        return self.add(piece)

    def end(self, arguments: str) -> list[UnnumberedEvent]:
        """Add the whole arguments, unless clients have got them in pieces: then they are what these add up to."""
        return [] if self._pieces else self.add(arguments)

    def announce(self) -> list[UnnumberedEvent]:
        """Build the events that announce the call."""
        return [_item_event("response.output_item.added", self.output_index, self.body("in_progress"))]

    def add(self, piece: str) -> list[UnnumberedEvent]:
        """Show a piece."""
        self._pieces.append(piece)
        return [{**self._place(f"{self.text_event}.delta"), "delta": piece}]

    def finish(self, status: ItemStatus) -> list[UnnumberedEvent]:
        """Build the events that end the call."""
        done = _item_event("response.output_item.done", self.output_index, self.body(status))
        whole = {**self._place(f"{self.text_event}.done"), self.text_field: self.text}
        return [whole, done] if status == "completed" else [done]

    def body(self, status: ItemStatus) -> ItemBody:
        """Build the body of the item."""
        names = {"call_id": self.call_id, "name": self._name, self.text_field: self.text}
        return {"id": self.item_id, "type": self.item_type, "status": status, **names}

    def _place(self, event_type: str) -> UnnumberedEvent:
        return {"type": event_type, "item_id": self.item_id, "output_index": self.output_index}


class OpenCustomCall(OpenCall):
    """A call of a client's custom tool, of whose arguments clients are shown the input that they hold."""

    item_type = "custom_tool_call"
    text_field = "input"
    text_event = "response.custom_tool_call_input"

    def __init__(self, item_id: str, output_index: int, call_id: str, name: str) -> None:
        super().__init__(item_id, output_index, call_id, name)
        self._reader = InputReader()

    def write(self, piece: str) -> list[UnnumberedEvent]:
        """Show what a piece of the arguments adds to the input."""
        text = self._reader.read(piece)
        return self.add(text) if text else []

    def end(self, arguments: str) -> list[UnnumberedEvent]:
        """Show what clients have not got of the input."""
        shown, whole = self.text, input_of(arguments)
        return self.add(whole[len(shown) :]) if whole.startswith(shown) and whole != shown else []


class OpenSearch:
    """A knowledge search; its results are shown only to a client that asks for them."""

    def __init__(self, item_id: str, output_index: int, queries: tuple[str, ...]) -> None:
        self.item_id = item_id
        self.output_index = output_index
        self._queries = queries
        self._results: list[JsonObject] | None = None

    def announce(self) -> list[UnnumberedEvent]:
        """Build the events that announce the search."""
        return [
            _item_event("response.output_item.added", self.output_index, self.body("in_progress")),
            self._state("in_progress"),
            self._state("searching"),
        ]

    def keep_results(self, results: tuple[SearchResult, ...]) -> None:
        """Keep the results."""
        self._results = [
            {
                "file_id": hit.file_id,
                "filename": hit.filename,
                "score": hit.score,
                "text": hit.text,
                "attributes": {**hit.attributes},
                **_show_where(hit),
            }
            for hit in results
        ]

    def finish(self, status: ItemStatus, *, with_results: bool) -> list[UnnumberedEvent]:
        """Build the events that end the search."""
        body = self.body(status) if with_results else {**self.body(status), "results": None}
        done = _item_event("response.output_item.done", self.output_index, body)
        return [self._state("completed"), done] if status == "completed" else [done]

    def body(self, status: ItemStatus) -> ItemBody:
        """Build the body of the search with its results."""
        return {
            "id": self.item_id,
            "type": "file_search_call",
            "status": status,
            "queries": list(self._queries),
            "results": self._results,
        }

    def _state(self, state: str) -> UnnumberedEvent:
        event_type = f"response.file_search_call.{state}"
        return {"type": event_type, "output_index": self.output_index, "item_id": self.item_id}


class OpenServedCall:
    """A call of a tool of a tool server, in the form of OpenAI's `mcp_call`."""

    def __init__(self, item_id: str, output_index: int, call: ServedCallStarted) -> None:
        self.item_id = item_id
        self.output_index = output_index
        self._call = call
        self._ended: ServedCallFinished | None = None

    def announce(self) -> list[UnnumberedEvent]:
        """Build the events that announce the call; its arguments come as a whole."""
        place = {"item_id": self.item_id, "output_index": self.output_index}
        return [
            _item_event("response.output_item.added", self.output_index, self.body("in_progress")),
            self._state("in_progress"),
            {"type": "response.mcp_call_arguments.delta", **place, "delta": self._call.arguments},
            {"type": "response.mcp_call_arguments.done", **place, "arguments": self._call.arguments},
        ]

    def end(self, ended: ServedCallFinished) -> None:
        """Keep what the model reads as the result."""
        self._ended = ended

    def finish(self, status: ItemStatus) -> list[UnnumberedEvent]:
        """Build the events that end the call."""
        done = _item_event("response.output_item.done", self.output_index, self.body(status))
        return [self._state(status), done] if status in ("completed", "failed") else [done]

    def body(self, status: ItemStatus) -> ItemBody:
        """Build the body of the item."""
        ended = self._ended
        has_failed = ended is not None and ended.failed
        error = {"type": "mcp_tool_execution_error", "content": ended.output} if ended and has_failed else None
        return {
            "id": self.item_id,
            "type": "mcp_call",
            "status": status,
            "server_label": self._call.server,
            "name": self._call.tool,
            "arguments": self._call.arguments,
            "approval_request_id": None,
            "output": ended.output if ended is not None and not has_failed else None,
            "error": error,
        }

    def _state(self, state: str) -> UnnumberedEvent:
        return {"type": f"response.mcp_call.{state}", "output_index": self.output_index, "item_id": self.item_id}


def show_call(body: ItemBody, output_index: int) -> OpenServedCall:
    """Return the open call that an item shows, without its result."""
    call = ServedCallStarted(
        call_id="", server=str(body["server_label"]), tool=str(body["name"]), arguments=str(body["arguments"])
    )
    return OpenServedCall(str(body["id"]), output_index, call)


def compaction_body(item_id: str) -> ItemBody:
    """Build the body of an item that says that an earlier part of the conversation was left out.

    OpenAI lets clients carry the summary in `encrypted_content`; here the server keeps it, under the item's id.
    """
    return {"id": item_id, "type": "compaction", "encrypted_content": item_id}


def compaction_events(output_index: int, item: ItemBody) -> list[UnnumberedEvent]:
    """Build the events of a compaction, which has ended when it is shown."""
    return [
        _item_event("response.output_item.added", output_index, item),
        _item_event("response.output_item.done", output_index, item),
    ]


def characters_in(output: Sequence[ItemBody]) -> int:
    """Count the characters of all texts in these items, as the cost of storing them."""
    return sum(_characters(item) for item in output)


def _characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_characters(inner) for inner in cast("dict[str, object]", value).values())
    return sum(_characters(inner) for inner in cast("list[object]", value)) if isinstance(value, list) else 0


def _item_event(event_type: str, output_index: int, item: ItemBody) -> UnnumberedEvent:
    return {"type": event_type, "output_index": output_index, "item": item}


def _show_where(passage: SearchResult | CitationAdded) -> JsonObject:
    """Show the place of a passage where it is known, and its document's other names; OpenAI's own objects have none."""
    place: JsonObject = {} if passage.place is None else {"place": passage.place.model_dump(mode="json")}
    return {**place, "other_names": list(passage.other_names)} if passage.other_names else place
