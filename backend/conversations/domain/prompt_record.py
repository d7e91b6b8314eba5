"""Digests of the prompts of model calls, and how much of each the call before had already sent."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha1
from typing import NamedTuple
from zlib import crc32

import orjson

from shared.models.canonical import CHAT_COMPLETIONS, message_json, tools_json
from shared.models.events import CACHE_CHANGES, Usage
from shared.models.execution import ToolDefinition
from shared.models.messages import Message
from shared.models.values import Value
from shared.tokens import estimate_tokens, message_tokens

_SYSTEM_ROLE = "s"
_ROLE_END = 1
_WHOLE_END = _ROLE_END + 12
"""The digest of a message: the first letter of its role, a hash of all its bytes, and a checksum of its content."""

CACHED_FROM_TOKENS = 1_024
CACHED_STEP_TOKENS = 128
"""https://platform.openai.com/docs/guides/prompt-caching: the shortest prompt that is cached, and the step."""


class Shortfall(StrEnum):
    """Why the provider read less from its cache than the call before made possible.

    It is `policy` where the placement of an agent's words, or the context policy `tail`, has moved what was sent.
    """

    OURS = "ours"
    POLICY = "policy"
    PROVIDER_MISS = "provider_miss"


class MissCause(StrEnum):
    """Why a provider read less of a prompt from its cache than the call before had sent.

    `ours`: bytes have moved, here or, as the provider says, on the way to it. `below_minimum`: it keeps no prefix that
    short. `evicted`: nobody had asked for it as long as the provider keeps one, or the end of it is gone: caches drop
    ends first. `routed_elsewhere`: none of it was found within that time, as on another machine.
    """

    OURS = "ours"
    BELOW_MINIMUM = "below_minimum"
    EVICTED = "evicted"
    ROUTED_ELSEWHERE = "routed_elsewhere"


class CacheTerms(NamedTuple):
    """What is known of a provider's cache at one call: how it works, the time since the call before, and its own word.

    A time of 0 is not known, or none to speak of.
    """

    minimum_tokens: int = CACHED_FROM_TOKENS
    ttl_seconds: int = 0
    idle_seconds: float = 0
    diagnosis: str = ""


NO_TERMS = CacheTerms()


class SentPrompt(Value):
    """The prompt of a model call: digests of its tools and of each of its messages.

    `fixed` is the number of leading messages with which the next call of the epoch must begin: all of them, or those
    before the first message that is not stored in the log.
    """

    epoch: int
    tools: str
    messages: tuple[str, ...]
    fixed: int


class Measure(NamedTuple):
    """The digest and the sizes of one part of a prompt; `tokens` is estimated."""

    digest: str
    size_bytes: int
    tokens: int


class Reuse(Value):
    """The size of the prefix that a prompt shares with the call before: whole messages, bytes, estimated tokens.

    `first_difference` is the path of the first part that differs from the call before, such as `tools` or
    `messages[3].content`; None where all parts that had to stay the same are unchanged.
    """

    messages: int = 0
    size_bytes: int = 0
    tokens: int = 0
    first_difference: str | None = None


NO_REUSE = Reuse()


def measure_tools(tools: Sequence[ToolDefinition]) -> Measure:
    """Measure the array of tools; without tools its size is 0."""
    content = orjson.dumps(tools_json(tools)) if tools else b""
    return Measure(_digest(content), len(content), estimate_tokens(content.decode()))


def measure_message(message: Message) -> Measure:
    """Measure a message in its canonical form."""
    form = message_json(message)
    whole = orjson.dumps(form)
    content = form["content"]
    kept = message.reasoning if message.role == "assistant" else None
    if kept is not None and kept.api != CHAT_COMPLETIONS:
        whole += kept.model_dump_json().encode()  # it has no place in this form, and clients are not shown it
    checksum = crc32(content.encode() if isinstance(content, str) else orjson.dumps(content))
    return Measure(f"{message.role[0]}{_digest(whole)}{checksum:08x}", len(whole), message_tokens(message))


