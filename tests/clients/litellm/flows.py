"""Flows of LiteLLM's `completion` and `responses`, and of its router."""

import base64
import json

import litellm
from flow_kit import (
    API_KEY,
    BASE_URL,
    CODE_WORD,
    FILE_CODE_WORD,
    FILE_SEARCH,
    FILE_TEXT,
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
from pydantic import BaseModel

NAME = f"openai/{MODEL}"
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER_SCHEMA}}
FLAT_WEATHER = {"type": "function", "name": "get_weather", "parameters": WEATHER_SCHEMA}
litellm.num_retries = 0


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def user(text: object) -> dict:
    """Return a message of the user."""
    return {"role": "user", "content": text}


def say(messages: list, **options):
    """Ask for a completion and return its message."""
    return litellm.completion(NAME, messages=messages, max_retries=0, **options).choices[0].message


def words(response) -> str:
    """Join the text of a response."""
    return "".join(item.content[0].text for item in response.output if item.type == "message")


@flow("plain", "completion, acompletion, batch")
async def plain():
    """One completion, and several."""
    check_turn(1, say([{"role": "system", "content": "Be kind."}, user("Hello lite")]).content)
    answer = await litellm.acompletion(NAME, messages=[user("Hello async lite")])
    check_turn(1, answer.choices[0].message.content)
    for each in litellm.batch_completion(NAME, messages=[[user("One")], [user("Two")]]):
        check_turn(1, each.choices[0].message.content)


@flow("plain", "responses, aresponses")
async def plain_responses():
    """One response."""
    check_turn(1, words(litellm.responses(model=NAME, input="Hello lite responses")))
    check_turn(1, words(await litellm.aresponses(model=NAME, input="Hello async lite responses")))


@flow("plain", "Router, openai_like by address")
async def router():
    """A router over two names for one model, and a model by its address."""
    given = {"model": NAME, "api_base": BASE_URL, "api_key": API_KEY}
    one = litellm.Router(model_list=[{"model_name": "ballast", "litellm_params": given} for _ in range(2)])
    check_turn(1, one.completion("ballast", messages=[user("Hello router")]).choices[0].message.content)
    check_turn(1, (await one.acompletion("ballast", messages=[user("Hello router 2")])).choices[0].message.content)
    answer = litellm.completion(
        f"hosted_vllm/{MODEL}", messages=[user("Hello vllm")], api_base=BASE_URL, api_key=API_KEY
    )
    check_turn(1, answer.choices[0].message.content)


@flow("streamed", "completion, acompletion, include_usage")
async def streamed():
    """Chunks."""
    chunks = list(
        litellm.completion(NAME, messages=[user("Hello s")], stream=True, stream_options={"include_usage": True})
    )
    check_turn(1, "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))
    check(litellm.stream_chunk_builder(chunks).usage.total_tokens > 0, chunks[-1])
    pieces = await litellm.acompletion(NAME, messages=[user("Hello as")], stream=True)
    check_turn(1, "".join([chunk.choices[0].delta.content or "" async for chunk in pieces]))


@flow("streamed", "completion with functions")
def streamed_tools():
    """Calls, piece by piece."""
    chunks = list(litellm.completion(NAME, messages=[user(PARALLEL)], tools=[WEATHER], stream=True))
    calls = litellm.stream_chunk_builder(chunks).choices[0].message.tool_calls
    check([json.loads(call.function.arguments)["city"] for call in calls] == ["Paris", "Rome"], calls)


@flow("streamed", "responses")
def streamed_responses():
    """Events."""
    events = list(litellm.responses(model=NAME, input="Hello events", stream=True))
    check_turn(1, "".join(event.delta for event in events if event.type == "response.output_text.delta"))
    check(events[-1].type == "response.completed", events[-1])


@flow("structured", "completion response_format")
def structured():
    """A class, a schema, and any object."""
    for form in (
        Person,
        {"type": "json_schema", "json_schema": {"name": "person", "schema": Person.model_json_schema()}},
        {"type": "json_object"},
    ):
        check(Person.model_validate_json(say([user(f"Who, as JSON {form!s:.20}?")], response_format=form).content))


@flow("structured", "responses text_format")
def structured_responses():
    """A class as the form of a response."""
    response = litellm.responses(model=NAME, input="Who, as a response?", text_format=Person)
    check(Person.model_validate_json(words(response)), response)


@flow("tools", "completion, two rounds, then a second turn")
def tool_loop():
    """The loop by hand."""
    messages = [user(TWO_ROUNDS)]
    rounds = 0
    while (message := say(messages, tools=[WEATHER], tool_choice="auto")).tool_calls:
        rounds += 1
        messages.append(message)
        for call in message.tool_calls:
            output = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "name": "get_weather", "content": output})
    check(rounds == 2 and "sun in Rome" in message.content, message)
    messages += [message, user("Thank you")]
    check_turn(2, say(messages, tools=[WEATHER]).content)


@flow("tools", "responses, previous_response_id")
def tool_loop_responses():
    """The loop that names the response before."""
    response = litellm.responses(model=NAME, input=TWO_ROUNDS, tools=[FLAT_WEATHER])
    for _ in range(2):
        outputs = [
            {
                "type": "function_call_output",
                "call_id": item.call_id,
                "output": get_weather(**json.loads(item.arguments)),
            }
            for item in response.output
            if item.type == "function_call"
        ]
        response = litellm.responses(model=NAME, input=outputs, previous_response_id=response.id, tools=[FLAT_WEATHER])
    check("sun in Rome" in words(response), response)


