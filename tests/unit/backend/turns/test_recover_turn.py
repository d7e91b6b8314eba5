"""What becomes of a turn whose process dies, freezes or shuts down."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import orjson
import pytest

from backend.conversations.domain.conversation_log import Entry, EntryKind, history
from backend.conversations.domain.leases import LeaseTerms, TakenTurn
from backend.conversations.domain.responses import Conversation, NewTurn, OpenedConversation, StoredResponse
from backend.conversations.ports.conversations import ConversationStore
from backend.foundation.services.admission import Admission
from backend.turns.domain.lost_turn import UNSEEN_GAP
from backend.turns.dynamic_blocks.identity import IdentityBlock
from backend.turns.ports.dynamic_blocks import TurnFacts
from backend.turns.services.resume.recover_turn import MAX_TAKEOVERS, RecoverTurn
from backend.turns.services.resume.recovery import Recovery
from shared.errors import CorruptRecord, Unavailable
from shared.models.events import (
    ModelCallStarted,
    TextDelta,
    add_usage,
)
from shared.models.execution import DynamicBlock
from shared.models.messages import AssistantMessage
from shared.shares import Holder
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import USAGE, answer
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, SECRET, TurnHouse, open_house
from tests.fakes.openai_types import check_response
from tests.fakes.replicas import EXCHANGE, Killed, Replicas, bytes_of, check_events, searched
from tests.fakes.store_conversations import FakeConversationStore
from tests.fakes.store_knowledge import FakeKnowledge
from tests.fakes.store_state import KeptPlan, StoreState
from tests.fakes.store_turns import FakeTurnStore
from tests.patience import PATIENCE_SECONDS, eventually

FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}


def check_whole(response: StoredResponse, log: Sequence[Entry]) -> None:
    if "file_search_call" not in str(response.body["output"]):  # Open Responses does not know it
        check_response(response.body)
    assert response.log_end == len(log)
    assert [entry.position for entry in log] == list(range(len(log)))


QUESTION = [{"type": "input_text", "text": "What?"}, IMAGE]
GIVEN = [
    {"role": "user", "content": "One"},
    {"role": "assistant", "content": "1"},
    {"role": "user", "content": [IMAGE]},
]


@pytest.mark.parametrize(
    "asked",
    [
        {"input": "Hi"},
        {"input": "Hi", "instructions": "Be brief.", "tools": [FUNCTION], "tool_choice": "required"},
        {"input": GIVEN, "temperature": 0.5},
        {"input": [{"role": "user", "content": QUESTION}], "max_tool_calls": 2},
    ],
)
async def test_a_turn_of_which_nothing_was_shown_runs_again_with_the_same_bytes(asked: dict[str, Any]) -> None:
    replicas = Replicas()
    lost = await replicas.killed([], **asked)
    first = replicas.last.sent[0]
    replicas.state.clock.advance(70)
    ended = await replicas.continued(lost, answer("Hel", "lo."))
    again = replicas.last.sent[0]
    assert bytes_of(again) == bytes_of(first)
    assert (again.turn_id, again.deadline, again.limits, again.sent_at) == (
        first.turn_id,
        first.deadline,
        first.limits,
        first.sent_at,
    )
    assert again == first.model_copy(update={"knowledge": again.knowledge})
    assert (ended.status, at(ended.body, "output", 0, "content", 0, "text")) == ("completed", "Hello.")
    check_whole(ended, replicas.log_of(ended))
    await check_events(replicas.last, ended)
    assert replicas.last.observer.taken == [(lost.id, "run_again")]
    assert not replicas.last.observer.drifts


class Noon:
    """A further block."""

    async def block(self, facts: TurnFacts) -> DynamicBlock | None:
        return DynamicBlock(name="noon", text="It is noon.")


@pytest.mark.parametrize("keeps_context", [True, False])
async def test_the_context_of_a_turn_that_runs_again_has_its_parts(keeps_context: bool) -> None:
    knowledge = FakeKnowledge()
    await knowledge.create_base(make_base("kb_a", tenant=ADA.tenant), ADA.user_id)
    replicas = Replicas(knowledge=knowledge, blocks=[IdentityBlock(), Noon()], keeps_context=keeps_context)
    lost = await replicas.killed([], tools=[{"type": "file_search", "vector_store_ids": ["kb_a"]}])
    first = replicas.last.sent[0]
    assert "kb_a" in first.kb_meta_prompt
    assert [block.name for block in first.dynamic_blocks] == ["identity", "noon"]
    await replicas.continued(lost, answer("So."))
    assert replicas.last.sent[0] == first.model_copy(update={"knowledge": replicas.last.sent[0].knowledge})


_READ_BEFORE = frozenset(
    [
        "request_id",
        "parameters",
        "time_zone",
        "bases",
        "access_mode",
        "limits",
        "deadline",
        "history_end",
        "input_end",
        "context",
        "keeps_context",
        "with_results",
        "reminder",
        "charged_to",
        "moved",
    ]
)
"""The fields of a stored record that the release before reads; it refuses a record with any other."""


@pytest.mark.parametrize("keeps_context", [True, False])
async def test_what_the_release_before_has_stored_of_a_turn_makes_the_same_bytes(keeps_context: bool) -> None:
    replicas = Replicas(blocks=[IdentityBlock(), Noon()], keeps_context=keeps_context)
    lost = await replicas.killed([], input="Hi")
    first = replicas.last.sent[0]
    replicas.state.plans[lost.id] = replicas.state.plans[lost.id]._replace(context_parts=None)
    assert (await replicas.continued(lost, answer("So."))).status == "completed"
    assert bytes_of(replicas.last.sent[0]) == bytes_of(first)


async def test_the_release_before_reads_what_is_stored_of_a_turn() -> None:
    knowledge = FakeKnowledge()
    await knowledge.create_base(make_base("kb_a", tenant=ADA.tenant), ADA.user_id)
    replicas = Replicas(knowledge=knowledge, blocks=[IdentityBlock(), Noon()])
    lost = await replicas.killed([], tools=[{"type": "file_search", "vector_store_ids": ["kb_a"]}])
    stored = orjson.loads(replicas.state.plans[lost.id].plan or "")
    assert _READ_BEFORE.issuperset(stored)
    assert set(stored["limits"]) == {"max_knowledge_calls", "max_model_calls"}


async def test_a_later_turn_of_a_fork_runs_again_with_the_same_bytes() -> None:
    replicas = Replicas()
    async with replicas.last.registry:
        first = await replicas.last.ask(input="One?")
        await replicas.last.ask(input="Two?", conversation=first.conversation_id)
    lost = await replicas.killed([], input="Another?", previous_response_id=first.id)
    asked = replicas.last.sent[0]
    ended = await replicas.continued(lost, answer("So."))
    assert replicas.last.sent[0] == asked.model_copy(update={"knowledge": replicas.last.sent[0].knowledge})
    assert ended.status == "completed"
    assert not replicas.last.observer.drifts


async def test_behind_an_exchange_only_the_next_model_call_runs() -> None:
    replicas = Replicas()
    lost = await replicas.killed(searched())
    first = replicas.last.sent[0]
    ended = await replicas.continued(lost, [ModelCallStarted(call=2), *answer("They do [1].")[1:]])
    (again,) = replicas.last.sent
    assert again.added == EXCHANGE
    assert bytes_of(again.model_copy(update={"added": ()})) == bytes_of(first)
    assert [entry.kind for entry in replicas.log_of(ended)] == ["user", "assistant", "tool_result", "assistant"]
    assert at(ended.body, "output", 0, "results", 0, "text") == "Whales sleep."
    assert at(ended.body, "usage", "input_tokens") == add_usage(USAGE, USAGE).input_tokens
    check_whole(ended, replicas.log_of(ended))
    events = await check_events(replicas.last, ended)
    types = [event["type"] for event in events]
    assert types.count("response.file_search_call.completed") == 1
    assert types.count("response.output_item.done") == 2
    assert sorted(replicas.state.calls[ended.id]) == [1, 2]
    assert not replicas.last.observer.drifts


async def test_what_was_half_said_ends_the_turn_incomplete() -> None:
    replicas = Replicas()
    lost = await replicas.killed([ModelCallStarted(call=1), TextDelta(text="Half")], said="Half")
    ended = await replicas.continued(lost)
    assert not replicas.last.sent
    assert (ended.status, ended.body["error"], ended.body["incomplete_details"]) == ("incomplete", None, None)
    assert at(ended.body, "output", 0, "content", 0, "text") == "Half"
    assert at(ended.body, "output", 0, "status") == "incomplete"
    assert replicas.log_of(ended)[-1].message == AssistantMessage(text="Half")
    check_whole(ended, replicas.log_of(ended))
    events = await check_events(replicas.last, ended)
    assert [event["type"] for event in events[-4:]] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.incomplete",
    ]
    assert replicas.last.observer.taken == [(lost.id, "incomplete")]
    async with replicas.survivor(answer("Next.")) as house:
        assert (await house.ask(conversation=lost.conversation_id)).status == "completed"


async def test_a_search_that_was_shown_and_not_finished_ends_the_turn_incomplete() -> None:
    replicas = Replicas()
    script = searched()[:3]
    lost = await replicas.killed(script)
    ended = await replicas.continued(lost)
    assert (ended.status, at(ended.body, "output", 0, "status")) == ("incomplete", "incomplete")
    assert replicas.log_of(ended)[-1].kind is EntryKind.VOID
    check_whole(ended, replicas.log_of(ended))
    await check_events(replicas.last, ended)


async def test_without_its_events_an_end_stands_behind_all_that_clients_can_have_seen() -> None:
    replicas = Replicas()
    lost = await replicas.killed([ModelCallStarted(call=1), TextDelta(text="Half")], said="Half")
    await replicas.last.events.drop(lost.id)
    ended = await replicas.continued(lost)
    assert ended.status == "incomplete"
    assert ended.last_event > lost.last_event + UNSEEN_GAP
    after = await replicas.last.all_events(ended, lost.last_event + UNSEEN_GAP)
    assert [(event["type"], event["sequence_number"]) for event in after] == [("response.incomplete", ended.last_event)]


async def test_a_turn_that_ends_each_process_fails_in_the_end() -> None:
    replicas = Replicas()
    lost = await replicas.killed([])
    for number in range(1, MAX_TAKEOVERS + 1):
        house = replicas.make([asyncio.Event()])
        with suppress(Killed):
            async with house.registry:
                await house.recovery.at_start()
                await eventually(lambda house=house: len(house.sent), bool)
                raise Killed
        assert replicas.state.responses[lost.id].fence == number
    ended = await replicas.continued(lost)
    assert not replicas.last.sent
    assert (ended.status, at(ended.body, "error", "type")) == ("failed", "InternalError")
    assert history(replicas.log_of(ended)) == ()
    check_whole(ended, replicas.log_of(ended))
    await check_events(replicas.last, ended)


async def test_a_turn_of_the_previous_release_has_no_plan_and_ends() -> None:
    replicas = Replicas()
    lost = await replicas.killed([])
    replicas.state.plans[lost.id] = KeptPlan(None, None, None)
    assert (await replicas.continued(lost)).status == "failed"


async def test_a_frozen_holder_that_wakes_writes_nothing_and_learns_the_end() -> None:
    """Its turn was taken over meanwhile; whoever waits here gets what the other replica has stored."""
    replicas = Replicas()
    gate = asyncio.Event()
    frozen = replicas.make([gate, *answer("Mine.")])
    async with asyncio.timeout(PATIENCE_SECONDS), frozen.registry:
        running = await frozen.start()
        ended = await replicas.continued(running.response, answer("Theirs."))
        gate.set()
        assert await running.wait_until_ended() == ended
    assert at(ended.body, "output", 0, "content", 0, "text") == "Theirs."
    assert frozen.observer.left == [ended.id]
    assert not frozen.observer.finished
    check_whole(ended, replicas.log_of(ended))


async def test_a_holder_that_wakes_learns_of_the_takeover_before_its_model_speaks() -> None:
    replicas = Replicas(lease_seconds=9)
    frozen = replicas.make([asyncio.Event()])
    async with asyncio.timeout(PATIENCE_SECONDS), frozen.registry:
        await frozen.recovery.at_start()
        running = await frozen.start()
        await eventually(lambda: replicas.state.responses[running.response.id].fence, lambda fence: fence == 0)
        await asyncio.sleep(0.02)
        assert not frozen.observer.left
        ended = await replicas.continued(running.response, answer("Theirs."), lease_seconds=None)
        frozen.ports.stored.lease.lapses += 1
        assert await running.wait_until_ended() == ended
    assert frozen.observer.left == [ended.id]


async def test_while_the_lease_is_not_held_nothing_is_shown() -> None:
    replicas = Replicas(lease_seconds=PATIENCE_SECONDS)
    house = replicas.make([asyncio.Event()])
    gate = asyncio.Event()
    house.scripted.scripts[:] = [[gate, *answer("Late.")]]
    async with house.registry:
        await house.recovery.at_start()
        running = await house.start()
        vars(house.ports.stored.lease)["_held_until"] = float("-inf")  # it has run out
        assert not house.ports.stored.lease.is_held
        gate.set()
        await asyncio.sleep(0.02)
        kept = [event.type async for batch in house.events.take_over(running.response.id, 0) for event in batch]
        assert kept == ["response.created", "response.in_progress"]
        await taken_behind_a_renewal(house)
        assert (await running.wait_until_ended()).status == "completed"


async def test_several_replicas_wait_for_the_lease_to_expire() -> None:
    replicas = Replicas(lease_seconds=9)
    judge = replicas.make(answer("Again."))
    async with asyncio.timeout(PATIENCE_SECONDS), judge.registry:
        lost = await replicas.killed([])
        await judge.recovery.at_start()
        for _ in range(5):
            assert replicas.state.responses[lost.id].fence == 0
            replicas.state.clock.advance(2)
            await taken_behind_a_renewal(judge)
        ended = await eventually(lambda: replicas.state.responses[lost.id], lambda found: found.status.is_terminal)
    assert (ended.status, ended.replica) == ("completed", judge.replica)


async def test_a_process_that_shuts_down_takes_nothing_over() -> None:
    replicas = Replicas(lease_seconds=9)
    lost = await replicas.killed([])
    await replicas.last.turns.release(lost.hold)
    leaving = replicas.make()
    leaving.admission.close()
    async with asyncio.timeout(PATIENCE_SECONDS), leaving.registry:
        await leaving.recovery.at_start()
        await taken_behind_a_renewal(leaving)
    assert replicas.state.responses[lost.id].fence == 0


async def test_a_drained_process_hands_over_what_was_not_shown_and_ends_the_rest() -> None:
    replicas = Replicas(lease_seconds=9, drain_seconds=0.001)
    other = replicas.make(answer("Taken."))
    await other.recovery.at_start()
    leaving = replicas.make([asyncio.Event()], [TextDelta(text="Half"), asyncio.Event()])
    async with asyncio.timeout(PATIENCE_SECONDS), other.registry:
        async with leaving.registry:
            await leaving.recovery.at_start()
            silent, half = await leaving.start(), await leaving.start()
            await eventually(lambda: replicas.state.responses[half.response.id].body["output"], bool)
            taking = asyncio.create_task(beats_until(other, lambda: other.observer.taken))
        await taking
        handed_over, ended = await silent.wait_until_ended(), await half.wait_until_ended()
    assert (handed_over.status, handed_over.replica) == ("completed", other.replica)
    assert (ended.status, ended.replica) == ("incomplete", leaving.replica)
    assert at(ended.body, "output", 0, "content", 0, "text") == "Half"
    for response in (handed_over, ended):
        check_whole(response, replicas.log_of(response))
        await check_events(other, response)


async def beats_until(house: TurnHouse, is_enough: Callable[[], Any]) -> None:
    while not is_enough():
        await taken_behind_a_renewal(house)
        await asyncio.sleep(0.001)


async def test_a_stop_signal_reaches_the_process_that_took_the_turn_over() -> None:
    replicas = Replicas()
    lost = await replicas.killed([])
    await replicas.last.signals.send(lost.id)
    ended = await replicas.continued(lost, [asyncio.Event()])
    assert ended.status == "cancelled"


async def test_an_unreadable_log_does_not_hold_its_conversation() -> None:
    """Its next turn says what is wrong; a conflict without end would hide it."""

    class Illegible(FakeConversationStore):
        async def open(
            self, conversation_id: str, needs_log: Callable[[Conversation], bool]
        ) -> OpenedConversation | None:
            raise CorruptRecord("The log entry at position 0 cannot be read.")

    replicas = Replicas()
    lost = await replicas.killed([TextDelta(text="Half")], said="Half")
    length = len(replicas.log_of(lost))
    made: Callable[[StoreState], ConversationStore] = Illegible
    ended = await replicas.continued(lost, conversations_class=made)
    assert (ended.status, ended.log_end, len(replicas.log_of(lost))) == ("incomplete", length, length)
    assert replicas.state.conversations[lost.conversation_id].running_response_id is None


async def test_a_takeover_waits_for_the_database() -> None:
    replicas = Replicas()
    lost = await replicas.killed([])
    house = replicas.make(answer("Late."))

    class Shaky(RecoverTurn):
        failures = 1

        async def __call__(self, taken: Any) -> Any:
            if self.failures:
                self.failures -= 1
                raise Unavailable("The database is away.")
            return await super().__call__(taken)

    recovery = Recovery(house.ports, Shaky(house.ports, SECRET), house.registry, house.admission)
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        await recovery.at_start()
    assert replicas.state.responses[lost.id].status == "completed"


def status_of(replicas: Replicas, response: StoredResponse) -> str:
    return replicas.state.responses[response.id].status


async def test_turns_that_were_taken_over_run_as_places_become_free() -> None:
    replicas = Replicas()
    lost = [await replicas.killed([]) for _ in range(3)]
    gate = asyncio.Event()
    house = replicas.make(*[[gate, *answer("So.")]] * 3, admission=Admission(max_turns=2))
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        await house.recovery.at_start()
        await eventually(lambda: house.admission.is_waited_for and len(house.sent) == 1, bool)
        house.admission.place(Holder("ann"))
        gate.set()
        for each in lost:
            await eventually(partial(status_of, replicas, each), lambda it: it == "completed")
        assert len(house.sent) == len(lost)


async def test_a_turn_that_still_waits_for_a_place_is_given_up_at_a_shutdown() -> None:
    replicas = Replicas()
    lost = await replicas.killed([])
    house = replicas.make(answer("Never."), admission=Admission(max_turns=1))
    house.admission.place(Holder("ann"))
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        await house.recovery.at_start()
        await eventually(lambda: house.admission.is_waited_for, bool)
        house.admission.close()
    assert (replicas.state.responses[lost.id].status, house.sent) == ("in_progress", [])
    assert not house.registry.owns(lost.id)
    assert (await replicas.continued(lost, answer("Here."))).status == "completed"


async def test_a_defect_of_one_takeover_leaves_the_others_alone() -> None:
    replicas = Replicas()
    broken, lost = await replicas.killed([]), await replicas.killed([])
    house = replicas.make(answer("So."))

    class Broken(RecoverTurn):
        async def __call__(self, taken: Any) -> Any:
            if taken.response.id == broken.id:
                raise CorruptRecord("The item at position 0 cannot be read.")
            return await super().__call__(taken)

    recovery = Recovery(house.ports, Broken(house.ports, SECRET), house.registry, house.admission)
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        await recovery.at_start()
    assert replicas.state.responses[lost.id].status == "completed"
    assert len(house.observer.broken) == 1


class LosingAnswers(FakeTurnStore):
    """A store that does what it is asked, and whose answers are lost while `is_lossy`."""

    is_lossy = True

    def _lose(self) -> None:
        if self.is_lossy:
            raise Unavailable("The answer was lost.")

    async def begin(self, turn: NewTurn) -> None:
        await super().begin(turn)
        self._lose()

    async def take_abandoned(self, replica: str, terms: LeaseTerms, limit: int) -> tuple[TakenTurn, ...]:
        taken = await super().take_abandoned(replica, terms, limit)
        self._lose()
        return taken

    async def take_all(self, replica: str) -> tuple[TakenTurn, ...]:
        taken = await super().take_all(replica)
        self._lose()
        return taken


async def heard_again(house: TurnHouse, response_id: str) -> StoredResponse:
    """Let the answers come again and the house look for turns; return the response at its end."""
    assert isinstance(house.turns, LosingAnswers)
    house.turns.is_lossy = False
    await taken_behind_a_renewal(house)
    return await eventually(lambda: house.state.responses[response_id], lambda found: found.status.is_terminal)


async def taken_behind_a_renewal(house: TurnHouse) -> None:
    look = asyncio.create_task(house.recovery.take())
    await asyncio.sleep(0)
    await house.recovery.renew()
    await look


async def test_a_turn_whose_beginning_was_stored_unheard_is_run() -> None:
    async with open_house(answer("Here."), turns_class=LosingAnswers) as house:
        with pytest.raises(Unavailable):
            await house.start()
        (stored,) = house.state.responses.values()
        ended = await heard_again(house, stored.id)
        assert (ended.status, ended.fence) == ("completed", 1)
        assert house.state.conversations[ended.conversation_id].running_response_id is None


@pytest.mark.parametrize("lease_seconds", [None, 9.0])
async def test_turns_that_were_taken_over_unheard_are_continued(lease_seconds: float | None) -> None:
    replicas = Replicas(lease_seconds=lease_seconds)
    lost = await replicas.killed([])
    house = replicas.make(answer("Here."), turns_class=LosingAnswers)
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        if lease_seconds is None:
            with pytest.raises(Unavailable):
                await house.recovery.at_start()
        else:
            await house.turns.release(lost.hold)
            with pytest.raises(Unavailable):
                await taken_behind_a_renewal(house)
        assert replicas.state.responses[lost.id].replica == house.replica
        ended = await heard_again(house, lost.id)
    assert (ended.status, ended.fence) == ("completed", 2)


async def test_turns_that_run_or_begin_here_are_not_taken_from_their_own_process() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(FakeTurnStore):
        async def begin(self, turn: NewTurn) -> None:
            await super().begin(turn)
            begun.set()
            await go_on.wait()

    async with open_house([go_on, *answer("Here.")], turns_class=Slow) as house:
        starting = asyncio.create_task(house.start())
        await begun.wait()
        await house.recovery.take()
        begun.clear()
        go_on.set()
        running = await starting
        await house.recovery.take()
        ended = await running.wait_until_ended()
        await house.recovery.take()
        assert (ended.status, ended.fence) == ("completed", 0)
        assert house.observer.taken == []


async def test_a_defect_of_a_takeover_is_met_once() -> None:
    replicas = Replicas()
    lost = await replicas.killed([])
    house = replicas.make()

    class Broken(RecoverTurn):
        async def __call__(self, taken: Any) -> Any:
            raise CorruptRecord("The item at position 0 cannot be read.")

    recovery = Recovery(house.ports, Broken(house.ports, SECRET), house.registry, house.admission)
    async with asyncio.timeout(PATIENCE_SECONDS), house.registry:
        await recovery.at_start()
        await recovery.take()
    assert replicas.state.responses[lost.id].fence == 1
    assert len(house.observer.broken) == 1


@pytest.mark.parametrize("kept", [0, 2, 4], ids=["none", "the first", "some"])
async def test_a_turn_goes_on_behind_events_that_were_lost(kept: int) -> None:
    """Clients of the process that died may have got them, in other pieces: they are not made up under their numbers."""
    replicas = Replicas()
    lost = await replicas.killed(searched())
    known = [event async for batch in replicas.last.events.take_over(lost.id, 0) for event in batch]
    assert len(known) == lost.last_event + 1 > 5
    await replicas.last.events.drop(lost.id)
    await replicas.last.events.append(lost.id, known[:kept])
    first, *rest = answer("So.")[1:]
    gate = asyncio.Event()
    async with replicas.survivor([ModelCallStarted(call=2), first, gate, *rest]) as house:
        following = asyncio.ensure_future(house.all_events(lost, lost.last_event))
        for after in (-1, 1):
            *told, error = await house.all_events(lost, after)
            assert told == [orjson.loads(event.body) for event in known[after + 1 :][: len(told)]]
            assert (error["type"], error["code"]) == ("error", "events_lost")
        gate.set()
        seen = await following
        created, end = await house.all_events(replicas.state.responses[lost.id])
    assert [event["sequence_number"] for event in seen] == list(range(lost.last_event + 1, end["sequence_number"] + 1))
    assert (created["type"], end["type"]) == ("response.created", "response.completed")


async def test_what_was_left_out_before_a_takeover_is_said_at_the_end() -> None:
    begun, finished, *rest = searched()
    replicas = Replicas()
    lost = await replicas.killed([begun, finished.model_copy(update={"left_out": ("counts", "calls")}), *rest])
    ended = await replicas.continued(lost, answer("Again."))
    assert (ended.status, ended.body["metadata"]) == ("completed", {"ballast_left_out": "counts; calls"})


async def test_what_was_left_out_is_said_of_a_turn_that_cannot_go_on() -> None:
    begun, finished, *rest = searched()
    said = [begun, finished.model_copy(update={"left_out": ("counts",)}), *rest, TextDelta(text="Half")]
    replicas = Replicas()
    lost = await replicas.killed(said, said="Half")
    ended = await replicas.continued(lost)
    assert (ended.status, ended.body["metadata"]) == ("incomplete", {"ballast_left_out": "counts"})
