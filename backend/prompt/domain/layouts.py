"""What a model call would have cost had the same words been laid out otherwise.

Each layout is compared with its own call before, by a cache that finds the longest beginning and has lost nothing.
Costs are in tokens at the full price of input; one that is read from the cache counts a tenth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from backend.conversations.domain.conversation_log import EntryKind, whole_turn_of
from backend.conversations.domain.model_calls import ModelCall, PromptPart
from shared.models.values import JsonObject
from shared.tokens import estimate_tokens

READ_FACTOR = 0.1
_TOOLS = "tools"
_CONTEXT = frozenset(
    {
        EntryKind.DYNAMIC_CONTEXT.value,
        EntryKind.CUSTOM_INSTRUCTIONS.value,
        EntryKind.PROJECT_FILES.value,
    }
)


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: str
    tokens: int
    is_read: bool
    turn_id: str


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt as it was sent.

    `before` is the id of the turn before, "" where this is no first call of a turn. `moved` is how many tokens the call
    before had sent as well, but elsewhere.
    """

    pieces: Sequence[_Piece]
    turn_id: str
    before: str
    moved: int


def list_layout_costs(
    call: ModelCall, parts: Sequence[PromptPart], shown: JsonObject, turn_id: str
) -> list[JsonObject]:
    """Return the cost of a call of a turn under each layout; `shown` is the call as a client gets it."""
    messages = cast("list[JsonObject]", shown["messages"])
    tools = _Piece(_TOOLS, estimate_tokens(call.header.tools), call.reuse.size_bytes > 0, "")
    pieces = [
        _Piece(part.kind, cast("int", message["tokens"]), bool(message["reused"]), whole_turn_of(part.turn_id or ""))
        for part, message in zip(parts, messages, strict=True)
    ]
    is_later = any(piece.turn_id == turn_id and piece.kind == EntryKind.ASSISTANT for piece in pieces)
    before = next((piece.turn_id for piece in reversed(pieces) if piece.turn_id not in ("", turn_id)), "")
    prompt = _Prompt([tools, *pieces], turn_id, "" if is_later else before, call.rewritten_tokens)
    return [_show(name, lay(prompt)) for name, lay in _LAYOUTS.items()]


def _as_sent(prompt: _Prompt) -> Sequence[_Piece]:
    return prompt.pieces


def _in_system(prompt: _Prompt) -> Sequence[_Piece]:
    """The context stands in the system message: what is new of it moves all behind the tools; else nothing moves."""
    left = prompt.moved - sum(piece.tokens for piece in prompt.pieces if piece.kind in _CONTEXT and not piece.is_read)
    if left < 0:
        return [replace(piece, is_read=piece.is_read and piece.kind == _TOOLS) for piece in prompt.pieces]
    laid: list[_Piece] = []
    for piece in prompt.pieces:
        has_moved = not piece.is_read and piece.kind not in _CONTEXT and piece.tokens <= left
        left -= piece.tokens * has_moved
        laid.append(replace(piece, is_read=piece.is_read or has_moved or piece.kind in _CONTEXT))
    return laid


def _before_question(prompt: _Prompt) -> Sequence[_Piece]:
    """The context stands before the newest question alone: it moves in each turn, with all behind where it stood."""
    moved = (prompt.before, prompt.turn_id)
    return [
        replace(piece, is_read=piece.is_read and (piece.kind not in _CONTEXT and piece.turn_id not in moved))
        if prompt.before
        else piece
        for piece in prompt.pieces
    ]


def _forgotten(prompt: _Prompt) -> Sequence[_Piece]:
    """The results of tools stand in the turn that they were called in, and in no later one."""
    kept: list[_Piece] = []
    has_gap = False
    for piece in prompt.pieces:
        is_gone = piece.kind == EntryKind.TOOL_RESULT and piece.turn_id != prompt.turn_id
        has_gap = has_gap or (is_gone and piece.turn_id == prompt.before)
        if not is_gone:
            kept.append(replace(piece, is_read=piece.is_read and not has_gap))
    return kept


_LAYOUTS: dict[str, Callable[[_Prompt], Sequence[_Piece]]] = {
    "as_sent": _as_sent,
    "context_in_system": _in_system,
    "context_before_question": _before_question,
    "results_forgotten": _forgotten,
}


def _show(name: str, pieces: Sequence[_Piece]) -> JsonObject:
    sent = sum(piece.tokens for piece in pieces)
    cached = sum(piece.tokens for piece in pieces if piece.is_read)
    cost = round(sent - cached + cached * READ_FACTOR)
    return {"layout": name, "sent_tokens": sent, "cached_tokens": cached, "cost_tokens": cost}
