"""Flows of the official client over Responses and what belongs to it."""

import json

from flow_kit import (
    CODE_WORD,
    FILE_SEARCH,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG_URL,
    TOO_LARGE,
    TWO_ROUNDS,
    WEATHER_SCHEMA,
    check,
    check_turn,
    flow,
    get_weather,
    questions,
    refused,
    run,
)
from openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from pydantic import BaseModel

client = OpenAI(max_retries=0)
WEATHER = {"type": "function", "name": "get_weather", "parameters": WEATHER_SCHEMA, "strict": True}

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/s"}
PATCH = {"type": "custom", "name": "patch", "description": "Patches a file.", "format": GRAMMAR}


class Person(BaseModel):
    """What a structured answer holds."""

    name: str
    age: int


class GetWeather(BaseModel):
    """A function whose arguments are parsed."""

    city: str


def citations(response) -> list[str]:
    """Return the names of the documents that a response cites."""
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    return [note.filename for part in parts for note in part.annotations if note.type == "file_citation"]


@flow("plain", "responses")
def plain():
    """One turn, and what its object holds."""
    response = client.responses.create(model=MODEL, input="Hello there")
    check_turn(1, response.output_text)
    check(response.status == "completed" and response.usage.total_tokens > 0, response)


@flow("plain", "responses async")
async def plain_async():
    """The asynchronous client."""
    async with AsyncOpenAI(max_retries=0) as other:
        check_turn(1, (await other.responses.create(model=MODEL, input="Hello async")).output_text)


@flow("plain", "responses raw response")
def raw():
    """Headers beside the parsed body."""
    answer = client.responses.with_raw_response.create(model=MODEL, input="Hello raw")
    check(answer.headers["x-ballast-response-id"] == answer.parse().id, dict(answer.headers))
    check(answer.headers["x-request-id"], dict(answer.headers))


@flow("plain", "responses instructions and developer")
def instructions():
    """Instructions, and a developer message in the list."""
    asked = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hello developer"}]
    response = client.responses.create(model=MODEL, instructions="Be kind.", input=asked)
    check_turn(1, response.output_text)


@flow("plain", "models")
def models():
    """The list of models, and one of them."""
    check(MODEL in [model.id for model in client.models.list()])
    check(client.models.retrieve(MODEL).id == MODEL)


