"""Read token usage in the forms in which providers report it; what a provider does not report stays unknown."""

from shared.models.events import Usage
from shared.models.values import JsonObject, JsonValue

# The first path that holds a count wins. OpenAI's names come first; then DeepSeek's, Moonshot's, OpenRouter's and
# those of proxies in front of Anthropic.
_INPUT = (("prompt_tokens",), ("input_tokens",))
_OUTPUT = (("completion_tokens",), ("output_tokens",))
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cached_tokens",),
    ("cache_read_input_tokens",),
)
_CACHE_WRITE = (
    ("input_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("cache_creation_input_tokens",),
)
_REASONING = (("completion_tokens_details", "reasoning_tokens"), ("output_tokens_details", "reasoning_tokens"))

MAX_COUNT = 10**12
"""No call has more tokens; a larger number counts as not reported."""


def read_usage(reported: JsonObject) -> Usage:
    """Read a `usage` object."""
    return Usage(
        input_tokens=_first(reported, _INPUT),
        cached_tokens=_first(reported, _CACHED),
        cache_write_tokens=_first(reported, _CACHE_WRITE),
        output_tokens=_first(reported, _OUTPUT),
        reasoning_tokens=_first(reported, _REASONING),
    )


def _first(reported: JsonObject, paths: tuple[tuple[str, ...], ...]) -> int | None:
    return next((count for path in paths if (count := read_count(reported, path)) is not None), None)


def read_count(reported: JsonObject, path: tuple[str, ...]) -> int | None:
    """Return the count at a path; None where there is none."""
    value: JsonValue = reported
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT:
        return None
    return int(value) if value == int(value) else None
