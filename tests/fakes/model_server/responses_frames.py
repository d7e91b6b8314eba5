"""A reply in the form of events of OpenAI's Responses API, or of one response."""

from typing import Any

import orjson

from tests.fakes.model_server.frames import CREATED, error_body, usage
from tests.fakes.model_server.script import RecordedRequest, Reply, ScriptedCall

__all__ = ["delta_frames", "end_frames", "error_body", "role_frame", "sealed", "whole_answer"]

Event = dict[str, Any]


def sealed(text: str) -> str:
    """The encrypted content of reasoning with this text."""
    return f"sealed:{text[::-1]}"


def role_frame(_reply: Reply, model: str) -> bytes:
    """The first event of an answer."""
    return _frame({"type": "response.created", "sequence_number": 0, "response": _response(model, "in_progress")})


def delta_frames(reply: Reply, model: str) -> list[bytes]:
    """A frame for each delta; what surrounds the deltas of an item comes in the same bytes."""
    frames: list[bytes] = []
    for index, item in enumerate(_items(reply)):
        frames += _item_frames(index, item, reply)
    return frames


def end_frames(reply: Reply, request: RecordedRequest) -> list[bytes]:
    """The terminal event."""
    response = _whole(reply, request)
    kind = {"completed": "response.completed", "incomplete": "response.incomplete"}[response["status"]]
    return [_frame({"type": kind, "sequence_number": 9_999, "response": response})]


def whole_answer(reply: Reply, request: RecordedRequest) -> bytes:
    """The reply as it goes to who did not ask for a stream."""
    return orjson.dumps(_whole(reply, request))


def _whole(reply: Reply, request: RecordedRequest) -> Event:
    counted = usage(reply, request)
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(reply.finish_reason or "")
    response = _response(str(request.json_body.get("model", "")), "incomplete" if reason else "completed")
    given = {
        "input_tokens": counted["prompt_tokens"],
        "input_tokens_details": {
            "cached_tokens": counted["prompt_tokens_details"]["cached_tokens"],
            "cache_write_tokens": 0,
        },
        "output_tokens": counted["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": len(reply.reasoning)},
        "total_tokens": counted["total_tokens"],
    }
    details = {"reason": reason} if reason else None
    told = {"prompt_cache_diagnostics": reply.cache_diagnostics} if reply.cache_diagnostics else {}
    return response | {"output": _items(reply), "usage": given, "incomplete_details": details, **told}


def _response(model: str, status: str) -> Event:
    return {
        "id": "resp_fake",
        "object": "response",
        "created_at": float(CREATED),
        "model": model,
        "status": status,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _items(reply: Reply) -> list[Event]:
    items: list[Event] = []
    if reply.reasoning:
        thought = "".join(reply.reasoning)
        summary = [{"type": "summary_text", "text": thought}]
        items.append({"id": "rs_fake", "type": "reasoning", "summary": summary, "encrypted_content": sealed(thought)})
    parts: list[Event] = []
    if reply.text:
        parts.append({"type": "output_text", "text": "".join(reply.text), "annotations": []})
    if reply.refusal:
        parts.append({"type": "refusal", "refusal": "".join(reply.refusal)})
    if parts:
        message = {"id": "msg_fake", "type": "message", "role": "assistant", "status": "completed", "content": parts}
        items.append(message)
    return items + [_call(index, call) for index, call in enumerate(reply.tool_calls)]


def _call(index: int, call: ScriptedCall) -> Event:
    return {
        "id": f"fc_fake_{index}",
        "type": "function_call",
        "call_id": call.call_id or f"call_fake_{index}",
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _item_frames(index: int, item: Event, reply: Reply) -> list[bytes]:
    place = {"item_id": item["id"], "output_index": index, "sequence_number": 1}
    if item["type"] == "reasoning":
        kind: Event = {"type": "response.reasoning_summary_text.delta", "summary_index": 0}
        deltas: list[Event] = [{**kind, "delta": text} for text in reply.reasoning]
        opened: Event = item | {"summary": [], "encrypted_content": None}
    elif item["type"] == "message":
        kind = {"type": "response.output_text.delta", "content_index": 0, "logprobs": []}
        deltas = [{**kind, "delta": text} for text in reply.text]
        deltas += [{"type": "response.refusal.delta", "content_index": 0, "delta": text} for text in reply.refusal]
        opened = item | {"content": [], "status": "in_progress"}
    else:
        deltas = [{"type": "response.function_call_arguments.delta", "delta": item["arguments"]}]
        opened = item | {"arguments": "", "status": "in_progress"}
    frames = [_frame(delta | place) for delta in deltas]
    edge = {"output_index": index, "sequence_number": 1}
    frames[0] = _frame({"type": "response.output_item.added", "item": opened, **edge}) + frames[0]
    done = _frame({"type": "response.output_item.done", "item": item, **edge})
    # The last delta of words stands alone, so that a fault can repeat it.
    return [*frames, done] if item["type"] == "reasoning" else [*frames[:-1], frames[-1] + done]


def _frame(event: Event) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))
