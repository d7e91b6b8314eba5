"""The storage of turns that wait for their conversation."""

from collections.abc import Sequence
from typing import Protocol

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.waiting_turns import Entered, WaitingTurn


class WaitingTurnStore(Protocol):
    """Stores turns that wait. Each method is one transaction; `TurnStore.begin` takes a turn out of those that wait.

    `TurnStore.find` returns the response of a waiting turn, too; where its message has entered a turn, that turn's.
    """

    async def add(self, waiting: WaitingTurn, most: int) -> str | None:
        """Store a turn behind those that wait for its conversation, or before those that merely wait.

        Return the id of the response whose turn holds the conversation; None where none does any more.

        Raises:
            KeyHeld: another request has used the key of the claim.
            NotFound: the conversation was deleted.
            TooManyRequests: so many turns as `most` wait for the conversation already. Retryable later.
        """
        ...

    async def startable(self, limit: int) -> tuple[str, ...]:
        """Return the ids of up to `limit` turns that come next in conversations that no turn holds, in any order."""
        ...

    async def find(self, response_id: str) -> WaitingTurn | None:
        """Return a turn that waits, without its claim; None where it has begun or ended.

        Raises:
            CorruptRecord: the row cannot be read.
        """
        ...

    async def remains(self, response_id: str) -> StoredResponse | None:
        """Return what every row of a waiting turn has of its response, also of one that cannot be read: its ids.

        Its body and its input are empty. None where it does not wait any more.
        """
        ...

    async def to_be_cancelled(self) -> Sequence[str]:
        """Return the ids of the responses whose turns hold conversations that turns wait for which stop them."""
        ...

    async def to_be_steered(self) -> Sequence[str]:
        """Return the ids of the responses that messages wait for which may enter their turns."""
        ...

    async def find_steering(self, response: StoredResponse) -> tuple[WaitingTurn, ...]:
        """Return the waiting turns whose messages may enter the turn of a response that holds its conversation.

        `TurnStore.append` takes them out of those that wait, in the transaction that writes their messages to the log.

        Raises:
            CorruptRecord: a row cannot be read.
        """
        ...

    async def find_entered(self, response_id: str) -> tuple[Entered, ...]:
        """Return the messages that have entered the turn of a response, in their order."""
        ...

    async def withdraw(self, ended: StoredResponse) -> bool:
        """Store the end of a turn that has not begun; return False where it does not wait any more."""
        ...