@flow("streamed", "responses stream=True")
def streamed():
    """Bare events."""
    events = list(client.responses.create(model=MODEL, input="Hello stream", stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    check_turn(1, text)
    check(events[0].type == "response.created" and events[-1].type == "response.completed", events[-1])
    check(events[-1].response.output_text == text, text)


@flow("streamed", "responses.stream")
def collected_stream():
    """The helper that collects."""
    with client.responses.stream(model=MODEL, input="Hello helper") as events:
        kinds = [event.type for event in events]
        final = events.get_final_response()
    check("response.output_text.delta" in kinds, kinds)
    check_turn(1, final.output_text)


@flow("streamed", "responses.stream async")
async def stream_async():
    """The asynchronous helper."""
    other = AsyncOpenAI(max_retries=0)
    async with other, other.responses.stream(model=MODEL, input="Hello async helper") as events:
        async for _ in events:
            pass
        check_turn(1, (await events.get_final_response()).output_text)


@flow("streamed", "replay of a response")
def replay():
    """The events of an earlier response again."""
    response = client.responses.create(model=MODEL, input="Hello replay")
    events = list(client.responses.retrieve(response.id, stream=True))
    check(events[-1].type == "response.completed", events[-1:])


@flow("streamed", "functions, responses.stream")
def stream_tools():
    """Arguments of a call, piece by piece."""
    with client.responses.stream(model=MODEL, input=PARALLEL, tools=[WEATHER]) as events:
        kinds = [event.type for event in events]
        final = events.get_final_response()
    check("response.function_call_arguments.delta" in kinds, kinds)
    check([json.loads(item.arguments)["city"] for item in final.output] == ["Paris", "Rome"], final.output)


@flow("structured", "responses.parse")
def parsed():
    """A pydantic class as the form of the answer."""
    response = client.responses.parse(model=MODEL, input="Who wrote the first program?", text_format=Person)
    check(isinstance(response.output_parsed, Person), response)


@flow("structured", "responses.stream with text_format")
def parsed_stream():
    """The same, streamed."""
    with client.responses.stream(model=MODEL, input="Who, streamed?", text_format=Person) as events:
        for _ in events:
            pass
        check(isinstance(events.get_final_response().output_parsed, Person))


@flow("structured", "responses json_object")
def json_object():
    """Any JSON object."""
    response = client.responses.create(model=MODEL, input="JSON please", text={"format": {"type": "json_object"}})
    check(json.loads(response.output_text)["name"], response.output_text)


def outputs_of(response) -> list:
    """Run the calls of a response and return their outputs as items."""
    calls = [item for item in response.output if item.type == "function_call"]
    return [
        {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": get_weather(**json.loads(call.arguments)),
        }
        for call in calls
    ]


@flow("tools", "responses, previous_response_id, two rounds")
def tool_loop():
    """A loop that names the response before."""
    response = client.responses.create(model=MODEL, input=TWO_ROUNDS, tools=[WEATHER])
    rounds = 0
    while outputs := outputs_of(response):
        rounds += 1
        response = client.responses.create(
            model=MODEL, input=outputs, previous_response_id=response.id, tools=[WEATHER]
        )
    check(rounds == 2 and "sun in Rome" in response.output_text, rounds, response.output_text)


@flow("tools", "responses, resent items, parallel, then a second turn")
def tool_loop_resent():
    """A loop that sends all items again, as the client's own examples do."""
    items = [{"role": "user", "content": PARALLEL}]
    response = client.responses.create(model=MODEL, input=items, tools=[WEATHER], parallel_tool_calls=True)
    items += [*response.output, *outputs_of(response)]
    response = client.responses.create(model=MODEL, input=items, tools=[WEATHER])
    check("rain in Paris" in response.output_text and "sun in Rome" in response.output_text, response.output_text)
    items += [*(item.to_dict() for item in response.output), {"role": "user", "content": "Thank you"}]
    check_turn(2, client.responses.create(model=MODEL, input=items, tools=[WEATHER]).output_text)


@flow("tools", "responses.parse with pydantic_function_tool")
def parsed_tool():
    """Arguments as an object."""
    tool = pydantic_function_tool(GetWeather, name="get_weather")
    flat = {"type": "function", **tool["function"]}
    response = client.responses.parse(model=MODEL, input=PARALLEL, tools=[flat])
    check(json.loads(response.output[0].arguments) == {"city": "Paris"}, response.output)


@flow("tools", "responses tool_choice of a function")
def forced_tool():
    """A call that the request demands."""
    choice = {"type": "function", "name": "get_weather"}
    response = client.responses.create(model=MODEL, input="Anything", tools=[WEATHER], tool_choice=choice)
    check(response.output[0].name == "get_weather", response.output)


@flow("tools", "responses custom tool, streamed, resent, then named by tool_choice")
def custom_tool():
    """A tool whose input is text: its pieces, its result, and a call that the request demands."""
    items = [{"role": "user", "content": 'Use patch({"input": "first\\nsecond"}).'}]
    with client.responses.stream(model=MODEL, input=items, tools=[PATCH]) as events:
        pieces = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
        response = events.get_final_response()
    call = response.output[-1]
    check(call.type == "custom_tool_call" and call.input == "".join(pieces) == "first\nsecond", response.output)
    result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "The patch is applied."}
    items += [*(item.to_dict() for item in response.output), result]
    response = client.responses.create(model=MODEL, input=items, tools=[PATCH])
    check("The patch is applied." in response.output_text, response.output_text)
    choice = {"type": "custom", "name": "patch"}
    response = client.responses.create(model=MODEL, input="Anything to patch", tools=[PATCH], tool_choice=choice)
    check(response.output[-1].type == "custom_tool_call" and response.tools[0].format.syntax == "lark", response)


@flow("knowledge", "responses file_search")
def knowledge():
    """A search, its results and the citation."""
    response = client.responses.create(
        model=MODEL, input=KNOWLEDGE_QUESTION, tools=[FILE_SEARCH], include=["file_search_call.results"]
    )
    check(CODE_WORD in response.output_text and citations(response) == ["handbook.md"], response.output)
    searches = [item for item in response.output if item.type == "file_search_call"]
    check(searches and searches[0].results[0].filename == "handbook.md", response.output)


@flow("knowledge", "responses.stream file_search")
def knowledge_streamed():
    """The same as events."""
    with client.responses.stream(model=MODEL, input=KNOWLEDGE_QUESTION, tools=[FILE_SEARCH]) as events:
        kinds = {event.type for event in events}
        final = events.get_final_response()
    check({"response.file_search_call.searching", "response.output_text.annotation.added"} <= kinds, kinds)
    check(citations(final) == ["handbook.md"], final.output)


@flow("knowledge", "file_search beside functions")
def knowledge_and_tools():
    """A base and a function of one's own in one turn."""
    both = [FILE_SEARCH, WEATHER]
    response = client.responses.create(model=MODEL, input=PARALLEL, tools=both)
    response = client.responses.create(
        model=MODEL, input=outputs_of(response), previous_response_id=response.id, tools=both
    )
    check("sun in Rome" in response.output_text, response.output_text)
    again = client.responses.create(model=MODEL, input=KNOWLEDGE_QUESTION, previous_response_id=response.id, tools=both)
    check(citations(again) == ["handbook.md"], again.output)


@flow("history", "responses items")
def history():
    """Five turns, all items sent each time."""
    items = []
    for number, question in enumerate(questions("responses items"), 1):
        items.append({"role": "user", "content": question})
        response = client.responses.create(model=MODEL, input=items)
        check_turn(number, response.output_text)
        items += response.output


@flow("history", "responses easy messages with file_search")
def history_knowledge():
    """Five turns as role and text, with a base bound."""
    items = []
    for question in questions("responses easy messages with file_search"):
        items.append({"role": "user", "content": question})
        response = client.responses.create(model=MODEL, input=items, tools=[FILE_SEARCH])
        items.append({"role": "assistant", "content": response.output_text})


@flow("state", "previous_response_id over five turns")
def previous_response():
    """The server keeps the history."""
    previous = None
    for number in range(1, 6):
        response = client.responses.create(model=MODEL, input=f"Turn of mine {number}", previous_response_id=previous)
        check_turn(number, response.output_text)
        previous = response.id
    listed = client.responses.input_items.list(previous, order="asc", limit=100)
    check(listed.data, listed)


@flow("state", "conversations")
def conversations():
    """A conversation, its items, and a turn on it."""
    conversation = client.conversations.create(metadata={"topic": "tests"}, items=[{"role": "user", "content": "Hi"}])
    response = client.responses.create(model=MODEL, input="Now you", conversation=conversation.id)
    check_turn(2, response.output_text)
    items = list(client.conversations.items.list(conversation.id, order="asc"))
    check(len(items) == 3, items)
    check(client.conversations.items.retrieve(items[0].id, conversation_id=conversation.id).id == items[0].id)
    client.conversations.update(conversation.id, metadata={"topic": "more"})
    check(client.conversations.retrieve(conversation.id).metadata["topic"] == "more")
    check(client.conversations.delete(conversation.id).deleted)


@flow("state", "conversations.items.delete of the last item")
def pop_item():
    """What sessions do to take back the last item."""
    conversation = client.conversations.create(items=[{"role": "user", "content": "Hi"}])
    item = next(iter(client.conversations.items.list(conversation.id)))
    client.conversations.items.delete(item.id, conversation_id=conversation.id)
    check(list(client.conversations.items.list(conversation.id)) == [])


@flow("state", "item_reference")
def item_reference():
    """Items named by their ids."""
    first = client.responses.create(model=MODEL, input="Remember me")
    asked = [{"role": "user", "content": "Remember me"}, {"type": "item_reference", "id": first.output[0].id}]
    response = client.responses.create(model=MODEL, input=[*asked, {"role": "user", "content": "Who am I?"}])
    check_turn(2, response.output_text)


@flow("state", "background, retrieve, cancel, delete")
def background():
    """A response that is looked at later."""
    response = client.responses.create(model=MODEL, input="Later", background=True)
    with client.responses.stream(response_id=response.id) as events:
        for _ in events:
            pass
    check(client.responses.retrieve(response.id).status == "completed")
    check(client.responses.cancel(response.id).status == "completed")
    client.responses.delete(response.id)
    with refused(response.id):
        client.responses.retrieve(response.id)


@flow("state", "responses.input_tokens.count")
def input_tokens():
    """How many tokens a request has."""
    check(client.responses.input_tokens.count(model=MODEL, input="Count me").input_tokens > 0)


@flow("state", "store=False")
def unstored():
    """Nothing is kept."""
    response = client.responses.create(model=MODEL, input="Forget me", store=False)
    with refused(response.id):
        client.responses.retrieve(response.id)


@flow("images", "responses input_image")
def image():
    """An image beside a text."""
    parts = [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PNG_URL}]
    response = client.responses.create(model=MODEL, input=[{"role": "user", "content": parts}])
    check("I see 1 image" in response.output_text, response.output_text)


