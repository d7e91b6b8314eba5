"""Words from knowledge that a user may not read any more: none of them reaches their model."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from backend.conversations.domain.responses import StoredResponse
from backend.conversations.domain.withheld import WITHHELD
from backend.knowledge.domain.knowledge import MemberRole
from shared.models.events import MessagesAdded, SearchFinished, SearchResult, SearchStarted
from shared.models.execution import ExecutionRequest
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.openai_house import ADA, TurnHouse, open_house

SECRET_TEXT = "The margin fell to 41 percent."
SEARCHING = AssistantMessage(
    text=f"I look for: {SECRET_TEXT}",
    tool_calls=(ToolCall(call_id="call_1", name="knowledge_base_search", arguments=f'{{"query": "{SECRET_TEXT}"}}'),),
)
SEARCHED: list[Any] = [
    MessagesAdded(messages=(SEARCHING, ToolMessage(call_id="call_1", content=SECRET_TEXT))),
    *answer(SECRET_TEXT),
]


def searching(*base_ids: str) -> list[dict[str, object]]:
    return [{"type": "file_search", "vector_store_ids": list(base_ids)}]


@pytest.fixture
async def house() -> AsyncGenerator[TurnHouse, None]:
    async with open_house(SEARCHED, *(answer(f"Answer {number}.") for number in range(4))) as house:
        for base_id in ("kb_a", "kb_b"):
            base = make_base(base_id, tenant="default")
            await house.knowledge.create_base(base, "owner")
            await house.knowledge.set_member(base_id, ADA.user_id, MemberRole.READER)
        yield house


def words(request: ExecutionRequest) -> str:
    return request.model_dump_json()


@pytest.mark.parametrize("role", [MemberRole.RESTRICTED_ANALYST, None])
@pytest.mark.parametrize("tools", [{}, {"tools": []}], ids=["bound", "unbound"])
@pytest.mark.parametrize("way", ["conversation", "previous_response_id"])
async def test_a_narrowed_member_s_model_gets_notices(
    house: TurnHouse, role: MemberRole | None, tools: dict[str, Any], way: str
) -> None:
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    if role is None:
        await house.knowledge.remove_member("kb_a", ADA.user_id)
    else:
        await house.knowledge.set_member("kb_a", ADA.user_id, role)
    behind = first.conversation_id if way == "conversation" else first.id
    await house.ask(input="And?", **{way: behind}, **tools)
    assert SECRET_TEXT not in words(house.sent[-1])
    asked, called, result, said = house.sent[-1].history
    assert "Margin?" in str(asked)
    assert called == AssistantMessage(
        text=WITHHELD, tool_calls=(ToolCall(call_id="call_1", name="knowledge_base_search", arguments="{}"),)
    )
    assert result == ToolMessage(call_id="call_1", content=WITHHELD)
    assert said == AssistantMessage(text=WITHHELD)


async def test_narrowing_starts_one_epoch(house: TurnHouse) -> None:
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    for _ in range(2):
        await house.ask(input="And?", conversation=first.conversation_id)
    assert house.observer.epochs == [(0, "new_conversation"), (1, "access_changed")]
    second, third = house.sent[-2:]
    assert third.history[: len(second.history)] == second.history


async def test_what_was_said_after_a_search_inherits_its_label(house: TurnHouse) -> None:
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    await house.ask(input="Say it again.", conversation=first.conversation_id, tools=[])
    await house.knowledge.remove_member("kb_a", ADA.user_id)
    await house.ask(input="And?", conversation=first.conversation_id)
    assert "Answer 0." not in words(house.sent[-1])
    await house.ask(input="And now?", conversation=first.conversation_id)
    assert "Answer 1." in words(house.sent[-1])


async def test_other_bases_change_nothing(house: TurnHouse) -> None:
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    await house.knowledge.remove_member("kb_b", ADA.user_id)
    await house.ask(input="And?", conversation=first.conversation_id)
    assert SECRET_TEXT in words(house.sent[-1])
    assert house.observer.epochs == [(0, "new_conversation")]


async def test_a_branch_off_a_withheld_turn_holds_notices_too(house: TurnHouse) -> None:
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    await house.ask(input="And?", conversation=first.conversation_id)
    await house.knowledge.remove_member("kb_a", ADA.user_id)
    branch = await house.ask(input="Or?", previous_response_id=first.id)
    assert branch.conversation_id != first.conversation_id
    assert SECRET_TEXT not in words(house.sent[-1])
    await house.ask(input="Or else?", conversation=branch.conversation_id)
    assert SECRET_TEXT not in words(house.sent[-1])


@pytest.fixture
async def api(house: TurnHouse) -> AsyncGenerator[httpx2.AsyncClient, None]:
    behind = FakeHouse(knowledge=house.knowledge, state=house.state)
    behind.turns = house
    key = await behind.key(ADA.user_id)
    async with client_of(behind.app(), key) as client:
        yield client


async def answers(api: httpx2.AsyncClient, response: StoredResponse) -> list[str]:
    """Read a response and its items in every way that there is."""
    items = f"/v1/conversations/{response.conversation_id}/items"
    first = (await api.get(f"{items}?order=asc")).json()["data"]
    one = f"/v1/responses/{response.id}"
    ways = [items, f"{items}?include[]=file_search_call.results", *(f"{items}/{item['id']}" for item in first)]
    ways += [one, f"{one}?include[]=file_search_call.results", f"{one}?stream=true", f"{one}/input_items"]
    ways += [f"{one}?stream=true&starting_after=1&include[]=file_search_call.results"]
    read = [await api.get(way) for way in ways] + [await api.post(f"{one}/cancel")]
    assert {answer.status_code for answer in read} == {200}
    return [answer.text for answer in read]


async def test_what_was_stored_is_withheld_from_its_narrowed_reader(house: TurnHouse, api: httpx2.AsyncClient) -> None:
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    assert any(SECRET_TEXT in text for text in await answers(api, first))
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    told = await answers(api, first)
    assert [text for text in told if SECRET_TEXT in text] == []
    assert any(WITHHELD in text for text in told)
    replayed = (await api.get(f"/v1/responses/{first.id}?stream=true")).text
    assert replayed.endswith("data: [DONE]\n\n")
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
    assert any(SECRET_TEXT in text for text in await answers(api, first))


async def test_a_restricted_turn_s_own_answer_is_shown(house: TurnHouse, api: httpx2.AsyncClient) -> None:
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    assert WITHHELD not in "".join(await answers(api, first))


async def test_results_are_withheld_after_their_conversation_is_gone(house: TurnHouse, api: httpx2.AsyncClient) -> None:
    hit = SearchResult(number=1, file_id="doc_1", filename="m.md", score=1.0, text=SECRET_TEXT)
    house.scripted.scripts[0] = [
        SearchStarted(call_id="call_1", queries=("margin",)),
        SearchFinished(call_id="call_1", failed=False, results=(hit,)),
        *SEARCHED,
    ]
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    await api.delete(f"/v1/conversations/{first.conversation_id}")
    way = f"/v1/responses/{first.id}?include[]=file_search_call.results"
    assert SECRET_TEXT in (await api.get(way)).text
    await house.knowledge.remove_member("kb_a", ADA.user_id)
    assert SECRET_TEXT not in (await api.get(way)).text


async def test_an_answer_is_withheld_after_its_conversation_is_gone(house: TurnHouse, api: httpx2.AsyncClient) -> None:
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    await api.delete(f"/v1/conversations/{first.conversation_id}")
    assert SECRET_TEXT in (await api.get(f"/v1/responses/{first.id}")).text
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    assert SECRET_TEXT not in (await api.get(f"/v1/responses/{first.id}")).text


async def test_who_is_no_member_any_more_loses_what_was_released_too(house: TurnHouse, api: httpx2.AsyncClient) -> None:
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    first = await house.ask(input="Margin?", tools=searching("kb_a"))
    await house.ask(input="And?", conversation=first.conversation_id)
    assert SECRET_TEXT in words(house.sent[-1])
    await house.knowledge.remove_member("kb_a", ADA.user_id)
    await house.ask(input="And now?", conversation=first.conversation_id)
    assert SECRET_TEXT not in words(house.sent[-1])
    assert [text for text in await answers(api, first) if SECRET_TEXT in text] == []


async def test_a_turn_over_a_restricted_and_a_full_base_holds_text_of_the_full_one(
    house: TurnHouse, api: httpx2.AsyncClient
) -> None:
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    first = await house.ask(input="Margin?", tools=searching("kb_a", "kb_b"))
    await house.knowledge.set_member("kb_b", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    await house.ask(input="And?", conversation=first.conversation_id)
    assert SECRET_TEXT not in words(house.sent[-1])
    assert [text for text in await answers(api, first) if SECRET_TEXT in text] == []


async def test_who_is_narrowed_while_their_turn_runs_follows_it_to_its_end_without_a_word(
    house: TurnHouse, api: httpx2.AsyncClient
) -> None:
    held = asyncio.Event()
    house.scripted.scripts[0] = [held, *SEARCHED]
    running = await house.start(input="Margin?", tools=searching("kb_a"))
    await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.RESTRICTED_ANALYST)
    following = asyncio.create_task(api.get(f"/v1/responses/{running.response.id}?stream=true"))
    held.set()
    await running.wait_until_ended()
    followed = (await following).text
    assert SECRET_TEXT not in followed
    assert [line for line in followed.split("\n") if line.startswith("event: ")] == [
        "event: response.created",
        "event: response.completed",
    ]
    assert followed.endswith("data: [DONE]\n\n")
