"""Flows of LangChain's spellings: of images and files in messages, and of the choice of a tool."""

import base64

from flow_kit import FILE_CODE_WORD, FILE_TEXT, MODEL, PNG, PNG_URL, check, flow, run
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

WAYS = ({}, {"use_responses_api": True}, {"use_responses_api": True, "output_version": "v1"})
ENCODED = base64.b64encode(FILE_TEXT.encode()).decode()
QUESTION = {"type": "text", "text": "Which code word does the inventory name?"}
IMAGES = (
    {"type": "image_url", "image_url": {"url": PNG_URL}},
    {"type": "image", "base64": PNG, "mime_type": "image/png"},
    {"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"},
)
FILES = (
    {"type": "file", "base64": ENCODED, "mime_type": "text/markdown", "filename": "inventory.md"},
    {
        "type": "file",
        "source_type": "base64",
        "data": ENCODED,
        "mime_type": "text/markdown",
        "filename": "inventory.md",
    },
)


@tool
def get_rain(city: str) -> str:
    """Return the rain of a city."""
    return f"rain in {city}"


def model(way):
    """Return the model as one of the ways has it."""
    return ChatOpenAI(model=MODEL, max_retries=0, **way)


@flow("images", "every spelling of an image in every API")
def images():
    """The old and the new blocks."""
    for way in WAYS:
        for image in IMAGES:
            answer = model(way).invoke([HumanMessage([{"type": "text", "text": "What is it?"}, image])])
            check("1 image" in answer.text, way, image["type"], answer)


@flow("files", "every spelling of a file in every API")
def files():
    """The old and the new blocks."""
    for way in WAYS:
        for file in FILES:
            answer = model(way).invoke([HumanMessage([file, QUESTION])])
            check(FILE_CODE_WORD in answer.text, way, answer)


@flow("tools", "every spelling of tool_choice in every API")
def choices():
    """Words, names, objects and truth values."""
    asked = 'Use get_rain({"city": "Paris"}).'
    for way in WAYS:
        for choice in ("any", "required", "get_rain", True, {"type": "function", "function": {"name": "get_rain"}}):
            answer = model(way).bind_tools([get_rain], tool_choice=choice, parallel_tool_calls=False).invoke("Hello")
            check([call["name"] for call in answer.tool_calls] == ["get_rain"], way, choice, answer)
        check(not model(way).bind_tools([get_rain], tool_choice="none").invoke(asked).tool_calls, way)


run()
