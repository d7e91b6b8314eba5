"""Flows of Instructor: each of its modes for OpenAI, streamed parts, lists, retries after a failed check, and hooks."""

from collections.abc import Iterable

import instructor
from flow_kit import KNOWLEDGE_BASE_ID, MODEL, check, flow, refused, run
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, field_validator

MODES = (
    instructor.Mode.TOOLS,
    instructor.Mode.TOOLS_STRICT,
    instructor.Mode.JSON,
    instructor.Mode.JSON_SCHEMA,
    instructor.Mode.RESPONSES_TOOLS,
)
QUESTION = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Who wrote the first program?"}]


class Person(BaseModel):
    """A person."""

    name: str
    age: int


def client(mode: instructor.Mode) -> instructor.Instructor:
    """Return a client that asks in one of the modes."""
    return instructor.from_openai(OpenAI(max_retries=0), mode=mode)


def modes(kind: str, name: str, chosen: Iterable[instructor.Mode] = MODES):
    """Register a flow once for each mode."""

    def register(body):
        for mode in chosen:
            flow(kind, f"{mode.value}, {name}")(lambda mode=mode: body(mode))
        return body

    return register


@modes("structured", "create")
def typed(mode: instructor.Mode):
    """A typed answer."""
    person = client(mode).create(model=MODEL, messages=QUESTION, response_model=Person)
    check(isinstance(person, Person), person)


@modes("structured", "async", (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA))
async def typed_async(mode: instructor.Mode):
    """The same with the asynchronous client."""
    one = instructor.from_openai(AsyncOpenAI(max_retries=0), mode=mode)
    check(isinstance(await one.create(model=MODEL, messages=QUESTION, response_model=Person), Person), mode)


@modes("streamed", "create_partial", (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA))
def partial(mode: instructor.Mode):
    """A typed answer that grows."""
    parts = list(client(mode).create_partial(model=MODEL, messages=QUESTION, response_model=Person))
    check(parts[-1].name, parts)


@modes("streamed", "create_iterable", (instructor.Mode.TOOLS,))
def iterable(mode: instructor.Mode):
    """Several typed answers."""
    people = list(client(mode).create_iterable(model=MODEL, messages=QUESTION, response_model=Person))
    check(people, people)


@modes("structured", "create_with_completion", (instructor.Mode.TOOLS, instructor.Mode.RESPONSES_TOOLS))
def with_completion(mode: instructor.Mode):
    """The answer beside what it was made of."""
    person, completion = client(mode).create_with_completion(model=MODEL, messages=QUESTION, response_model=Person)
    check(isinstance(person, Person), person)
    check(completion.usage.total_tokens > 0, completion)


@modes("structured", "asked again after a failed check", (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA))
def asked_again(mode: instructor.Mode):
    """What a check refuses is sent back with the answer before it; the model stays with its answer."""
    seen = []

    class Older(BaseModel):
        name: str
        age: int

        @field_validator("age")
        @classmethod
        def once(cls, age: int) -> int:
            seen.append(age)
            if len(seen) == 1:
                raise ValueError("say it once more")
            return age

    person = client(mode).create(model=MODEL, messages=QUESTION, response_model=Older, max_retries=2)
    check(len(seen) == 2, seen, person)


@flow("knowledge", "responses_tools_with_inbuilt_tools")
def knowledge():
    """A typed answer beside the server's own search."""
    one = client(instructor.Mode.RESPONSES_TOOLS_WITH_INBUILT_TOOLS)
    search = {"type": "file_search", "vector_store_ids": [KNOWLEDGE_BASE_ID]}
    check(one.create(model=MODEL, messages=QUESTION, response_model=Person, tools=[search]).name)


@flow("plain", "from_provider")
def by_name():
    """The client by a name."""
    one = instructor.from_provider(f"openai/{MODEL}")
    check(isinstance(one.create(messages=QUESTION, response_model=Person), Person))


@flow("errors", "unknown model")
def unknown_model():
    """An error that names the model."""
    with refused("no-such-model"):
        client(instructor.Mode.TOOLS).create(
            model="no-such-model", messages=QUESTION, response_model=Person, max_retries=0
        )


run()
