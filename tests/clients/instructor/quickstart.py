"""Instructor: typed answers over Chat Completions and over Responses."""

import os

import instructor
from openai import OpenAI
from pydantic import BaseModel


class Person(BaseModel):
    """A person."""

    name: str
    age: int


# OPENAI_BASE_URL and OPENAI_API_KEY are read from the environment
for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA, instructor.Mode.RESPONSES_TOOLS):
    client = instructor.from_openai(OpenAI(), mode=mode)
    question = [{"role": "user", "content": "Who wrote the first program?"}]
    print(client.create(model=os.environ["MODEL"], messages=question, response_model=Person))

# knowledge, behind the name of an agent of the server: without a type the answer is a text
question = [{"role": "user", "content": "Which code word does the handbook name?"}]
client = instructor.from_openai(OpenAI())
answer = client.create(model=os.environ["KNOWLEDGE_AGENT"], messages=question, response_model=None)
print(answer.choices[0].message.content)
