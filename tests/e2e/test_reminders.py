"""The message at the end of a request that no log keeps, and executions that end before their turn does."""

import pytest

from shared.models.events import MessagesAdded, ModelCallStarted, TurnFinished, TurnHandedBack
from shared.models.execution import Purpose, TurnLimits
from shared.prompts.message_order import CITATIONS, LAST_CALL, reminder_text
from tests.e2e.chat_shell_calls import Told, plain_request, through_grpc, through_http
from tests.e2e.pair import Pair
from tests.e2e.prefixes import check_never_moves
from tests.e2e.turns import bare_client, file_search, messages_in, new_base, reminder_in, search, turn
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply

pytestmark = pytest.mark.combination

CITE = reminder_text((CITATIONS,))
SERVERS = {"grpc": through_grpc, "http": through_http}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def roles(request: RecordedRequest) -> list[str]:
    return [message["role"] for message in request.json_body["messages"]]


async def test_one_reminder_stays_where_it_was_first_sent(pair: Pair, model: FakeModelControl) -> None:
    await model.script(
        Reply(tool_calls=(search("fox", "call_1"),)),
        Reply(tool_calls=(search("hen", "call_2"),)),
        Reply(text=("Red [1].",)),
        Reply(text=("Bye.",)),
    )
    async with bare_client(pair, "loop") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.", hen="The hen is brown.")
        first = await turn(client, "Who is red?", tools=[file_search(base_id)])
        await turn(client, "Thanks.", previous_response_id=first["id"])
    requests = await model.requests()
    opening = ["system", "user", "user"]
    assert [roles(request) for request in requests[:3]] == [
        opening,
        [*opening, "assistant", "tool", "user"],
        [*opening, "assistant", "tool", "user", "assistant", "tool"],
    ]
    assert [reminder_in(request) for request in requests] == ["", CITE, "", ""]
    assert [str(message["content"]).count("<system-reminder>") for message in messages_in(requests[3])].count(1) == 1
    check_never_moves(requests)


@pytest.mark.parametrize("server", SERVERS)
async def test_an_agents_words_and_the_notice_of_the_last_call_reach_the_model(
    small_pair: Pair, small_model: FakeModelControl, server: str
) -> None:
    await small_model.script(Reply(tool_calls=(search("fox", "call_1"),)), Reply(text=("Enough.",)))
    limits = TurnLimits(max_knowledge_calls=1, max_model_calls=2)
    told = await SERVERS[server](small_pair, plain_request(limits=limits, reminder="Be kind."))
    expected = [reminder_text(("Be kind.",)), reminder_text(("Be kind.", LAST_CALL))]
    assert [reminder_in(request) for request in await small_model.requests()] == expected
    assert [event.reminder for event in told.events if isinstance(event, ModelCallStarted)] == expected


async def test_a_backend_of_the_release_before_is_told_of_no_reminder(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    await small_model.script(Reply(text=("Hello.",)))
    told = await through_http(small_pair, plain_request(reminder="Be kind."), is_newest=False)
    assert told.events[0] == ModelCallStarted(call=1)
    assert reminder_in((await small_model.requests())[0]) == reminder_text(("Be kind.",))


@pytest.mark.parametrize("server", SERVERS)
async def test_a_turn_is_handed_back_and_goes_on(small_pair: Pair, small_model: FakeModelControl, server: str) -> None:
    await small_model.script(
        Reply(tool_calls=(search("fox", "call_1"),), usage=USAGE), Reply(text=("Enough.",), usage=USAGE)
    )
    limits = TurnLimits(max_knowledge_calls=1, max_model_calls=12, hand_back_tokens=1100)
    told: Told = await SERVERS[server](small_pair, plain_request(limits=limits))
    ended = told.events[-1]
    assert isinstance(ended, TurnHandedBack)
    assert ended.prompt_tokens > 1100
    assert told.refusal is None
    added = [message for event in told.events if isinstance(event, MessagesAdded) for message in event.messages]
    assert [message.role for message in added] == ["assistant", "tool"]

    later: Told = await SERVERS[server](small_pair, plain_request(limits=limits, added=tuple(added)))
    assert isinstance(later.events[-1], TurnFinished)
    assert [event.call for event in later.events if isinstance(event, ModelCallStarted)] == [2]
    one, two = await small_model.requests()
    assert [message["role"] for message in messages_in(two)[len(messages_in(one)) :]] == ["assistant", "tool"]


@pytest.mark.parametrize("server", SERVERS)
async def test_a_summary_is_one_call_with_the_same_tools(
    small_pair: Pair, small_model: FakeModelControl, server: str
) -> None:
    await small_model.script(Reply(text=("Hello.",)), Reply(text=("They spoke 【1】.",)))
    await SERVERS[server](small_pair, plain_request(prompt="Hi"))
    told = await SERVERS[server](small_pair, plain_request(prompt="Summarise.", purpose=Purpose.SUMMARY))
    answer, summary = await small_model.requests()
    assert summary.json_body["tools"] == answer.json_body["tools"]
    assert (answer.json_body["tool_choice"], summary.json_body["tool_choice"]) == ("auto", "none")
    assert messages_in(summary)[-1]["content"] == "Summarise."
    assert "".join(event.text for event in told.events if event.type == "text_delta") == "They spoke 【1】."
