"""How turns run, end and are followed."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import EntryKind
from backend.conversations.domain.responses import Checkpoint, StoredResponse
from backend.openai_api.domain.response_events import LoggedEvent
from backend.streams.memory.event_log import MemoryEventLog
from shared.batch_buffer import BatchBuffer
from shared.errors import ChatShellSilent, ChatShellUnavailable, NotFound, Unavailable
from shared.models.events import (
    ErrorReport,
    ExecutionEvent,
    FinishReason,
    FunctionCallRequested,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ModelCard,
    SearchFinished,
    SearchResult,
    SearchStarted,
    TextDelta,
    TurnFailed,
)
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage
from tests.fakes.chat_shell_scripted import USAGE, ScriptedChatShell, answer, answered, function_calls, searched
from tests.fakes.json_paths import at
from tests.fakes.openai_house import ADA, BOB, TurnHouse, open_house
from tests.fakes.openai_types import check_item, check_response
from tests.fakes.store_turns import FakeTurnStore
from tests.patience import PATIENCE_SECONDS, eventually

SEARCH = ToolCall(call_id="k1", name="knowledge_base_search", arguments="{}")
HIT = SearchResult(number=1, file_id="doc_1", filename="handbook.md", score=0.5, text="Whales sleep.")


def searched_answer(*gates: asyncio.Event) -> list[Any]:
    """Script a search in a first model call and an answer in a second one."""
    return [
        ModelCallStarted(call=1),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        SearchStarted(call_id="k1", queries=("whales",)),
        SearchFinished(call_id="k1", failed=False, results=(HIT,)),
        MessagesAdded(
            messages=(
                AssistantMessage(text="", tool_calls=(SEARCH,)),
                ToolMessage(call_id="k1", content="Whales sleep."),
            )
        ),
        *gates,
        *answer("They do [1]."),
    ]


async def test_a_turn_ends_stored_and_told() -> None:
    async with open_house(answer("Hel", "lo.")) as house:
        response = await house.ask(metadata={"a": "b"})
        assert (response.status, response.log_end, response.items_end) == ("completed", 2, 2)
        assert house.state.responses[response.id] == response
        events = await house.all_events(response)
        assert events[-1]["type"] == "response.completed"
        assert events[-1]["response"] == response.body
        assert events[-1]["sequence_number"] == response.last_event
        check_response(response.body)
        for item in house.state.items[response.conversation_id]:
            check_item(item.body)
        assert house.state.conversations[response.conversation_id].running_response_id is None
        assert house.observer.finished == [response]


async def test_the_end_is_stored_before_it_is_told() -> None:
    stored_when_told: list[bool] = []

    class WatchedTurns(FakeTurnStore):
        async def finish(self, turn: Any) -> bool:
            events = [event async for event in unfinished_events(house, turn.response.id)]
            stored_when_told.append(any(event.startswith("response.completed") for event in events))
            return await super().finish(turn)

    async def unfinished_events(at: TurnHouse, response_id: str) -> AsyncGenerator[str, None]:
        try:
            async with asyncio.timeout(0):
                async for batch in at.events.read(response_id, -1):
                    for event in batch:
                        yield event.type
        except TimeoutError:
            return

    async with open_house(turns_class=WatchedTurns) as house:
        await house.ask()
    assert stored_when_told == [False]


async def test_exchanges_are_logged_before_the_next_model_call() -> None:
    gate = asyncio.Event()
    async with open_house(searched_answer(gate)) as house:
        running = await house.start()
        kinds = await eventually(
            lambda: [entry.kind for entry in house.log_of(running.response.conversation_id)],
            lambda kinds: len(kinds) == 3,
        )
        assert kinds == [EntryKind.USER, EntryKind.ASSISTANT, EntryKind.TOOL_RESULT]
        gate.set()
        response = await running.wait_until_ended()
        assert response.log_end == 4
        assert house.log_of(response.conversation_id)[-1].message == AssistantMessage(text="They do [1].")


async def test_what_the_model_wrote_is_logged_and_what_was_shown_is_not() -> None:
    script = answer("cited [1]")
    script[-2] = MessagesAdded(messages=(AssistantMessage(text="cited 【1】"),))
    async with open_house(script) as house:
        response = await house.ask()
        assert house.log_of(response.conversation_id)[-1].message == AssistantMessage(text="cited 【1】")
        assert at(response.body, "output", 0, "content", 0, "text") == "cited [1]"


async def test_results_are_stored_and_shown_to_who_asks() -> None:
    async with open_house(searched_answer(), searched_answer()) as house:
        asking = await house.ask(include=["file_search_call.results"])
        assert await shown_results(house, asking)
        other = await house.ask()
        assert not await shown_results(house, other)
        assert at(other.body, "output", 0, "results", 0, "text") == "Whales sleep."


@pytest.mark.parametrize(
    ("reason", "detail"), [(FinishReason.LENGTH, "max_output_tokens"), (FinishReason.CONTENT_FILTER, "content_filter")]
)
async def test_a_cut_answer_is_incomplete_and_stays_in_the_log(reason: FinishReason, detail: str) -> None:
    async with open_house(answer("And so", finish_reason=reason)) as house:
        response = await house.ask()
        assert (response.status, response.body["incomplete_details"]) == ("incomplete", {"reason": detail})
        assert house.log_of(response.conversation_id)[-1].message == AssistantMessage(text="And so")


async def test_a_turn_that_fails_keeps_what_was_said() -> None:
    report = ErrorReport(type="ModelStalled", code="server_error", message="Stalled.", param=None, retryable=True)
    script = [ModelCallStarted(call=1), TextDelta(text="Half"), TurnFailed(error=report, usage=USAGE)]
    async with open_house(script) as house:
        response = await house.ask()
        assert response.status == "failed"
        assert response.body["error"] == {"code": "server_error", "message": "Stalled.", "type": "ModelStalled"}
        assert at(response.body, "usage", "output_tokens") == 7
        assert house.log_of(response.conversation_id)[-1].message == AssistantMessage(text="Half")
        types = [event["type"] for event in await house.all_events(response)]
        assert types[-2:] == ["error", "response.failed"]


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        ([ChatShellUnavailable("Gone.")], "ChatShellUnavailable"),
        ([], "ChatShellUnavailable"),
        ([ZeroDivisionError()], "InternalError"),
    ],
)
async def test_a_stream_that_breaks_fails_the_turn_only(raised: list[Exception], shown: str) -> None:
    async with open_house([ModelCallStarted(call=1), TextDelta(text="Half"), *raised]) as house:
        response = await house.ask()
        assert (response.status, at(response.body, "error", "type")) == ("failed", shown)
        assert at(response.body, "output", 0, "content", 0, "text") == "Half"
        assert (await house.ask()).status == "completed"
        assert bool(house.observer.broken) == (shown == "InternalError")


SILENT = ChatShellSilent("Silent.")


@pytest.mark.parametrize("fields", [{}, {"store": False}])
@pytest.mark.parametrize("before", [[], [ModelCallStarted(call=1)]], ids=["nothing", "a call"])
async def test_a_turn_that_has_shown_nothing_moves_when_its_replica_falls_silent(
    before: list[ExecutionEvent], fields: dict[str, Any]
) -> None:
    async with open_house([*before, SILENT], answer("There.")) as house:
        response = await house.ask(**fields)
        assert (response.status, at(response.body, "output", 0, "content", 0, "text")) == ("completed", "There.")
        first, again = house.sent
        assert again.model_copy(update={"deadline": first.deadline}) == first


async def test_a_later_call_moves_with_the_results_of_the_tools_before_it() -> None:
    script = [*searched(1), ModelCallStarted(call=2), SILENT]
    async with open_house(script, answered(2, "There.")) as house:
        response = await house.ask()
        assert response.status == "completed"
        assert [message.role for message in house.sent[1].added] == ["assistant", "tool"]


async def test_a_turn_that_has_said_something_ends_incomplete_when_its_replica_falls_silent() -> None:
    async with open_house([ModelCallStarted(call=1), TextDelta(text="Half"), SILENT]) as house:
        response = await house.ask()
        assert (response.status, response.body["incomplete_details"], response.body["error"]) == (
            "incomplete",
            None,
            None,
        )
        assert at(response.body, "output", 0, "content", 0, "text") == "Half"
        assert len(house.sent) == 1


@pytest.mark.parametrize(("before", "most"), [([], 2), ([ModelCallStarted(call=1)], 3)], ids=["unheard", "begun"])
async def test_a_request_that_freezes_each_replica_freezes_a_few_at_most(
    before: list[ExecutionEvent], most: int
) -> None:
    async with open_house(*[[*before, SILENT]] * 3, answer("Late.")) as house:
        response = await house.ask()
        assert (response.status, at(response.body, "error", "type")) == ("failed", "ChatShellSilent")
        assert len(house.sent) == most


async def test_a_turn_that_said_nothing_is_void_and_skipped() -> None:
    async with open_house([ChatShellUnavailable("Gone.")], answer("Yes.")) as house:
        first = await house.ask(input="A")
        assert house.log_of(first.conversation_id)[-1].kind is EntryKind.VOID
        await house.ask(input="B", conversation=first.conversation_id)
        assert house.sent[1].history == ()


async def test_outputs_of_a_void_turn_are_wanted_again() -> None:
    async with open_house(function_calls("c1"), [ChatShellUnavailable("Gone.")], answer("Rain.")) as house:
        first = await house.ask()
        outputs = [{"type": "function_call_output", "call_id": "c1", "output": "wet"}]
        await house.ask(conversation=first.conversation_id, input=outputs)
        last = await house.ask(conversation=first.conversation_id, input=outputs)
        assert last.status == "completed"
        assert house.sent[2].history == house.sent[1].history


async def test_cancelling_keeps_what_was_said_once() -> None:
    async with open_house([ModelCallStarted(call=1), TextDelta(text="Half"), asyncio.Event()]) as house:
        running = await house.start()
        await first_delta(house, running.response)
        cancelled = await house.services.responses.cancel(ADA, running.response.id)
        assert (cancelled.status, cancelled.body["incomplete_details"]) == ("cancelled", None)
        assert await house.services.responses.cancel(ADA, running.response.id) == cancelled
        assert house.scripted.broken_off == 1
        log = house.log_of(cancelled.conversation_id)
        assert [entry.message for entry in log[1:]] == [AssistantMessage(text="Half")]
        assert (await house.all_events(cancelled))[-1]["type"] == "response.incomplete"


async def test_a_cancelled_turn_asks_for_no_outputs_of_its_calls() -> None:
    call = FunctionCallRequested(call_id="c1", name="weather", arguments="{}")
    added = MessagesAdded(
        messages=(AssistantMessage(text="", tool_calls=(ToolCall(call_id="c1", name="weather", arguments="{}"),)),)
    )
    async with open_house([call, added, asyncio.Event()], answer("Yes.")) as house:
        running = await house.start()
        await first_delta(house, running.response, "response.output_item.done")
        cancelled = await house.services.responses.cancel(ADA, running.response.id)
        after = await house.ask(conversation=cancelled.conversation_id)
        assert after.status == "completed"


async def test_cancelling_works_from_another_replica() -> None:
    async with open_house([asyncio.Event()]) as house:
        running = await house.start()
        other = TurnHouse(state=house.state, events=house.events, signals=house.signals, replica="replica-2")
        assert (await other.services.responses.cancel(ADA, running.response.id)).status == "cancelled"


async def test_cancelling_belongs_to_the_owner() -> None:
    async with open_house([asyncio.Event()]) as house:
        running = await house.start()
        with pytest.raises(NotFound):
            await house.services.responses.cancel(BOB, running.response.id)
        await house.services.responses.cancel(ADA, running.response.id)


async def test_a_finished_turn_is_cancelled_to_no_effect() -> None:
    async with open_house() as house:
        response = await house.ask()
        assert await house.services.responses.cancel(ADA, response.id) == response


async def test_deleting_a_running_response_stops_it_and_keeps_the_log() -> None:
    async with open_house([TextDelta(text="Half"), asyncio.Event()]) as house:
        running = await house.start()
        await first_delta(house, running.response)
        await house.services.responses.delete(ADA, running.response.id)
        with pytest.raises(NotFound):
            await house.services.responses.find(ADA, running.response.id)
        assert len(house.log_of(running.response.conversation_id)) == 2


async def test_followers_see_every_event_once_from_where_they_ask() -> None:
    gate = asyncio.Event()
    async with open_house([*answer("One")[:2], gate, *answer("Two")[1:]]) as house:
        running = await house.start()
        readers = [asyncio.ensure_future(house.all_events(running.response, after)) for after in (-1, 3)]
        await first_delta(house, running.response)
        gate.set()
        whole, rest = await asyncio.gather(*readers)
        assert [event["sequence_number"] for event in whole] == list(range(len(whole)))
        assert rest == whole[4:]


async def test_after_retention_a_replay_is_the_first_and_the_last_event() -> None:
    async with open_house(answer("Hello.")) as house:
        response = await house.ask()
        whole = await house.all_events(response)
        await house.events.drop(response.id)
        events = await house.all_events(response)
        assert [(event["type"], event["sequence_number"]) for event in events] == [
            ("response.created", 0),
            ("response.completed", response.last_event),
        ]
        assert events == [whole[0], whole[-1]]
        assert await house.all_events(response, response.last_event) == []


async def test_a_replay_ends_where_the_end_of_the_events_got_lost() -> None:
    class Endless(MemoryEventLog):
        async def close(self, response_id: str) -> None:
            raise Unavailable("The event store is not available.")

    async with open_house(
        [TextDelta(text="Half"), ChatShellUnavailable("Gone.")], events=Endless(600, silence_seconds=0.01)
    ) as house:
        ended = await house.ask()
        kept = await house.all_events(ended)
        assert [event["sequence_number"] for event in kept] == list(range(ended.last_event + 1))
        assert await house.all_events(ended, ended.last_event) == []


async def test_events_out_of_reach_are_replaced_by_what_is_stored() -> None:
    class LostEvents(MemoryEventLog):
        is_lost = False

        async def read(self, response_id: str, after: int) -> AsyncGenerator[tuple[LoggedEvent, ...]]:
            if self.is_lost:
                raise Unavailable("The event store is not available.")
            async for batch in super().read(response_id, after):
                yield batch

        async def close(self, response_id: str) -> None:
            await super().close(response_id)
            raise Unavailable("The event store is not available.")

    events = LostEvents(600)
    async with open_house(answer("Hello."), [asyncio.Event()], events=events) as house:
        ended = await house.ask()
        running = await house.start()
        events.is_lost = True
        assert [event["type"] for event in await house.all_events(ended)] == ["response.created", "response.completed"]
        created, error = await house.all_events(running.response)
        assert (created["type"], error["type"], error["code"]) == ("response.created", "error", "events_lost")
        assert error["error"]["type"] == "EventsLost"
        check_response(created["response"])
        assert [event["sequence_number"] for event in (created, error)] == [0, 1]
        await house.services.responses.cancel(ADA, running.response.id)


class LosingEvents(MemoryEventLog):
    """Keeps the first events of a turn, loses all later ones, and never learns of the end."""

    def __init__(self, kept: int) -> None:
        super().__init__(600, silence_seconds=0.01)
        self._count = kept

    async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
        await super().append(response_id, [event for event in events if event.sequence_number < self._count])

    async def close(self, response_id: str) -> None:
        raise Unavailable("The event store is not available.")


@pytest.mark.parametrize("kept", [1, 4, 6])
async def test_lost_events_are_not_made_up_under_their_numbers(kept: int) -> None:
    """Others may have got them, in other pieces. A reader hears of the loss, and when they ask again of the end."""
    async with open_house(answer("One, ", "two, ", "three"), events=LosingEvents(kept)) as house:
        ended = await house.ask()
        *shown, error = await house.all_events(ended)
        assert [event["sequence_number"] for event in (*shown, error)] == list(range(kept + 1))
        assert (error["type"], error["code"]) == ("error", "events_lost")
        (end,) = await house.all_events(ended, kept - 1)
        assert (end["sequence_number"], end["response"]) == (ended.last_event, ended.body)
        assert await house.all_events(ended) == [shown[0], end]


async def test_last_events_that_come_late_are_waited_for() -> None:
    class Late(MemoryEventLog):
        async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
            if events[-1].type == "response.completed":
                late.append(events)
            else:
                await super().append(response_id, events)

        async def close(self, response_id: str) -> None:
            raise Unavailable("The event store is not available.")

    late: list[Sequence[LoggedEvent]] = []
    events = Late(600, silence_seconds=0.005)
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_house(answer("One, ", "two"), events=events, late_seconds=50.0) as house,
    ):
        ended = await house.ask()
        following = asyncio.ensure_future(house.all_events(ended))
        await asyncio.sleep(0.03)
        await MemoryEventLog.append(events, ended.id, late[0])
        assert [event["sequence_number"] for event in await following] == list(range(ended.last_event + 1))


async def test_an_event_store_that_is_away_is_no_defect_of_the_turn() -> None:
    class Away(MemoryEventLog):
        async def append(self, response_id: str, events: Sequence[LoggedEvent]) -> None:
            raise Unavailable("The event store is not available.")

    async with open_house(answer("One."), events=Away(600)) as house:
        assert (await house.ask()).status == "failed"
        assert not house.observer.broken
        assert "turn_events" in {task for task, _ in house.failures.failures}


async def test_checkpoints_keep_what_a_running_turn_has_said() -> None:
    async with open_house([TextDelta(text="Half"), asyncio.Event()]) as house:
        running = await house.start()
        stored = await eventually(
            lambda: house.state.responses[running.response.id], lambda response: bool(response.body["output"])
        )
        assert at(stored.body, "output", 0, "content", 0, "text") == "Half"
        assert stored.status == "in_progress"
        assert stored.last_event == 4
        await house.services.responses.cancel(ADA, running.response.id)


STARTED = 1
"""The number of the last event that a turn begins with."""


async def test_it_is_stored_soon_that_a_call_of_which_something_was_shown_must_not_run_again() -> None:
    async with open_house([TextDelta(text="Half"), asyncio.Event()], checkpoint_seconds=3600) as house:
        running = await house.start()
        await eventually(lambda: house.state.responses[running.response.id].last_event, lambda last: last > STARTED)
        await house.services.responses.cancel(ADA, running.response.id)


async def test_behind_a_large_checkpoint_the_next_waits_longer() -> None:
    class Counting(FakeTurnStore):
        async def checkpoint_many(self, checkpoints: Sequence[Checkpoint]) -> frozenset[str]:
            refused = await super().checkpoint_many(checkpoints)
            # One before anything was shown, or while it is being shown, may come in between.
            written.update(each.hold.response_id for each in checkpoints if each.last_event > STARTED)
            return refused

    written: Counter[str] = Counter()
    gates = [asyncio.Event() for _ in range(7)]
    large = [TextDelta(text="x" * 3_000_000), gates[0], TextDelta(text="more"), gates[1]]
    small = [step for gate in gates[2:] for step in (TextDelta(text="x"), gate)]
    async with open_house(large, small, turns_class=Counting) as house:
        slow = (await house.start()).response
        await eventually(lambda: written[slow.id], lambda count: count == 1)
        gates[0].set()
        await first_delta(house, slow, text="more")
        quick = (await house.start()).response
        for place, gate in enumerate(gates[2:], 1):
            await eventually(lambda: written[quick.id], lambda count, place=place: count == place)
            gate.set()
        assert written[slow.id] == 1
        gates[1].set()


@pytest.mark.parametrize("attempts", [1, 100])
async def test_the_end_is_stored_however_long_the_database_is_away(attempts: int) -> None:
    class ShakyTurns(FakeTurnStore):
        failures = attempts

        async def finish(self, turn: Any) -> bool:
            if self.failures:
                self.failures -= 1
                raise Unavailable("The database is not available.")
            return await super().finish(turn)

    async with open_house(turns_class=ShakyTurns) as house:
        assert (await house.ask()).status == "completed"


@pytest.mark.parametrize("is_stored_first", [False, True])
async def test_an_exchange_is_stored_once_however_long_the_database_is_away(is_stored_first: bool) -> None:
    """Without it the log would lack what the model has read, and later prompts would not begin with it."""

    class ShakyTurns(FakeTurnStore):
        failures = 3

        async def append(self, hold: Any, expected_log_length: int, exchange: Any) -> None:
            if not self.failures or is_stored_first:
                await super().append(hold, expected_log_length, exchange)
            if self.failures:
                self.failures -= 1
                raise Unavailable("The database is not available.")

    async with open_house(searched_answer(), turns_class=ShakyTurns) as house:
        ended = await house.ask()
        kinds = [entry.kind for entry in house.log_of(ended.conversation_id)]
    assert ended.status == "completed"
    assert kinds == [EntryKind.USER, EntryKind.ASSISTANT, EntryKind.TOOL_RESULT, EntryKind.ASSISTANT]


async def test_an_end_that_was_stored_although_the_database_seemed_away_is_told_whole() -> None:
    class Forgetful(FakeTurnStore):
        answers = 0

        async def finish(self, turn: Any) -> bool:
            was_running = await super().finish(turn)
            self.answers += 1
            if self.answers == 1:
                raise Unavailable("The connection broke behind the commit.")
            return was_running

    script = [TextDelta(text="Half"), ChatShellUnavailable("Gone.")]
    async with open_house(script, turns_class=Forgetful) as house:
        ended = await house.ask()
        types = [event["type"] for event in await house.all_events(ended)]
        assert types[-3:] == ["response.output_item.done", "error", "response.failed"]


async def test_leaving_the_registry_waits_for_running_turns() -> None:
    gate = asyncio.Event()
    async with open_house([gate, *answer("x")]) as house:
        running = await house.start()
        asyncio.get_running_loop().call_soon(gate.set)
    assert house.state.responses[running.response.id].status == "completed"


async def test_leaving_the_registry_waits_for_turns_that_are_being_prepared() -> None:
    gate = asyncio.Event()

    class SlowToName(ScriptedChatShell):
        async def models(self) -> tuple[ModelCard, ...]:
            await gate.wait()
            return await super().models()

    house = TurnHouse(chat_shell=SlowToName(answer("x")))
    async with house.registry:
        starting = asyncio.ensure_future(house.start())
        await asyncio.sleep(0)
        assert house.registry.running_count == 0
        asyncio.get_running_loop().call_soon(gate.set)
    assert (await (await starting).wait_until_ended()).status == "completed"


async def test_a_full_inbox_holds_the_reader_back() -> None:
    inbox = BatchBuffer[TextDelta](capacity=2)
    inbox.add([TextDelta(text="a"), TextDelta(text="b")])
    assert not inbox.is_overfull
    inbox.add([TextDelta(text="c")])
    assert inbox.is_overfull
    waiting = asyncio.ensure_future(inbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert len(await inbox.take()) == 3
    await waiting
    inbox.close()
    assert await inbox.take() == []


async def abandoned(house: TurnHouse, conversation_id: str, script: list[Any]) -> StoredResponse:
    """Run a turn in a process that dies: its tasks vanish, and nothing is stored at the end."""
    dying = TurnHouse(
        chat_shell=ScriptedChatShell(script),
        state=house.state,
        events=house.events,
        drain_seconds=0,
    )
    async with dying.registry:
        house.clock.advance(1)
        running = await dying.start(conversation=conversation_id)
        if any(isinstance(step, TextDelta) for step in script):
            await eventually(
                lambda: house.state.responses[running.response.id], lambda response: bool(response.body["output"])
            )
    return house.state.responses[running.response.id]


async def first_delta(
    house: TurnHouse, response: StoredResponse, kind: str = "response.output_text.delta", text: str = ""
) -> None:
    """Wait until the event has come, with this text in it."""
    async for batch in house.events.read(response.id, -1):
        if any(event.type == kind and text.encode() in event.body for event in batch):
            return


async def shown_results(house: TurnHouse, response: StoredResponse) -> bool:
    events = await house.all_events(response)
    return "Whales sleep." in str(events)


async def test_the_first_delta_is_read_before_the_prompt_is_measured() -> None:
    gate = asyncio.Event()
    async with open_house([*answer("One")[:2], gate, *answer("Two")[1:]], checkpoint_seconds=3600) as house:
        running = await house.start()
        await first_delta(house, running.response)
        assert house.observer.prompts == []
        gate.set()
        await running.wait_until_ended()
        assert len(house.observer.prompts) == 1