def reuse_of(last: SentPrompt | None, tools: Measure, messages: Sequence[Measure]) -> Reuse:
    """Compare a prompt with that of the call before."""
    if last is None:
        return NO_REUSE
    if tools.digest != last.tools:
        return Reuse(first_difference="tools")
    count = _same_count(last.messages, messages)
    same = (tools, *messages[:count])
    return Reuse(
        messages=count,
        size_bytes=sum(part.size_bytes for part in same),
        tokens=sum(part.tokens for part in same),
        first_difference=_difference(last, messages, count),
    )


def rewritten_tokens(last: SentPrompt | None, messages: Sequence[Measure], same_count: int) -> int:
    """Return the tokens of the messages behind the shared ones that the call before had sent too, elsewhere."""
    before = Counter(last.messages[same_count:]) if last is not None else Counter[str]()
    rewritten = 0
    for message in messages[same_count:] if before else ():
        if before[message.digest] > 0:
            before[message.digest] -= 1
            rewritten += message.tokens
    return rewritten


def cause_of_miss(reuse: Reuse, prompt_tokens: int, usage: Usage, terms: CacheTerms = NO_TERMS) -> MissCause | None:
    """Return why the provider read less from its cache than was possible; None where it read enough.

    The result is None where the provider reports no cached tokens. The estimate is scaled to reported input tokens.
    """
    if reuse.first_difference is not None:
        return MissCause.OURS
    if usage.cached_tokens is None:
        return None
    expected = reuse.tokens
    if usage.input_tokens is not None and prompt_tokens:
        expected = reuse.tokens * usage.input_tokens // prompt_tokens
    if usage.cached_tokens >= expected - CACHED_STEP_TOKENS:
        return None
    if expected < terms.minimum_tokens:
        return MissCause.BELOW_MINIMUM
    if terms.diagnosis in CACHE_CHANGES:
        return MissCause.OURS
    is_old = 0 < terms.ttl_seconds <= terms.idle_seconds
    return MissCause.EVICTED if is_old or usage.cached_tokens else MissCause.ROUTED_ELSEWHERE


def shortfall_of(reuse: Reuse, cause: MissCause | None) -> Shortfall | None:
    """Return whose doing a miss is: ours where what we sent has moved; None for a prefix that no cache keeps."""
    if reuse.first_difference is not None:
        return Shortfall.OURS
    return None if cause in (None, MissCause.BELOW_MINIMUM) else Shortfall.PROVIDER_MISS


def inherit_prompt(last: SentPrompt, entry_count: int) -> SentPrompt:
    """Return the part of a sent prompt that a fork repeats: the system message and the first `entry_count` entries."""
    has_system = bool(last.messages) and last.messages[0].startswith(_SYSTEM_ROLE)
    messages = last.messages[: entry_count + has_system]
    return SentPrompt(epoch=last.epoch, tools=last.tools, messages=messages, fixed=min(last.fixed, len(messages)))


def _same_count(last: Sequence[str], messages: Sequence[Measure]) -> int:
    pairs = enumerate(zip(last, messages, strict=False))
    shorter = min(len(last), len(messages))
    return next((place for place, (before, now) in pairs if before != now.digest), shorter)


def _difference(last: SentPrompt, messages: Sequence[Measure], count: int) -> str | None:
    if count >= last.fixed:
        return None
    path = f"messages[{count}]"
    if count >= len(messages):
        return path
    before, now = last.messages[count], messages[count].digest
    if before[:_ROLE_END] != now[:_ROLE_END]:
        return f"{path}.role"
    return f"{path}.content" if before[_WHOLE_END:] != now[_WHOLE_END:] else path


def _digest(content: bytes) -> str:
    return sha1(content, usedforsecurity=False).hexdigest()[: _WHOLE_END - _ROLE_END]
