"""The pieces of tool calls that clients get while the model writes them."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from chat_shell.models.ports import CallFragment
from chat_shell.tools.domain.tool_calls import MAX_ID_CHARACTERS
from chat_shell.turns.domain.turn import MAX_CALLS_IN_ANSWER


class StreamedCalls:
    """Lets through the pieces of the client's calls that the end of the answer will not change.

    A call of one of the `functions` begins with the first character of its arguments that is no blank. By then its id
    must be known and free, and the arguments may be no JSON string, which stands for an object that was encoded twice.
    What is not let through reaches clients with the end of the answer, and so do the calls behind it: they stay in
    order.
    """

    def __init__(self, functions: Collection[str], taken_ids: Iterable[str]) -> None:
        self._functions = functions
        self._taken_ids = set(taken_ids)
        self._blanks: dict[int, list[str]] = {}
        self._begun: dict[int, bool] = {}
        self._is_over = not functions

    def feed(self, piece: CallFragment) -> CallFragment | None:
        """Take a piece; return what clients get, None where that is nothing."""
        is_clients = self._begun.get(piece.place)
        if is_clients is None:
            return None if self._is_over else self._begin(piece)
        return piece if is_clients and piece.arguments else None

    def _begin(self, piece: CallFragment) -> CallFragment | None:
        blanks = self._blanks.setdefault(piece.place, [])
        blanks.append(piece.arguments)
        beginning = piece.arguments.lstrip()
        if not beginning:
            return None
        if beginning.startswith('"') or not self._is_next(piece):
            self._is_over = True
            return None
        self._taken_ids.add(piece.call_id)
        is_clients = self._begun[piece.place] = piece.name in self._functions
        return replace(piece, arguments="".join(blanks)) if is_clients else None

    def _is_next(self, piece: CallFragment) -> bool:
        """Whether all calls before have begun, and this one keeps its id."""
        has_own_id = 0 < len(piece.call_id) <= MAX_ID_CHARACTERS and piece.call_id not in self._taken_ids
        return bool(has_own_id and piece.name and len(self._begun) == piece.place < MAX_CALLS_IN_ANSWER)
