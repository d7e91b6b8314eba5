"""What becomes of a joined response whose process dies or shuts down."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from backend.conversations.domain.responses import StoredResponse
from backend.streams.memory.event_log import MemoryEventLog
from backend.turns.domain.lanes import lanes_in
from backend.turns.domain.lost_turn import UNSEEN_GAP
from backend.turns.services.resume.recover_lanes import MAX_TAKEOVERS
from shared.models.events import ModelCallStarted, TextDelta, TurnEnd
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import TurnHouse
from tests.fakes.openai_types import check_joined_response
from tests.fakes.replicas import Killed, Replicas, check_events
from tests.patience import PATIENCE_SECONDS, eventually
from tests.unit.backend.turns.joining import BOTH, statuses, texts

HALF = answer("Half ", "an answer")[:2]
SILENT = [ModelCallStarted(call=1)]


async def killed(replicas: Replicas, first: Sequence[Any], second: Sequence[Any], events: int) -> StoredResponse:
    """Run both models until so many events of the joined response are stored, and kill the process then."""
    house = replicas.make()
    house.scripted.scripts_of = {BOTH[0]: [first], BOTH[1]: [second]}
    joined: StoredResponse | None = None
    with suppress(Killed):
        async with house.registry:
            joined = (await house.start(models=BOTH)).response
            scripts = dict(zip(BOTH, (first, second), strict=True))
            await eventually(partial(has_come, house, joined, events, scripts), bool)
            raise Killed
    assert joined is not None
    return replicas.state.responses[joined.id]


def said_in(script: Sequence[Any]) -> str:
    return "".join(step.text for step in script if isinstance(step, TextDelta))


def has_come(house: TurnHouse, joined: StoredResponse, events: int, scripts: Mapping[str, Sequence[Any]]) -> bool:
    """Say whether both models were asked, and all that they have said is stored, with the lanes and joined."""
    found = house.state.responses[joined.id]
    lanes = [house.state.responses[lane.response_id] for lane in lanes_in(joined.body)]
    of_lanes = {str(lane.body["model"]): (text_of(lane.body), lane.status.is_terminal) for lane in lanes}
    said = {model: said_in(script) for model, script in scripts.items()}
    return (
        len(house.sent) == 2
        and found.last_event >= events
        and of_lanes == {model: (said[model], isinstance(script[-1], TurnEnd)) for model, script in scripts.items()}
        and dict.fromkeys(BOTH, "") | texts(found.body) == said
    )


def text_of(body: Any) -> str:
    return "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"])


async def continued(house: TurnHouse, lost: StoredResponse) -> StoredResponse:
    """Wait for the end of a response that a new replica has taken over."""
    return await eventually(lambda: house.state.responses[lost.id], lambda found: found.status.is_terminal)


async def test_a_lane_that_has_ended_stays_and_the_others_answer_goes_on() -> None:
    replicas = Replicas()
    lost = await killed(replicas, answer("Whole"), [*SILENT, asyncio.Event()], 8)
    async with replicas.survivor(answer("Again")) as house:
        ended = await continued(house, lost)
        assert texts(ended.body) == {BOTH[0]: "Whole", BOTH[1]: "Again"}
        assert (ended.status, statuses(ended.body)) == ("completed", ["completed"] * 2)
        assert [request.model for request in house.sent] == [BOTH[1]]
        await check_events(house, ended)
        check_joined_response(dict(ended.body))
    assert house.observer.broken == []


async def test_what_a_lane_has_said_is_kept() -> None:
    replicas = Replicas()
    lost = await killed(replicas, answer("Whole"), [*HALF, asyncio.Event()], 10)
    async with replicas.survivor() as house:
        ended = await continued(house, lost)
        assert texts(ended.body) == {BOTH[0]: "Whole", BOTH[1]: "Half "}
        assert statuses(ended.body) == ["completed", "incomplete"]
        assert ended.status == "completed"
        assert not house.sent
        await check_events(house, ended)


async def test_both_lanes_run_again_where_nothing_was_said() -> None:
    replicas = Replicas()
    lost = await killed(replicas, [*SILENT, asyncio.Event()], [*SILENT, asyncio.Event()], 1)
    async with replicas.survivor(answer("One"), answer("One"), events=new_events()) as house:
        ended = await continued(house, lost)
        assert texts(ended.body) == dict.fromkeys(BOTH, "One")
        await check_events(house, ended)


async def test_where_the_events_are_lost_the_answers_are_stored_all_the_same() -> None:
    replicas = Replicas()
    lost = await killed(replicas, answer("Whole"), [*HALF, asyncio.Event()], 10)
    async with replicas.survivor(events=new_events()) as house:
        ended = await continued(house, lost)
        assert texts(ended.body) == {BOTH[0]: "Whole", BOTH[1]: "Half "}
        assert ended.last_event > UNSEEN_GAP
        first, last = await house.all_events(ended)
        assert (first["type"], last["response"]["output"]) == ("response.created", ended.body["output"])


async def test_a_response_that_ends_each_process_is_not_followed_for_ever() -> None:
    replicas = Replicas()
    lost = await killed(replicas, answer("Whole"), [*SILENT, asyncio.Event()], 8)
    replicas.state.responses[lost.id] = lost.model_copy(update={"fence": MAX_TAKEOVERS})
    async with replicas.survivor(answer("Again")) as house:
        ended = await continued(house, lost)
        assert texts(ended.body) == {BOTH[0]: "Whole", BOTH[1]: "Again"}
        assert ended.last_event > UNSEEN_GAP


async def test_a_lane_that_was_deleted_has_failed() -> None:
    replicas = Replicas()
    lost = await killed(replicas, answer("Whole"), [*SILENT, asyncio.Event()], 8)
    deleted = lanes_in(lost.body)[1].response_id
    async with replicas.survivor(answer("Again")) as house:
        await house.turns.delete(deleted)
        ended = await continued(house, lost)
        assert texts(ended.body)[BOTH[0]] == "Whole"
        assert ended.status == "completed"


async def test_a_process_that_shuts_down_leaves_lanes_and_response_to_another() -> None:
    replicas = Replicas()
    house = replicas.make(drain_seconds=0.01)
    first, second = answer("Whole"), [*SILENT, asyncio.Event()]
    house.scripted.scripts_of = {BOTH[0]: [first], BOTH[1]: [second]}
    started: asyncio.Future[StoredResponse] = asyncio.get_running_loop().create_future()

    async def serve() -> None:
        async with house.registry:
            running = await house.start(models=BOTH)
            await eventually(partial(has_come, house, running.response, 8, {BOTH[0]: first, BOTH[1]: second}), bool)
            started.set_result(running.response)

    async with asyncio.timeout(PATIENCE_SECONDS), asyncio.TaskGroup() as group:
        group.create_task(serve())
        lost = await started
        await eventually(lambda: house.observer.left, bool)
        await eventually(lambda: replicas.state.responses[lost.id].replica, lambda replica: not replica)
        async with replicas.survivor(answer("Again")) as other:
            ended = await continued(other, lost)
            assert texts(ended.body) == {BOTH[0]: "Whole", BOTH[1]: "Again"}
            await check_events(other, ended)


def new_events() -> MemoryEventLog:
    return MemoryEventLog(600, silence_seconds=0.01)
