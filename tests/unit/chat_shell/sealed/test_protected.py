"""Nothing can be done with protected text but to name where it is from."""

import copy
import dataclasses
import json
import operator
import pickle
import pprint
import traceback
from collections.abc import Callable
from typing import Any

import orjson
import pydantic_core
import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter

from chat_shell.sealed.protected import ProtectedChunk, ProtectedText, TextIsProtected

SECRET = "The reserve is 48,200 litres"


def protected(text: str = SECRET) -> ProtectedText:
    return ProtectedText(text, "kb_1", "c_7")


def chunk() -> ProtectedChunk:
    return ProtectedChunk("kb_1", "c_7", 0, protected(), (protected(),), protected(), protected("canary"))


class Holder(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    held: Any


USES: dict[str, Callable[[ProtectedText], object]] = {
    "str": str,
    "print": print,
    "format": lambda text: f"{text}",
    "format with a width": lambda text: format(text, ">80"),
    "percent": lambda text: "%s" % text,  # noqa: UP031
    "str.format": "{}".format,
    "bytes": bytes,
    "list": list,
    "tuple": tuple,
    "join": "".join,
    "reversed": reversed,
    "len": len,
    "bool": bool,
    "contains": lambda text: "reserve" in text,
    "index": lambda text: operator.getitem(text, 0),
    "slice": lambda text: operator.getitem(text, slice(4)),
    "add": lambda text: operator.add(text, "x"),
    "added to": lambda text: operator.add("x", text),
    "times": lambda text: operator.mul(text, 2),
    "equal": lambda text: text == SECRET,
    "equal from the left": lambda text: text == SECRET,
    "equal to another": lambda text: text == protected(),
    "unequal": lambda text: text != SECRET,
    "less": lambda text: operator.lt(text, SECRET),
    "sorted": lambda text: sorted([text, protected()]),
    "hash": hash,
    "in a set": lambda text: {text},
    "as a key": lambda text: {text: 1},
    "pickle": pickle.dumps,
    "pickle, old protocol": lambda text: pickle.dumps(text, protocol=0),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "json": json.dumps,
    "json by str": lambda text: json.dumps(text, default=str),
    "json by vars": lambda text: json.dumps(text, default=vars),
    "orjson": orjson.dumps,
    "orjson by str": lambda text: orjson.dumps(text, default=str),
    "pydantic core": pydantic_core.to_json,
    "pydantic jsonable": pydantic_core.to_jsonable_python,
    "pydantic model": lambda text: Holder(held=text).model_dump_json(),
    "pydantic schema": lambda text: TypeAdapter(type(text)),
    "vars": vars,
    "set an attribute": lambda text: setattr(text, "text", "x"),
    "delete an attribute": lambda text: delattr(text, "reveal"),
    "int": int,
    "path": open,
    "dataclass of it": lambda text: dataclasses.asdict(chunk()),
    "pickled chunk": lambda text: pickle.dumps(chunk()),
    "copied chunk": lambda text: copy.deepcopy(chunk()),
    "chunk as json": lambda text: orjson.dumps(chunk()),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_every_use_raises_and_tells_nothing(use: Callable[[ProtectedText], object]):
    with pytest.raises((TypeError, AttributeError, pydantic_core.PydanticSerializationError)) as raised:
        use(protected())
    shown = "".join(traceback.format_exception_only(raised.value))
    assert "48,200" not in shown


def test_its_repr_names_base_and_chunk_and_no_more():
    assert repr(protected()) == "<protected kb_1 c_7>"
    assert "48,200" not in pprint.pformat([chunk(), protected()]) + repr(chunk()) + repr(Holder(held=protected()))


def test_it_is_no_string_and_has_no_children():
    assert not isinstance(protected(), str)
    with pytest.raises(TextIsProtected):
        type("Child", (ProtectedText,), {})


def test_the_room_can_read_it():
    assert protected().reveal() == SECRET


def test_two_chunks_are_never_equal():
    assert chunk() != chunk()