@flow("errors", "responses unknown model")
def unknown_model():
    """The message lists those that there are."""
    with refused("no-such-model", MODEL):
        client.responses.create(model="no-such-model", input="x")


@flow("errors", "wrong key")
def wrong_key():
    """A key that is none."""
    with refused("401", "key"):
        OpenAI(api_key="sk-wrong", max_retries=0).responses.create(model=MODEL, input="x")


@flow("errors", "too large")
def too_large():
    """A body beyond the limit."""
    with refused("413", "33554432"):
        client.responses.create(model=MODEL, input=TOO_LARGE)


@flow("errors", "responses unsupported tool, part, field")
def unsupported():
    """A tool that nobody runs is passed over and named; else the field's name is in the message."""
    answer = client.responses.create(model=MODEL, input="x", tools=[{"type": "web_search"}])
    check(answer.metadata["ballast_ignored"] == "tools[0]", answer.metadata)
    with refused("input[0].content[0]", "input_audio"):
        client.responses.create(model=MODEL, input=[{"role": "user", "content": [{"type": "input_audio"}]}])
    with refused("input", "no message to answer"):
        client.responses.create(model=MODEL, input=[{"type": "foo"}])
    with refused("seed"):
        client.responses.create(model=MODEL, input="x", extra_body={"seed": "x"})
    with refused("prompt"):
        client.responses.create(model=MODEL, prompt={"id": "pmpt_1"})
    with refused("temperature"):
        client.responses.create(model=MODEL, input="x", temperature=9)


