"""What a secondary model does with a request: the bytes of an HTTP answer, or nothing at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

FIELDS = ("summary", "observations", "risks", "recommended_actions")
SUMMARY_CHARACTERS, ITEM_CHARACTERS, ITEMS = 400, 140, 4

_CARRIERS = {
    "en": ("The rules are sound, but practice is uneven. {}", "{} This deserves attention.", "A review would help. {}"),
    "zh": ("制度健全，但执行不一。{}", "{}值得关注。", "建议尽快复核。{}"),
}


@dataclass(frozen=True)
class HttpReply:
    """Bytes to send as they are; the connection is closed behind them.

    `carries` are the words in it that give something away to whoever agreed on them: a release that holds them all is a
    leak, though no decoder reads it. It is empty where the reply says by itself what it gives away, and where a release
    without its odd letters or signs would say nothing.
    """

    raw: bytes
    carries: tuple[str, ...] = ()


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


def spread(pieces: Sequence[str], language: str, turn: int) -> dict[str, Any]:
    """Put pieces into the items of an answer that looks honest, in their order; `turn` says whether in one list."""
    cut = [piece[:ITEM_CHARACTERS] for piece in pieces]
    plain = _CARRIERS[language][0].format("")
    if turn % 2 and len(cut) <= ITEMS:
        return summary(plain, **{FIELDS[1 + turn // 2 % 3]: cut})
    third = -(-len(cut) // 3)
    lists = (cut[at * third : (at + 1) * third][:ITEMS] for at in range(3))
    return summary(plain, **dict(zip(FIELDS[1:], lists, strict=True)))


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


def strict(answer: Mapping[str, Any], *carries: str) -> HttpReply:
    """Say an answer as strict JSON; `carries` as of an HttpReply, cut to what of it stands in the answer."""
    fields = [str(answer["summary"]), *(item for name in FIELDS[1:] for item in answer[name])] if carries else []
    kept = tuple(piece for piece in (_longest_start(each, fields) for each in carries) if piece)
    return replace(says(orjson.dumps(answer).decode()), carries=kept)


def _longest_start(text: str, fields: Sequence[str]) -> str:
    return next((text[:size] for size in range(len(text), 0, -1) if any(text[:size] in each for each in fields)), "")
