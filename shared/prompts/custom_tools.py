"""Custom tools of OpenAI's APIs, whose input is plain text: what a model is offered and what its calls say.

To a model a custom tool is a function with one argument, `input`. The schema of this argument also is what tells such
a function from others, wherever its definition is stored: its words stay as they are, and better ones stand beside.
"""

import re

import orjson

from shared.models.execution import ToolDefinition
from shared.models.values import JsonObject

_TEXT = "The whole input of this tool, as plain text."
_GRAMMARS = {
    "lark": "The whole input of this tool, as plain text that conforms to this grammar in Lark's notation:\n",
    "regex": "The whole input of this tool, as plain text that matches this regular expression from start to end:\n",
}

_MOST_BEFORE_INPUT = 64
"""Characters within which the text of the input begins in arguments that name it."""

_BEGINNING = re.compile(r'\s*\{\s*"input"\s*:\s*"')
_CUT_ESCAPE = r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?\Z"
"""The escape of a character whose other part may follow."""

_WHOLE = re.compile(rf'(?:[^"\\]++|(?!{_CUT_ESCAPE})\\.)*+', re.DOTALL)
_ESCAPE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\.", re.DOTALL)
_ESCAPED = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def custom_tool(name: str, description: str | None, given: JsonObject) -> ToolDefinition:
    """Return what a model is offered as a custom tool; `given` is the format in the words of Responses."""
    said = _TEXT if given["type"] == "text" else f"{_GRAMMARS[str(given['syntax'])]}{given['definition']}"
    return ToolDefinition(name=name, description=description, parameters=_parameters(said), strict=None)


def custom_format(parameters: JsonObject | None) -> JsonObject | None:
    """Return the format of the custom tool whose parameters these are; None where they are a function's."""
    match parameters:
        case {"properties": {"input": {"description": str(said)}}} if parameters == _parameters(said):
            pass
        case _:
            return None
    if said == _TEXT:
        return {"type": "text"}
    syntax = next((name for name, words in _GRAMMARS.items() if said.startswith(words)), None)
    if syntax is None:
        return None
    return {"type": "grammar", "syntax": syntax, "definition": said.removeprefix(_GRAMMARS[syntax])}


def arguments_of(text: str) -> str:
    """Return the arguments by which a model is shown a call of which no arguments are kept."""
    return orjson.dumps({"input": text}).decode()


def input_of(arguments: str) -> str:
    """Return the input that a call says: all of its arguments where these do not begin by naming it."""
    reader = InputReader()
    return reader.read(arguments) + reader.rest()


class InputReader:
    """Reads the input out of arguments that a model writes piece by piece."""

    def __init__(self) -> None:
        self._unread = ""
        self._is_named: bool | None = None
        self._has_ended = False

    def read(self, piece: str) -> str:
        """Return the text that a further piece adds."""
        if self._has_ended:
            return ""
        unread = self._unread = self._unread + piece
        if self._is_named is None:
            found = _BEGINNING.match(unread, 0, _MOST_BEFORE_INPUT)
            if found is None and len(unread) < _MOST_BEFORE_INPUT:
                return ""
            self._is_named = found is not None
            unread = unread[found.end() :] if found is not None else unread
        if not self._is_named:
            self._unread = ""
            return unread
        end = _end_of_whole(unread)
        self._has_ended = unread.startswith('"', end)
        self._unread = unread[end:]
        return _ESCAPE.sub(_character, unread[:end])

    def rest(self) -> str:
        """Return what is left of arguments that have ended; half of an escape says nothing."""
        return "" if self._is_named else self._unread


def _parameters(said: str) -> JsonObject:
    return {
        "type": "object",
        "properties": {"input": {"type": "string", "description": said}},
        "required": ["input"],
        "additionalProperties": False,
    }


def _end_of_whole(unread: str) -> int:
    """Return up to where a text is whole: up to the quote that ends it, or to an escape that is cut."""
    found = _WHOLE.match(unread)
    return found.end() if found is not None else 0


def _character(found: re.Match[str]) -> str:
    escape = found[0]
    if len(escape) > 2:
        return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "replace").replace("\0", "\ufffd")
    return _ESCAPED.get(escape[1], escape)
