"""Flows of Haystack's two chat generators and of its agents."""

from typing import Annotated

import flow_kit
from flow_kit import (
    BASE_URL,
    CODE_WORD,
    FILE_SEARCH,
    KNOWLEDGE_AGENT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG,
    TWO_ROUNDS,
    check,
    check_turn,
    flow,
    modes,
    questions,
    refused,
    run,
)
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, ImageContent
from haystack.tools import tool
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@tool
def get_weather(city: Annotated[str, "the city"]) -> str:
    """Return the weather of a city."""
    return flow_kit.get_weather(city)


def generator(mode: str, name: str = MODEL, **options):
    """Return one of the two generators."""
    made = OpenAIResponsesChatGenerator if mode == "responses" else OpenAIChatGenerator
    return made(model=name, api_base_url=BASE_URL, max_retries=0, **options)


def user(text: str) -> list[ChatMessage]:
    """Return a list with one message."""
    return [ChatMessage.from_user(text)]


@modes("plain", "run")
def plain(mode: str):
    """One turn with a system message."""
    reply = generator(mode).run([ChatMessage.from_system("Be brief."), *user("Hello haystack")])["replies"][0]
    check_turn(1, reply.text)
    check(reply.meta["usage"], reply.meta)


@flow("plain", "a pipeline with a prompt builder")
def pipeline():
    """Two components."""
    line = Pipeline()
    line.add_component("prompt", ChatPromptBuilder(template=user("Hello {{name}}")))
    line.add_component("llm", generator("chat"))
    line.connect("prompt.prompt", "llm.messages")
    check("Hello Ada" in line.run({"prompt": {"name": "Ada"}})["llm"]["replies"][0].text)


@modes("streamed", "streaming_callback")
def streamed(mode: str):
    """Pieces of a text."""
    pieces = []
    reply = generator(mode, streaming_callback=pieces.append).run(user("Hello stream"))["replies"][0]
    check_turn(1, "".join(piece.content for piece in pieces))
    check_turn(1, reply.text)


@modes("streamed", "streamed calls of an agent")
def streamed_calls(mode: str):
    """An agent whose calls are put together out of a stream."""
    agent = Agent(chat_generator=generator(mode), tools=[get_weather], streaming_callback=lambda _: None)
    check("sun in Rome" in agent.run(user(TWO_ROUNDS))["last_message"].text)


@modes("tools", "an agent, two rounds and parallel")
def functions(mode: str):
    """Functions that the agent runs."""
    agent = Agent(chat_generator=generator(mode), tools=[get_weather])
    for words in (TWO_ROUNDS, PARALLEL):
        text = agent.run(user(words))["last_message"].text
        check("sun in Rome" in text, text)


@modes("structured", "response_format and text_format")
def structured(mode: str):
    """A typed answer."""
    form = {"text_format" if mode == "responses" else "response_format": Person}
    reply = generator(mode, generation_kwargs=form).run(user("Who?"))["replies"][0]
    check(Person.model_validate_json(reply.text), reply.text)


@modes("history", "messages")
def resent(mode: str):
    """A history that the program keeps."""
    messages, one = [], generator(mode)
    for number, words in enumerate(questions(f"{mode}, messages"), 1):
        messages += user(words)
        messages += one.run(messages)["replies"]
        check_turn(number, messages[-1].text)


@modes("plain", "a list that ends with the assistant")
def ends_with_the_assistant(mode: str):
    """The model goes on behind its own words."""
    messages = [*user("Write."), ChatMessage.from_assistant("Once upon a")]
    check(generator(mode).run(messages)["replies"][0].text)


@flow("state", "previous_response_id")
def kept():
    """The server keeps the history."""
    first = generator("responses").run(user("First."))["replies"][0]
    again = generator("responses", generation_kwargs={"previous_response_id": first.meta["id"]})
    check_turn(2, again.run(user("Second."))["replies"][0].text)


@flow("knowledge", "file_search")
def knowledge():
    """Knowledge that the server searches."""
    text = generator("responses", tools=[FILE_SEARCH]).run(user(KNOWLEDGE_QUESTION))["replies"][0].text
    check(CODE_WORD in text, text)


@modes("knowledge", "an agent named as the model")
def knowledge_by_name(mode: str):
    """Knowledge behind the name of a model, beside functions of the program."""
    agent = Agent(chat_generator=generator(mode, KNOWLEDGE_AGENT), tools=[get_weather])
    text = agent.run(user(KNOWLEDGE_QUESTION))["last_message"].text
    check(CODE_WORD in text, text)
    check("[1]" in text, text)


@modes("images", "ImageContent")
def images(mode: str):
    """A picture in a message."""
    picture = ImageContent(base64_image=PNG, mime_type="image/png")
    reply = generator(mode).run([ChatMessage.from_user(content_parts=["What is it?", picture])])["replies"][0]
    check("1 image" in reply.text, reply.text)


@modes("errors", "unknown model")
def unknown_model(mode: str):
    """An error that names the model."""
    with refused("no-such-model"):
        generator(mode, "no-such-model").run(user("Hello"))


@modes("options", "temperature and a limit of tokens")
def options(mode: str):
    """Options of the model."""
    limit = {"max_output_tokens" if mode == "responses" else "max_completion_tokens": 60}
    one = generator(mode, generation_kwargs={"temperature": 0.3, **limit})
    check_turn(1, one.run(user("Hello"))["replies"][0].text)


run()
