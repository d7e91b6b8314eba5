"""The room: what it releases, and that every other way ends in nothing, with a code."""

import asyncio
import gc
import sys
import warnings
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from chat_shell.sealed.backend_wire import OutcomeReceipt
from chat_shell.sealed.exception_guard import failure_for_exceptions
from chat_shell.sealed.gate import judge
from chat_shell.sealed.gate.schema import MAX_REPLY_BYTES
from chat_shell.sealed.outcome import SealedSearchResult
from chat_shell.sealed.verdicts import Blocked, Refused
from shared.models.knowledge_api import ToldFact, WeighedAnswer
from shared.models.safe_summary import Decision, Failure, GateBlock, GateCode, PolicyRefusal, Reason, SummaryVersions
from shared.prompts.safe_summary import PROMPT_VERSION
from tests.fakes.clock import FakeClock
from tests.fakes.safe_summaries import released
from tests.fakes.sealed_room import (
    CANARY,
    SECRET,
    FakeGate,
    FakeSealedBackend,
    FakeSecondary,
    OutcomeSent,
    RoomStage,
    SecondaryAnswered,
    SecondaryAsked,
    SummaryStarted,
    protected_chunk,
)
from tests.unit.chat_shell.sealed.gate.planting import case, reply

FIGURES = Blocked((GateCode.FIGURES, GateCode.OVERLAP), 0, ("48,200", "zebrafish valve"))
LOUD = RuntimeError(SECRET)


async def test_a_summary_is_released_after_its_outcome_is_recorded():
    stage = RoomStage()
    assert await stage.ask() == released()
    (outcome,) = stage.backend.outcomes
    assert (outcome.search_id, outcome.decision, outcome.reason) == ("s_1", Decision.ANSWER, released().reason)
    assert (outcome.chunks_found, outcome.chunks_sent, outcome.rewrites, outcome.released) == (1, 1, 0, released())
    kinds = [type(seen).__name__ for seen in stage.observer.seen]
    assert kinds == [
        "SummaryStarted", "SecondaryAsked", "SecondaryAnswered", "OutcomeSent", "OutcomeAnswered", "SummaryCompleted",
    ]  # fmt: skip


async def test_the_search_names_what_a_summary_depends_on():
    stage = RoomStage()
    await stage.ask()
    ((_, versions),) = stage.backend.searches
    assert versions == SummaryVersions(
        policy_version="7", gate_version="7", prompt_version=PROMPT_VERSION, model="second"
    )


async def test_the_gate_gets_the_users_words_every_canary_and_siblings_that_no_model_sees():
    sibling = protected_chunk("A slow tide means a rise that nobody saw.", "c_2")
    stage = RoomStage(**found(chunks=(protected_chunk(),), siblings=(sibling,)))
    await stage.ask()
    assert "slow tide" not in str(stage.model.prompts)
    ((chunks, words, canaries, siblings, *_),) = stage.gate.cases
    assert ([chunk.chunk_id for chunk in chunks], words) == (["c_1"], "Hello.\nWhere are we weak?")
    assert set(canaries) == {"token2", "token3", CANARY}
    assert siblings == (sibling,)


async def test_what_failed_is_rewritten_once_with_codes_and_phrases_behind_the_blocked_reply():
    stage = RoomStage(model=FakeSecondary((b"bad", b"good")), gate=FakeGate({b"bad": FIGURES}))
    assert await stage.ask() == released()
    first, second = stage.model.prompts
    assert second[: len(first)] == first
    said, asked = second[len(first) :]
    assert said == {"role": "assistant", "content": "bad"}
    assert asked["role"] == "user"
    assert "figures, overlap" in asked["content"]
    assert asked["content"].endswith("<withheld-token4>\n48,200\nzebrafish valve\n</withheld-token4>")
    assert stage.backend.outcomes[0].rewrites == 1
    assert stage.backend.outcomes[0].gate_codes == (GateCode.FIGURES, GateCode.OVERLAP)
    assert len(stage.gate.cases) == 1


async def test_no_more_chunks_are_sent_than_were_asked_for():
    many = tuple(protected_chunk(chunk_id=f"c_{number}") for number in range(30))
    stage = RoomStage(backend=FakeSealedBackend(SealedSearchResult("s_1", chunks=many)))
    await stage.ask()
    started = next(seen for seen in stage.observer.seen if isinstance(seen, SummaryStarted))
    assert (started.chunks_found, started.chunks_sent, len(stage.gate.cases[0][0])) == (30, 24, 24)


