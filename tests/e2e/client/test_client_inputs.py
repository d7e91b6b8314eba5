"""What goes in: texts, lists, images, instructions."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.e2e.client.knowledge_bases import messages_of
from tests.e2e.client.wire import Wire
from tests.fakes.model_server import FakeModelControl, Reply

PIXEL = "data:image/png;base64,iVBORw0KGgo="
ADDRESS = "https://pictures.example/cat.png"


def image(url: str, **detail: str) -> Any:
    """A part with an image."""
    return {"type": "input_image", "image_url": url, **detail}


async def test_images_by_address_and_inline(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    content = [
        {"type": "input_text", "text": "Which is a cat?"},
        image(ADDRESS, detail="high"),
        image(PIXEL, detail="low"),
        image(PIXEL),
    ]
    question: Any = [{"role": "user", "content": content}]
    response = await ann.responses.create(input=question)
    sent = messages_of((await model.requests())[0])[-1]["content"]
    assert sent[0] == {"type": "text", "text": "Which is a cat?"}
    assert [(part["image_url"]["url"], part["image_url"]["detail"]) for part in sent[1:4]] == [
        (ADDRESS, "high"),
        (PIXEL, "low"),
        (PIXEL, "auto"),
    ]
    assert sent[-1]["type"] == "text"
    assert sent[-1]["text"].startswith("\n\n<time>")
    await ann.responses.input_items.list(response.id)
    shown = wire.newest.json["data"][0]["content"]
    assert shown == [*content[:3], image(PIXEL, detail="auto")]


async def test_an_image_stays_in_the_history(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    question: Any = [{"role": "user", "content": [image(PIXEL, detail="low")]}]
    first = await ann.responses.create(input=question)
    await ann.responses.create(input="And now?", previous_response_id=first.id)
    one, two = await model.requests()
    assert messages_of(two)[: len(messages_of(one))] == messages_of(one)


@pytest.mark.parametrize(
    ("part", "param"),
    [
        ({"type": "input_image", "image_url": "ftp://x/y"}, "image_url"),
        ({"type": "input_image", "image_url": "data:text/html;base64,AAAA"}, "image_url"),
        ({"type": "input_image", "image_url": PIXEL, "detail": "huge"}, "detail"),
        ({"type": "input_image", "file_id": "file_1"}, None),
        ({"type": "input_file", "file_id": "file_1"}, "file_id"),
        ({"type": "input_file", "file_url": "https://x/y.pdf"}, "file_url"),
        ({"type": "input_text"}, "text"),
    ],
)
async def test_parts_that_are_not_taken_are_named(ann: AsyncOpenAI, part: Any, param: str | None) -> None:
    question: Any = [{"role": "user", "content": [{"type": "input_text", "text": "x"}, part]}]
    with pytest.raises(openai.BadRequestError) as caught:
        await ann.responses.create(input=question)
    named = caught.value.param or ""
    assert named.startswith("input[0].content[1]")
    assert param is None or named.endswith(param)


async def test_everything_before_the_last_message_is_history(
    ann: AsyncOpenAI, wire: Wire, model: FakeModelControl
) -> None:
    given: Any = [
        {"role": "developer", "content": "Be kind."},
        {"role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": "Never said here"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Nor answered", "annotations": []}],
        },
        {"role": "user", "content": "b"},
    ]
    response = await ann.responses.create(input=given, instructions="Be honest.")
    system, *sent = messages_of((await model.requests())[0])
    assert system["content"].startswith("Be honest.\n\nBe kind.\n\nBe brief.")
    assert [(message["role"], message["content"].partition("\n")[0]) for message in sent] == [
        ("user", "Never said here"),
        ("assistant", "Nor answered"),
        ("user", "b"),
    ]
    assert "<time>" not in sent[0]["content"]
    assert "<time>" in sent[2]["content"]
    await ann.responses.input_items.list(response.id, order="asc")
    assert [item["role"] for item in wire.newest.json["data"]] == ["developer", "system", "user", "assistant", "user"]
    assert b"<time>" not in wire.newest.body


async def test_an_instruction_inside_the_history_is_sent_where_it_stands(
    ann: AsyncOpenAI, model: FakeModelControl
) -> None:
    given: Any = [
        {"role": "user", "content": "Begun elsewhere"},
        {"role": "system", "content": "Be brief from here on."},
        {"role": "user", "content": "c"},
    ]
    await ann.responses.create(input=given)
    _, *sent = messages_of((await model.requests())[0])
    assert [message["role"] for message in sent] == ["user", "system", "user"]
    assert sent[1]["content"] == "Be brief from here on."


async def test_an_instruction_may_stand_last(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await ann.responses.create(input=[{"role": "user", "content": "a"}, {"role": "system", "content": "b"}])
    _, *sent = messages_of((await model.requests())[-1])
    assert [message["role"] for message in sent] == ["user", "system"]


async def test_instructions_stay_until_others_are_given(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    first = await ann.responses.create(input="a", instructions="Be kind.")
    assert wire.newest.json["instructions"] == "Be kind."
    second = await ann.responses.create(input="b", previous_response_id=first.id)
    assert wire.newest.json["instructions"] == "Be kind."
    third = await ann.responses.create(input="c", previous_response_id=second.id, instructions="Be brief.")
    assert wire.newest.json["instructions"] == "Be brief."
    fourth = await ann.responses.create(input="d", previous_response_id=third.id)
    await ann.responses.create(input="e", previous_response_id=fourth.id, instructions="")
    assert wire.newest.json["instructions"] is None
    systems = [messages_of(request)[0]["content"] for request in await model.requests()]
    assert systems[0] == systems[1]
    assert systems[2] == systems[3]
    assert [text.partition("\n")[0] for text in systems[::2]] == ["Be kind.", "Be brief.", "# Knowledge bases"]
    assert all(len(messages_of(request)) == 2 + 2 * place for place, request in enumerate(await model.requests()))


async def test_the_answer_can_be_resent_as_it_came(ann: AsyncOpenAI, model: FakeModelControl) -> None:
    await model.script(Reply(reasoning=("Hm.",), text=("A",)), Reply(text=("B",)))
    asked: list[Any] = [{"role": "user", "content": "a"}]
    first = await ann.responses.create(input=asked)
    history: list[Any] = [*asked, *(item.model_dump() for item in first.output), {"role": "user", "content": "b"}]
    second = await ann.responses.create(input=history, store=False)
    assert second.output_text == "B"
    sent = messages_of((await model.requests())[1])
    assert [message["role"] for message in sent[1:]] == ["user", "assistant", "user"]


async def test_texts_of_all_kinds_come_through(ann: AsyncOpenAI, wire: Wire, model: FakeModelControl) -> None:
    text = 'múltiple\u2028línea\n😀 "quoted" \\ <b> \u0007 中文 data: [DONE]\n\nevent: x'
    await model.script(Reply(text=tuple(text)))
    stream = await ann.responses.create(input=text, stream=True)
    heard = "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])
    assert heard == text
    assert messages_of((await model.requests())[0])[-1]["content"].startswith(text)
    await ann.responses.input_items.list(wire.newest.events[0]["response"]["id"])
    assert wire.newest.texts == [text]
