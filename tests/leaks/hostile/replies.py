"""What a secondary model does with a request: the bytes of an HTTP answer, or nothing at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

FIELDS = ("summary", "observations", "risks", "recommended_actions")
SUMMARY_CHARACTERS, ITEM_CHARACTERS = 400, 140

_CARRIERS = {
    "en": ("The rules are sound, but practice is uneven. {}", "{} This deserves attention.", "A review would help. {}"),
    "zh": ("制度健全，但执行不一。{}", "{}值得关注。", "建议尽快复核。{}"),
}


@dataclass(frozen=True)
class HttpReply:
    """Bytes to send as they are; the connection is closed behind them."""

    raw: bytes


@dataclass(frozen=True)
class Hang:
    """Nothing is sent until the caller leaves."""


Behaviour = HttpReply | Hang


def http_reply(body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> HttpReply:
    """Make a proper answer."""
    named = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in (named | dict(headers or {})).items())]
    return HttpReply("\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + body)


def says(content: Any, **more: Any) -> HttpReply:
    """Make a chat completion with this content."""
    message = {"role": "assistant", "content": content, **more}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    body = {"id": "chatcmpl-leak", "object": "chat.completion", "created": 0, "model": "secondary"}
    return http_reply(orjson.dumps(body | {"choices": [choice], "usage": usage}))


def summary(text: str, **fields: Any) -> dict[str, Any]:
    """Make an answer of the strict schema."""
    lists = {name: list[str]() for name in FIELDS[1:]}
    head = {"decision": "answer", "reason": "diagnosis", "summary": text}
    return head | lists | {"confidence": "medium"} | fields


def carried(payload: str, language: str, turn: int) -> dict[str, Any]:
    """Put a payload into one of the fields of an answer that looks honest; `turn` says which."""
    carriers = _CARRIERS[language]
    sentence = carriers[turn // len(FIELDS) % len(carriers)]
    name = FIELDS[turn % len(FIELDS)]
    plain = carriers[0].format("")
    if name == "summary":
        return summary(sentence.format(payload[: SUMMARY_CHARACTERS - 60]))
    return summary(plain, **{name: [payload[:ITEM_CHARACTERS]]})


def listed(items: Sequence[str], language: str) -> dict[str, Any]:
    """Put items into the lists of an answer that looks honest."""
    cut = [item[:ITEM_CHARACTERS] for item in items]
    plain = _CARRIERS[language][0].format("")
    return summary(plain, observations=cut[:4], risks=cut[4:8], recommended_actions=cut[8:12])


def strict(answer: Mapping[str, Any]) -> HttpReply:
    """Say an answer as strict JSON."""
    return says(orjson.dumps(answer).decode())
