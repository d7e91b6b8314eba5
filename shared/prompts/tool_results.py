"""Texts that a model reads in the place of a tool's result, or of what was left out of one."""

from shared.tokens import estimate_tokens

MAX_TOOL_RESULT_TOKENS = 15_000
"""The largest result of a tool that a model is shown whole, unless the operator sets another number."""

NOTICE_TOKENS = 48
"""More than each notice below has."""

_LEFT_OUT = "\n[… {left} of about {whole} tokens of this text are left out here …]\n"
_DOCUMENTS_LEFT_OUT = (
    "{shown} of {whole} documents are shown, because all of them would be too long. A narrower call brings others."
)

CALL_REPEATED = (
    "This call has been made several times in this turn with the same arguments, and was not made again. "
    "Answer from its results, or make another call."
)

TOOL_UNKNOWN = "There is no tool of this name. Available tools: "
ARGUMENTS_NO_JSON = "The arguments are not valid JSON. Call the tool again with one JSON object."
ARGUMENTS_NO_OBJECT = "The arguments must be one JSON object. Call the tool again with one."
ARGUMENTS_REJECTED = "The arguments do not fit the tool's parameters: "
TOOL_TIMED_OUT = "The tool took too long and was stopped. The same call may work later; another one may be quicker."
TOOL_UNAVAILABLE = "The tool cannot be reached at present. Answer without it or try once more."
TOOL_NOT_PERMITTED = "Access was denied. Repeating the call will not help."
TOOL_FAILED = "The tool failed. Repeating the same call will probably not help."


def within_tokens(text: str, limit_tokens: int) -> str:
    """Return a text, or its beginning and end with a notice between them, in at most `limit_tokens` estimated tokens.

    A limit below `NOTICE_TOKENS` leaves the notice alone. The time is that of one pass over the text.
    """
    whole = estimate_tokens(text)
    if whole <= limit_tokens:
        return text
    room = max(0, limit_tokens - NOTICE_TOKENS)
    head = cut_to(text, room - room // 2)
    tail = _end_within(text[len(head) :], room // 2)
    left = whole - estimate_tokens(head) - estimate_tokens(tail)
    return f"{head}{_LEFT_OUT.format(left=left, whole=whole)}{tail}"


def documents_left_out(shown: int, whole: int) -> str:
    """Return the line behind documents of which the last were left out."""
    return _DOCUMENTS_LEFT_OUT.format(shown=shown, whole=whole)


def cut_to(text: str, limit_tokens: int) -> str:
    """Return the longest beginning of a text that has at most so many estimated tokens."""
    longest = 4 * limit_tokens
    if len(text) <= longest and estimate_tokens(text) <= limit_tokens:
        return text
    low, high = 0, min(len(text), longest)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= limit_tokens else (low, middle - 1)
    return text[:low]


def _end_within(text: str, limit_tokens: int) -> str:
    newest = text[-4 * limit_tokens :] if limit_tokens else ""
    return cut_to(newest[::-1], limit_tokens)[::-1]
