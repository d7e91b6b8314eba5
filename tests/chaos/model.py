"""The model of a run: what it says follows from the turn's own words, so that every client knows it beforehand."""

import re
import zlib
from typing import Any, NamedTuple, cast

from deploy.demo.summaries import safe_summary
from tests.chaos.schedule import FaultKind
from tests.fakes.model_server import Fault, RecordedRequest, Reply, ScriptedCall

MODEL = "chaos-model"
SEARCH = "knowledge_base_search"
LOOK_UP = "look_up"
_ORDER = re.compile(r"\[turn (\S+) words (\d+) pause (\d+) call (\w+) plain (\d)\]")
_PLAIN_WORDS = ("quay ", "tide ", "harbour ", "water ", "morning ", "evening ")
_FAULTS = {
    FaultKind.MODEL_CUT: Fault.CUT,
    FaultKind.MODEL_END: Fault.END,
    FaultKind.MODEL_STALL: Fault.STALL,
    FaultKind.MODEL_COMMENTS: Fault.STALL_WITH_COMMENTS,
    FaultKind.MODEL_GARBAGE: Fault.GARBAGE,
}
_STATUSES = {FaultKind.MODEL_500: 500, FaultKind.MODEL_429: 429}
SLOW_SECONDS = 0.5


class Order(NamedTuple):
    """What a turn asks of the model: so many words with so long pauses, after a call of a tool where it names one.

    `is_plain` asks for words without figures, which may leave a restricted turn.
    """

    key: str
    words: int
    pause_milliseconds: int
    call: str = "none"
    is_plain: bool = False

    def prompt(self) -> str:
        """Return the user's message."""
        plain = int(self.is_plain)
        order = f"words {self.words} pause {self.pause_milliseconds} call {self.call} plain {plain}"
        return f"[turn {self.key} {order}] What of the tide?"

    def deltas(self) -> tuple[str, ...]:
        """Return what the model says."""
        if self.is_plain:
            return tuple(_PLAIN_WORDS[place % len(_PLAIN_WORDS)] for place in range(self.words))
        return tuple(f"{self.key}.{place} " for place in range(self.words))


def order_in(text: str) -> Order | None:
    """Read the order out of a message."""
    found = _ORDER.search(text)
    if found is None:
        return None
    key, words, pause, call, plain = found.groups()
    return Order(key, int(words), int(pause), call, is_plain=plain == "1")


class ChaosModel:
    """Answers requests; while `fault` is set, every second turn's calls end in it."""

    def __init__(self) -> None:
        self.fault: FaultKind | None = None

    def __call__(self, request: RecordedRequest) -> Reply:
        """Return the reply."""
        messages: list[dict[str, Any]] = request.json_body["messages"]
        summary = safe_summary([text_of(message) for message in messages])
        if summary is not None:
            return Reply(text=(summary,))
        order, results = order_and_results(messages)
        if order is None:
            return Reply(text=("ok",))
        return self._spoilt(self._reply(order, results), order, results)

    def _reply(self, order: Order, results: int) -> Reply:
        if order.call != "none" and not results:
            arguments = '{"query": "tide and pilots"}' if order.call == SEARCH else '{"what": "tide"}'
            call = ScriptedCall(name=order.call, arguments=arguments, call_id=f"call_{order.key}")
            return Reply(tool_calls=(call,))
        return Reply(text=order.deltas(), pause_seconds=order.pause_milliseconds / 1000)

    def _spoilt(self, reply: Reply, order: Order, results: int) -> Reply:
        drawn = zlib.crc32(f"{order.key} {results}".encode())
        if self.fault is None or drawn % 2:
            return reply
        if self.fault in _STATUSES:
            headers = {"Retry-After": "1"} if self.fault is FaultKind.MODEL_429 else {}
            return Reply(status=_STATUSES[self.fault], headers=headers)
        if self.fault is FaultKind.MODEL_SLOW:
            return reply.model_copy(update={"pause_seconds": SLOW_SECONDS, "first_pause_seconds": SLOW_SECONDS})
        after = drawn // 2 % (len(reply.text) + 1)
        return reply.model_copy(update={"fault": _FAULTS[self.fault], "fault_after": after})


def order_and_results(messages: list[dict[str, Any]]) -> tuple[Order | None, int]:
    """Return the order of the newest turn, and how many tool results stand behind it."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place]["role"] == "user" and (order := order_in(text_of(messages[place]))):
            return order, sum(message["role"] == "tool" for message in messages[place:])
    return None, 0


def text_of(message: dict[str, Any]) -> str:
    """Join the text of a message."""
    content: Any = message.get("content")
    if isinstance(content, list):
        parts = cast(list[dict[str, Any]], content)
        return "".join(str(part["text"]) for part in parts if part["type"] == "text")
    return content or ""
