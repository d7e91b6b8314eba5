"""Flows of the official client over Chat Completions."""

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
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA}}


class Person(BaseModel):
    """What a structured answer holds."""

    name: str
    age: int


class GetWeather(BaseModel):
    """A function whose arguments are parsed."""

    city: str


def user(text: object) -> dict:
    """Return a message of the user."""
    return {"role": "user", "content": text}


def say(messages: list, **options):
    """Ask for a completion and return its message."""
    return client.chat.completions.create(model=MODEL, messages=messages, **options).choices[0].message


@flow("plain", "chat")
def plain():
    """One completion and what it holds."""
    completion = client.chat.completions.create(model=MODEL, messages=[user("Hello there, chat")])
    check_turn(1, completion.choices[0].message.content)
    check(completion.choices[0].finish_reason == "stop" and completion.usage.total_tokens > 0, completion)


@flow("plain", "chat async, raw")
async def plain_async():
    """The asynchronous client, and the header that names the response."""
    async with AsyncOpenAI(max_retries=0) as other:
        raw = await other.chat.completions.with_raw_response.create(model=MODEL, messages=[user("Hello async chat")])
    check_turn(1, raw.parse().choices[0].message.content)
    stored = client.responses.retrieve(raw.headers["x-ballast-response-id"])
    check_turn(1, stored.output_text)


@flow("plain", "chat system, developer, names, content parts")
def roles():
    """Every role that comes before an answer."""
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "name": "ann",
            "content": [{"type": "text", "text": "Hello "}, {"type": "text", "text": "parts"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]},
        {"role": "system", "content": "The user is in a hurry."},
        user("Go on"),
    ]
    check_turn(2, say(messages).content)


@flow("streamed", "chat stream=True, include_usage")
def streamed():
    """Bare chunks."""
    chunks = list(
        client.chat.completions.create(
            model=MODEL, messages=[user("Hello chunks")], stream=True, stream_options={"include_usage": True}
        )
    )
    check_turn(1, "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))
    check(chunks[-1].usage.total_tokens > 0 and not chunks[-1].choices, chunks[-1])
    check(chunks[0].choices[0].delta.role == "assistant", chunks[0])


@flow("streamed", "chat.completions.stream")
def collected_stream():
    """The helper that collects."""
    with client.chat.completions.stream(model=MODEL, messages=[user("Hello chat helper")]) as events:
        kinds = {event.type for event in events}
        final = events.get_final_completion()
    check({"content.delta", "content.done"} <= kinds, kinds)
    check_turn(1, final.choices[0].message.content)


@flow("streamed", "chat functions, chat.completions.stream")
def stream_tools():
    """Calls, piece by piece."""
    tool = pydantic_function_tool(GetWeather, name="get_weather")
    with client.chat.completions.stream(model=MODEL, messages=[user(PARALLEL)], tools=[tool]) as events:
        kinds = {event.type for event in events}
        calls = events.get_final_completion().choices[0].message.tool_calls
    check("tool_calls.function.arguments.delta" in kinds, kinds)
    check([call.function.parsed_arguments.city for call in calls] == ["Paris", "Rome"], calls)


@flow("structured", "chat.completions.parse")
def parsed():
    """A pydantic class as the form of the answer."""
    completion = client.chat.completions.parse(model=MODEL, messages=[user("Who, chat?")], response_format=Person)
    check(isinstance(completion.choices[0].message.parsed, Person), completion)


@flow("structured", "chat.completions.stream with response_format")
def parsed_stream():
    """The same, streamed."""
    with client.chat.completions.stream(model=MODEL, messages=[user("Who?")], response_format=Person) as events:
        for _ in events:
            pass
        check(isinstance(events.get_final_completion().choices[0].message.parsed, Person))


@flow("structured", "chat json_object")
def json_object():
    """Any JSON object."""
    message = say([user("JSON, chat")], response_format={"type": "json_object"})
    check(json.loads(message.content)["name"], message)


def outputs_of(message) -> list:
    """Run the calls of a message and return their outputs as messages."""
    return [
        {"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))}
        for call in message.tool_calls or []
    ]


@flow("tools", "chat, two rounds, then a second turn")
def tool_loop():
    """The loop of the client's own examples."""
    messages = [user(TWO_ROUNDS)]
    message = say(messages, tools=[WEATHER])
    rounds = 0
    while outputs := outputs_of(message):
        rounds += 1
        messages += [message, *outputs]
        message = say(messages, tools=[WEATHER])
    check(rounds == 2 and "sun in Rome" in message.content, rounds, message)
    messages += [message, user("Thank you")]
    check_turn(2, say(messages, tools=[WEATHER]).content)


@flow("tools", "chat parallel, streamed")
def tool_loop_streamed():
    """Calls gathered from chunks by hand."""
    asked = user(PARALLEL + " Streamed.")
    calls: dict[int, dict] = {}
    for chunk in client.chat.completions.create(model=MODEL, messages=[asked], tools=[WEATHER], stream=True):
        for piece in chunk.choices[0].delta.tool_calls or []:
            call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
            call["id"] += piece.id or ""
            call["name"] += piece.function.name or ""
            call["arguments"] += piece.function.arguments or ""
    made = [
        {"id": each["id"], "type": "function", "function": {"name": each["name"], "arguments": each["arguments"]}}
        for each in calls.values()
    ]
    results = [
        {"role": "tool", "tool_call_id": each["id"], "content": get_weather(**json.loads(each["arguments"]))}
        for each in calls.values()
    ]
    message = say([asked, {"role": "assistant", "content": None, "tool_calls": made}, *results], tools=[WEATHER])
    check("rain in Paris" in message.content and "sun in Rome" in message.content, message)


@flow("tools", "chat custom tool, streamed by hand, then resent")
def custom_tool():
    """A tool whose input is text; the client's types of chunks do not name it."""
    tool = {"type": "custom", "custom": {"name": "patch", "description": "Patches a file."}}
    asked = user('Use patch({"input": "one\\ntwo"}).')
    pieces = [
        piece.to_dict()
        for chunk in client.chat.completions.create(model=MODEL, messages=[asked], tools=[tool], stream=True)
        for piece in chunk.choices[0].delta.tool_calls or []
    ]
    check("".join(piece["custom"]["input"] for piece in pieces) == "one\ntwo" and pieces[0]["type"] == "custom", pieces)
    message = say([asked], tools=[tool])
    [call] = message.tool_calls
    check(call.custom.name == "patch" and call.custom.input == "one\ntwo", message)
    result = {"role": "tool", "tool_call_id": call.id, "content": "The patch is applied."}
    check("The patch is applied." in say([asked, message, result], tools=[tool]).content)


@flow("tools", "chat tool_choice")
def forced_tool():
    """A call that the request demands, and none where it forbids them."""
    choice = {"type": "function", "function": {"name": "get_weather"}}
    message = say([user("Anything, chat")], tools=[WEATHER], tool_choice=choice)
    check(message.tool_calls[0].function.name == "get_weather", message)
    check(say([user("Nothing, chat")], tools=[WEATHER], tool_choice="none").tool_calls is None)
    check(say([user("Something, chat")], tools=[WEATHER], tool_choice="required").tool_calls)


@flow("knowledge", "chat file_search")
def knowledge():
    """An annotation for the document cited."""
    message = say([user(KNOWLEDGE_QUESTION)], tools=[FILE_SEARCH])
    check(CODE_WORD in message.content and not message.tool_calls, message)
    check([note.url_citation.title for note in message.annotations] == ["handbook.md"], message)


@flow("knowledge", "chat file_search streamed")
def knowledge_streamed():
    """The annotations of the last chunk with a delta."""
    chunks = client.chat.completions.create(
        model=MODEL, messages=[user(KNOWLEDGE_QUESTION)], tools=[FILE_SEARCH], stream=True
    )
    notes = [note for chunk in chunks for note in chunk.choices[0].delta.to_dict().get("annotations", [])]
    check([note["url_citation"]["title"] for note in notes] == ["handbook.md"], notes)


@flow("history", "chat")
def history():
    """Five turns, all messages sent each time."""
    messages = [{"role": "system", "content": "Be kind."}]
    for number, question in enumerate(questions("chat"), 1):
        messages.append(user(question))
        message = say(messages)
        check_turn(number, message.content)
        messages.append(message)


@flow("history", "chat with knowledge and functions")
def history_tools():
    """Five turns with tools bound, as role and text."""
    messages = []
    for question in questions("chat with knowledge and functions"):
        messages.append(user(question))
        message = say(messages, tools=[FILE_SEARCH, WEATHER])
        messages.append({"role": "assistant", "content": message.content})


@flow("images", "chat image_url")
def image():
    """An image beside a text."""
    parts = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}}]
    message = say([user(parts)])
    check("I see 1 image" in message.content, message)


