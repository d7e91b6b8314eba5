"""The requests by which a model summarises what is left out of a conversation, and whether its summary may be kept.

A request continues the prefix that the model has been sent already, so that its provider reads it from the cache; the
instruction is the last message. What is too long for the window, as after a change to a smaller model, is summarised in
stretches, each of which begins with the summary of those before.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from backend.conversations.domain.conversation_log import Entry, EntryKind, messages_of, select_sent, select_sent_before
from backend.conversations.domain.model_calls import SUMMARY_REQUEST, Excerpt, TailMessage
from backend.prompt.domain.compaction import count_elided_tokens, cuts_of, tools_tokens
from backend.prompt.domain.truncation import Truncation, summary_limit_tokens
from shared.models.events import ModelCard
from shared.models.execution import ExecutionRequest, Purpose
from shared.models.messages import UserMessage
from shared.prompts.knowledge_tools import functions_of_request
from shared.prompts.message_order import context_of_request, messages_of_request, system_messages
from shared.prompts.summary import SUMMARY_INSTRUCTION, frame_summary
from shared.tokens import estimate_tokens, message_tokens


class SummaryRequest(NamedTuple):
    """A request, the part of the log that it asks about, and its messages that stand in no log."""

    request: ExecutionRequest
    excerpt: Excerpt
    tail: tuple[TailMessage, ...]


def count_fixed_tokens(request: ExecutionRequest, *, keeps_context: bool) -> int:
    """Return the size of what each request of a turn holds beside the log."""
    tools = tools_tokens(functions_of_request(request))
    context = 0 if keeps_context else estimate_tokens(context_of_request(request))
    return sum(map(estimate_tokens, (request.system_prompt, request.reminder))) + tools + context


def request_tokens(request: ExecutionRequest) -> int:
    """Return the size of a whole request."""
    messages = (*messages_of_request(request), *request.added)
    return count_fixed_tokens(request, keeps_context=True) + sum(map(message_tokens, messages[1:]))


def excerpts_of(left_out: Truncation, room_tokens: int, summary_tokens: int) -> tuple[Excerpt, ...]:
    """Cut what is left out into stretches that fit: the first into the room, others beside the summary before them.

    A turn that does not fit by itself loses the results of its tools. There is no excerpt where that is not enough.
    """
    until = left_out.reset.begins_at
    turns = [(entry, _tokens(entry)) for entry in left_out.entries]
    if sum(size for _, size in turns) <= room_tokens:
        return (Excerpt(reset=left_out.sent_by, until=until),)
    starts = [left_out.sent_by.begins_at, *(position for position, _ in cuts_of(turns)), until]
    made: list[Excerpt] = []
    place, room = 0, room_tokens
    while place < len(starts) - 1:
        ends = [end for end in range(place + 1, len(starts)) if _size(turns, starts[place], starts[end]) <= room]
        end = ends[-1] if ends else place + 1
        if not ends and _size(turns, starts[place], starts[end], elides=True) > room:
            return ()
        made.append(_excerpt(left_out, starts[place], starts[end], elides=not ends, is_first=not made))
        place, room = end, room_tokens - summary_tokens
    return tuple(made)


def summary_room_tokens(request: ExecutionRequest, card: ModelCard) -> int:
    """Return how much may be summarised with one request."""
    beside = count_fixed_tokens(request, keeps_context=True) + estimate_tokens(SUMMARY_INSTRUCTION)
    return card.room_beside(summary_limit_tokens(card)) - beside


def summary_request(
    request: ExecutionRequest, log: Sequence[Entry], excerpt: Excerpt, limit_tokens: int, before: str | None
) -> SummaryRequest:
    """Build the request for the summary of an excerpt of the log; `before` is the summary of the stretch before it."""
    earlier = [frame_summary(before)] if before is not None else []
    said = messages_of(select_sent_before(select_sent(log, excerpt.reset), excerpt.until))
    history = (*(UserMessage(content=text) for text in earlier), *said)
    index = len(system_messages(request.system_prompt))
    tail = [TailMessage(index=index, text=text, kind=EntryKind.SUMMARY.value) for text in earlier]
    tail.append(TailMessage(index=index + len(history), text=SUMMARY_INSTRUCTION, kind=SUMMARY_REQUEST))
    parameters = request.parameters.model_copy(
        update={"max_output_tokens": limit_tokens, "text_format": None, "verbosity": None, "stop": ()}
    )
    changes = {
        "parameters": parameters,
        "history": history,
        "kb_meta_prompt": "",
        "dynamic_blocks": (),
        "prompt": SUMMARY_INSTRUCTION,
        "limits": request.limits.model_copy(update={"hand_back_tokens": None}),
        "added": (),
        "reminder": "",
        "purpose": Purpose.SUMMARY,
    }
    return SummaryRequest(request.model_copy(update=changes), excerpt, tuple(tail))


def until_at_most(request: ExecutionRequest, latest: datetime) -> ExecutionRequest:
    """Return the request with a deadline no later than this."""
    return request.model_copy(update={"deadline": min(request.deadline, latest)})


def _excerpt(left_out: Truncation, start: int, end: int, *, elides: bool, is_first: bool) -> Excerpt:
    changes = {} if is_first else {"begins_at": start, "says_from": start, "blocks_from": start, "summary_at": None}
    if elides:
        changes["elides_below"] = end
    return Excerpt(reset=left_out.sent_by.model_copy(update=changes), until=end)


def _size(turns: Sequence[tuple[Entry, int]], start: int, end: int, *, elides: bool = False) -> int:
    below = end if elides else 0
    return sum(count_elided_tokens(entry, size, below) for entry, size in turns if start <= entry.position < end)


def _tokens(entry: Entry) -> int:
    return message_tokens(entry.message) if entry.message is not None else 0
