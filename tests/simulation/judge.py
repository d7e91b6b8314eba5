"""What must hold after a simulation: the checks of the chaos run over what is left, and those of streams' ends."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from backend.conversations.domain.conversation_log import EntryKind, whole_turn_of
from backend.conversations.domain.responses import StoredResponse
from tests.chaos.checks import violations
from tests.chaos.records import Evidence, LogShare, Stored, Turn, Violation
from tests.chaos.schedule import FaultKind
from tests.e2e.turns import text_of
from tests.simulation.clients import SILENT_SECONDS, Clients, Silence
from tests.simulation.database import Database
from tests.simulation.schedule import BEHIND_OTHERS, SHELLS, Happening
from tests.simulation.shell import IDLE_SECONDS, ModelServer

AFTERMATH_SECONDS = 12.0
"""So long after a fault a turn may wait for a lease that has to end."""

SILENT_KINDS = (FaultKind.FREEZE, FaultKind.SILENCE)
CHANGED_MEANWHILE = "The conversation has changed meanwhile."
"""What a turn ends with whose log a failover has taken back."""

ON_ITS_WAY_SECONDS = 0.1
"""An acknowledgement may reach its client so long after it was stored."""


class Left(NamedTuple):
    """What is left of a simulation."""

    clients: Clients
    database: Database
    model: ModelServer
    faults: tuple[Happening, ...]
    stuck: tuple[str, ...]
    defects: tuple[str, ...]
    drift: tuple[str, ...]


def judge(left: Left) -> tuple[Violation, ...]:
    """Return all that was broken."""
    return (*violations(_evidence(left)), *_further(left))


def _further(left: Left) -> Iterator[Violation]:
    for told in left.clients.bad_ends:
        yield Violation("end of stream", (), told)
    for told in left.defects:
        if not (left.database.lost and CHANGED_MEANWHILE in told):
            yield Violation("defect", (), told)
    for told in left.database.fences.broken:
        yield Violation("fence", (), told)
    for silence in left.clients.silences:
        seconds = _unexplained_seconds(silence, left.faults)
        if seconds > SILENT_SECONDS:
            told = f"heard nothing for {seconds:.1f} s from {silence.begins:.2f} on, and no fault says why"
            yield Violation("silence", (silence.turn.response_id, silence.turn.key), told)


def _unexplained_seconds(silence: Silence, faults: Sequence[Happening]) -> float:
    """Return how long a silence was without those faults in which it may be silent, and what comes of them."""
    begins, seconds = silence.begins, 0.0
    if silence.turn.kind in BEHIND_OTHERS:
        return 0.0
    for fault in sorted(faults):
        if fault.target in SHELLS or fault.at_seconds >= silence.ends:
            continue
        after = IDLE_SECONDS if fault.kind == FaultKind.MODEL_STALL else AFTERMATH_SECONDS
        seconds += max(0.0, fault.at_seconds - begins)
        begins = max(begins, fault.at_seconds + fault.lasts_seconds + after)
    return seconds + max(0.0, silence.ends - begins)


def _evidence(left: Left) -> Evidence:
    state, clients = left.database.state, left.clients
    lost = {turn.key for turn in clients.turns if _may_be_lost(turn, left)}
    conversations = {turn.conversation for turn in clients.turns if turn.key in lost and turn.conversation}
    # a message that enters a turn is shown that one's events, and those of its own turn where it came too late
    excused = lost | {turn.key for turn in clients.turns if turn.kind == "steer" or turn.response_id in clients.deleted}
    kept = [turn for turn in clients.turns if turn.key not in excused]
    steered = {one.response_id for one in state.entered.values()}
    lives = {one.id: one.fence + 1 for one in state.responses.values()}
    for turn in clients.turns:
        if turn.response_id in lives:
            lives[turn.response_id] += _count_silent_shells(turn, left)
    calls = Counter[str]()
    for turn in clients.turns:
        calls[turn.conversation] += turn.calls
    for turn in kept:
        if turn.response_id in steered:  # it also answers the messages that have entered it
            turn.expected, turn.calls = None, calls[turn.conversation]
        turn.calls *= lives.get(turn.response_id, 1)  # docs/chaos.md, What is known and left
    taken = {turn.key for turn in clients.turns if lives.get(turn.response_id, 1) > 1}
    elsewhere = {turn.key for turn in clients.turns if turn.conversation in conversations} | lost | taken
    running = [one.id for one in state.responses.values() if not one.status.is_terminal]
    return Evidence(
        turns=kept,
        stored={one.id: _stored(one) for one in state.responses.values()},
        unfinished=(*running, *state.waiting),
        tool_runs=dict(left.model.tool_runs),
        log=_log(left),
        prompts=[sent for sent in left.model.prompts if sent.turn not in elsewhere],
        drift=left.drift if not lost else (),
        server_errors=clients.server_errors,
        hung=clients.open_calls(),
        stuck=list(left.stuck),
    )


def _count_silent_shells(turn: Turn, left: Left) -> int:
    """Count the faults behind which a turn may have moved to another chat_shell, which knows no result of a tool."""
    began = left.clients.begun.get(turn.key, 0.0)
    last = left.clients.touched.get(turn.response_id, [began])[-1]
    silent = [one for one in left.faults if one.kind in SILENT_KINDS and one.target.rpartition(" ")[2] in SHELLS]
    return sum(one.at_seconds <= last and one.ends_seconds >= began for one in silent)


def _may_be_lost(turn: Turn, left: Left) -> bool:
    """Whether something of it was acknowledged that a failover has lost."""
    touched = left.clients.touched.get(turn.response_id, [left.clients.begun.get(turn.key, 0.0)])
    began = left.clients.begun.get(turn.key, 0.0)
    return any(began <= end + ON_ITS_WAY_SECONDS and touched[-1] >= start for start, end in left.database.lost)


def _stored(response: StoredResponse) -> Stored:
    return Stored(response.status.value, text_of(response.body), ())


def _log(left: Left) -> dict[str, LogShare]:
    void, results = Counter[str](), Counter[str]()
    for entries in left.database.state.entries.values():
        for entry in entries:
            turn = whole_turn_of(entry.turn_id)
            void[turn] += entry.kind is EntryKind.VOID
            results[turn] += entry.kind is EntryKind.TOOL_RESULT
    return {turn: LogShare(bool(void[turn]), results[turn]) for turn in void}