async def test_what_was_released_before_is_released_again_without_model_or_outcome():
    stage = RoomStage(backend=FakeSealedBackend(SealedSearchResult("s_1", released=released("Kept."))))
    assert await stage.ask() == released("Kept.")
    assert (stage.model.prompts, stage.backend.outcomes) == ([], [])
    assert stage.observer.completed.decision is Decision.ANSWER


RETOLD = WeighedAnswer(retold=("It is late.",), facts=())
TOLD = WeighedAnswer(retold=(), facts=(ToldFact(document_id="d", digest="f"),))


def weighed(*weighings: WeighedAnswer | Failure) -> FakeSealedBackend:
    found = SealedSearchResult("s_1", chunks=(protected_chunk(),), is_weighed=True)
    return FakeSealedBackend(found, weighings=weighings)


async def test_what_retells_the_source_is_rewritten_with_its_sentences_and_reported_with_its_facts():
    stage = RoomStage(backend=weighed(RETOLD, TOLD))
    assert await stage.ask() == released()
    assert stage.model.prompts[1][-1]["content"].endswith("\nIt is late.\n</withheld-token4>")
    (outcome,) = stage.backend.outcomes
    assert (outcome.rewrites, outcome.gate_codes, outcome.facts) == (1, (GateCode.CONTAINMENT,), TOLD.facts)


async def test_what_retells_the_source_twice_is_blocked():
    stage = RoomStage(backend=weighed(RETOLD))
    assert await stage.ask() is None
    assert stage.backend.outcomes[0].reason is GateBlock.CONTAINMENT
    assert stage.backend.outcomes[0].facts is None


async def test_nothing_is_weighed_where_the_backend_asks_for_no_weighing():
    stage = RoomStage()
    await stage.ask()
    assert (stage.backend.weighed, stage.backend.outcomes[0].facts) == ([], None)


async def test_what_cannot_be_weighed_is_not_released():
    stage = RoomStage(backend=weighed(Failure.MODEL_UNAVAILABLE))
    assert await stage.ask() is None
    assert stage.backend.outcomes[0].reason is Failure.MODEL_UNAVAILABLE


# Fail closed


@dataclass(frozen=True)
class Row:
    """A row of the fail-closed table: how to bring it about, and what the audit says; `outcomes`: how many are sent."""

    reason: Reason
    parts: dict[str, Any] = field(default_factory=dict[str, Any])
    outcomes: int = 1
    ask: dict[str, Any] = field(default_factory=dict[str, Any])


def found(**changes: Any) -> dict[str, Any]:
    return {"backend": FakeSealedBackend(SealedSearchResult("s_1", **changes))}


def replies(*said: bytes | Failure | BaseException | None, **verdicts: Any) -> dict[str, Any]:
    gate = FakeGate({name.encode(): verdict for name, verdict in verdicts.items()})
    return {"model": FakeSecondary(said), "gate": gate}


def recorded(answer: OutcomeReceipt | BaseException) -> dict[str, Any]:
    return {"backend": FakeSealedBackend(recorded=answer)}


