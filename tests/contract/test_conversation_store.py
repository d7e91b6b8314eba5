"""One contract for every `ConversationStore`."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochReason, EpochState
from backend.conversations.domain.members import ConversationRole
from backend.conversations.domain.placed_blocks import AgentRef, BlockMark
from backend.conversations.domain.responses import Conversation, Item, OpenedConversation, Removal
from backend.conversations.ports.conversations import ConversationStore
from backend.knowledge.domain.labels import Label
from shared.errors import NotFound, TurnRunning
from shared.models.execution import AccessMode
from shared.models.messages import (
    AssistantMessage,
    HistoryMessage,
    ImageDetail,
    ImagePart,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.contract.store_cases import (
    KINDS,
    T0,
    Stores,
    make_conversation,
    make_end,
    make_entry,
    make_item,
    make_turn,
    open_stores,
)


@pytest.fixture(params=KINDS)
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(request.param, request, tmp_path) as opened:
        yield opened


@pytest.fixture
def store(stores: Stores) -> ConversationStore:
    return stores.conversations


async def test_a_conversation_comes_back_whole(store: ConversationStore) -> None:
    await store.create(make_conversation(), (), ())
    assert await store.find("conv_a") == make_conversation()
    assert await store.find("conv_b") is None


async def test_instants_keep_their_moment_and_have_a_zone(store: ConversationStore) -> None:
    elsewhere = datetime(2026, 6, 1, 8, 0, tzinfo=timezone(timedelta(hours=8)))
    await store.create(make_conversation(created_at=elsewhere), (), ())
    found = await store.find("conv_a")
    assert found is not None
    assert found.created_at == elsewhere
    assert found.created_at.tzinfo is not None


async def test_every_kind_of_message_comes_back_as_it_was(store: ConversationStore) -> None:
    image = ImagePart(url="data:image/png;base64,AA==", detail=ImageDetail.LOW)
    placed = (EntryKind.CUSTOM_INSTRUCTIONS, EntryKind.PROJECT_FILES, EntryKind.FILE, EntryKind.SUMMARY)
    messages: list[HistoryMessage | None] = [
        UserMessage(content='tab\t, nul \x00, 河, \u2028, "quote", </time>'),
        UserMessage(content=(TextPart(text="look"), image)),
        AssistantMessage(text="", tool_calls=(ToolCall(call_id="c1", name="now", arguments='{ "a":1.0 }'),)),
        ToolMessage(call_id="c1", content="09:30"),
        None,
        *(UserMessage(content=kind.value) for kind in placed),
    ]
    known = (EntryKind.DYNAMIC_CONTEXT, EntryKind.USER, EntryKind.ASSISTANT, EntryKind.TOOL_RESULT, EntryKind.VOID)
    mark = BlockMark(digest="d1", agent=AgentRef(name="helper", id="agent_1"))
    kinds = (*known, *placed)
    entries = tuple(
        Entry(
            position=place,
            epoch=place // 2,
            turn_id=f"t{place}",
            kind=kind,
            message=message,
            created_at=T0,
            label=(Label("kb_a", AccessMode.FULL), Label("kb_b", AccessMode.RESTRICTED))[:place],
            reset=EpochState(reason=EpochReason.NEW_CONVERSATION, blocks_from=place) if place % 2 == 0 else None,
            block=mark if kind in placed[:2] else None,
        )
        for place, (kind, message) in enumerate(zip(kinds, messages, strict=True))
    )
    await store.create(make_conversation(log_length=len(entries)), entries, ())
    assert await store.labels("conv_a") == {entry.turn_id: entry.label for entry in entries[1:]}
    assert await store.labels("conv_b") == {}
    assert await store.labels_of_turns(["t0", "t1", "t2", "t"]) == {
        entry.turn_id: entry.label for entry in entries[1:3]
    }
    assert await store.log("conv_a") == entries
    assert await store.log("conv_a", 2) == entries[:2]
    assert await store.log("conv_a", 0) == ()
    assert await store.log("conv_b") == ()


async def test_a_conversation_is_opened_with_its_log_and_the_place_of_its_next_item(store: ConversationStore) -> None:
    entries = (make_entry(0), make_entry(1))
    await store.create(make_conversation(log_length=2), entries, (make_item(0), make_item(1), make_item(2)))
    await store.create(make_conversation("conv_b"), (), ())
    asked: list[Conversation] = []

    def needs_log(found: Conversation) -> bool:
        asked.append(found)
        return found.id != "conv_b"

    assert await store.open("conv_a", needs_log) == OpenedConversation(
        conversation=make_conversation(log_length=2), log=entries, next_sequence=3
    )
    assert await store.open("conv_b", needs_log) == OpenedConversation(
        conversation=make_conversation("conv_b"), log=(), next_sequence=0
    )
    assert await store.open("conv_c", needs_log) is None
    assert [found.id for found in asked] == ["conv_a", "conv_b"]


async def test_a_log_that_is_not_needed_is_not_read(store: ConversationStore) -> None:
    await store.create(make_conversation(log_length=1), (make_entry(0),), ())
    opened = await store.open("conv_a", lambda _: False)
    assert opened == OpenedConversation(conversation=make_conversation(log_length=1), log=(), next_sequence=0)


async def test_metadata_is_replaced(store: ConversationStore) -> None:
    await store.create(make_conversation(), (), ())
    await store.set_metadata("conv_a", {"b": "2"})
    await store.set_metadata("conv_b", {"b": "2"})
    assert await store.find("conv_a") == make_conversation(metadata={"b": "2"})


async def test_an_append_goes_on_where_the_log_ends(store: ConversationStore) -> None:
    await store.create(make_conversation(log_length=1), (make_entry(0),), (make_item(0),))
    await store.append("conv_a", 1, (make_entry(1), make_entry(2)), (make_item(1, None),))
    assert [entry.position for entry in await store.log("conv_a")] == [0, 1, 2]
    assert await store.all_items("conv_a", 2, 99) == (make_item(0), make_item(1, None))
    found = await store.find("conv_a")
    assert found is not None
    assert found.log_length == 3


async def test_an_append_at_the_wrong_length_leaves_nothing(store: ConversationStore) -> None:
    await store.create(make_conversation(log_length=1), (make_entry(0),), (make_item(0),))
    with pytest.raises(TurnRunning):
        await store.append("conv_a", 0, (make_entry(0),), (make_item(1),))
    with pytest.raises(TurnRunning):
        await store.append("conv_a", 1, (make_entry(1),), (make_item(0),))
    with pytest.raises(NotFound):
        await store.append("conv_b", 0, (make_entry(0),), ())
    assert await store.log("conv_a") == (make_entry(0),)
    assert await store.all_items("conv_a", 9, 99) == (make_item(0),)


def make_removal(sequence: int, position: int, turn_id: str = "resp_a") -> Removal:
    reset = EpochState(reason=EpochReason.HISTORY_EDITED)
    changes = {"epoch": 1, "kind": EntryKind.VOID, "message": None, "reset": reset}
    void = make_entry(position, turn_id=turn_id).model_copy(update=changes)
    return Removal(item=make_item(sequence), epoch=1, entries=(void,))


async def test_an_item_that_is_taken_out_leaves_its_place_empty(store: ConversationStore) -> None:
    items = tuple(make_item(sequence) for sequence in range(3))
    await store.create(make_conversation(log_length=2), (make_entry(0), make_entry(1)), items)
    await store.remove("conv_a", 2, make_removal(2, 2))
    found = await store.find("conv_a")
    assert found is not None
    assert (found.log_length, found.epoch) == (3, 1)
    assert await store.log("conv_a") == (make_entry(0), make_entry(1), *make_removal(2, 2).entries)
    assert await store.find_item("conv_a", "msg_2") is None
    assert await store.items("conv_a", after=None, limit=9, descending=True) == items[1::-1]
    assert await store.find_owned_items("acme", "ann", ["msg_2"]) == ()
    with pytest.raises(NotFound):
        await store.items("conv_a", after="msg_2", limit=9, descending=True)
    opened = await store.open("conv_a", lambda _: False)
    assert opened is not None
    assert opened.next_sequence == 3
    await store.append("conv_a", 3, (make_entry(3),), (make_item(3),))
    assert await store.all_items("conv_a", 9, 4) == (*items[:2], make_item(3))
    assert await store.all_items("conv_a", 3, 3) == items[:2]
    assert await store.all_items("conv_a", 3, 2) == items
    await store.remove("conv_a", 4, make_removal(3, 4))
    await store.remove("conv_a", 5, make_removal(1, 5))
    assert await store.all_items("conv_a", 9, 5) == items[:2]
    await store.delete("conv_a")
    assert await store.all_items("conv_a", 9, 0) == ()


async def test_a_removal_at_the_wrong_length_or_beside_a_turn_leaves_nothing(stores: Stores) -> None:
    store = stores.conversations
    await store.create(make_conversation(log_length=1), (make_entry(0),), (make_item(0),))
    for length in (0, 2):
        with pytest.raises(TurnRunning):
            await store.remove("conv_a", length, make_removal(0, length))
    with pytest.raises(NotFound):
        await store.remove("conv_b", 1, make_removal(0, 1))
    await stores.turns.begin(make_turn(None, "resp_b", "conv_c"))
    with pytest.raises(TurnRunning):
        await store.remove("conv_c", 1, make_removal(0, 1))
    assert await store.log("conv_a") == (make_entry(0),)
    assert await store.all_items("conv_a", 9, 0) == (make_item(0),)


async def test_a_running_turn_keeps_others_out(stores: Stores) -> None:
    await stores.turns.begin(make_turn())
    with pytest.raises(TurnRunning):
        await stores.conversations.append("conv_a", 1, (make_entry(1),), ())
    with pytest.raises(TurnRunning):
        await stores.conversations.delete("conv_a")
    assert len(await stores.conversations.log("conv_a")) == 1


async def begin_lanes(stores: Stores) -> None:
    """Let a response of two models be shown in conv_a, with a branch of its creator and one of somebody else."""
    places = ("conv_a", "conv_b", "conv_c", "conv_d")
    lanes = [{"model": "m", "response_id": f"resp_{place}", "conversation_id": place} for place in places]
    for place in places:
        turn = make_turn(None, f"resp_{place}", place)
        body = {**turn.response.body, "joined_response_id": "resp_j"}
        who = {"user_id": "bob" if place == "conv_c" else "ann"}
        owned = turn.conversation.model_copy(update=who)
        await stores.turns.begin(
            turn._replace(conversation=owned, response=turn.response.model_copy(update={"body": body, **who}))
        )
    joined = make_turn(None, "resp_j", "conv_j")
    body = {**joined.response.body, "conversation": {"id": "conv_a"}, "lanes": lanes}
    await stores.turns.begin(joined._replace(response=joined.response.model_copy(update={"body": body}), items=()))


async def end_lane(stores: Stores, place: str, response_id: str) -> None:
    end = make_end(1, response_id, place)
    found = await stores.turns.find(response_id)
    assert found is not None
    kept = {"body": found.body, "user_id": found.user_id}
    ended = end.response.model_copy(update=kept)
    await stores.turns.finish(end._replace(response=ended))


_ENDED_FIRST = (
    ("conv_a", "resp_conv_a"),
    ("conv_c", "resp_conv_c"),
    ("conv_d", "resp_conv_d"),
    ("conv_j", "resp_j"),
)


async def test_branches_in_lanes_go_with_their_conversation_or_it_stays(stores: Stores) -> None:
    await begin_lanes(stores)
    for place, response_id in _ENDED_FIRST:
        await end_lane(stores, place, response_id)
    with pytest.raises(TurnRunning):
        await stores.conversations.delete("conv_a")
    places = ("conv_a", "conv_b", "conv_c", "conv_d", "conv_j")
    assert [(await stores.conversations.find(place)) is not None for place in places] == [True] * 5
    await end_lane(stores, "conv_b", "resp_conv_b")
    await stores.conversations.delete("conv_d")
    assert [(await stores.conversations.find(place)) is not None for place in places] == [True] * 3 + [False, True]
    await stores.conversations.delete("conv_a")
    assert [(await stores.conversations.find(place)) is not None for place in places] == [False, False, True] + [
        False
    ] * 2


async def test_a_deleted_conversation_is_gone_with_log_and_items(store: ConversationStore) -> None:
    await store.create(make_conversation(log_length=1), (make_entry(0),), (make_item(0),))
    await store.create(make_conversation("conv_b", log_length=1), (make_entry(0),), (make_item(0),))
    await store.delete("conv_a")
    await store.delete("conv_a")
    assert await store.find("conv_a") is None
    assert await store.log("conv_a") == ()
    assert await store.all_items("conv_a", 9, 99) == ()
    assert await store.log("conv_b") == (make_entry(0),)


@pytest.mark.parametrize("descending", [False, True])
async def test_pages_of_items_meet_without_gap_or_overlap(store: ConversationStore, descending: bool) -> None:
    items = [make_item(sequence) for sequence in range(7)]
    await store.create(make_conversation(), (), items)
    seen: list[Item] = []
    while page := await store.items("conv_a", after=seen[-1].id if seen else None, limit=3, descending=descending):
        assert len(page) <= 3
        seen.extend(page)
    assert seen == (items[::-1] if descending else items)


async def test_a_page_behind_an_item_of_elsewhere_is_refused(store: ConversationStore) -> None:
    await store.create(make_conversation(), (), (make_item(0),))
    await store.create(make_conversation("conv_b"), (), (make_item(0, item_id="msg_b"),))
    with pytest.raises(NotFound) as caught:
        await store.items("conv_a", after="msg_b", limit=3, descending=False)
    assert caught.value.param == "after"


async def test_one_item_is_found_in_its_conversation_only(store: ConversationStore) -> None:
    await store.create(make_conversation(), (), (make_item(0), make_item(1)))
    await store.create(make_conversation("conv_b"), (), (make_item(0, None),))
    assert await store.find_item("conv_a", "msg_1") == make_item(1)
    assert await store.find_item("conv_b", "msg_0") == make_item(0, None)
    assert await store.find_item("conv_b", "msg_1") is None


async def test_the_items_of_a_user_are_found_by_their_ids_each_once(stores: Stores) -> None:
    items = (make_item(0, item_id="msg_x"), make_item(1, item_id="msg_y"))
    for conversation_id in ("conv_a", "conv_b"):
        await stores.conversations.create(make_conversation(conversation_id), (), items)
    foreign = make_conversation("conv_c", user_id="bob")
    await stores.conversations.create(foreign, (), (make_item(0, item_id="msg_z"),))
    found = await stores.conversations.find_owned_items("acme", "ann", ["msg_x", "msg_z", "msg_y", "msg_none"])
    assert sorted(each.item.id for each in found) == ["msg_x", "msg_y"]
    assert {each.conversation_id for each in found} <= {"conv_a", "conv_b"}
    assert found[0].item in items
    assert await stores.conversations.find_owned_items("elsewhere", "ann", ["msg_x"]) == ()


async def _ids(store: ConversationStore, user_id: str, tenant: str = "acme", **page: Any) -> list[str]:
    query: dict[str, Any] = {"after": None, "limit": 10, "descending": True, **page}
    return [each.id for each in await store.list_readable(tenant, user_id, **query)]


async def test_a_user_finds_their_conversations_and_those_that_are_shared_with_them(store: ConversationStore) -> None:
    for place, (name, owner, tenant) in enumerate(
        [
            ("a", "ann", "acme"),
            ("b", "bob", "acme"),
            ("c", "ann", "acme"),
            ("d", "ann", "other"),
            ("e", 'x"ann', "acme"),
        ]
    ):
        created_at = T0 + timedelta(seconds=place)
        begun = make_conversation(f"conv_{name}", user_id=owner, tenant=tenant, created_at=created_at)
        await store.create(begun, (), ())
    assert await _ids(store, "ann") == ["conv_c", "conv_a"]
    assert await _ids(store, "ann", "other") == ["conv_d"]
    assert await _ids(store, "bob") == ["conv_b"]
    await store.set_member("conv_b", "ann", ConversationRole.READER, most=9)
    await store.set_member("conv_e", 'y"ann', ConversationRole.READER, most=9)
    assert await _ids(store, "ann") == ["conv_c", "conv_b", "conv_a"]
    assert await _ids(store, "ANN") == []
    await store.remove_member("conv_b", "ann")
    assert await _ids(store, "ann", descending=False) == ["conv_a", "conv_c"]


async def test_pages_of_conversations_go_through_all_in_both_directions(store: ConversationStore) -> None:
    names = [f"conv_{place}" for place in range(7)]
    for place, name in enumerate(names):  # two have the same instant
        await store.create(make_conversation(name, created_at=T0 + timedelta(seconds=place // 2)), (), ())
    for number in range(20):  # candidates of which none is theirs
        await store.create(make_conversation(f"conv_z{number}", user_id="bob", created_at=T0), (), ())
        await store.set_member(f"conv_z{number}", 'q"ann', ConversationRole.READER, most=9)
    for descending in (False, True):
        seen: list[str] = []
        while page := await _ids(store, "ann", after=seen[-1] if seen else None, limit=2, descending=descending):
            seen += page
        assert seen == sorted(names, reverse=descending)


async def test_the_conversation_of_a_joined_response_is_not_listed(store: ConversationStore) -> None:
    await store.create(make_conversation("conv_a", latest_response_id="resp_a", running_response_id="resp_a"), (), ())
    await store.create(make_conversation("conv_b"), (), ())
    await store.create(make_conversation("conv_c", latest_response_id="resp_c", log_length=1), (make_entry(0),), ())
    assert await _ids(store, "ann", descending=False) == ["conv_b", "conv_c"]


async def test_a_page_cannot_begin_behind_a_conversation_of_somebody_else(store: ConversationStore) -> None:
    await store.create(make_conversation("conv_b", user_id="bob"), (), ())
    for after in ("conv_b", "conv_none"):
        with pytest.raises(NotFound):
            await _ids(store, "ann", after=after)
