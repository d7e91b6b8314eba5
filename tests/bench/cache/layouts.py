"""Where the parts of a prompt go: our two context policies, and the layouts of other systems.

Ours are the product's own code. The others get the same words in the same order of events, and place them otherwise.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from shared.models.execution import DynamicBlock, ExecutionRequest
from shared.models.messages import HistoryMessage, Message, UserMessage
from shared.prompts.message_order import build_messages, join_blocks, messages_of_request

_SUFFIX = "\n\n<time>"
_FILES = "project_files"

Arrange = Callable[[ExecutionRequest, ExecutionRequest | None], tuple[Message, ...]]
"""Makes the messages of a turn's first model call; the second argument is the turn before in this branch."""


@dataclass(frozen=True)
class Layout:
    """A way to arrange a prompt; `keeps_context` is the backend's policy `durable`."""

    name: str
    arrange: Arrange
    keeps_context: bool = False


def _ours(request: ExecutionRequest, _before: ExecutionRequest | None) -> tuple[Message, ...]:
    return messages_of_request(request)


def _metadata_in_system(request: ExecutionRequest, _before: ExecutionRequest | None) -> tuple[Message, ...]:
    """The context behind the instructions; the log as we keep it, dates included."""
    system = join_blocks((request.system_prompt, _context(request)))
    return build_messages(system, request.history, None, _current(request))


def _parts_of_system(request: ExecutionRequest, _before: ExecutionRequest | None) -> tuple[Message, ...]:
    """A stable part of the system message and a dynamic one, which holds the context and the day."""
    today = f"Today is {request.sent_at:%Y-%m-%d}."
    system = join_blocks((request.system_prompt, _context(request), today))
    return build_messages(system, _without_suffixes(request.history), None, UserMessage(content=_prompt(request)))


def _moving_files(request: ExecutionRequest, _before: ExecutionRequest | None) -> tuple[Message, ...]:
    """Project files right above the newest message, and no longer where they stood; the rest in the system message."""
    files = join_blocks(block.text for block in request.dynamic_blocks if block.name == _FILES)
    others = join_blocks(block.text for block in request.dynamic_blocks if block.name != _FILES)
    system = join_blocks((request.system_prompt, request.kb_meta_prompt, others))
    return build_messages(system, request.history, files, _current(request))


def _one_turn_deltas(request: ExecutionRequest, before: ExecutionRequest | None) -> tuple[Message, ...]:
    """What changed, in a message that is there for this turn only; the date behind the newest message only."""
    said = set(_pieces(before)) if before is not None else set[str]()
    news = join_blocks(piece for piece in _pieces(request) if piece not in said)
    return build_messages(request.system_prompt, _without_suffixes(request.history), news, _current(request))


DURABLE = Layout("durable", _ours, keeps_context=True)
TAIL = Layout("tail", _ours)
BASELINES = (
    Layout("metadata in the system prompt", _metadata_in_system),
    Layout("stable and dynamic system parts", _parts_of_system),
    Layout("files moved each turn", _moving_files),
    Layout("one-turn deltas", _one_turn_deltas),
)
LAYOUTS: Mapping[str, Layout] = {layout.name: layout for layout in (DURABLE, TAIL, *BASELINES)}


def _pieces(request: ExecutionRequest) -> tuple[str, ...]:
    """Take the context apart: each base, each block."""
    return (*request.kb_meta_prompt.split("\n\n"), *(block.text for block in request.dynamic_blocks))


def _context(request: ExecutionRequest) -> str:
    return join_blocks((request.kb_meta_prompt, *_texts(request.dynamic_blocks)))


def _texts(blocks: Iterable[DynamicBlock]) -> Iterable[str]:
    return (block.text for block in blocks)


def _current(request: ExecutionRequest) -> UserMessage:
    newest = messages_of_request(request)[-1]
    assert isinstance(newest, UserMessage)
    return newest


def _prompt(request: ExecutionRequest) -> str:
    assert isinstance(request.prompt, str)
    return request.prompt


def _without_suffixes(history: Iterable[HistoryMessage]) -> tuple[HistoryMessage, ...]:
    return tuple(_without_suffix(message) for message in history)


def _without_suffix(message: HistoryMessage) -> HistoryMessage:
    if not isinstance(message, UserMessage) or not isinstance(message.content, str):
        return message
    return UserMessage(content=message.content.partition(_SUFFIX)[0])
