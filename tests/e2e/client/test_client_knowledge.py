"""`file_search` over a real knowledge base, by the official client."""

import asyncio
from itertools import pairwise
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.responses import FileSearchToolParam

from tests.e2e.client.knowledge_bases import (
    SEARCH,
    Base,
    file_search,
    messages_of,
    new_base,
    numbered,
    offered,
    searches,
    tool_texts,
)
from tests.e2e.client.wire import Wire
from tests.e2e.pair import Pair
from tests.fakes.model_server import FakeModelControl, Reply

PAGER = "# On call\n\nThe pager must be acknowledged within nineteen minutes of the first ring."
LOCKERS = "# Lockers\n\nA parcel locker is opened with a code of nine letters."
CHINESE = "# 退货\n\n客户可以在四十五天内无理由退货。"
RESULTS: Any = ["file_search_call.results"]

WAITS = 200
"""Looks at a response, a twentieth of a second apart, until its search is stored."""


@pytest.fixture
def handbook(pair: Pair) -> Base:
    return new_base(pair, "handbook", {"on-call.md": PAGER, "lockers.md": LOCKERS, "退货.md": CHINESE}, bob="reader")


@pytest.fixture
async def asked(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base) -> str:
    """A turn with one search and two citations, its results asked for; the response's id."""
    await model.script(searches("pager"), Reply(text=("Nineteen", " minutes [", "1]", ".")))
    response = await ann.responses.create(input="How soon?", tools=[handbook.tool], include=RESULTS)
    return response.id


