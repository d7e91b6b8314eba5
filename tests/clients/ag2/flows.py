"""Flows of AG2 1.x: agents over both APIs, functions, typed answers, conversations that are asked on."""

from ag2 import Agent, ImageInput
from ag2.config import OpenAIConfig, OpenAIResponsesConfig
from flow_kit import (
    API_KEY,
    BASE_URL,
    CODE_WORD,
    KNOWLEDGE_AGENT,
    KNOWLEDGE_QUESTION,
    MODEL,
    PARALLEL,
    PNG_URL,
    TWO_ROUNDS,
    check,
    check_turn,
    flow,
    get_weather,
    modes,
    questions,
    refused,
    run,
)
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def agent(mode: str, name: str = MODEL, config: dict | None = None, **options) -> Agent:
    """Return an agent over one of the APIs."""
    made = OpenAIResponsesConfig if mode == "responses" else OpenAIConfig
    given = made(name, api_key=API_KEY, base_url=BASE_URL, max_retries=0, **(config or {}))
    return Agent("helper", "Be brief.", config=given, **options)


@modes("plain", "ask")
async def plain(mode: str):
    """One turn."""
    check_turn(1, (await agent(mode).ask("Hello ag2")).body)


@modes("streamed", "streaming configuration")
async def streamed(mode: str):
    """An answer that the client puts together out of a stream."""
    check_turn(1, (await agent(mode, config={"streaming": True}).ask("Hello stream")).body)


@modes("streamed", "functions in a stream")
async def streamed_functions(mode: str):
    """Calls that the client puts together out of a stream."""
    text = (await agent(mode, config={"streaming": True}, tools=[get_weather]).ask(TWO_ROUNDS)).body
    check("sun in Rome" in text, text)


@modes("tools", "two rounds and parallel")
async def functions(mode: str):
    """Functions that the agent runs."""
    for words in (TWO_ROUNDS, PARALLEL):
        text = (await agent(mode, tools=[get_weather]).ask(words)).body
        check("sun in Rome" in text, text)


@modes("structured", "response_schema")
async def structured(mode: str):
    """A typed answer."""
    reply = await agent(mode, response_schema=Person).ask("Who is it?")
    check(isinstance(await reply.content(), Person), reply.body)


@modes("history", "a reply that is asked on")
async def resent(mode: str):
    """A conversation whose whole history is sent in each turn."""
    first, *others = questions(f"{mode}, a reply that is asked on")
    reply = await agent(mode).ask(first)
    check_turn(1, reply.body)
    for number, words in enumerate(others, 2):
        reply = await reply.ask(words)
        check_turn(number, reply.body)


@modes("knowledge", "an agent named as the model")
async def knowledge_by_name(mode: str):
    """Knowledge behind the name of a model, beside functions of the program."""
    text = (await agent(mode, KNOWLEDGE_AGENT, tools=[get_weather]).ask(KNOWLEDGE_QUESTION)).body
    check(CODE_WORD in text, text)
    check("[1]" in text, text)


@modes("images", "ImageInput")
async def images(mode: str):
    """A picture in a message."""
    text = (await agent(mode).ask("What is it?", ImageInput(PNG_URL))).body
    check("1 image" in text, text)


@modes("errors", "unknown model")
async def unknown_model(mode: str):
    """An error that names the model."""
    with refused("no-such-model"):
        await agent(mode, "no-such-model").ask("Hello")


@modes("options", "temperature and top_p")
async def options(mode: str):
    """Options of the model."""
    check_turn(1, (await agent(mode, config={"temperature": 0.3, "top_p": 0.9}).ask("Hello")).body)


@flow("options", "user, seed, stop and a service tier")
async def more_options():
    """Options of Chat Completions alone."""
    given = {"user": "ann", "seed": 7, "stop": ["###"], "service_tier": "auto", "verbosity": "low"}
    check_turn(1, (await agent("chat", config=given).ask("Hello")).body)


run()
