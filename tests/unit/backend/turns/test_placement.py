"""Where an agent's words and the files of a message stand in the prompts of a conversation."""

from typing import Any

import pytest

from shared.models.canonical import message_json
from shared.prompts.message_order import messages_of_request
from tests.fakes.chat_shell_scripted import function_calls
from tests.fakes.openai_house import TurnHouse
from tests.unit.backend.turns.placing import agents_house, letters, prompts_of, put_agent, searching, without_own_fields

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
SEARCHES = (searching("s1", said="A1"), searching(said="A2"), searching("s3", said="A3"), searching(said="A4"))


async def flow(house: TurnHouse, count: int, **asked: Any) -> list[list[str]]:
    """Ask so many turns of one conversation, and return the prompts of each in letters."""
    shown: list[list[str]] = []
    before: dict[str, Any] = {"model": "helper"}
    for number in range(1, count + 1):
        ended = await house.ask(input=f"U{number}", **before, **asked)
        assert ended.status == "completed"
        before = {"previous_response_id": ended.id}
        shown.append([letters(call) for call in await prompts_of(house, ended)])
    return shown


async def test_classic_moves_instructions_and_elides_results_of_earlier_turns() -> None:
    async with agents_house(*SEARCHES) as (house, _):
        await put_agent(house, placement="classic")
        assert await flow(house, 4) == [
            ["S CA U1", "S CA U1 TC TR R"],
            ["S U1 TC tr A1 CA U2"],
            ["S U1 TC tr A1 U2 A2 CA U3", "S U1 TC tr A1 U2 A2 CA U3 TC TR R"],
            ["S U1 TC tr A1 U2 A2 U3 TC tr A3 CA U4"],
        ]
        assert house.observer.drifts == []
        assert [reason for _, reason in house.observer.epochs] == ["new_conversation"]


async def test_anchored_leaves_instructions_and_results_where_they_stood() -> None:
    async with agents_house(*SEARCHES) as (house, _):
        await put_agent(house)
        assert await flow(house, 4) == [
            ["S CA U1", "S CA U1 TC TR R"],
            ["S CA U1 TC TR R A1 U2"],
            ["S CA U1 TC TR R A1 U2 A2 U3", "S CA U1 TC TR R A1 U2 A2 U3 TC TR"],
            ["S CA U1 TC TR R A1 U2 A2 U3 TC TR A3 U4"],
        ]
        assert house.observer.drifts == []


@pytest.mark.parametrize(("placement", "second"), [("classic", "S F U1 A1 CA P U2"), ("anchored", "S CA P F U1 A1 U2")])
async def test_project_files_stand_behind_instructions_and_uploads_above_their_message(
    placement: str, second: str
) -> None:
    async with agents_house(searching(said="A1"), searching(said="A2")) as (house, uploads):
        await put_agent(house, placement=placement)
        uploads.project_files, uploads.files = "[project]", ("[upload]",)
        first = await house.ask(input="U1", model="helper")
        uploads.files = ()
        ended = await house.ask(input="U2", previous_response_id=first.id)
        shown = [letters(call) for each in (first, ended) for call in await prompts_of(house, each)]
        assert shown == ["S CA P F U1", second]
        assert house.observer.drifts == []


@pytest.mark.parametrize(("placement", "second"), [("classic", "TC TR R"), ("anchored", "R TC TR")])
async def test_a_turn_has_one_reminder(placement: str, second: str) -> None:
    async with agents_house(searching("s1", "s2", said="A1")) as (house, _):
        await put_agent(house, placement=placement, instructions="")
        assert await flow(house, 1) == [["S U1", "S U1 TC TR R", f"S U1 TC TR {second}"]]
        assert house.observer.drifts == []


async def test_a_reminder_that_stays_has_a_position_and_that_of_classic_has_none() -> None:
    for placement, positions in (("anchored", [4]), ("classic", [None])):
        async with agents_house(searching("s1", said="A1")) as (house, _):
            await put_agent(house, placement=placement)
            ended = await house.ask(input="U1", model="helper")
            shown = (await prompts_of(house, ended))[1]["messages"]
            assert [one["position"] for one in shown if one["kind"] == "reminder"] == positions


@pytest.mark.parametrize("placement", ["classic", "anchored"])
async def test_what_is_shown_is_what_was_sent(placement: str) -> None:
    async with agents_house(*SEARCHES[:3]) as (house, uploads):
        await put_agent(house, placement=placement, reminder="Be kind.")
        uploads.project_files, uploads.files = "[project]", ("[upload]",)
        before: dict[str, Any] = {"model": "helper"}
        for number in range(3):
            ended = await house.ask(input=f"U{number}", **before)
            before = {"previous_response_id": ended.id}
            first = (await prompts_of(house, ended))[0]
            sent = [message_json(message) for message in messages_of_request(house.sent[number])]
            assert [without_own_fields(message) for message in first["messages"]] == sent
            assert house.sent[number].reminder == "Be kind."


async def test_words_that_come_while_a_client_runs_its_tools_are_no_drift() -> None:
    async with agents_house(function_calls("c1"), searching(said="A1")) as (house, uploads):
        await put_agent(house, placement="classic", instructions="", tools=[WEATHER])
        first = await house.ask(input="U1", model="helper")
        uploads.project_files = "[project]"
        output = {"type": "function_call_output", "call_id": "c1", "output": "Rain."}
        second = await house.ask(input=[output], previous_response_id=first.id)
        assert [letters(call) for call in await prompts_of(house, second)] == ["S P U1 TC TR"]
        assert house.observer.drifts == []