async def test_a_search_is_an_item_with_its_query_and_results(
    asked: str, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    search, message = wire.newest.json["output"]
    assert (search["type"], search["status"], search["queries"]) == ("file_search_call", "completed", ["pager"])
    assert {hit["filename"]: hit["file_id"] for hit in search["results"]} == handbook.file_ids
    texts = {hit["filename"]: hit["text"] for hit in search["results"]}
    assert "nineteen minutes" in texts["on-call.md"]
    assert message["type"] == "message"
    assert wire.newest.json["tools"] == [handbook.tool]
    assert wire.newest.json["usage"]["output_tokens"] > 0


async def test_the_model_gets_the_bases_metadata_and_the_result(
    asked: str, model: FakeModelControl, handbook: Base
) -> None:
    first, second = await model.requests()
    system, context, current = messages_of(first)
    assert [system["role"], context["role"], current["role"]] == ["system", "user", "user"]
    assert handbook.id in context["content"]
    assert "All about handbook." in context["content"]
    assert "handbook" not in system["content"]
    assert current["content"].startswith("How soon?\n\n<time>")
    assert messages_of(second)[:3] == messages_of(first)
    assert messages_of(second)[3]["tool_calls"][0]["function"]["name"] == SEARCH
    [result] = tool_texts(second)
    assert set(numbered(result)) == set(handbook.file_ids)
    assert "nineteen minutes" in result
    assert "四十五天" in result


async def test_a_citation_points_at_its_place_and_its_document(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(searches("pager"))
    await model.script(Reply(text=("一", "二三"), hold_after=1))
    # The first delta comes behind the search in the same stream: what it brought is in the log once it is seen.
    begun_stream = await ann.responses.create(input="How soon?", tools=[handbook.tool], background=True, stream=True)
    created = await anext(aiter(begun_stream))
    assert created.type == "response.created"
    begun = created.response
    async for event in begun_stream:
        if event.type == "response.output_text.delta":
            break
    numbers = numbered(tool_texts((await model.requests())[1])[0])
    await model.reset()
    await ann.responses.cancel(begun.id)

    pager, parcels = numbers["on-call.md"], numbers["退货.md"]
    await model.script(Reply(text=("😀 soon [", f"{pager}, {parcels}", "] and [[", f"{pager}]] x[0] [2024].")))
    stream = await ann.responses.create(input="So?", previous_response_id=begun.id, stream=True)
    events = [event async for event in stream]
    last = wire.newest.events[-1]["response"]["output"][-1]["content"][0]
    text = last["text"]
    assert text == f"😀 soon [{pager}][{parcels}] and [{pager}] x[0] [2024]."
    named = [(one["filename"], one["file_id"], one["index"]) for one in last["annotations"]]
    first = text.index(f"[{pager}]")
    assert named == [
        ("on-call.md", handbook.file_ids["on-call.md"], first),
        ("退货.md", handbook.file_ids["退货.md"], text.index(f"[{parcels}]", first + 3)),
        ("on-call.md", handbook.file_ids["on-call.md"], text.rindex(f"[{pager}]")),
    ]
    types = [event.type for event in events]
    assert types.count("response.output_text.annotation.added") == 3


async def test_the_events_of_a_search(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base) -> None:
    await model.script(searches("pager"), Reply(text=("Soon [1].",)))
    stream = await ann.responses.create(input="How soon?", tools=[handbook.tool], include=RESULTS, stream=True)
    types = [event.type async for event in stream]
    assert types[2:8] == [
        "response.output_item.added",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.output_item.done",
        "response.output_item.added",
    ]
    done = wire.newest.events[6]["item"]
    assert {hit["filename"] for hit in done["results"]} == set(handbook.file_ids)
    added = wire.newest.events[2]["item"]
    assert (added["status"], added["results"], added["queries"]) == ("in_progress", None, ["pager"])


async def test_the_stream_helper_passes_through_a_search(
    ann: AsyncOpenAI, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(searches("pager"), Reply(text=("Soon [1].",)))
    async with ann.responses.stream(model="fake-model", input="How soon?", tools=[handbook.tool]) as stream:
        final = await stream.get_final_response()
    assert final.output_text == "Soon [1]."
    message = final.output[1]
    assert message.type == "message"
    assert message.content[0].type == "output_text"
    assert len(message.content[0].annotations) == 1


async def test_results_are_for_who_asks(ann: AsyncOpenAI, wire: Wire, asked: str) -> None:
    with_results = wire.newest.json["output"]
    bare = [{**with_results[0], "results": None}, with_results[1]]
    await ann.responses.retrieve(asked)
    assert wire.newest.json["output"] == bare
    conversation_id = wire.newest.json["conversation"]["id"]
    await ann.responses.retrieve(asked, include=RESULTS)
    assert wire.newest.json["output"] == with_results
    await ann.conversations.items.list(conversation_id, order="asc")
    assert wire.newest.json["data"][1:] == bare
    await ann.conversations.items.list(conversation_id, order="asc", include=RESULTS)
    assert wire.newest.json["data"][1:] == with_results
    search_id = with_results[0]["id"]
    await ann.conversations.items.retrieve(search_id, conversation_id=conversation_id)
    assert wire.newest.json == bare[0]
    await ann.conversations.items.retrieve(search_id, conversation_id=conversation_id, include=RESULTS)
    assert wire.newest.json == with_results[0]


async def test_results_are_left_out_of_streams_that_did_not_ask(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(searches("pager"), Reply(text=("Soon [1].",)))
    stream = await ann.responses.create(input="How soon?", tools=[handbook.tool], stream=True)
    assert [event async for event in stream]
    assert b"nineteen" not in wire.newest.body
    response_id = wire.newest.events[0]["response"]["id"]
    assert [event async for event in await ann.responses.retrieve(response_id, stream=True)]
    assert b"nineteen" not in wire.newest.body


async def test_searches_side_by_side_get_numbers_in_call_order(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, pair: Pair
) -> None:
    duty = new_base(pair, "duty", {"on-call.md": PAGER})
    parcels = new_base(pair, "parcels", {"lockers.md": LOCKERS})
    both = Reply(
        tool_calls=(
            *searches("pager", knowledge_base_ids=[duty.id]).tool_calls,
            *searches("code", knowledge_base_ids=[parcels.id]).tool_calls,
        )
    )
    await model.script(both, Reply(text=("Letters [2], minutes [1].",)))
    stream = await ann.responses.create(input="All?", tools=[file_search(duty, parcels)], stream=True)
    assert [event async for event in stream]
    one, two = tool_texts((await model.requests())[-1])
    assert (numbered(one), numbered(two)) == ({"on-call.md": 1}, {"lockers.md": 2})
    *found, message = wire.newest.events[-1]["response"]["output"]
    assert [search["queries"] for search in found] == [["pager"], ["code"]]
    assert len({search["id"] for search in found}) == 2
    cited = [(note["filename"], note["index"]) for note in message["content"][0]["annotations"]]
    assert cited == [("lockers.md", 8), ("on-call.md", 21)]
    begun = [event["output_index"] for event in wire.newest.events if event["type"].endswith(".searching")]
    assert begun == [0, 1]


async def test_numbers_go_on_in_the_next_turn(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, asked: str
) -> None:
    await model.script(searches("locker"), Reply(text=("First [1], then [5].",)))
    await ann.responses.create(input="And lockers?", previous_response_id=asked)
    results = tool_texts((await model.requests())[-1])
    assert sorted([*numbered(results[0]).values(), *numbered(results[1]).values()]) == [1, 2, 3, 4, 5, 6]
    named = {number: title for result in results for title, number in numbered(result).items()}
    annotations = wire.newest.json["output"][-1]["content"][0]["annotations"]
    assert [one["filename"] for one in annotations] == [named[1], named[5]]


async def test_a_base_stays_bound_until_tools_say_otherwise(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base, pair: Pair
) -> None:
    other = new_base(pair, "other", {"x.md": "x"})
    first = await ann.responses.create(input="a", tools=[handbook.tool])
    kept = await ann.responses.create(input="b", previous_response_id=first.id)
    assert wire.newest.json["tools"] == [handbook.tool]
    changed = await ann.responses.create(input="c", previous_response_id=kept.id, tools=[other.tool])
    assert wire.newest.json["tools"] == [other.tool]
    unbound = await ann.responses.create(input="d", previous_response_id=changed.id, tools=[])
    assert wire.newest.json["tools"] == []
    await ann.responses.create(input="e", previous_response_id=unbound.id)
    assert wire.newest.json["tools"] == []
    requests = await model.requests()
    added = [str(messages_of(now)[len(messages_of(before)) + 1 :]) for before, now in pairwise(requests)]
    assert handbook.id in str(messages_of(requests[0])[1])
    assert [other.id in text for text in added] == [False, True, False, False]
    assert ["are now: none" in text for text in added] == [False, False, True, False]
    assert len({str(offered(request)) for request in requests}) == 1


async def test_after_unbinding_nothing_is_found(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    first = await ann.responses.create(input="a", tools=[handbook.tool])
    await model.script(searches("pager"), Reply(text=("Nothing.",)))
    await ann.responses.create(input="b", previous_response_id=first.id, tools=[], include=RESULTS)
    assert tool_texts((await model.requests())[-1]) == ["No knowledge base is in scope in this conversation."]
    assert b"nineteen" not in (await model.requests())[-1].body
    assert b"nineteen" not in wire.newest.body


async def test_the_model_may_be_bound_to_search(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(searches("pager"), Reply(text=("Soon.",)))
    await ann.responses.create(input="a", tools=[handbook.tool], tool_choice={"type": "file_search"})
    assert wire.newest.json["tool_choice"] == {"type": "file_search"}
    first, second = await model.requests()
    assert first.json_body["tool_choice"] == {"type": "function", "function": {"name": SEARCH}}
    assert second.json_body["tool_choice"] == "auto"
    with pytest.raises(openai.BadRequestError):
        await ann.responses.create(input="a", tool_choice={"type": "file_search"})


async def test_who_is_no_member_gets_nothing(
    ann: AsyncOpenAI, bob: AsyncOpenAI, model: FakeModelControl, pair: Pair
) -> None:
    mine = new_base(pair, "mine", {"x.md": PAGER})
    for base_id in (mine.id, "kb_nobody"):
        with pytest.raises(openai.NotFoundError) as caught:
            await bob.responses.create(input="a", tools=[{"type": "file_search", "vector_store_ids": [base_id]}])
        assert caught.value.param == "tools[0].vector_store_ids[0]"
    assert await model.requests() == []


async def test_a_reader_reads(bob: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base) -> None:
    await model.script(searches("退货"), Reply(text=("四十五天 [1]。",)))
    await bob.responses.create(input="多久？", tools=[handbook.tool], include=RESULTS)
    assert "四十五天" in wire.newest.body.decode()


async def test_a_search_that_fails_is_told_to_the_model(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(searches("pager", knowledge_base_ids=["kb_elsewhere"]), Reply(text=("Sorry.",)))
    await ann.responses.create(input="a", tools=[handbook.tool])
    search, message = wire.newest.json["output"]
    assert (search["status"], search["results"]) == ("failed", None)
    assert message["content"][0]["text"] == "Sorry."
    assert "Not in scope" in tool_texts((await model.requests())[-1])[0]


async def test_words_before_a_search_are_a_message_of_their_own(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(
        searches("pager").model_copy(update={"text": ("Let me", " look."), "reasoning": ("Hm.",)}),
        Reply(reasoning=("Ah.",), text=("Soon [1].",)),
    )
    async with ann.responses.stream(model="fake-model", input="How soon?", tools=[handbook.tool]) as stream:
        final = await stream.get_final_response()
    assert final.output_text == "Let me look.Soon [1]."
    kinds = [item["type"] for item in wire.newest.events[-1]["response"]["output"]]
    assert kinds == ["reasoning", "message", "file_search_call", "reasoning", "message"]
    note = wire.newest.events[-1]["response"]["output"][-1]["content"][0]["annotations"][0]
    assert note["index"] == len("Soon ")
    called = messages_of((await model.requests())[1])[-3]
    assert called["content"] == "Let me look."


async def test_cancelling_during_a_search_leaves_no_open_item(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(searches("pager"), Reply(text=("Soon", " [1]", "."), hold_after=1))
    begun = await ann.responses.create(input="How soon?", tools=[handbook.tool], background=True)
    await model.wait_held()
    for _ in range(WAITS):
        if (await ann.responses.retrieve(begun.id)).output:
            break
        await asyncio.sleep(0.05)
    await ann.responses.cancel(begun.id)
    assert wire.newest.json["output"][0]["status"] == "completed"
    after = await ann.responses.create(input="Again?", previous_response_id=begun.id)
    assert after.status == "completed"
    sent = messages_of((await model.requests())[-1])
    calls = [call["id"] for message in sent for call in message.get("tool_calls", ())]
    assert calls == [message["tool_call_id"] for message in sent if message["role"] == "tool"]


async def test_the_caller_says_how_many_results_they_want(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    await model.script(searches("locker code pager"), Reply(text=("Nine [1].",)))
    tool: FileSearchToolParam = {**handbook.tool, "max_num_results": 1}
    await ann.responses.create(input="b", tools=[tool], include=RESULTS)
    assert wire.newest.json["tools"] == [tool]
    [best] = wire.newest.json["output"][0]["results"]
    assert best["filename"] == "lockers.md"
    assert list(numbered(tool_texts((await model.requests())[1])[0])) == ["lockers.md"]


async def test_the_caller_says_how_good_results_must_be(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, handbook: Base
) -> None:
    async def scores(threshold: float) -> list[float]:
        await model.script(searches("locker code pager"), Reply(text=("Nine.",)))
        tool: FileSearchToolParam = {**handbook.tool, "ranking_options": {"score_threshold": threshold}}
        await ann.responses.create(input="b", tools=[tool], include=RESULTS)
        assert wire.newest.json["tools"][0]["ranking_options"]["score_threshold"] == threshold
        return [result["score"] for result in wire.newest.json["output"][0]["results"]]

    all_scores = await scores(0.000_001)
    assert len(all_scores) > 1
    assert all(0 < score < 1 for score in all_scores)
    assert await scores(all_scores[0]) == all_scores[:1]
    assert await scores(1.0) == []
