"""Read token usage in the forms in which providers report it; what a provider does not report stays unknown."""

from chat_shell.models.transport.frames import LeftOut
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


class Counts:
    """Reads the counts of a provider's report; where it holds something else, `left_out` says so."""

    def __init__(self, left_out: set[LeftOut]) -> None:
        self._left_out = left_out

    def report(self, given: JsonValue) -> JsonObject:
        """Return a report, or an empty one where it is no object."""
        if given is not None and not isinstance(given, dict):
            self._left_out.add(LeftOut.COUNTS)
        return given if isinstance(given, dict) else {}

    def read(self, reported: JsonObject, path: tuple[str, ...]) -> int | None:
        """Return the count at a path; None where there is none."""
        value: JsonValue = reported
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
            count = int(value)
            if count == value:
                return count
        self._left_out.add(LeftOut.COUNTS)
        return None


def read_usage(reported: JsonObject, counts: Counts) -> Usage:
    """Read a `usage` object."""
    return Usage(
        input_tokens=_first(reported, _INPUT, counts),
        cached_tokens=_first(reported, _CACHED, counts),
        cache_write_tokens=_first(reported, _CACHE_WRITE, counts),
        output_tokens=_first(reported, _OUTPUT, counts),
        reasoning_tokens=_first(reported, _REASONING, counts),
    )


def _first(reported: JsonObject, paths: tuple[tuple[str, ...], ...], counts: Counts) -> int | None:
    return next((count for path in paths if (count := counts.read(reported, path)) is not None), None)
