"""Many edits of knowledge in one turn cost that turn what is new in it, and later turns nothing."""

from datetime import UTC, datetime, timedelta

from backend.knowledge.domain.knowledge import Binding, MemberRole
from tests.bench.cache.conversations import Conversation, Settings, Step, Turn
from tests.bench.cache.layouts import DURABLE
from tests.bench.cache.playing import play
from tests.bench.cache.simulators import SIMULATORS
from tests.contract.knowledge_cases import make_base

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
SETTINGS = Settings(model="fake-model", instructions="Be brief.", functions=(), is_restricted=False)
BASES, TURNS, EDITED_IN = 10, 16, 5


def bindings(version: int) -> tuple[Binding, ...]:
    return tuple(
        Binding(
            base=make_base(
                f"kb_{number}",
                summary=f"Version {version} of what base {number} covers. " + "Trips, rooms and rules. " * 20,
                version=version,
            ),
            role=MemberRole.READER,
        )
        for number in range(BASES)
    )


def turn(number: int) -> Turn:
    return Turn(
        id=f"turn_{number}",
        after=f"turn_{number - 1}" if number else None,
        settings=SETTINGS,
        bindings=bindings(int(number >= EDITED_IN)),
        blocks=(),
        user=f"What follows from case {number}? " + "It was seen twice. " * 4,
        sent_at=NOW + timedelta(minutes=number),
        steps=(Step(text="It follows that nothing changes. " * 8),),
    )


def test_ten_edits_in_one_of_sixteen_turns_break_no_prefix() -> None:
    played = play(Conversation(seed=0, window_tokens=1_000_000, turns=tuple(map(turn, range(TURNS)))), DURABLE)
    assert (len(played.calls), played.resets) == (TURNS, ())
    simulator = SIMULATORS["block"]()
    read = written = 0
    for call in played.calls:
        tokens = sum(map(len, call.sent.parts)) // 4
        cached = simulator.cached_tokens(call.sent)
        read, written = read + cached, written + tokens - cached
    assert written < 0.1 * read
