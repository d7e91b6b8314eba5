"""A reply in the form of chat.completion.chunk frames, or of one chat.completion."""

from typing import Any

import orjson

from tests.fakes.model_server.script import RecordedRequest, Reply, ScriptedCall

CREATED = 1_767_225_600
DONE = b"data: [DONE]\n\n"


def delta_frames(reply: Reply, model: str) -> list[bytes]:
    """Frames up to the finish reason, the role frame not among them."""
    deltas: list[dict[str, Any]] = [{"reasoning_content": text} for text in reply.reasoning]
    texts = [_choice({"content": text}, None) for text in reply.text]
    if reply.logprobs:
        texts = [{**one, "logprobs": {"content": [token(one["delta"]["content"])], "refusal": None}} for one in texts]
    later: list[dict[str, Any]] = [{"refusal": text} for text in reply.refusal]
    for index, call in enumerate(reply.tool_calls):
        later += _call_deltas(index, call)
    choices = [*(_choice(delta, None) for delta in deltas), *texts, *(_choice(delta, None) for delta in later)]
    return [_frame(model, [choice]) for choice in choices]


def token(text: str) -> dict[str, Any]:
    """What the fake tells of a token."""
    plain = {"token": text, "logprob": -0.25, "bytes": list(text.encode())}
    return {**plain, "top_logprobs": [plain, {"token": "?", "logprob": -2.5, "bytes": [63]}]}


def role_frame(_reply: Reply, model: str) -> bytes:
    """The first frame of an answer."""
    return _frame(model, [_choice({"role": "assistant", "content": ""}, None)])


def end_frames(reply: Reply, request: RecordedRequest) -> list[bytes]:
    """Finish reason, usage where it was asked for, and the end mark."""
    body: dict[str, Any] = request.json_body
    model = str(body.get("model", ""))
    options: dict[str, Any] = body.get("stream_options") or {}
    frames = [_frame(model, [_choice({}, finish_reason(reply))])]
    if options.get("include_usage"):
        frames.append(_frame(model, [], usage=usage(reply, request)))
    return [*frames, DONE]


def whole_answer(reply: Reply, request: RecordedRequest) -> bytes:
    """The reply as it goes to who did not ask for a stream."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text) or None}
    if reply.refusal:
        message["refusal"] = "".join(reply.refusal)
    if reply.reasoning:
        message["reasoning_content"] = "".join(reply.reasoning)
    if reply.tool_calls:
        message["tool_calls"] = [_call(index, call, call.arguments) for index, call in enumerate(reply.tool_calls)]
    return orjson.dumps(
        {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": CREATED,
            "model": request.json_body.get("model", ""),
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
            "usage": usage(reply, request),
        }
    )


def finish_reason(reply: Reply) -> str:
    """The scripted reason, or the one that fits."""
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def usage(reply: Reply, request: RecordedRequest) -> dict[str, Any]:
    """The scripted usage, or one made up: four bytes of the request a token, one token a delta."""
    if reply.usage is not None:
        return reply.usage
    prompt_tokens = len(request.body) // 4
    completion_tokens = len(reply.text) + len(reply.reasoning) + len(reply.refusal) + 10 * len(reply.tool_calls)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": len(reply.reasoning)},
    }


def error_body(status: int) -> bytes:
    """An error in OpenAI's shape."""
    return orjson.dumps(
        {"error": {"message": f"scripted failure {status}", "type": "scripted", "param": None, "code": None}}
    )


def _call_deltas(index: int, call: ScriptedCall) -> list[dict[str, Any]]:
    middle = len(call.arguments) // 2
    pieces = [call.arguments[:middle], call.arguments[middle:]]
    head = {"tool_calls": [{"index": index, **_call(index, call, "")}]}
    return [head, *({"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces)]


def _call(index: int, call: ScriptedCall, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.call_id or f"call_fake_{index}", "type": "function", "function": function}


def _choice(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _frame(model: str, choices: list[dict[str, Any]], **more: Any) -> bytes:
    chunk = {
        "id": "chatcmpl-fake",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": model,
        "choices": choices,
        **more,
    }
    return b"data: " + orjson.dumps(chunk) + b"\n\n"