TOO_LONG = b" " * MAX_REPLY_BYTES + reply()
ROWS = {
    "the provider refuses": Row(Failure.MODEL_UNAVAILABLE, replies(Failure.MODEL_UNAVAILABLE)),
    "the model raises": Row(Failure.MODEL_UNAVAILABLE, replies(LOUD)),
    "the model raises at the rewrite": Row(Failure.MODEL_UNAVAILABLE, replies(b"bad", LOUD, bad=FIGURES)),
    "the model hangs": Row(Failure.TIMEOUT, {**replies(None), "summary_seconds": 0.01}),
    "the rewrite hangs": Row(Failure.TIMEOUT, {**replies(b"bad", None, bad=FIGURES), "summary_seconds": 0.05}),
    "the turn is nearly over": Row(
        Failure.TIMEOUT, replies(None), ask={"deadline": FakeClock().now() + timedelta(seconds=4)}
    ),
    "not the form, twice": Row(Failure.INVALID_OUTPUT, replies(b"bad", bad=Blocked((GateCode.SCHEMA,)))),
    "over 8 KB, twice": Row(
        Failure.INVALID_OUTPUT,
        {"model": FakeSecondary((TOO_LONG,)), "gate": FakeGate({TOO_LONG: judge(TOO_LONG, case())})},
    ),
    "an answer without a reply": Row(Failure.INVALID_OUTPUT, replies(Failure.INVALID_OUTPUT)),
    "the gate raises": Row(Failure.INVALID_OUTPUT, replies(b"bad", bad=LOUD)),
    "the gate raises while preparing": Row(Failure.INVALID_OUTPUT, {"gate": FakeGate(failure=LOUD)}),
    **{
        f"blocked twice: {code}": Row(GateBlock[code.name], replies(b"bad", bad=Blocked((code,), 1)))
        for code in GateCode
        if code is not GateCode.SCHEMA
    },
    "nothing found": Row(Failure.INSUFFICIENT_EVIDENCE, found()),
    "nothing found in the language of the question": Row(
        Failure.INSUFFICIENT_EVIDENCE, found(chunks=(protected_chunk("储备由值班人员检查。"),))
    ),
    **{
        f"refused by the backend: {code}": Row(code, found(refusal=code), outcomes=0)
        for code in (
            Failure.BUDGET_CONVERSATION,
            Failure.BUDGET_DAY,
            Failure.BUDGET_MONTH,
            Failure.BUDGET_CHUNKS,
            Failure.PAUSED,
            Failure.INSUFFICIENT_EVIDENCE,
        )
    },
    **{
        f"{code} meanwhile": Row(code, recorded(OutcomeReceipt(200, recorded=True, release=False, reason=code)))
        for code in (Failure.ACCESS_CHANGED, Failure.BASE_CHANGED)
    },
    "access lost before": Row(Failure.ACCESS_CHANGED, {"backend": FakeSealedBackend(Failure.ACCESS_CHANGED)}),
    "the search fails": Row(Failure.AUDIT_UNAVAILABLE, {"backend": FakeSealedBackend(LOUD)}),
    "the outcome is refused": Row(Failure.AUDIT_UNAVAILABLE, recorded(OutcomeReceipt(500))),
    "the outcome is not recorded": Row(Failure.AUDIT_UNAVAILABLE, recorded(OutcomeReceipt(200, release=True))),
    "the outcome may not be released": Row(Failure.AUDIT_UNAVAILABLE, recorded(OutcomeReceipt(200, recorded=True))),
    "recording raises": Row(Failure.AUDIT_UNAVAILABLE, recorded(LOUD)),
    "recording hangs": Row(
        Failure.AUDIT_UNAVAILABLE, {"backend": FakeSealedBackend(hangs=True), "outcome_seconds": 0.01}
    ),
    "a bad ticket": Row(Failure.BAD_TICKET, {"backend": FakeSealedBackend(Failure.BAD_TICKET)}, outcomes=0),
    "the model refuses": Row(PolicyRefusal.ENUMERATION, replies(b"no", no=Refused(PolicyRefusal.ENUMERATION))),
    "the model refuses at the rewrite": Row(
        PolicyRefusal.VERBATIM, replies(b"bad", b"no", bad=FIGURES, no=Refused(PolicyRefusal.VERBATIM))
    ),
    "the user asks for a value": Row(
        PolicyRefusal.EXACT_VALUE, ask={"last_message": "How many litres does the reserve hold?"}
    ),
    "the query asks for wording": Row(PolicyRefusal.VERBATIM, ask={"query": "原文"}),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
async def test_what_fails_ends_in_nothing_and_a_code(row: Row):
    stage = RoomStage(**row.parts)
    assert await stage.ask(**row.ask) is None
    completed = stage.observer.completed
    assert (completed.decision, completed.reason, completed.preview) == (Decision.REFUSE, row.reason, "")
    assert len(stage.backend.outcomes) == row.outcomes
    assert SECRET not in str(stage.observer.seen)


@pytest.mark.parametrize(
    "ask", [ROWS[name].ask for name in ("the user asks for a value", "the query asks for wording")]
)
async def test_the_pre_screen_refuses_before_anything_is_searched(ask: dict[str, Any]):
    stage = RoomStage()
    assert await stage.ask(**ask) is None
    assert stage.backend.searches == []
    assert [outcome.search_id for outcome in stage.backend.outcomes] == [None]


@pytest.mark.parametrize(
    ("query", "is_open"), [("Which suppliers do we use?", True), ("Is Blue Heron one of our suppliers?", False)]
)
async def test_the_outcome_tells_an_open_ask_from_a_guess(query: str, is_open: bool):
    stage = RoomStage()
    await stage.ask(query=query)
    await stage.ask()
    assert [outcome.is_open_ask for outcome in stage.backend.outcomes] == [is_open, False]


async def test_a_reply_that_failed_is_no_longer_asked_about_after_its_rewrite():
    stage = RoomStage(**replies(b"bad", bad=FIGURES))
    await stage.ask()
    assert len(stage.model.prompts) == 2


# The circuit


async def test_canaries_open_the_circuit_for_an_hour():
    stage = RoomStage(**replies(b"bad", bad=Blocked((GateCode.CANARY,), 5)), canary_limit=3)
    for _ in range(2):  # two replies each
        await stage.ask()
    assert stage.backend.outcomes[0].canary_hits == 10
    assert await stage.ask() is None
    assert (stage.observer.completed.reason, len(stage.backend.searches)) == (Failure.CIRCUIT_OPEN, 2)
    assert stage.backend.outcomes[-1].search_id is None
    stage.clock.advance(3600)
    await stage.ask(deadline=stage.clock.now() + timedelta(seconds=600))
    assert len(stage.backend.searches) == 3


async def test_canaries_of_other_processes_open_the_circuit_before_the_model_is_asked():
    stage = RoomStage(**found(chunks=(protected_chunk(),), canary_replies=3), canary_limit=3)
    assert await stage.ask() is None
    assert (stage.model.prompts, stage.gate.cases) == ([], [])
    (outcome,) = stage.backend.outcomes
    assert (outcome.search_id, outcome.reason) == ("s_1", Failure.CIRCUIT_OPEN)
    assert (outcome.chunks_found, outcome.chunks_sent) == (1, 0)
    stage.backend.found = SealedSearchResult("s_2", chunks=(protected_chunk(),), canary_replies=2)
    assert await stage.ask() == released()


# What operators see


async def test_operators_see_chunks_as_notes_and_replies_as_sizes():
    stage = RoomStage(model=FakeSecondary((b"bad", b"good")), gate=FakeGate({b"bad": FIGURES}))
    await stage.ask()
    asked = [seen for seen in stage.observer.seen if isinstance(seen, SecondaryAsked)]
    note = f"[protected kb_r, {len(SECRET)} chars]"
    for request in asked:
        shown = str(request)
        assert note in shown
        assert "weaknesses of the reserve" in shown
        for hidden in (SECRET, CANARY, "reserve-plan", "Reserves", "token2", "token3", "48,200", "zebrafish"):
            assert hidden not in shown
    said, again = asked[1].messages[2:]
    assert said == {"role": "assistant", "content": "[blocked reply, 3 bytes]"}
    assert "figures, overlap" in again["content"]
    assert "[2 phrases]" in again["content"]
    answered = [seen for seen in stage.observer.seen if isinstance(seen, SecondaryAnswered)]
    assert answered == [SecondaryAnswered("second", 3, "blocked"), SecondaryAnswered("second", 4, "answer")]


async def test_a_preview_is_of_what_is_released_only():
    stage = RoomStage(**recorded(OutcomeReceipt(500)))
    await stage.ask()
    sent = next(seen for seen in stage.observer.seen if isinstance(seen, OutcomeSent))
    assert (sent.outcome.preview, stage.observer.completed.preview) == (released().summary, "")


# Cancellation


async def test_a_cancelled_search_releases_nothing_and_leaves_no_failed_task_behind():
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context))
    stage = RoomStage(model=FakeSecondary((None,)))
    asking = asyncio.create_task(stage.ask())
    await stage.model.asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    del asking
    gc.collect()
    assert (stage.backend.outcomes, told) == ([], [])


async def test_what_the_rim_gives_out_has_no_trace_of_the_error():
    async def loud() -> str:
        secret = SECRET
        raise RuntimeError(secret) from ValueError(secret)

    with warnings.catch_warnings(record=True) as warned:
        assert await failure_for_exceptions(loud(), Failure.INVALID_OUTPUT) is Failure.INVALID_OUTPUT
    assert warned == []
    assert sys.exc_info() == (None, None, None)
