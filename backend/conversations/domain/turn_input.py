"""Read the input of a turn: its instructions, its history, and the current message."""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from backend.conversations.domain.attached_files import UnreadFile
from backend.conversations.domain.input_items import (
    AssistantItem,
    AttachedFilePart,
    CompactionItem,
    CustomToolCallItem,
    FileSearchItem,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputFilePart,
    InputItem,
    InputPart,
    InputTextPart,
    ItemReference,
    OutputTextPart,
    ReasonedItem,
    ReasoningItem,
    RefusalPart,
    SystemItem,
    UserItem,
)
from shared.errors import InvalidRequest
from shared.models.messages import (
    AssistantMessage,
    Content,
    HistoryMessage,
    ImageDetail,
    ImagePart,
    Part,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

MAX_NAMED_CALLS = 5
"""The maximum number of unanswered calls that an error names."""

_BETWEEN_CALLS = FunctionCallItem | CustomToolCallItem | ReasoningItem | FileSearchItem | CompactionItem
"""What may stand among the calls of one answer."""


@dataclass(frozen=True)
class ParsedInput:
    """The parts of an input.

    `history` holds the messages before the current one, without date suffixes. `current` is None where no message of
    the user is the last: the turn continues from tool results, goes on with what the model said, or begins with what
    the system says. `order` names the items in the order in which they were read, which is theirs but for outputs,
    and `ends` for each message of the history how many of these it and those before it were read from. `files` are the
    texts of the files of the current message, once they are read, each as a message of its own.
    """

    instructions: tuple[str, ...]
    history: tuple[HistoryMessage, ...]
    current: Content | None
    ends: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    files: tuple[str, ...] = ()

    @cached_property
    def messages(self) -> tuple[HistoryMessage, ...]:
        """All messages, the current one being the last."""
        return self.history if self.current is None else (*self.history, UserMessage(content=self.current))

    @cached_property
    def question_at(self) -> int | None:
        """The index among the messages of the newest one of the user, None where there is none.

        So it is, too, where the turn continues from tool results: what they belong to has been said before.
        """
        messages = self.messages
        if not messages or isinstance(messages[-1], ToolMessage):
            return None
        return next((place for place in reversed(range(len(messages))) if messages[place].role == "user"), None)

    def behind(self, count: int) -> "ParsedInput":
        """Return the input without the first `count` messages of its history."""
        return replace(self, history=self.history[count:], ends=self.ends[count:])


def read_string(text: str, pending_calls: Sequence[str]) -> ParsedInput:
    """Read an input that is a plain string.

    Raises:
        InvalidRequest: the log ends with function calls of the client that have no output yet.
    """
    _refuse_pending(pending_calls, "input")
    return ParsedInput(instructions=(), history=(), current=text)


def read_items(items: Sequence[InputItem], pending_calls: Sequence[str], where: str = "input") -> ParsedInput:
    """Read an input list; `pending_calls` are the unanswered calls with which the log ends.

    Raises:
        InvalidRequest: an item is not allowed at its position; `param` names it.
    """
    return _ListReader(pending_calls, where).read_all(items).turn_input()


def read_without_items(pending_calls: Sequence[str], where: str = "input") -> ParsedInput:
    """Read an input without items, behind which nothing is said.

    Raises:
        InvalidRequest: the log ends with function calls of the client that have no output yet.
    """
    _refuse_pending(pending_calls, where)
    return ParsedInput(instructions=(), history=(), current=None)


def read_given_history(items: Sequence[InputItem], pending_calls: Sequence[str]) -> ParsedInput:
    """Read items that are added to a conversation without a turn: all are history, calls may be unanswered.

    Raises:
        InvalidRequest: an item is not allowed at its position; `param` names it, starting with `items`.
    """
    return _ListReader(pending_calls, "items").read_all(items).build_given_history()


def _in_call_order(items: Sequence[InputItem], pending_calls: Iterable[str]) -> Sequence[int]:
    """Return the places of items in the order in which OpenAI's API reads them: outputs stand behind their calls.

    What parts a call from its output, such as a message of the user, is read behind the output.
    """
    outputs: dict[str, deque[int]] = {}
    for place, item in enumerate(items):
        if isinstance(item, FunctionCallOutputItem):
            outputs.setdefault(item.call_id, deque()).append(place)
    order, waiting = dict[int, None](), dict.fromkeys(pending_calls)
    for place, item in enumerate(items if outputs else ()):
        if isinstance(item, FunctionCallItem | CustomToolCallItem):
            waiting[item.call_id] = None
        elif isinstance(item, FunctionCallOutputItem) and place not in order:
            waiting.pop(item.call_id, None)
            outputs[item.call_id].popleft()
        elif isinstance(item, UserItem | SystemItem | AssistantItem):
            order.update(dict.fromkeys(outputs[call].popleft() for call in waiting if outputs.get(call)))
            waiting.clear()
        order[place] = None
    return tuple(order) or range(len(items))


class _ListReader:
    """Reads items in their order, and remembers the function calls that have no output yet."""

    def __init__(self, pending_calls: Sequence[str], where: str) -> None:
        self._pending = dict.fromkeys(pending_calls)
        self._where = where
        self._instructions: list[str] = []
        self._messages: list[HistoryMessage] = []
        self._ends: list[int] = []
        self._calls: list[ToolCall] = []
        self._calls_end = 0
        self._order: list[int] = []

    def read_all(self, items: Sequence[InputItem]) -> "_ListReader":
        """Read all items, and return the reader."""
        for place in _in_call_order(items, self._pending):
            self._order.append(place)
            self._feed(place, items[place])
        return self

    def _feed(self, place: int, item: InputItem) -> None:
        param = f"{self._where}[{place}]"
        if not isinstance(item, _BETWEEN_CALLS):
            self._close_calls()
        match item:
            case SystemItem():
                self._add_system(_join(item.content), param)
            case UserItem():
                _refuse_pending(self._pending, param)
                self._add(UserMessage(content=_content(item.content, f"{param}.content")))
            case AssistantItem():
                _refuse_pending(self._pending, param)
                reasoning = item.reasoning if isinstance(item, ReasonedItem) else None
                self._add(AssistantMessage(text=_join(item.content), reasoning=reasoning))
            case FunctionCallItem() | CustomToolCallItem():
                self._add_call(item, param)
                self._calls_end = len(self._order)
            case FunctionCallOutputItem():
                self._answer_call(item, param)
                content = _content(item.output, f"{param}.output")
                self._add(ToolMessage(call_id=item.call_id, content=content))
            case _:
                _refuse_unread(item, param)

    def _add_system(self, text: str, param: str) -> None:
        """Read a message of the system or a developer: before all others it belongs to the instructions."""
        if not self._messages:
            self._instructions.append(text)
            return
        _refuse_pending(self._pending, param)
        self._add(SystemMessage(content=text))

    def _add(self, message: HistoryMessage, end: int | None = None) -> None:
        self._messages.append(message)
        self._ends.append(end or len(self._order))

    def _add_call(self, item: FunctionCallItem | CustomToolCallItem, param: str) -> None:
        if item.call_id in self._pending:
            message = f"The call {item.call_id!r} waits for its output already; each call must have an id of its own."
            raise InvalidRequest(message, param=f"{param}.call_id")
        if not self._calls and not self._has_assistant_last:
            _refuse_pending(self._pending, param)
        self._calls.append(ToolCall(call_id=item.call_id, name=item.name, arguments=item.arguments))
        self._pending[item.call_id] = None

    @property
    def _has_assistant_last(self) -> bool:
        return bool(self._messages) and isinstance(self._messages[-1], AssistantMessage)

    def _close_calls(self) -> None:
        """Add consecutive calls to the assistant message before them, or to a new one."""
        if not self._calls:
            return
        last = self._messages.pop() if self._has_assistant_last else None
        del self._ends[len(self._messages) :]
        said = last if isinstance(last, AssistantMessage) else AssistantMessage(text="")
        self._add(said.model_copy(update={"tool_calls": (*said.tool_calls, *self._calls)}), self._calls_end)
        self._calls.clear()

    def _answer_call(self, item: FunctionCallOutputItem, param: str) -> None:
        if item.call_id not in self._pending:
            message = f"No function call waits under {item.call_id!r}; use the id of a call before it."
            raise InvalidRequest(message, param=f"{param}.call_id")
        del self._pending[item.call_id]

    def build_given_history(self) -> ParsedInput:
        self._close_calls()
        return ParsedInput(instructions=tuple(self._instructions), history=tuple(self._messages), current=None)

    def turn_input(self) -> ParsedInput:
        self._close_calls()
        _refuse_pending(self._pending, self._where)
        if not self._messages and not self._instructions:
            raise InvalidRequest("There is no message to answer; add a message of the user.", param=self._where)
        last = self._messages[-1] if self._messages else None
        count = len(self._messages) - isinstance(last, UserMessage)
        return ParsedInput(
            instructions=tuple(self._instructions),
            history=tuple(self._messages[:count]),
            current=last.content if isinstance(last, UserMessage) else None,
            ends=tuple(self._ends[:count]),
            order=() if self._order == sorted(self._order) else tuple(self._order),
        )


def _refuse_unread(item: InputItem, param: str) -> None:
    """Refuse what stands for other items; reasoning and searches that a client sends back go to no model."""
    if isinstance(item, ItemReference):
        message = "References are resolved in the input of a response only; give the item itself."
        raise InvalidRequest(message, param=f"{param}.type")
    if isinstance(item, CompactionItem) and item.carries_summary:
        message = "Summaries are read in the input of a response only; give the items that it stands for."
        raise InvalidRequest(message, param=f"{param}.type")


def _refuse_pending(pending_calls: Collection[str], param: str) -> None:
    if pending_calls:
        names = ", ".join(repr(call_id) for call_id in islice(pending_calls, MAX_NAMED_CALLS))
        raise InvalidRequest(f"No output was given for the function call {names}; add the output of each.", param=param)


def _join(content: str | Sequence[InputTextPart | OutputTextPart | RefusalPart]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.refusal if isinstance(part, RefusalPart) else part.text for part in content)


def _content(content: str | Sequence[InputPart], path: str) -> Content:
    if isinstance(content, str):
        return content
    return tuple(_message_part(part, f"{path}[{place}]") for place, part in enumerate(content))


def _message_part(part: InputPart, path: str) -> Part:
    match part:
        case InputTextPart():
            return TextPart(text=part.text)
        case AttachedFilePart():
            return UnreadFile(text="", digest=part.digest, filename=part.filename or "")
        case InputFilePart():
            message = "Files are read in the input of a response only: give the text itself, or create a response."
            raise InvalidRequest(message, param=f"{path}.type")
        case _:
            return ImagePart(url=part.image_url, detail=ImageDetail(part.detail or "auto"))