@flow("errors", "chat unknown model")
def unknown_model():
    """The message lists those that there are."""
    with refused("no-such-model", MODEL):
        client.chat.completions.create(model="no-such-model", messages=[user("x")])


@flow("errors", "chat wrong key")
def wrong_key():
    """A key that is none."""
    with refused("401", "key"):
        OpenAI(api_key="sk-wrong", max_retries=0).chat.completions.create(model=MODEL, messages=[user("x")])


@flow("errors", "chat too large")
def too_large():
    """A body beyond the limit."""
    with refused("413", "33554432"):
        client.chat.completions.create(model=MODEL, messages=[user(TOO_LARGE)])


@flow("errors", "chat unsupported fields")
def unsupported():
    """The field's name is in the message."""
    for field, value in {
        "n": 9,
        "top_logprobs": 2,
        "audio": {"voice": "alloy", "format": "wav"},
        "functions": [{"name": "f", "parameters": {}}],
        "web_search_options": {},
        "prediction": {"type": "content", "content": "x"},
        "max_tokens": -1,
        "seed": "x",
    }.items():
        with refused("400", field):
            client.chat.completions.create(model=MODEL, messages=[user("x")], extra_body={field: value})
    with refused("messages[0].content[0]", "input_audio"):
        say([user([{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}])])
    with refused("messages[0].role"):
        say([{"role": "wizard", "content": "x"}])
    with refused("messages"):
        say([])


@flow("options", "chat limits, seed, stop, user, metadata, store")
def options():
    """Fields that are taken."""
    message = say(
        [user("Think: about chat options")],
        max_completion_tokens=400,
        temperature=0.2,
        top_p=0.9,
        seed=7,
        stop=["END"],
        user="u-1",
        metadata={"ticket": "7"},
        store=True,
        presence_penalty=0.1,
        frequency_penalty=0.1,
        reasoning_effort="low",
        verbosity="low",
        service_tier="auto",
        parallel_tool_calls=True,
        tools=[WEATHER],
        n=1,
        logprobs=False,
        prompt_cache_key="k-2",
        safety_identifier="s-1",
        modalities=["text"],
    )
    check_turn(1, message.content)
    check_turn(1, say([user("Short, chat")], max_tokens=400, stop="END").content)


run()
