"""Flows of the official client: streams taken up again, raw bodies, pages, settings of the client."""

import json

from flow_kit import MODEL, ONE_ROUND, check, flow, run
from openai import OpenAI, pydantic_function_tool
from pydantic import BaseModel

client = OpenAI(max_retries=0)


class Weather(BaseModel):
    """The weather of a city."""

    city: str


WEATHER = pydantic_function_tool(Weather, name="get_weather")


@flow("streamed", "responses.stream, taken up again by response_id and starting_after")
def taken_up():
    """The second stream begins where the first one is said to have ended; both parse the arguments."""
    with client.responses.stream(model=MODEL, input=ONE_ROUND, tools=[WEATHER]) as events:
        seen = list(events)
        response = events.get_final_response()
    check(next(item for item in response.output if item.type == "function_call").parsed_arguments.city == "Paris")
    with client.responses.stream(response_id=response.id, starting_after=2) as events:
        rest = [event.sequence_number for event in events]
    check(rest == [event.sequence_number for event in seen][3:], rest)


@flow("streamed", "with_streaming_response in both APIs")
def raw_streams():
    """Lines as they come, and a whole body."""
    with client.responses.with_streaming_response.create(model=MODEL, input="Hi", stream=True) as answer:
        check(answer.headers["content-type"].startswith("text/event-stream"))
        check([line for line in answer.iter_lines() if line][-1] == "data: [DONE]")
    said = [{"role": "user", "content": "Hi"}]
    with client.chat.completions.with_streaming_response.create(model=MODEL, messages=said) as answer:
        check(json.loads("".join(answer.iter_text()))["object"] == "chat.completion")


@flow("tools", "chat.completions.parse, its message sent back, tool_choice none")
def parsed_message():
    """What the helper adds to a message does no harm when it is sent."""
    said = [{"role": "user", "content": ONE_ROUND}]
    message = client.chat.completions.parse(model=MODEL, messages=said, tools=[WEATHER]).choices[0].message
    call = message.tool_calls[0]
    check(call.function.parsed_arguments.city == "Paris", call)
    result = {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": "rain in Paris"}]}
    second = client.chat.completions.parse(model=MODEL, messages=[*said, message, result], tools=[WEATHER])
    check("rain in Paris" in second.choices[0].message.content, second)
    none = client.chat.completions.create(model=MODEL, messages=said, tools=[WEATHER], tool_choice="none")
    check(none.choices[0].message.content and not none.choices[0].message.tool_calls, none)


@flow("state", "input_items and conversation items, page by page in both orders")
def pages():
    """The client asks for the next page by itself."""
    roles = ("user", "assistant")
    given = [{"role": roles[number % 2], "content": f"said {number}"} for number in range(5)]
    response = client.responses.create(model=MODEL, input=given)
    items = list(client.responses.input_items.list(response.id, limit=2, order="asc"))
    check([item.content[0].text for item in items] == [each["content"] for each in given], items)
    backwards = list(client.responses.input_items.list(response.id, limit=3))
    check([item.id for item in backwards] == [item.id for item in reversed(items)], backwards)
    conversation = client.conversations.create(items=given[:3])
    client.responses.create(model=MODEL, input="More", conversation=conversation.id)
    check(len(list(client.conversations.items.list(conversation.id, limit=2, order="asc"))) == 5)


@flow("options", "organization, project, headers and query of the client")
def client_settings():
    """What gateways and companies add to every request is passed over."""
    added = OpenAI(
        organization="org", project="p", default_headers={"X-A": "1"}, default_query={"v": "1"}, max_retries=0
    )
    check(added.responses.create(model=MODEL, input="Hi", extra_headers={"X-B": "1"}).output_text)
    completion = added.with_options(timeout=20).chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Hi"}]
    )
    check(completion.choices)


run()
