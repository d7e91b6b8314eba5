"""What must hold after a simulation: the checks of the chaos run over what is left, and those of streams' ends."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from backend.conversations.domain.conversation_log import EntryKind, whole_turn_of
from backend.conversations.domain.responses import StoredResponse
from tests.chaos.checks import violations
from tests.chaos.records import Evidence, LogShare, Stored, Turn, Violation
from tests.e2e.turns import text_of
from tests.simulation.clients import Clients
from tests.simulation.database import Database
from tests.simulation.shell import ModelServer

ON_ITS_WAY_SECONDS = 0.1
"""An acknowledgement may reach its client so long after it was stored."""


class Left(NamedTuple):
    """What is left of a simulation."""

    clients: Clients
    database: Database
    model: ModelServer
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
        yield Violation("defect", (), told)


def _evidence(left: Left) -> Evidence:
    state, clients = left.database.state, left.clients
    lost = {turn.key for turn in clients.turns if _may_be_lost(turn, left)}
    conversations = {turn.conversation for turn in clients.turns if turn.key in lost and turn.conversation}
    kept = [turn for turn in clients.turns if turn.key not in lost and turn.response_id not in clients.deleted]
    elsewhere = {turn.key for turn in clients.turns if turn.conversation in conversations} | lost
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
