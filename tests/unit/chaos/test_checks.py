"""Each check of a chaos run finds what it is for in a broken record, and nothing in a sound one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.checks import violations, without_lost
from tests.chaos.records import (
    ABSENT,
    Death,
    Evidence,
    LogShare,
    Reading,
    Register,
    Resources,
    SeenEvent,
    SentPrompt,
    Stored,
    Turn,
)

DELTA = "response.output_text.delta"
CREATED = SeenEvent(0, "response.created", 1)
ONE, TWO = SeenEvent(1, DELTA, 11, "High "), SeenEvent(2, DELTA, 12, "water")
ERROR = SeenEvent(3, "error", 13)
COMPLETED = SeenEvent(3, "response.completed", 14, status="completed")
FAILED = SeenEvent(4, "response.failed", 15, status="failed")
WHOLE = (CREATED, ONE, TWO, COMPLETED)
QUIET = Resources({"backend_1": 100.0}, {"backend_1": 30}, 8, 0)


def evidence(*events: SeenEvent, after: int | None = None, stored: Stored | None = None) -> Evidence:
    """Make the evidence of one turn, sound unless told otherwise."""
    turn = Turn("t1", "stream", "conv_a", expected="High water", calls=1, response_id="resp_a")
    turn.readings = [Reading("backend_1", after, list(events or WHOLE))]
    kept = stored or Stored("completed", "High water", WHOLE)
    log = {"resp_a": LogShare(is_void=False, results=1)}
    return Evidence(turns=[turn], stored={"resp_a": kept}, tool_runs={"resp_a": 1}, log=log, before=QUIET, after=QUIET)


def found(broken: Evidence) -> set[str]:
    return {violation.check for violation in violations(broken)}


def changed(change: Callable[[Evidence], object]) -> Evidence:
    broken = evidence()
    change(broken)
    return broken


def test_a_sound_run_has_no_violations():
    assert violations(evidence()) == []


def test_a_reader_who_came_back_begins_behind_what_was_read():
    assert violations(evidence(TWO, COMPLETED, after=1)) == []
    assert found(evidence(ONE, TWO, COMPLETED, after=1)) == {"numbers"}


@pytest.mark.parametrize(
    "events",
    [
        pytest.param((CREATED, TWO, COMPLETED), id="gap"),
        pytest.param((CREATED, ONE, ONE, TWO, COMPLETED), id="double"),
        pytest.param((CREATED, TWO, ONE, COMPLETED), id="order"),
        pytest.param((ONE, TWO, COMPLETED), id="beginning"),
        pytest.param((CREATED, ONE, COMPLETED), id="completed with a hole"),
    ],
)
def test_numbers_without_a_gap(events: tuple[SeenEvent, ...]):
    assert "numbers" in found(evidence(*events))


def test_numbers_may_jump_before_an_end_that_is_no_completion_and_in_a_replay_without_events():
    lost = Stored("failed", "High ", (CREATED, FAILED))
    jump = (CREATED, ONE, ERROR._replace(number=1_000_001), FAILED._replace(number=1_000_002))
    assert violations(evidence(*jump, stored=lost)) == []
    assert violations(evidence(CREATED, COMPLETED)) == []


def test_lost_text():
    short = Stored("completed", "High ", WHOLE)
    assert found(evidence(stored=short)) == {"stored", "quoted"}
    assert found(changed(lambda broken: broken.stored.clear())) == {"stored"}


def test_another_end_than_the_stored_one():
    stored = Stored("failed", "High water", (CREATED, ONE, TWO))
    assert found(evidence(stored=stored)) == {"stored"}


def test_another_answer_than_the_stored_one():
    broken = evidence()
    broken.turns[0].plain = ("completed", "High")
    assert found(broken) == {"stored"}


def test_one_number_for_two_events():
    other = (CREATED, ONE, TWO._replace(digest=99), COMPLETED)
    assert found(evidence(*other)) == {"events"}


def test_words_that_the_model_did_not_say():
    words = (CREATED, ONE, ONE._replace(number=2), COMPLETED)
    assert found(evidence(*words, stored=Stored("failed", "High High ", words[:3]))) == {"quoted", "stored"}
    assert found(evidence(CREATED, ONE, stored=Stored("incomplete", "High ", ()))) == set()


def test_a_second_run_of_a_tool():
    assert found(changed(lambda broken: broken.tool_runs.update(resp_a=2))) == {"tools"}


def test_a_second_turn_for_a_key():
    assert found(changed(lambda broken: broken.turns[0].answers.extend(["resp_a", "resp_a"]))) == set()
    assert found(changed(lambda broken: broken.turns[0].answers.extend(["resp_a", "resp_b"]))) == {"keys"}


def test_a_turn_without_an_end():
    assert found(replace(evidence(), unfinished=("resp_b",))) == {"ended"}
    assert found(evidence(CREATED, stored=Stored("in_progress", "", ()))) == {"ended"}


def test_lost_documents():
    def with_register(acknowledged: str | None, unanswered: set[str], there: str) -> set[str]:
        register = Register("/documents/a", acknowledged, unanswered)
        return found(replace(evidence(), registers=[register], found={"/documents/a": there}))

    assert with_register("text", {"text"}, "text") == set()
    assert with_register("text", {"text"}, ABSENT) == {"acknowledged"}
    assert with_register("text", {"text", ABSENT}, ABSENT) == set()
    assert with_register(ABSENT, {ABSENT}, "text") == {"acknowledged"}
    assert with_register(None, {"text"}, ABSENT) == set()


def test_a_prompt_that_moves():
    first = SentPrompt("t1", "key", b'{"messages":[{"a"}')
    grown, moved = first._replace(opening=first.opening + b',{"b"}'), first._replace(opening=b'{"messages":[{"c"}')
    assert found(replace(evidence(), prompts=[first, first, grown])) == set()
    assert found(replace(evidence(), prompts=[first, moved])) == {"prompts"}
    assert found(replace(evidence(), prompts=[first, moved._replace(cache_key="other")])) == set()
    assert found(replace(evidence(), drift=("backend_1: Prompt drift",))) == {"drift"}


def test_the_prompt_of_a_void_turn_need_not_be_kept():
    void = Turn("t0", "stream", "conv_a", response_id="resp_0")
    base = evidence()
    base.turns.insert(0, void)
    base.stored["resp_0"] = Stored("failed", "", ())
    base.log["resp_0"] = LogShare(is_void=True, results=0)
    prompts = [SentPrompt("t0", "key", b"[void"), SentPrompt("t1", "key", b"[next")]
    assert found(replace(base, prompts=prompts)) == set()
    base.log["resp_0"] = LogShare(is_void=False, results=0)
    assert found(replace(base, prompts=prompts)) == {"prompts"}


def test_a_prompt_whose_last_tool_result_was_lost_with_its_process_need_not_be_kept():
    second = SentPrompt("t2", "key", b"[1,2")
    base = evidence()
    base.turns.append(Turn("t2", "stream", "conv_a", response_id="resp_b"))
    base.stored["resp_b"] = Stored("completed", "", ())
    base.log["resp_b"] = LogShare(is_void=False, results=0)
    calls = [SentPrompt("t1", "key", b"[1"), SentPrompt("t1", "key", b"[1,result", results=1), second]
    assert found(replace(base, prompts=calls)) == {"prompts"}
    base.log["resp_a"] = LogShare(is_void=False, results=0)
    assert found(replace(base, prompts=calls)) == set()


def test_the_answer_to_a_function_call_belongs_to_the_question_before_it():
    base = evidence()
    base.turns.append(Turn("t2", "function_result", "conv_a", response_id="resp_b", question="t1"))
    base.stored["resp_b"] = Stored("completed", "", ())
    base.log |= {"resp_a": LogShare(is_void=False, results=0), "resp_b": LogShare(is_void=False, results=1)}
    calls = [SentPrompt("t1", "key", b"[1"), SentPrompt("t1", "key", b"[2", results=1)]
    assert found(replace(base, prompts=calls)) == {"prompts"}
    base.log["resp_b"] = LogShare(is_void=True, results=1)
    assert found(replace(base, prompts=calls)) == set()


def test_a_process_that_went_on_late_is_compared_in_the_order_of_the_turns():
    second = Turn("t2", "stream", "conv_a", response_id="resp_b")
    base = evidence()
    base.turns.append(second)
    base.stored["resp_b"] = Stored("completed", "", ())
    base.log["resp_b"] = LogShare(is_void=False, results=0)
    prompts = [SentPrompt("t1", "k", b"[1"), SentPrompt("t2", "k", b"[1,2"), SentPrompt("t1", "k", b"[1")]
    assert found(replace(base, prompts=prompts)) == set()


def test_a_death():
    assert found(replace(evidence(), deaths=[Death("backend_1", "ended with 1", "log")])) == {"deaths"}
    assert found(replace(evidence(), deaths=[Death("postgres", "ended with 1", "log", "its disk was full")])) == set()


def test_defects_and_stuck_conversations_and_hanging_calls():
    assert found(replace(evidence(), server_errors=["plain: 500"])) == {"status 500"}
    assert found(replace(evidence(), stuck=["conv_a: 409"])) == {"stuck"}
    assert found(replace(evidence(), hung=["follow resp_a"])) == {"hung"}


@pytest.mark.parametrize(
    "grown",
    [
        replace(QUIET, memory_mb={"backend_1": 200.0}),
        replace(QUIET, open_files={"backend_1": 80}),
        replace(QUIET, connections=60),
        replace(QUIET, keys_without_expiry=1),
    ],
)
def test_what_does_not_come_back(grown: Resources):
    assert found(replace(evidence(), after=grown)) == {"resources"}


def test_a_value_that_was_acknowledged_before_may_not_come_back() -> None:
    register = Register("/documents/a")
    for value in ("old", "new"):
        with register.sending(value) as sent:
            sent.is_acknowledged = True
    assert register.allows("new")
    assert not register.allows("old")


def test_a_value_that_was_once_not_answered_may_come_late() -> None:
    register = Register("/documents/a")
    for value, is_acknowledged in (("old", False), ("old", True), ("new", True)):
        with register.sending(value) as sent:
            sent.is_acknowledged = is_acknowledged
    assert register.allows("old")


def test_what_a_failover_may_have_taken_back_is_left_out_and_nothing_else():
    broken = evidence(ONE, ONE)
    turn = broken.turns[0]
    other = replace(turn, key="t2", response_id="resp_b", conversation="conv_b", begun_at=100.0)
    turn.begun_at, turn.readings[0].times = 10.0, [11.0, 12.0]
    broken.turns.append(other)
    broken.stored["resp_b"] = broken.stored["resp_a"]
    broken.stuck.append('conv_c: 404 {"error": …}')
    lost = without_lost(broken, [(11.5, 12.5)])
    assert [kept.key for kept in lost.turns] == ["t2"]
    assert found(lost) == {"numbers"}
    assert found(without_lost(broken, [])) == {"numbers", "stuck"}
    assert [kept.key for kept in without_lost(broken, [(1.0, 2.0)]).turns] == ["t1", "t2"]
