"""Chat completions by the official client: whole, streamed, parsed, with functions, knowledge, images and faults."""

from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from tests.e2e.client.knowledge_bases import messages_of, new_base, searches, tool_texts, usage
from tests.e2e.client.wire import Wire
from tests.e2e.pair import MODEL, Pair
from tests.fakes.model_server import FakeModelControl, Fault, Reply, ScriptedCall

HI: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
IMAGE = "data:image/png;base64,iVBORw0KGgo="
ID = "x-ballast-response-id"


class Colour(BaseModel):
    name: str


async def completed(client: Any, **fields: Any) -> ChatCompletion:
    return await client.chat.completions.create(**{"model": MODEL, "messages": HI, **fields})


async def streamed(client: Any, **fields: Any) -> list[ChatCompletionChunk]:
    stream = await client.chat.completions.create(**{"model": MODEL, "messages": HI, "stream": True, **fields})
    return [chunk async for chunk in stream]


async def test_whole_streamed_and_parsed(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    figures = usage(prompt=90, cached=60, completion=7, reasoning=3)
    thoughtful = Reply(reasoning=("Hm.",), text=("Hel", "lo"), usage=figures)
    await model.script(thoughtful, thoughtful, thoughtful, Reply(text=('{"name": "red"}',)))
    options: Any = {"seed": 5, "stop": ["END"], "max_completion_tokens": 9, "temperature": 0.5}
    whole = await completed(ann, **options)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Hello", "stop")
    assert wire.newest.json["choices"][0]["message"]["reasoning_content"] == "Hm."
    assert whole.usage is not None
    assert whole.usage.prompt_tokens_details is not None
    assert (whole.usage.total_tokens, whole.usage.prompt_tokens_details.cached_tokens) == (97, 60)
    stored = await ann.responses.retrieve(wire.newest.headers[ID])
    assert (stored.id, stored.output_text, stored.instructions) == (whole.id, "Hello", "Be kind.")

    told: Any = {"include_usage": True}
    chunks = await streamed(ann, stream_options=told)
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == "Hello"
    assert (chunks[-1].choices, chunks[-1].usage) == ([], whole.usage)
    assert wire.newest.headers[ID] == chunks[0].id

    async with ann.chat.completions.stream(model=MODEL, messages=HI) as events:
        assert [event.delta async for event in events if event.type == "content.delta"]
        assert (await events.get_final_completion()).choices[0].message.content == "Hello"
    parsed = await ann.chat.completions.parse(model=MODEL, messages=HI, response_format=Colour)
    assert parsed.choices[0].message.parsed == Colour(name="red")

    first, *_, shaped = await model.requests()
    sent = first.json_body
    assert (sent["seed"], sent["stop"], sent["max_tokens"], sent["temperature"]) == (5, ["END"], 9, 0.5)
    assert messages_of(first)[0]["content"].startswith("Be kind.")
    assert shaped.json_body["response_format"]["json_schema"]["name"] == "Colour"


async def test_functions_go_out_and_come_back_in_the_history(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    calls = tuple(ScriptedCall(name="weather", arguments="{}", call_id=f"call_{city}") for city in ("rome", "oslo"))
    await model.script(Reply(text=("Look.",), tool_calls=calls), Reply(text=("Sun and snow.",)))
    async with ann.chat.completions.stream(model=MODEL, messages=HI, tools=[WEATHER]) as events:
        said = (await events.get_final_completion()).choices[0]
    assert (said.finish_reason, said.message.content) == ("tool_calls", "Look.")
    answers: Any = [
        {"role": "tool", "tool_call_id": call.id, "content": call.id} for call in said.message.tool_calls or ()
    ]
    resent: Any = [*HI, said.message.model_dump(), *answers]
    second = await completed(ann, messages=resent, tools=[WEATHER])
    assert second.choices[0].message.content == "Sun and snow."
    sent = messages_of((await model.requests())[1])
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool"]
    assert tool_texts((await model.requests())[1]) == ["call_rome", "call_oslo"]


async def test_knowledge_is_searched_here_and_cited_by_its_address(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl, pair: Pair
) -> None:
    base = new_base(pair, "skies", {"on call.md": "The pager rings for nineteen minutes."})
    search = searches("pager").model_copy(update={"text": ("Let me look.",)})
    await model.script(search, Reply(text=("Nineteen [", "1]", ".")), search, Reply(text=("Nineteen [1].",)))
    whole = (await completed(ann, tools=[base.tool])).choices[0]
    assert (whole.finish_reason, whole.message.tool_calls) == ("stop", None)
    text = whole.message.content or ""
    assert text == "Let me look.\n\nNineteen [1]."
    assert whole.message.annotations is not None
    [noted] = whole.message.annotations
    citation = noted.url_citation
    assert (citation.title, text[citation.start_index : citation.end_index]) == ("on call.md", "[1]")
    document = httpx2.get(citation.url, headers={"Authorization": f"Bearer {pair.key('ann')}"}, verify=False)
    assert (document.status_code, document.text) == (200, "The pager rings for nineteen minutes.")

    chunks = await streamed(ann, tools=[base.tool])
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == text
    assert not any(delta.tool_calls for delta in deltas)
    [annotations] = [delta.to_dict()["annotations"] for delta in deltas if "annotations" in delta.to_dict()]
    assert annotations == wire.exchanges[-2].json["choices"][0]["message"]["annotations"]


async def test_images_reach_the_model(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    part: Any = {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}
    messages: Any = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}]
    await completed(ann, messages=messages)
    [sent] = await model.requests()
    assert messages_of(sent)[-1]["content"][1] == part


async def test_refusals_cuts_and_failures(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    await model.script(
        Reply(refusal=("I will ", "not.")),
        Reply(text=("Half",), finish_reason="length"),
        Reply(text=("Half",), finish_reason="content_filter"),
        Reply(text=("Half",), fault=Fault.CUT),
        Reply(status=429, body='{"error": {"message": "slow"}}', repeat=True),
    )
    refused = (await completed(ann)).choices[0].message
    assert (refused.content, refused.refusal) == (None, "I will not.")
    assert (await completed(ann)).choices[0].finish_reason == "length"
    assert [chunk.choices[0].finish_reason for chunk in await streamed(ann)][-1] == "content_filter"
    heard = ""
    with pytest.raises(openai.APIError):
        async for chunk in await ann.chat.completions.create(model=MODEL, messages=HI, stream=True):
            heard += chunk.choices[0].delta.content or ""
    assert heard == "Half"
    stored = await ann.responses.retrieve(wire.exchanges[-1].headers[ID])
    assert (stored.status, stored.output_text) == ("failed", "Half")
    with pytest.raises(openai.RateLimitError) as limited:
        await completed(ann)
    assert limited.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(openai.BadRequestError) as caught:
        await completed(ann, functions=[{"name": "f"}])
    assert caught.value.param == "functions"


async def test_the_synchronous_client_and_a_turn_that_is_not_stored(pair: Pair, model: FakeModelControl) -> None:
    await model.script(Reply(text=("Hel", "lo")), Reply(text=("Hel", "lo")))
    with pair.client("ann") as client:
        said = client.chat.completions.create(model=MODEL, messages=HI, store=False)
        assert said.choices[0].message.content == "Hello"
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(said.id)
        stream = client.chat.completions.create(model=MODEL, messages=HI, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello"
