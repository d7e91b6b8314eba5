"""Several models that answer one request, each in a lane of its own."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import WITHHELD
from backend.conversations.domain.responses import StoredResponse
from backend.foundation.services.admission import Admission
from backend.knowledge.domain.tickets import verify_ticket
from backend.restricted.domain.outgoing_events import CutCause
from backend.turns.domain.lanes import lanes_in
from shared.errors import (
    ChatShellUnavailable,
    InvalidRequest,
    NotFound,
    TooManyRequests,
    TurnRunning,
    Unavailable,
    UnknownModel,
)
from shared.models.events import ErrorReport, ModelCallStarted, TextDelta, TurnFailed
from shared.models.messages import AssistantMessage
from shared.prompts.knowledge_base import ANSWER_CUT
from shared.prompts.message_order import messages_of_request
from tests.fakes.chat_shell_scripted import USAGE, answer, function_calls
from tests.fakes.openai_house import ADA, BOB, CAT, SECRET, TurnHouse, open_house
from tests.fakes.openai_types import check_joined_event, check_joined_response
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.backend.restricted.restricted_house import BENIGN, PASSAGE, TOOLS, restricted_house
from tests.unit.backend.turns.asking import share
from tests.unit.backend.turns.joining import BOTH, statuses, texts

FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
FAILURE = ErrorReport(type="ModelUnavailable", code="server_error", message="503", param=None, retryable=True)
FAILED = [ModelCallStarted(call=1), TextDelta(text="Hal"), TurnFailed(error=FAILURE, usage=USAGE)]


@asynccontextmanager
async def lane_house(
    first: Sequence[Sequence[Any]] = (), second: Sequence[Sequence[Any]] = (), **fields: Any
) -> AsyncGenerator[TurnHouse, None]:
    """Open a house whose two models play scripts of their own."""
    async with open_house(**fields) as house:
        house.scripted.scripts_of = {BOTH[0]: list(first), BOTH[1]: list(second)}
        yield house


async def test_each_model_answers_by_itself() -> None:
    async with lane_house([answer("I am ", "small.")], [answer("I am large.")]) as house:
        ended = await house.ask(models=BOTH)
        body: Any = ended.body
        assert texts(body) == {BOTH[0]: "I am small.", BOTH[1]: "I am large."}
        assert (body["status"], body["model"], statuses(body)) == ("completed", BOTH[0], ["completed"] * 2)
        assert body["usage"]["input_tokens"] == 22
        assert [lane["usage"]["input_tokens"] for lane in body["lanes"]] == [11, 11]
        for lane in lanes_in(ended.body):
            own = await house.turns.find(lane.response_id)
            assert own is not None and own.conversation_id == lane.conversation_id
            assert own.body["joined_response_id"] == ended.id
        check_joined_response(body)
        assert house.observer.broken == []


async def test_prompts_of_a_response_are_those_of_its_lanes() -> None:
    async with lane_house() as house:
        first = await house.ask(input="One")
        await share(house, first.conversation_id, CAT)
        ended = await house.ask(input="Two", conversation=first.conversation_id, models=BOTH)
        main, branch = (lane.response_id for lane in lanes_in(ended.body))
        prompts = house.read_prompts
        assert [(call["response_id"], call["call"]) for call in await prompts(ADA, ended.id)] == [
            (main, 1),
            (branch, 1),
        ]
        assert [call["response_id"] for call in await prompts(CAT, ended.id)] == [main]


async def test_the_first_model_runs_in_the_named_conversation_and_the_others_branch_off() -> None:
    async with lane_house() as house:
        first = await house.ask(input="One")
        ended = await house.ask(input="Two", conversation=first.conversation_id, models=BOTH)
        body: Any = ended.body
        assert body["conversation"] == {"id": first.conversation_id}
        main, branch = lanes_in(ended.body)
        assert main.conversation_id == first.conversation_id != branch.conversation_id
        sent = [messages_of_request(request) for request in house.sent[1:]]
        assert sent[0] == sent[1]
        assert len(house.state.items[branch.conversation_id or ""]) == 4


async def test_later_turns_extend_the_prompt_of_each_lane() -> None:
    async with lane_house() as house:
        newest: StoredResponse | None = None
        sent: dict[str, list[Any]] = {}
        for number in range(10):
            house.scripted.scripts_of = {name: [answer(f"{name} {number}")] for name in BOTH}
            before: dict[str, Any] = {"previous_response_id": newest.id} if newest is not None else {}
            newest = await house.ask(input=f"Turn {number}", models=BOTH, **before)
            for request in house.sent[-2:]:
                messages = [*messages_of_request(request)]
                known = sent.get(request.model, [])
                assert messages[: len(known)] == known
                sent[request.model] = messages
        assert [len(messages) for messages in sent.values()] == [20, 20]
        assert house.observer.drifts == []
        assert [reason for _, reason in house.observer.epochs] == ["new_conversation"] * 2
        assert len({request.conversation_id for request in house.sent}) == 2


@pytest.mark.parametrize("model", BOTH)
async def test_one_model_goes_on_in_its_lane(model: str) -> None:
    async with lane_house([answer("small")], [answer("large")]) as house:
        joined = await house.ask(models=BOTH)
        lane = next(each for each in lanes_in(joined.body) if each.model == model)
        later = await house.ask(input="More", model=model, previous_response_id=joined.id)
        assert later.conversation_id == lane.conversation_id
        assert "lanes" not in later.body


async def test_another_model_goes_on_in_the_main_lane() -> None:
    async with lane_house() as house:
        house.scripted.model_names.append("third")
        joined = await house.ask(models=BOTH)
        main, second = lanes_in(joined.body)
        later = await house.ask(input="More", model="third", previous_response_id=joined.id)
        assert later.conversation_id == main.conversation_id
        both = await house.ask(input="More", models=["third", BOTH[1]], previous_response_id=joined.id)
        third, kept = lanes_in(both.body)
        assert kept.conversation_id == second.conversation_id
        assert third.conversation_id not in (main.conversation_id, second.conversation_id)
        all_three = await house.ask(input="More", models=[BOTH[1], "third", BOTH[0]], previous_response_id=both.id)
        assert [lane.model for lane in lanes_in(all_three.body)] == [BOTH[1], "third", BOTH[0]]
        assert [lane.conversation_id for lane in lanes_in(all_three.body)][:2] == [
            kept.conversation_id,
            third.conversation_id,
        ]
        assert all_three.body["conversation"] == {"id": third.conversation_id}


async def test_a_named_conversation_goes_on_in_all_lanes() -> None:
    async with lane_house() as house:
        first = await house.ask(models=BOTH)
        conversation_id = lanes_in(first.body)[0].conversation_id
        later = await house.ask(input="More", models=BOTH, conversation=conversation_id)
        assert [lane.conversation_id for lane in lanes_in(later.body)] == [
            lane.conversation_id for lane in lanes_in(first.body)
        ]
        # What stands behind the main lane only, the others would lack: they branch off anew.
        await house.ask(input="Alone", conversation=conversation_id)
        apart = await house.ask(input="More", models=BOTH, conversation=conversation_id)
        main, branch = lanes_in(apart.body)
        assert main.conversation_id == conversation_id
        assert branch.conversation_id != lanes_in(first.body)[1].conversation_id


async def test_searches_of_all_lanes_count_against_the_budget_of_one_conversation() -> None:
    async with lane_house() as house:
        first = await house.ask(models=BOTH)
        main = lanes_in(first.body)[0].conversation_id
        await house.ask(input="More", models=BOTH, previous_response_id=first.id)
        tickets = [verify_ticket(each.knowledge.ticket, SECRET, house.clock.now()) for each in house.sent]
        assert len({ticket.conversation_id for ticket in tickets}) == 2
        assert {ticket.budget_id for ticket in tickets} == {main}


@pytest.mark.parametrize("broken", [0, 1])
@pytest.mark.parametrize("script", [FAILED, [ChatShellUnavailable("gone")], [RuntimeError("a defect")]])
async def test_a_model_that_fails_leaves_the_other_alone(broken: int, script: list[Any]) -> None:
    scripts: list[list[Any]] = [[answer("fine")], [answer("fine")]]
    scripts[broken] = [script]
    async with lane_house(*scripts) as house:
        ended = await house.ask(models=BOTH)
        body: Any = ended.body
        assert body["status"] == "completed"
        assert texts(body)[BOTH[1 - broken]] == "fine"
        assert body["lanes"][broken]["status"] == "failed"
        assert body["lanes"][broken]["error"]["message"]
        assert body["error"] is None
        assert body["usage"]["input_tokens"] == (22 if script is FAILED else 11)
        check_joined_response(body)


async def test_a_response_fails_where_all_models_fail() -> None:
    async with lane_house([FAILED], [[ChatShellUnavailable("gone")]]) as house:
        ended = await house.ask(models=BOTH)
        assert ended.body["status"] == "failed"
        assert ended.body["error"] == {"code": "server_error", "message": "503", "type": "ModelUnavailable"}
        events = await house.all_events(ended)
        assert [event["type"] for event in events][-2:] == ["error", "response.failed"]


async def test_what_was_left_out_of_lanes_is_said_once_in_the_joined_response() -> None:
    def left_out(*words: str) -> list[Any]:
        begun, said, finished, *rest = answer("Hi")
        return [begun, said, finished.model_copy(update={"left_out": words}), *rest]

    async with lane_house([left_out("calls", "counts")], [left_out("counts", "text")]) as house:
        ended = await house.ask(models=BOTH, metadata={"mine": "1"})
        assert ended.body["metadata"] == {"mine": "1", "ballast_left_out": "calls; counts; text"}
        events = await house.all_events(ended)
        assert events[0]["response"]["metadata"] == {"mine": "1"}
        assert events[-1]["response"]["metadata"] == ended.body["metadata"]


async def test_events_of_all_lanes_come_in_one_sequence() -> None:
    gate = asyncio.Event()
    first, second = answer("small"), answer("la", "rge")
    async with lane_house([[*first[:2], gate, *first[2:]]], [second]) as house:
        running = await house.start(models=BOTH, stream=True)
        seen: list[Any] = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for batch in house.services.follow(running.response, -1, with_results=False):
                seen += [check_joined_event(event.body) for event in batch]
                told = [event["response"] for event in seen if event["type"] == "response.in_progress"]
                if statuses(told[-1])[1:] == ["completed"]:
                    gate.set()
        assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
        added = [event for event in seen if event["type"] == "response.output_item.added"]
        assert [event["output_index"] for event in added] == [0, 1]
        assert {event["item"]["model"] for event in added} == set(BOTH)
        places = {event["item"]["id"]: event["output_index"] for event in added}
        assert all(places[event["item_id"]] == event["output_index"] for event in seen if "item_id" in event)
        ended = await running.wait_until_ended()
        assert seen[-1]["type"] == "response.completed"
        assert seen[-1]["response"] == ended.body
        assert [item["id"] for item in seen[-1]["response"]["output"]] == list(places)
        assert await house.all_events(ended, after=4) == seen[5:]


async def test_a_cancelled_response_stops_all_lanes() -> None:
    gate = asyncio.Event()
    script = [*answer("Half")[:2], gate]
    async with lane_house([script], [script]) as house:
        running = await house.start(models=BOTH)
        await eventually(lambda: house.state.responses[running.response.id].last_event > 5, bool)
        ended = await house.services.responses.cancel(ADA, running.response.id)
        assert ended.status == "cancelled"
        assert statuses(ended.body) == ["cancelled", "cancelled"]
        assert texts(ended.body) == dict.fromkeys(BOTH, "Half")
        assert house.scripted.broken_off == 2
        assert (await house.services.responses.cancel(ADA, running.response.id)) == ended


async def test_one_lane_is_cancelled_by_its_own_response() -> None:
    gate = asyncio.Event()
    async with lane_house([[*answer("Half")[:2], gate]], [answer("Whole")]) as house:
        running = await house.start(models=BOTH)
        await house.services.responses.cancel(ADA, lanes_in(running.response.body)[0].response_id)
        ended = await running.wait_until_ended()
        assert (ended.status, statuses(ended.body)) == ("completed", ["cancelled", "completed"])


async def test_a_deleted_response_takes_its_lanes_along() -> None:
    async with lane_house() as house:
        ended = await house.ask(models=BOTH)
        await house.services.responses.delete(ADA, ended.id)
        for each in (ended.id, *(lane.response_id for lane in lanes_in(ended.body))):
            assert await house.turns.find(each) is None
        assert await house.conversations.find(ended.conversation_id) is None
        assert len(house.state.conversations) == 2


async def test_a_turn_that_is_not_stored_leaves_nothing() -> None:
    async with lane_house([answer("small")], [answer("large")]) as house:
        ended = await house.ask(models=BOTH, store=False)
        assert texts(ended.body) == {BOTH[0]: "small", BOTH[1]: "large"}
        assert ended.body["conversation"] is None
        assert [lane.conversation_id for lane in lanes_in(ended.body)] == [None, None]
        assert not house.state.responses and not house.state.conversations
        for each in (ended.id, *(lane.response_id for lane in lanes_in(ended.body))):
            assert not await house.events.exists(each)


async def test_calls_of_functions_are_answered_in_the_lane_that_made_them() -> None:
    scripts = [function_calls("c1"), answer("small")], [function_calls("c2"), answer("large")]
    async with lane_house(*scripts) as house:
        asked = await house.ask(models=BOTH, tools=[FUNCTION])
        outputs = [{"type": "function_call_output", "call_id": call, "output": call} for call in ("c1", "c2")]
        ended = await house.ask(input=outputs, models=BOTH, previous_response_id=asked.id)
        assert texts(ended.body) == {BOTH[0]: "small", BOTH[1]: "large"}
        assert [messages_of_request(request)[-1].model_dump()["content"] for request in house.sent[2:]] == ["c1", "c2"]
        page = await house.services.responses.input_items(ADA, ended.id, after=None, limit=9, descending=False)
        assert [item["call_id"] for item in page.items] == ["c1", "c2"]


async def test_a_model_for_which_there_is_nothing_is_named() -> None:
    async with lane_house([function_calls("c1")], [answer("large")]) as house:
        asked = await house.ask(models=BOTH, tools=[FUNCTION])
        outputs = [{"type": "function_call_output", "call_id": "c1", "output": "rain"}]
        with pytest.raises(InvalidRequest, match="vendor/large") as refused:
            await house.start(input=outputs, models=BOTH, previous_response_id=asked.id)
        assert refused.value.param == "models"
        later = await house.ask(input=outputs, model=BOTH[0], previous_response_id=asked.id)
        assert later.status == "completed"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"models": ["demo-model", "demo-model"]}, "models[1]"),
        ({"models": BOTH, "model": "vendor/large"}, "model"),
        ({"models": []}, "models"),
        ({"models": ["a", "b", "c", "d"]}, "models"),
        ({"models": ["a", ""]}, "models[1]"),
        ({"models": "demo-model"}, "models"),
    ],
)
async def test_wrong_models_are_named(fields: dict[str, Any], param: str) -> None:
    async with lane_house() as house:
        with pytest.raises(InvalidRequest) as refused:
            await house.start(**fields)
        assert refused.value.param == param


async def test_an_unknown_model_is_named_by_its_place_and_nothing_begins() -> None:
    async with lane_house() as house:
        with pytest.raises(UnknownModel) as refused:
            await house.start(models=["demo-model", "nobody"])
        assert refused.value.param == "models[1]"
        assert not house.state.responses and not house.sent


async def test_a_single_one_of_models_is_the_model() -> None:
    async with lane_house() as house:
        ended = await house.ask(models=["vendor/large"])
        assert (ended.body["model"], "lanes" in ended.body) == ("vendor/large", False)


async def test_each_lane_takes_a_place() -> None:
    gate = asyncio.Event()
    async with lane_house([[gate]], [[gate]], admission=Admission(max_turns=4)) as house:
        running = await house.start(models=BOTH)
        with pytest.raises((TooManyRequests, Unavailable)):
            await house.start(models=BOTH)
        gate.set()
        await running.wait_until_ended()
        assert (await house.ask(models=BOTH)).status == "completed"


async def test_lanes_that_run_are_not_gone_on_with() -> None:
    gate = asyncio.Event()
    async with lane_house([answer("small")], [[*answer("large")[:2], gate]]) as house:
        running = await house.start(models=BOTH)
        main = lanes_in(running.response.body)[0]
        await eventually(lambda: house.state.responses[main.response_id].status == "completed", bool)
        places: list[dict[str, Any]] = [
            {"previous_response_id": running.response.id},
            {"conversation": main.conversation_id},
        ]
        for before in places:
            with pytest.raises(TurnRunning):
                await house.start(models=BOTH, **before)
        gate.set()
        await running.wait_until_ended()


@pytest.mark.parametrize(("model", "place"), [(None, 0), (BOTH[1], 1)])
async def test_who_waits_behind_lanes_that_run_goes_on_in_a_lane(model: str | None, place: int) -> None:
    gate = asyncio.Event()
    async with lane_house(*[[[*answer(name)[:2], gate, *answer(name)[2:]], answer("more")] for name in BOTH]) as house:
        running = await house.start(input="One", models=BOTH)
        lane = lanes_in(running.response.body)[place]
        named: dict[str, Any] = {"model": model} if model is not None else {}
        queued = await house.queue(input="Two", previous_response_id=running.response.id, **named)
        assert queued.conversation_id == lane.conversation_id
        gate.set()
        await running.wait_until_ended()
        while house.state.waiting:
            await house.services.waiting.step()
        ended = await house.services.responses.wait_until_ended(queued)
        assert (ended.status, ended.body["model"]) == ("completed", BOTH[place])
        assert AssistantMessage(text=BOTH[place]) in messages_of_request(house.sent[-1])


async def test_a_message_steers_the_lane_that_it_goes_on_in() -> None:
    gate = asyncio.Event()
    async with lane_house([[gate, *answer("One.")], answer("Two.")], [answer("large")]) as house:
        running = await house.start(models=BOTH)
        await house.queue(how="steer", input="And?", previous_response_id=running.response.id)
        gate.set()
        body: Any = (await running.wait_until_ended()).body
        assert texts(body) == {BOTH[0]: "One.Two.", BOTH[1]: "large"}
        assert house.state.waiting == {}


async def test_in_a_shared_conversation_a_branch_is_its_askers_and_the_joined_response_that_of_all() -> None:
    async with lane_house() as house:
        first = await house.ask(input="One")
        there = first.conversation_id
        await share(house, there, BOB)
        ended = await house.ask(BOB, input="Two", conversation=there, models=BOTH)
        branch = lanes_in(ended.body)[1].conversation_id or ""
        members, find = house.members, house.services.responses.find
        assert await members.all(BOB, branch) == {"bob": "owner"}
        with pytest.raises(NotFound):
            await members.all(ADA, branch)
        await share(house, there, CAT)
        assert [(await find(who, ended.id)).id for who in (ADA, BOB, CAT)] == [ended.id] * 3
        await house.ask(CAT, input="Mine", previous_response_id=ended.id, model=BOTH[1])
        assert house.sent[-1].conversation_id == there
        await members.remove(ADA, there, "bob")
        with pytest.raises(NotFound):
            await find(BOB, ended.id)
        await house.ask(BOB, input="Three", conversation=branch)
        assert str(house.sent[-1]).count("<message_from>bob</message_from>") == 2
        assert house.observer.drifts == []


@pytest.mark.parametrize("how", ["queue", "cancel", "steer"])
async def test_several_models_do_not_wait(how: str) -> None:
    async with lane_house() as house:
        with pytest.raises(InvalidRequest, match="name one model") as caught:
            await house.start(models=BOTH, if_running=how)
        assert caught.value.param == "if_running"
        assert (await house.ask(models=BOTH[:1], if_running=how)).status == "completed"


async def test_a_foreign_joined_response_does_not_exist() -> None:
    async with lane_house() as house:
        ended = await house.ask(models=BOTH)
        for fields in ({"models": BOTH}, {"model": BOTH[1]}):
            with pytest.raises(NotFound):
                await house.start(BOB, previous_response_id=ended.id, **fields)


async def test_the_answer_of_each_lane_is_scanned_and_all_are_withheld_together() -> None:
    async with restricted_house() as house:
        house.scripted.scripts_of = {BOTH[0]: [answer(PASSAGE)], BOTH[1]: [answer(BENIGN)]}
        ended = await house.ask(models=BOTH, tools=TOOLS)
        assert statuses(ended.body) == ["incomplete", "completed"]
        assert texts(ended.body) == {BOTH[0]: ANSWER_CUT, BOTH[1]: BENIGN}
        assert [cut for _, cut in house.observer.cuts] == [CutCause.PASSAGE]
        assert "duty engineer" not in f"{ended} {await house.all_events(ended)} {house.state.entries}"
        assert len({request.knowledge.ticket for request in house.sent}) == 2
        await house.knowledge.remove_member("kb_a", "ada")
        shown = await house.services.withheld.show(ADA, ended)
        assert texts(dict(shown.body)) == dict.fromkeys(BOTH, WITHHELD)