@flow("errors", "unknown ids and addresses")
def unknown_ids():
    """404 with what was not found."""
    with refused("404", "resp_no"):
        client.responses.retrieve("resp_no")
    with refused("404", "resp_no"):
        client.responses.create(model=MODEL, input="x", previous_response_id="resp_no")
    with refused("404", "kb_no"):
        client.responses.create(model=MODEL, input="x", tools=[{"type": "file_search", "vector_store_ids": ["kb_no"]}])
    with refused("404", "embeddings"):
        client.embeddings.create(model="text-embedding-3-small", input="x")
    with refused("404", "images"):
        client.images.generate(prompt="x")
    with refused("404", "completions"):
        client.completions.create(model=MODEL, prompt="x")


@flow("options", "responses metadata, user, limits, reasoning, cache key")
def options():
    """Fields that are taken and given back."""
    response = client.responses.create(
        model=MODEL,
        input="Think: about options",
        metadata={"ticket": "7"},
        user="u-1",
        safety_identifier="s-1",
        prompt_cache_key="k-1",
        max_output_tokens=500,
        temperature=0.5,
        top_p=0.9,
        reasoning={"effort": "low", "summary": "auto"},
        truncation="auto",
        service_tier="auto",
        store=True,
        include=["reasoning.encrypted_content"],
        extra_headers={"X-Anything": "1"},
    )
    check(response.metadata == {"ticket": "7"} and response.max_output_tokens == 500, response)
    check_turn(1, response.output_text)


run()
