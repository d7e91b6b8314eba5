"""The port through which turns report to an operator."""

from enum import StrEnum
from typing import Protocol

from backend.conversations.domain.model_calls import CacheMiss
from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.waiting_turns import IfRunning
from backend.restricted.domain.outgoing_events import CutCause


class TakeoverOutcome(StrEnum):
    """What became of a turn that was taken over from another process: it runs again, or how it ended."""

    RUN_AGAIN = "run_again"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class CompactionOutcome(StrEnum):
    """What stands in the place of what was left out of a conversation: a summary, or a notice because there is none."""

    SUMMARISED = "summarised"
    ELIDED = "elided"
    EMPTY = "empty"
    REFUSED = "refused"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    TOO_LONG = "too_long"
    WITHHELD = "withheld"


class TurnObserver(Protocol):
    """Receives what turns report; its methods must not raise and must not block."""

    def turn_queued(self, response: StoredResponse, how: IfRunning) -> None:
        """A turn was acknowledged that waits for its conversation, or whose message is to enter the running one."""
        ...

    def turn_steered(self, response: StoredResponse, messages: int) -> None:
        """So many messages of turns that waited have entered a running one."""
        ...

    def turn_started(self, response: StoredResponse, request_id: str) -> None:
        """A turn begins; called inside its task, so that ids bound to the task stand on all its lines."""
        ...

    def epoch_started(self, conversation_id: str, epoch: int, reason: str) -> None:
        """An epoch begins; `reason` is one of prompt stability's closed list."""
        ...

    def history_compacted(self, response: StoredResponse, outcome: CompactionOutcome, seconds: float) -> None:
        """A part of the conversation was left out, which took so long; no results but those of tools: `elided`."""
        ...

    def prompt_sent(self, reused_tokens: int, new_tokens: int) -> None:
        """A model call began; the call before had sent `reused_tokens` of its prompt (both counts are estimates)."""
        ...

    def prompt_drifted(self, response: StoredResponse, call: int, path: str) -> None:
        """A call of this turn changed bytes that its epoch had sent already, first at this path; that is a defect."""
        ...

    def cache_missed(self, miss: CacheMiss) -> None:
        """A model call has ended whose prompt the provider could have read further from its cache."""
        ...

    def first_delta(self, seconds: float) -> None:
        """The first delta of the answer came `seconds` after the request."""
        ...

    def deltas(self, count: int, seconds: float) -> None:
        """`count` further deltas came `seconds` after the ones before."""
        ...

    def turn_finished(self, response: StoredResponse) -> None:
        """A turn ended; `response.status` says how."""
        ...

    def turn_taken_over(self, response: StoredResponse, outcome: TakeoverOutcome) -> None:
        """A turn was taken over from another process; `response.fence` counts how often."""
        ...

    def turn_left(self, response: StoredResponse) -> None:
        """This process stops running a turn that goes on, or has ended, in another process."""
        ...

    def answer_cut(self, response: StoredResponse, cause: CutCause, seconds: float) -> None:
        """The outgoing scan ended the answer of a restricted turn `seconds` after the request."""
        ...

    def turn_broke(self, response_id: str, error: BaseException) -> None:
        """An error that is no BallastError was raised: a defect, to be logged with its traceback."""
        ...
