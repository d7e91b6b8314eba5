"""Asking a question: the events of a response, and the documents that its answer cites, numbered from 1."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from cli.answers import Answer, number_at, objects_at, part_at, passage_name, text_at

_MARKER = re.compile(r"\[(\d+)\]")


@dataclass
class HeardAnswer:
    """What has come of a response so far."""

    response: Answer = field(default_factory=dict[str, object])
    last_number: int = -1
    error: Answer = field(default_factory=dict[str, object])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _held: str = ""
    _held_from: int = 0
    _cited: set[int] = field(default_factory=set[int])

    @property
    def response_id(self) -> str:
        """The id of the response; empty before its first event."""
        return text_at(self.response, "id")

    @property
    def is_over(self) -> bool:
        """Whether the response has ended."""
        return text_at(self.response, "status") not in ("", "in_progress", "queued")

    def take(self, event: Answer) -> str:
        """Take an event, and return the words that can be shown; those with a bracket wait for what they may cite."""
        # The number of an error may be that of an event behind it, which comes when the stream is opened again.
        if event.get("type") != "error":
            self.last_number = max(self.last_number, number_at(event, "sequence_number"))
        if response := part_at(event, "response"):
            self.response = response
        if event.get("type") == "error":
            self.error = part_at(event, "error") or event
        elif event.get("type") == "response.output_text.annotation.added":
            self._cited.add(number_at(part_at(event, "annotation"), "index"))
            return ""
        shown = self._let_go()
        if event.get("type") == "response.content_part.added":
            self._held_from = 0
        self._held = text_at(event, "delta") if event.get("type") == "response.output_text.delta" else ""
        return shown if "[" in self._held else shown + self._let_go()

    def _let_go(self) -> str:
        shown = _number_sources(self._held, self._held_from, self._cited, self._numbers)
        self._held_from += len(self._held)
        self._held = ""
        self._cited.clear()
        return shown


def request_of(question: str, bases: Sequence[str], model: str | None, previous: str | None) -> Answer:
    """Return the body of a request for a streamed response."""
    body: Answer = {"input": question, "stream": True}
    if bases:
        body["tools"] = [{"type": "file_search", "vector_store_ids": list(bases)}]
    if model is not None:
        body["model"] = model
    if previous is not None:
        body["previous_response_id"] = previous
    return body


def footnotes_of(response: Answer) -> list[str]:
    """Return a line for each cited document, with the number that the text is shown with."""
    lines: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for part in _parts(response):
        for cited in sorted(objects_at(part, "annotations"), key=lambda cited: number_at(cited, "index")):
            marker = _MARKER.match(text_at(part, "text"), number_at(cited, "index"))
            shown = _number_sources(marker[0], 0, {0}, numbers) if marker else "[?]"
            lines[f"{shown} {passage_name(cited, 'filename')}"] = None
    return list(lines)


def _number_sources(text: str, start: int, cited: Collection[int], numbers: dict[str, int]) -> str:
    """Number the markers of a text that cite, in the order of their first places; `start` is the text's own place."""

    def number(marker: re.Match[str]) -> str:
        is_cited = start + marker.start() in cited
        return f"[{numbers.setdefault(marker[1], len(numbers) + 1)}]" if is_cited else marker[0]

    return _MARKER.sub(number, text)


def fault_of(heard: HeardAnswer) -> str:
    """Say why an answer is not whole; empty where it is."""
    error = part_at(heard.response, "error") or heard.error
    status = text_at(heard.response, "status")
    if status == "completed":
        return ""
    if error:
        return text_at(error, "message")
    reason = text_at(part_at(heard.response, "incomplete_details"), "reason")
    return f"The answer is {status}" + (f" ({reason})." if reason else ".")


def kinds_of(heard: HeardAnswer) -> tuple[str, ...]:
    """Return what kinds of fault an answer that is not whole has, by which advice is found."""
    error = part_at(heard.response, "error") or heard.error
    reason = text_at(part_at(heard.response, "incomplete_details"), "reason")
    return text_at(error, "code"), text_at(error, "type"), reason, text_at(heard.response, "status")


def _parts(response: Answer) -> list[Answer]:
    return [part for item in objects_at(response, "output") for part in objects_at(item, "content")]
