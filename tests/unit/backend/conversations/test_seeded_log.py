"""History that a caller brings becomes entries of the log, and items that they see again."""

import pytest

from backend.conversations.domain.conversation_log import EntryKind, find_pending_calls, history
from backend.conversations.services.conversations import CallerConversations, ItemQuery
from backend.identity.domain import Caller, KeyRole
from shared.errors import InvalidRequest, NotFound, TurnRunning
from shared.models.messages import AssistantMessage, ImageDetail, ImagePart, TextPart, ToolMessage, UserMessage
from tests.fakes.clock import FakeClock
from tests.fakes.store_conversations import FakeConversationStore
from tests.fakes.store_state import StoreState
from tests.unit.backend.conversations.samples import parse_items

ADA = Caller(user_id="ada", tenant="default", role=KeyRole.USER)
EVE = Caller(user_id="eve", tenant="default", role=KeyRole.USER)
ADA_ELSEWHERE = Caller(user_id="ada", tenant="other", role=KeyRole.USER)
PIXEL = "data:image/png;base64,iVBORw0KGgo="
CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}


@pytest.fixture
def state() -> StoreState:
    return StoreState()


@pytest.fixture
def conversations(state: StoreState) -> CallerConversations:
    return CallerConversations(FakeConversationStore(state), FakeClock(), "secret")


async def test_items_become_messages_in_their_order(conversations: CallerConversations, state: StoreState) -> None:
    given = parse_items(
        [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hi"},
            {"role": "user", "content": [{"type": "input_text", "text": "look"}, _image()]},
            CALL,
            OUTPUT,
        ],
        "items",
    )
    begun = await conversations.create(ADA, given, {"a": "b"})
    entries = state.entries[begun.id]
    assert history(entries) == (
        UserMessage(content="hello"),
        AssistantMessage(text="hi"),
        UserMessage(content=(TextPart(text="look"), ImagePart(url=PIXEL, detail=ImageDetail.LOW))),
        entries[3].message,
        ToolMessage(call_id="c1", content="sunny"),
    )
    assert [entry.position for entry in entries] == [0, 1, 2, 3, 4]
    kinds = [EntryKind.USER, EntryKind.ASSISTANT, EntryKind.USER, EntryKind.ASSISTANT, EntryKind.TOOL_RESULT]
    assert [entry.kind for entry in entries] == kinds
    assert (begun.log_length, begun.metadata) == (5, {"a": "b"})
    assert [item.sequence for item in state.items[begun.id]] == [0, 1, 2, 3, 4]


async def test_appending_goes_on_where_the_log_ends(conversations: CallerConversations, state: StoreState) -> None:
    begun = await conversations.create(ADA, parse_items([{"role": "user", "content": "a"}, CALL], "items"), {})
    added = await conversations.add_items(ADA, begun.id, parse_items([OUTPUT], "items"))
    assert [item.sequence for item in added] == [2]
    assert [entry.position for entry in state.entries[begun.id]] == [0, 1, 2]
    assert find_pending_calls(history(state.entries[begun.id])) == ()


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([{"role": "system", "content": "be good"}], "items[0].role"),
        ([{"role": "user", "content": "a"}, {"role": "developer", "content": "x"}], "items[1].role"),
        ([OUTPUT], "items[0].call_id"),
        ([CALL, {"role": "user", "content": "a"}], "items[1]"),
    ],
)
async def test_an_item_out_of_place_is_named(
    conversations: CallerConversations, state: StoreState, items: list[object], param: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await conversations.create(ADA, parse_items(items, "items"), {})
    assert caught.value.param == param
    assert not state.conversations
    begun = await conversations.create(ADA, (), {})
    with pytest.raises(InvalidRequest) as caught:
        await conversations.add_items(ADA, begun.id, parse_items(items, "items"))
    assert caught.value.param == param
    assert not state.items[begun.id]


@pytest.mark.parametrize("other", [EVE, ADA_ELSEWHERE])
async def test_somebody_elses_conversation_is_not_found(conversations: CallerConversations, other: Caller) -> None:
    begun = await conversations.create(ADA, parse_items([{"role": "user", "content": "a"}], "items"), {})
    page = await conversations.items(ADA, begun.id, ItemQuery(limit=1, descending=True, after=None))
    attempts = [
        conversations.find(other, begun.id),
        conversations.set_metadata(other, begun.id, {"x": "y"}),
        conversations.delete(other, begun.id),
        conversations.add_items(other, begun.id, ()),
        conversations.items(other, begun.id, ItemQuery(limit=1, descending=True, after=None)),
        conversations.item(other, begun.id, page.items[0].id),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt
    assert (await conversations.find(ADA, begun.id)).metadata == {}


async def test_nothing_grows_or_goes_while_a_turn_runs(conversations: CallerConversations, state: StoreState) -> None:
    begun = await conversations.create(ADA, (), {})
    state.conversations[begun.id] = begun.model_copy(update={"running_response_id": "resp_1"})
    with pytest.raises(TurnRunning):
        await conversations.delete(ADA, begun.id)
    with pytest.raises(TurnRunning):
        await conversations.add_items(ADA, begun.id, parse_items([{"role": "user", "content": "a"}], "items"))
    assert (await conversations.set_metadata(ADA, begun.id, {"a": "b"})).metadata == {"a": "b"}


async def test_each_conversation_has_a_cache_key_of_its_own(conversations: CallerConversations) -> None:
    keys = {(await conversations.create(ADA, (), {})).cache_key for _ in range(2)}
    assert len(keys) == 2


def _image() -> dict[str, str]:
    return {"type": "input_image", "image_url": PIXEL, "detail": "low"}
