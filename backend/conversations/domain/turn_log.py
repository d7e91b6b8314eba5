"""Collect the entries that a running turn adds to the conversation log."""

from collections.abc import Sequence
from copy import deepcopy
from datetime import datetime

from backend.conversations.domain.conversation_log import Entry, EntryKind, find_pending_calls, kind_of
from backend.conversations.domain.placed_blocks import AgentRef
from shared.errors import InternalError
from shared.models.events import ExecutionEvent, MessagesAdded, ModelCallStarted, RefusalDelta, TextDelta
from shared.models.messages import AssistantMessage, HistoryMessage, TurnMessage, UserMessage
from shared.prompts.message_order import read_reminder


class TurnLog:
    """Holds the messages of a turn that are not stored yet, and the text of the running model call.

    With `has_entries` the log holds messages of the turn already, of which another process had them stored.
    `reminded_of` is the agent of which its reminders may hold words.
    """

    def __init__(
        self,
        turn_id: str,
        epoch: int,
        log_length: int,
        *,
        has_entries: bool = False,
        reminded_of: tuple[AgentRef, ...] = (),
    ) -> None:
        self._turn_id = turn_id
        self._reminded_of = reminded_of
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
            if event.reminder_stays:
                self._held.append(UserMessage(content=event.reminder))

    @property
    def holds_whole_exchanges(self) -> bool:
        """Whether all that is held are exchanges in which every call is answered."""
        return bool(self._held) and _count_answered(self._held) == len(self._held)

    def complete_exchange(self, now: datetime) -> tuple[Entry, ...]:
        """Return the entries up to the last result or reminder at which all calls are answered; a model call follows.

        Later messages are held back, because the end of a turn is stored together with the response.
        """
        if not self._held:
            return ()
        waiting = self._held[_count_answered(self._held) :]
        del self._held[len(self._held) - len(waiting) :]
        entries = self._hand_out(now)
        self._held.extend(waiting)
        return entries

    @property
    def waits_for_client(self) -> bool:
        """Whether a call waits for a result that only the client can give."""
        return bool(find_pending_calls(self._held))

    def copy(self) -> "TurnLog":
        """Return another one that holds the same; what is fed to one the other does not get."""
        return deepcopy(self)

    def enter(self, messages: Sequence[UserMessage], now: datetime) -> tuple[Entry, ...]:
        """Return the entries of messages that the user sent while the turn ran, behind those of all that is held.

        Raises:
            InternalError: a call waits for its result, which nothing may part from it.
        """
        if find_pending_calls(self._held):
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
            self._held = _keep_answered(self._held)
            text = "".join(self._pieces)
            if text:
                self._held.append(AssistantMessage(text=text))
        entries = self._hand_out(now)
        if is_success or self._has_entries:
            return entries
        return (*entries, self._entry(EntryKind.VOID, None, now))

    def _hand_out(self, now: datetime) -> tuple[Entry, ...]:
        entries = tuple(self._entry(_kind_of(message), message, now) for message in self._held)
        self._has_entries = self._has_entries or any(entry.kind is not EntryKind.REMINDER for entry in entries)
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
            summarised=self._reminded_of if kind is EntryKind.REMINDER else (),
        )
        self._length += 1
        return entry


def _kind_of(message: TurnMessage) -> EntryKind:
    return kind_of(message) if read_reminder(message) is None else EntryKind.REMINDER


def _count_answered(messages: Sequence[TurnMessage]) -> int:
    """Return the number of messages up to the last tool result, or reminder, at which all calls are answered."""
    ends = [place for place, message in enumerate(messages, 1) if not isinstance(message, AssistantMessage)]
    return next((end for end in reversed(ends) if not find_pending_calls(messages[:end])), 0)


def _keep_answered(messages: Sequence[TurnMessage]) -> list[TurnMessage]:
    waiting = set(find_pending_calls(messages))
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