@flow("knowledge", "completion file_search")
def knowledge():
    """An annotation for the document cited."""
    message = say([user(KNOWLEDGE_QUESTION)], tools=[FILE_SEARCH])
    check(f"{CODE_WORD} [1]" in message.content, message)
    check(message.annotations[0]["url_citation"]["title"] == "handbook.md", message)


@flow("knowledge", "responses file_search")
def knowledge_responses():
    """A search on our side and the citation."""
    response = litellm.responses(
        model=NAME, input=KNOWLEDGE_QUESTION, tools=[FILE_SEARCH], include=["file_search_call.results"]
    )
    notes = [
        note.filename for item in response.output if item.type == "message" for note in item.content[0].annotations
    ]
    check(notes == ["handbook.md"], response.output)


@flow("history", "completion")
def history():
    """Five turns, all messages each time."""
    messages = [{"role": "system", "content": "Be kind."}]
    for number, question in enumerate(questions("completion"), 1):
        messages.append(user(question))
        message = say(messages)
        check_turn(number, message.content)
        messages.append(message)


@flow("history", "responses")
def history_responses():
    """Five turns, all items each time."""
    items = []
    for number, question in enumerate(questions("responses"), 1):
        items.append(user(question))
        response = litellm.responses(model=NAME, input=items)
        check_turn(number, words(response))
        items += [item.model_dump(exclude_none=True) for item in response.output]


@flow("state", "responses: previous_response_id, get, delete")
def state():
    """The server keeps the history; ids are wrapped by the client."""
    previous = None
    for number in range(1, 4):
        response = litellm.responses(model=NAME, input=f"Turn of mine {number}", previous_response_id=previous)
        check_turn(number, words(response))
        previous = response.id
    check_turn(3, words(litellm.get_responses(previous)))
    check(litellm.delete_responses(previous))


@flow("images", "completion and responses")
def image():
    """An image beside a text."""
    parts = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
    check("I see 1 image" in say([user(parts)]).content)
    parts = [{"type": "input_text", "text": "What?"}, {"type": "input_image", "image_url": PNG_URL}]
    check("I see 1 image" in words(litellm.responses(model=NAME, input=[user(parts)])))


@flow("files", "completion file part")
def file():
    """A document beside a text."""
    coded = base64.b64encode(FILE_TEXT.encode()).decode()
    part = {"type": "file", "file": {"filename": "inventory.md", "file_data": f"data:text/markdown;base64,{coded}"}}
    question = {"type": "text", "text": "Which code word does the inventory name?"}
    check(FILE_CODE_WORD in say([user([part, question])]).content)


@flow("files", "create_file, vector_stores.create, vector_stores.search")
def files():
    """Files and stores through the client's own words."""
    file = litellm.create_file(
        file=("inventory.md", FILE_TEXT.encode()), purpose="assistants", custom_llm_provider="openai"
    )
    check(litellm.file_content(file_id=file.id, custom_llm_provider="openai").text == FILE_TEXT)
    store = litellm.vector_stores.create(name="Inventory", file_ids=[file.id], custom_llm_provider="openai")
    check(store["id"], store)


@flow("errors", "completion: unknown model, wrong key, too large, unsupported fields")
def refusals():
    """What the user reads."""
    with refused("key"):
        say([user("x")], api_key="sk-wrong")
    with refused("33554432"):
        say([user(TOO_LARGE)])
    for field, value in {"n": 9, "top_logprobs": 2, "functions": [{"name": "f"}]}.items():
        with refused(field):
            say([user("x")], **{field: value})
    with refused("seed"):
        say([user("x")], extra_body={"seed": "x"})
    with refused("no-such-model", MODEL):
        litellm.completion("openai/no-such-model", messages=[user("x")], max_retries=0)


@flow("errors", "responses: unknown model, wrong key, unsupported tool")
def refusals_responses():
    """What the user reads."""
    with refused("key"):
        litellm.responses(model=NAME, input="x", api_key="sk-wrong")
    passed_over = [{"type": "code_interpreter", "container": {"type": "auto"}}]
    answer = litellm.responses(model=NAME, input="x", tools=passed_over)
    check(answer.metadata["ballast_ignored"] == "tools[0]", answer.metadata)
    with refused("no-such-model", MODEL):
        litellm.responses(model="openai/no-such-model", input="x")


@flow("errors", "embedding, text_completion, image_generation")
def absent():
    """404s that say what is not there."""
    with refused("embeddings"):
        litellm.embedding("openai/text-embedding-3-small", input=["x"], max_retries=0)
    with refused("completions"):
        litellm.text_completion("x", model=f"text-completion-openai/{MODEL}", max_retries=0)


@flow("options", "completion limits, seed, user, metadata")
def options():
    """Settings that are taken."""
    message = say(
        [user("Think: about options")], max_tokens=300, temperature=0.2, top_p=0.9, seed=1, stop=["END"], user="u-1",
        presence_penalty=0.1, frequency_penalty=0.1, metadata={"a": "b"}, store=True, parallel_tool_calls=True,
        tools=[WEATHER], logprobs=False, n=1,
    )  # fmt: skip
    check_turn(1, message.content)
    check_turn(1, say([user("Max")], max_completion_tokens=100).content)
    response = litellm.responses(
        model=NAME, input="Think: about options", max_output_tokens=300, metadata={"a": "b"}, user="u-1",
        truncation="auto", temperature=0.1, instructions="Be kind.",
    )  # fmt: skip
    check_turn(1, words(response))


run()
