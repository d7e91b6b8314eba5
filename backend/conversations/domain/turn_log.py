"""Collect the entries that a running turn adds to the conversation log."""

from collections.abc import Sequence
from datetime import datetime

from backend.conversations.domain.conversation_log import Entry, EntryKind, kind_of, pending_calls
from shared.errors import InternalError
from shared.models.events import ExecutionEvent, MessagesAdded, ModelCallStarted, RefusalDelta, TextDelta
from shared.models.messages import AssistantMessage, HistoryMessage, ToolMessage, TurnMessage, UserMessage


class TurnLog:
    """Holds the messages of a turn that are not stored yet, and the text of the running model call.

    With `has_entries` the log holds messages of the turn already, of which another process had them stored.
    """

    def __init__(self, turn_id: str, epoch: int, log_length: int, *, has_entries: bool = False) -> None:
        self._turn_id = turn_id
        self._epoch = epoch
        self._length = log_length
        self._held: list[TurnMessage] = []
        self._pieces: list[str] = []
        self._has_entries = has_entries

    @property
    def length(self) -> int:
        """The length of the log, with the entries returned so far."""
        return self._length

    def feed(self, event: ExecutionEvent) -> None:
        """Process an event."""
        if isinstance(event, TextDelta | RefusalDelta):
            self._pieces.append(event.text)
        elif isinstance(event, MessagesAdded):
            self._held.extend(event.messages)
            self._pieces.clear()
        elif isinstance(event, ModelCallStarted):
            self._pieces.clear()

    @property
    def holds_whole_exchanges(self) -> bool:
        """Whether all that is held are exchanges in which every call is answered."""
        return bool(self._held) and _answered_count(self._held) == len(self._held)

    def complete_exchange(self, now: datetime) -> tuple[Entry, ...]:
        """Return the entries up to the last tool result at which all calls are answered; a model call follows them.

        Later messages are held back, because the end of a turn is stored together with the response.
        """
        if not self._held:
            return ()
        waiting = self._held[_answered_count(self._held) :]
        del self._held[len(self._held) - len(waiting) :]
        entries = self._hand_out(now)
        self._held.extend(waiting)
        return entries

    @property
    def waits_for_client(self) -> bool:
        """Whether a call waits for a result that only the client can give."""
        return bool(pending_calls(self._held))

    def copy(self) -> "TurnLog":
        """Return another one that holds the same; what is fed to one the other does not get."""
        other = TurnLog(self._turn_id, self._epoch, self._length, has_entries=self._has_entries)
        other._held, other._pieces = list(self._held), list(self._pieces)
        return other

    def enter(self, messages: Sequence[UserMessage], now: datetime) -> tuple[Entry, ...]:
        """Return the entries of messages that the user sent while the turn ran, behind those of all that is held.

        Raises:
            InternalError: a call waits for its result, which nothing may part from it.
        """
        if pending_calls(self._held):
            raise InternalError("A message of the user would part a tool call from its result.")
        self._held.extend(messages)
        self._pieces.clear()
        return self._hand_out(now)

    def begin_epoch(self, epoch: int, log_length: int) -> None:
        """Give later entries this epoch; entries that are not of the turn have brought the log to this length."""
        self._epoch, self._length = epoch, log_length

    def end(self, now: datetime, *, is_success: bool) -> tuple[Entry, ...]:
        """Return the remaining entries.

        A turn that failed or was cancelled keeps its text and drops its unanswered calls. Where it has no text and no
        calls left, a void entry is added, so that later requests skip the turn.
        """
        if not is_success:
            self._held = _answered(self._held)
            text = "".join(self._pieces)
            if text:
                self._held.append(AssistantMessage(text=text))
        entries = self._hand_out(now)
        if is_success or self._has_entries:
            return entries
        return (*entries, self._entry(EntryKind.VOID, None, now))

    def _hand_out(self, now: datetime) -> tuple[Entry, ...]:
        entries = tuple(self._entry(kind_of(message), message, now) for message in self._held)
        self._has_entries = self._has_entries or bool(entries)
        self._held.clear()
        return entries

    def _entry(self, kind: EntryKind, message: HistoryMessage | None, now: datetime) -> Entry:
        entry = Entry(
            position=self._length,
            epoch=self._epoch,
            turn_id=self._turn_id,
            kind=kind,
            message=message,
            created_at=now,
        )
        self._length += 1
        return entry


def _answered_count(messages: Sequence[TurnMessage]) -> int:
    """Return the number of messages up to the last tool result at which all calls are answered."""
    ends = [place for place, message in enumerate(messages, 1) if isinstance(message, ToolMessage)]
    return next((end for end in reversed(ends) if not pending_calls(messages[:end])), 0)


def _answered(messages: Sequence[TurnMessage]) -> list[TurnMessage]:
    waiting = set(pending_calls(messages))
    kept: list[TurnMessage] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = tuple(call for call in message.tool_calls if call.call_id not in waiting)
            if calls != message.tool_calls:
                message = AssistantMessage(text=message.text, tool_calls=calls)
            if not message.text and not calls:
                continue
        kept.append(message)
    return kept
