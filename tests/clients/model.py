"""The fake model server of the tests with answers that depend on what is asked, as a process of its own.

It does what a user's words say, so that a program needs no script: `Use f({…}) and g({…}) then h({…}).` makes the calls
of each round in turn and then tells their results; asked for a code word that it was not sent, it searches once and
cites; a form of the answer that is asked for is filled in; of an image or a code word in what it was sent it tells; and
else it counts the user's messages. To `Say {{{…}}}` it answers with that text, and what begins with `Never end` with a
few words and then nothing more, until it is left.
"""

import argparse
import asyncio
import re
import signal
import zlib
from collections.abc import Sequence
from typing import Any, cast

import orjson

from deploy.demo.shaped import fit
from tests.fakes.model_server import FakeModelServer, Fault, RecordedRequest, Reply, ScriptedCall

_COMMAND = re.compile(r"\bUse ([\w-]+\(.*\))\.")
_CALL = re.compile(r"([\w-]+)\((\{.*?\})\)")
_ROUND = re.compile(r"\)\s+then\s+(?=[\w-]+\()")
_CODE_WORD = re.compile(r"code word of the [\w ]+ is ([A-Z]+)")
_TIME = re.compile(r"\n\n<time>[^<]*</time>\s*\Z")
_SEARCH = "knowledge_base_search"
_ASKED_FOR = "code word"
_KNOWLEDGE = "knowledge_base_"
_THOUGHT = "Think: "
_VERBATIM = re.compile(r"Say \{\{\{(.*?)\}\}\}", re.DOTALL)
_ENDLESS = "Never end"

Message = dict[str, Any]


def answer(request: RecordedRequest) -> Reply:
    """Return what the model says to a request in the words of Chat Completions."""
    body: dict[str, Any] = request.json_body
    messages: list[Message] = body["messages"]
    messages = [message for message in messages if not _text(message).startswith("<system-reminder>")]
    files = [_text(message) for message in messages if _is_file(message)]
    messages = [message for message in messages if not _is_file(message)]
    newest = max((index for index, message in enumerate(messages) if message["role"] == "user"), default=0)
    said = _TIME.sub("", _text(messages[newest]))
    known = "\n".join((*files, said))
    if said.startswith(_ENDLESS):
        return Reply(text=("I ", "begin, "), fault=Fault.STALL)
    verbatim = _VERBATIM.match(said)
    if verbatim:
        return Reply(text=tuple(verbatim[1].splitlines(keepends=True)))
    calls = _calls(body, said, known, messages[newest + 1 :])
    if calls:
        return Reply(tool_calls=tuple(calls))
    text = _words(body, messages, newest, known)
    thoughts = ("I was ", "asked to think.") if said.startswith(_THOUGHT) else ()
    return Reply(reasoning=thoughts, text=tuple(re.findall(r"\S+\s*|\s+", text)))


def _is_file(message: Message) -> bool:
    """Say whether a message is a file that stands above the message it came with."""
    return message["role"] == "user" and _text(message).startswith("<file ")


def _calls(body: dict[str, Any], said: str, known: str, since: Sequence[Message]) -> list[ScriptedCall]:
    if body.get("tool_choice") == "none":
        return []
    tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or ()}
    rounds = [message["tool_calls"] for message in since if message.get("tool_calls")]
    number = len(rounds)
    wanted = _rounds_wanted(said)
    if number < len(wanted):
        # clients put the name of a tool server before those of its tools
        found = [
            (tool, arguments)
            for name, arguments in wanted[number]
            for tool in tools
            if tool == name or tool.endswith(f"_{name}")
        ]
    else:
        found = _unasked(
            body.get("tool_choice"), tools, {call["function"]["name"] for calls in rounds for call in calls}
        )
    # the tools of knowledge are offered in every turn, so the words decide whether to search
    if not found and not number and _SEARCH in tools and _ASKED_FOR in said and not _CODE_WORD.search(known):
        found = [(_SEARCH, orjson.dumps({"query": said[:200]}).decode())]
    return [
        ScriptedCall(name=name, arguments=arguments, call_id=f"call_{number}_{index}_{zlib.crc32(said.encode())}")
        for index, (name, arguments) in enumerate(found)
    ]


def _rounds_wanted(said: str) -> list[list[tuple[str, str]]]:
    command = _COMMAND.search(said)
    if command is None:
        return []
    return [_CALL.findall(part if part.endswith(")") else f"{part})") for part in _ROUND.split(command[1])]


def _unasked(choice: Any, tools: dict[str, Any], called: set[str]) -> list[tuple[str, str]]:
    """Return the call that the request itself demands, of one function or of any, unless it was made already."""
    if isinstance(choice, dict):
        chosen = cast("dict[str, dict[str, str]]", choice)
        name = chosen["function"]["name"] if chosen["function"]["name"] not in called else ""
    else:
        own = [name for name in tools if not name.startswith(_KNOWLEDGE)]
        # tools are sent by name, and the functions by which clients take an answer come before those of the programs
        name = own[0] if choice == "required" and own else ""
    return [(name, _filled(tools[name].get("parameters") or {}))] if name in tools else []


def _filled(schema: Any) -> str:
    return orjson.dumps(fit(_all_required(schema), "Ada")).decode()


def _all_required(schema: Any) -> Any:
    """Return a schema in which every member is required: to read partial ones, some clients make all optional."""
    if isinstance(schema, list):
        return [_all_required(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    inner = {name: _all_required(value) for name, value in cast("dict[str, Any]", schema).items()}
    members = inner.get("properties")
    return inner | {"required": list(cast("dict[str, Any]", members))} if isinstance(members, dict) else inner


def _words(body: dict[str, Any], messages: Sequence[Message], newest: int, known: str) -> str:
    said = _TIME.sub("", _text(messages[newest]))
    results = [_text(message) for message in messages[newest + 1 :] if message["role"] == "tool"]
    form: dict[str, Any] = body.get("response_format") or {}
    code_words = [word for text in (*results, known) for word in _CODE_WORD.findall(text)]
    images = [part for part in _parts(messages[newest]) if part["type"] == "image_url"]
    if form.get("type") == "json_schema":
        return _filled(form["json_schema"]["schema"])
    if form.get("type") == "json_object":
        return '{"name": "Ada", "age": 36}'
    if code_words:
        return f"The code word is {code_words[0]}{' [1]' if results else ''}."
    if results:
        return f"The tools said: {'; '.join(results)}."
    if images:
        return f"I see {len(images)} image of {len(images[0]['image_url']['url'])} characters."
    count = sum(message["role"] == "user" for message in messages)
    return f'Turn {count}: you said "{said[:300]}".'


def _parts(message: Message) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        return cast("list[dict[str, Any]]", content)
    return [{"type": "text", "text": content or ""}]


def _text(message: Message) -> str:
    return "".join(part.get("text", "") for part in _parts(message) if part["type"] == "text")


async def _serve(port: int, model: str) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with FakeModelServer(answer, models=(model,), port=port):
        await stopped.wait()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", required=True)
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.port, arguments.model))


if __name__ == "__main__":
    main()
