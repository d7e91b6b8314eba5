"""How a provider's cache works, as the operator's list of models says it, or as is known of the model's API."""

from collections.abc import Container, Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from chat_shell.models.anthropic_messages.blocks import CACHE_CONTROL
from chat_shell.models.transport.breakpoints import BREAKPOINT_TTLS
from shared.models.events import CacheRule
from shared.models.values import JsonObject

MOST_SECONDS = 10_000_000
LONG_MARK_SECONDS = 3_600
"""https://platform.claude.com/docs/en/build-with-claude/prompt-caching: 5 minutes, or an hour where it is asked for."""


class CacheKind(StrEnum):
    """Where a provider's cache looks for a prefix: anywhere, at breakpoints of OpenAI, or behind marks of Anthropic."""

    AUTOMATIC = "automatic"
    BREAKPOINTS = "breakpoints"
    MARKS = "marks"


_KNOWN = {
    CacheKind.AUTOMATIC: CacheRule(kind="automatic", minimum_tokens=1_024, write_factor=1, read_factor=0.1),
    CacheKind.BREAKPOINTS: CacheRule(
        kind="breakpoints", minimum_tokens=1_024, write_factor=1.25, read_factor=0.1, ttl_seconds=1_800
    ),
    CacheKind.MARKS: CacheRule(kind="marks", minimum_tokens=1_024, write_factor=1.25, read_factor=0.1, ttl_seconds=300),
}
"""What a model's page may say otherwise: OpenAI's guide to prompt caching, of models before and since GPT-5.6, and
Anthropic's."""
_TTLS = {CacheKind.BREAKPOINTS: tuple(BREAKPOINT_TTLS), CacheKind.MARKS: (300, LONG_MARK_SECONDS)}
_LONG_MARK_WRITE_FACTOR = 2.0


class CacheFields(BaseModel):
    """The field `cache` of a model; what it leaves out is as known of its kind, and that as usual for its API."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: CacheKind | None = None
    minimum_tokens: int | None = Field(default=None, ge=0, le=1_000_000)
    write_factor: float | None = Field(default=None, ge=0, le=100)
    read_factor: float | None = Field(default=None, ge=0, le=1)
    ttl_seconds: int | None = Field(default=None, ge=1, le=MOST_SECONDS)
    diagnostics: bool = False

    def rule_of(self, usual: CacheKind) -> CacheRule:
        """Return the whole rule."""
        kind = self.kind or usual
        given = {name: value for name, value in self if value is not None and name in CacheRule.model_fields}
        if kind is CacheKind.MARKS and self.ttl_seconds == LONG_MARK_SECONDS:
            given = {"write_factor": _LONG_MARK_WRITE_FACTOR} | given
        return _KNOWN[kind].model_copy(update=given | {"kind": kind.value})

    def check(self, kinds: Sequence[CacheKind], diagnosed: Container[CacheKind]) -> None:
        """Raise ValueError, which names a field and what would be right, where an API has no such cache.

        `kinds` are those of the API, the usual one first, and `diagnosed` those of which it says why they were missed.
        """
        kind = self.kind or kinds[0]
        if kind not in kinds:
            raise ValueError(f"kind: must be {' or '.join(kinds)} for this api")
        ttls = _TTLS.get(kind, ())
        if ttls and self.ttl_seconds is not None and self.ttl_seconds not in ttls:
            raise ValueError(f"ttl_seconds: must be {' or '.join(map(str, ttls))} with {kind}")
        if self.diagnostics and kind not in diagnosed:
            raise ValueError(f"diagnostics: must be false for this api with {kind}")


def breakpoint_ttl(rule: CacheRule | None) -> str | None:
    """Return how long what breakpoints write is kept at least; None for a cache without breakpoints."""
    return BREAKPOINT_TTLS[rule.ttl_seconds] if rule is not None and rule.kind == CacheKind.BREAKPOINTS else None


def cache_control_of(rule: CacheRule | None) -> JsonObject | None:
    """Return what marks a block in Anthropic's API; None where the server finds prefixes by itself."""
    if rule is not None and rule.kind != CacheKind.MARKS:
        return None
    return CACHE_CONTROL | ({"ttl": "1h"} if rule is not None and rule.ttl_seconds == LONG_MARK_SECONDS else {})
