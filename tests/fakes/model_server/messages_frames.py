"""A reply in the form of events of Anthropic's Messages API, or of one message."""

from typing import Any

import orjson

from tests.fakes.model_server.frames import usage
from tests.fakes.model_server.script import RecordedRequest, Reply

Event = dict[str, Any]

_REASONS = {"length": "max_tokens", "content_filter": "refusal"}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def signature(text: str) -> str:
    """The signature of thinking with this text."""
    return f"signed:{text[::-1]}"


def role_frame(reply: Reply, model: str) -> bytes:
    """The first events of an answer: its start, and a sign of life."""
    told = {"diagnostics": reply.cache_diagnostics or None} if reply.cache_diagnostics is not None else {}
    start = _message(model) | told | {"usage": {"input_tokens": 0, "output_tokens": 1}}
    return _frame({"type": "message_start", "message": start}) + _frame({"type": "ping"})


def delta_frames(reply: Reply, model: str) -> list[bytes]:
    """A frame for each delta; what surrounds the deltas of a block comes in the same bytes."""
    frames: list[bytes] = []
    for index, (block, deltas) in enumerate(_blocks(reply)):
        opened = block | {name: "" for name in ("text", "thinking", "signature") if name in block}
        opened |= {"input": {}} if "input" in block else {}
        written = [_frame({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas]
        written[0] = _frame({"type": "content_block_start", "index": index, "content_block": opened}) + written[0]
        stop = _frame({"type": "content_block_stop", "index": index})
        # The last delta of words stands alone, so that a fault can repeat it.
        frames += [*written, stop] if block["type"] != "tool_use" else [*written[:-1], written[-1] + stop]
    if frames and len(frames) > 1 and reply.text and not reply.tool_calls:
        frames[-2:] = [frames[-2]]
    return frames


def end_frames(reply: Reply, request: RecordedRequest) -> list[bytes]:
    """The end of the last block where it is open, the reason, and the end mark."""
    blocks = _blocks(reply)
    left_open = [_frame({"type": "content_block_stop", "index": len(blocks) - 1})] if blocks else []
    delta = {"stop_reason": _reason(reply), "stop_sequence": None}
    ended = {"type": "message_delta", "delta": delta, "usage": _usage(reply, request)}
    return [*left_open, _frame(ended), _frame({"type": "message_stop"})]


def whole_answer(reply: Reply, request: RecordedRequest) -> bytes:
    """The reply as it goes to who did not ask for a stream."""
    message = _message(str(request.json_body.get("model", "")))
    content = [block for block, _ in _blocks(reply)]
    return orjson.dumps(message | {"content": content, "stop_reason": _reason(reply), "usage": _usage(reply, request)})


def error_body(status: int) -> bytes:
    """An error in Anthropic's shape."""
    error = {"type": _ERROR_TYPES.get(status, "api_error"), "message": f"scripted failure {status}"}
    return orjson.dumps({"type": "error", "error": error, "request_id": "req_fake"})


def _reason(reply: Reply) -> str:
    natural = "tool_use" if reply.tool_calls else "end_turn"
    given = reply.finish_reason or natural
    return _REASONS.get(given, given)


def _usage(reply: Reply, request: RecordedRequest) -> Event:
    counted = usage(reply, request)
    cached = counted["prompt_tokens_details"]["cached_tokens"]
    return {
        "input_tokens": counted["prompt_tokens"] - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": counted["completion_tokens"],
    }


def _message(model: str) -> Event:
    return {
        "id": "msg_fake",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _blocks(reply: Reply) -> list[tuple[Event, list[Event]]]:
    blocks: list[tuple[Event, list[Event]]] = []
    if reply.reasoning:
        thought = "".join(reply.reasoning)
        deltas: list[Event] = [{"type": "thinking_delta", "thinking": text} for text in reply.reasoning]
        deltas.append({"type": "signature_delta", "signature": signature(thought)})
        blocks.append(({"type": "thinking", "thinking": thought, "signature": signature(thought)}, deltas))
    words = (*reply.text, *reply.refusal)
    if words:
        text_deltas: list[Event] = [{"type": "text_delta", "text": text} for text in words]
        blocks.append(({"type": "text", "text": "".join(words)}, text_deltas))
    for index, call in enumerate(reply.tool_calls):
        block = {
            "type": "tool_use",
            "id": call.call_id or f"call_fake_{index}",
            "name": call.name,
            "input": orjson.loads(call.arguments),
        }
        blocks.append((block, [{"type": "input_json_delta", "partial_json": call.arguments}]))
    return blocks


def _frame(event: Event) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))
