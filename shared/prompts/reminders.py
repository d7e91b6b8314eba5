"""The reminder: the message in the user's role with which a request may end, and which no log holds."""

from collections.abc import Iterable

from shared.prompts.message_order import join_blocks

LAST_CALL = (
    "No further tool call is possible in this turn. Answer from what has been found, and name what could not be found."
)
"""Ends the last model call of a turn that has called tools."""

CITATIONS = (
    "Statements that rest on a document of the results carry its number in square brackets directly behind them, such "
    "as [3], or [3][7] for two documents. Only numbers that stand in results are cited."
)
"""Ends each model call of a turn from the first result with numbered documents to the turn's end."""

_FRAME = "<system-reminder>\n{}\n</system-reminder>"


def reminder_text(parts: Iterable[str]) -> str:
    """Return the text of the reminder with its parts in their order; "" where all of them are empty or blank."""
    text = join_blocks(parts)
    return _FRAME.format(text) if text else ""
