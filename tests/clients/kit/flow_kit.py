"""What a program of flows needs: a flow is a function; each prints one JSON line about what came of it.

Nothing here but the standard library, since every client has an environment of its own.
"""

import asyncio
import contextlib
import inspect
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, cast

BASE_URL = os.environ["OPENAI_BASE_URL"]
API_KEY = os.environ["OPENAI_API_KEY"]
MODEL = os.environ["MODEL"]
CLIENT = os.environ["CLIENT"]
KNOWLEDGE_BASE_ID = os.environ["KNOWLEDGE_BASE_ID"]
KNOWLEDGE_AGENT = os.environ["KNOWLEDGE_AGENT"]  # a name of a model, with the knowledge base behind it
SERVER_URL = BASE_URL.removesuffix("/v1")

CODE_WORD = "HELIOTROPE"  # stands in the handbook, the document of the knowledge base
KNOWLEDGE_QUESTION = "Which code word does the handbook name?"
FILE_SEARCH: dict[str, Any] = {"type": "file_search", "vector_store_ids": [KNOWLEDGE_BASE_ID]}
# one red pixel
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
PNG_URL = f"data:image/png;base64,{PNG}"
FILE_TEXT = "# Inventory\n\nThe code word of the inventory is MARIGOLD.\n"
FILE_CODE_WORD = "MARIGOLD"
HISTORY_TURNS = 5
TOO_LARGE = "a" * (34 << 20)  # more than the 32 MiB that a body may have
PERSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
# the model behind the pair does what stands here: calls divided by "and" come at once, after "then" in a later call
ONE_ROUND = 'Use get_weather({"city": "Paris"}).'
TWO_ROUNDS = 'Use get_weather({"city": "Paris"}) then get_weather({"city": "Rome"}).'
PARALLEL = 'Use get_weather({"city": "Paris"}) and get_weather({"city": "Rome"}).'


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return {"Paris": "rain in Paris", "Rome": "sun in Rome"}[city]


@dataclass
class _Flow:
    kind: str
    name: str
    run: Callable[[], Any]


@dataclass
class _Program:
    flows: list[_Flow] = field(default_factory=list[_Flow])


_PROGRAM = _Program()


def flow(kind: str, name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a flow of a kind (a column of the table); its name tells which way of the client it takes.

    The function raises where anything is not as it should be; what it returns, if anything, is shown as a note.
    """

    def register(run: Callable[[], Any]) -> Callable[[], Any]:
        _PROGRAM.flows.append(_Flow(kind, name, run))
        return run

    return register


def modes(kind: str, name: str, *only: str) -> Callable[[Callable[[str], Any]], Callable[[str], Any]]:
    """Register a flow once for each API, or for some alone; the function takes the mode, `chat` or `responses`."""

    def register(run: Callable[[str], Any]) -> Callable[[str], Any]:
        for mode in only or ("chat", "responses"):
            flow(kind, f"{mode}, {name}")(lambda mode=mode: run(mode))
        return run

    return register


def history_mark(name: str) -> str:
    """Return the words that every message of a flow's history holds, by which its model requests are found."""
    return f"history of {CLIENT} {name}"


def questions(name: str) -> list[str]:
    """Return what a user says in the turns of a resent history."""
    return [f"Question {number} in the {history_mark(name)}." for number in range(1, HISTORY_TURNS + 1)]


def check(holds: object, *seen: object) -> None:
    """Raise, showing what was seen, unless it holds."""
    if not holds:
        raise AssertionError(" | ".join(repr(each)[:800] for each in seen) or "does not hold")


def check_turn(number: int, text: object) -> None:
    """Check that the model, which counts the user's messages, has seen as many."""
    check(f"Turn {number}:" in str(text), text)


@contextlib.contextmanager
def refused(*words: str) -> Generator[None]:
    """Expect an error whose message, as the user of the client reads it, holds each of the words."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - each client has errors of its own
        message = _told(error)
        missing = [word for word in words if word.lower() not in message.lower()]
        check(not missing, f"{type(error).__name__} does not name {missing}", message)
    else:
        raise AssertionError(f"nothing was refused; expected an error with {words}")


def run() -> None:
    """Run the flows (those whose names stand on the command line, else all) in order and print each result."""
    chosen = set(sys.argv[1:])
    # one loop for all, since some clients keep their connections from one flow to the next, and made by the first flow
    # that needs it, since others bring their own
    runner = asyncio.Runner()
    with contextlib.closing(runner):
        for each in _PROGRAM.flows:
            if not chosen or each.name in chosen:
                print(json.dumps(_result(each, runner)), flush=True)


def _result(each: _Flow, runner: asyncio.Runner) -> dict[str, Any]:
    began_at, started = time.time(), time.monotonic()
    try:
        came = each.run()
        if inspect.iscoroutine(came):
            came = runner.run(came)
        outcome = {"ok": True, "note": came if isinstance(came, str) else ""}
    except BaseException as error:  # noqa: BLE001 - some clients raise groups or exit
        traceback.print_exc()
        outcome = {"ok": False, "note": f"{type(error).__name__}: {_told(error)}"[:1500]}
    seconds = round(time.monotonic() - started, 2)
    return {"kind": each.kind, "flow": each.name, "began_at": began_at, "seconds": seconds, **outcome}


def _told(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        inner_errors = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return "; ".join(f"{type(inner).__name__}: {_told(inner)}" for inner in inner_errors)
    return str(error)
