"""Documents as a model sees them: JSON objects, numbered consecutively through a whole conversation.

chat_shell shows what tools find in this form, the backend the files of an agent.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pydantic import TypeAdapter

from shared.models.values import JsonObject, Place

RENDERED_START = '{"documents"'
_JSON_STRING = r'("(?:[^"\\]|\\.)*")'
_PLACE = r'(?:, "place": (\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}))?'
_OTHER_NAMES = r'(?:, "other_names": (\[(?:[^"\[\]]|"(?:[^"\\]|\\.)*")*\]))?'
_DOCUMENT_HEAD = re.compile(
    rf'{{"document": ([1-9]\d{{0,8}}), "title": {_JSON_STRING}, "file_id": {_JSON_STRING}{_PLACE}{_OTHER_NAMES}'
)
_NAMES = TypeAdapter(tuple[str, ...])


class NumberedDocument(NamedTuple):
    """A document with the number by which it is cited; `metadata` is shown in its own key order."""

    number: int
    title: str
    file_id: str
    metadata: JsonObject
    content: str
    place: Place | None = None
    other_names: tuple[str, ...] = ()


class DocumentHead(NamedTuple):
    """The beginning of a document in a prompt."""

    number: int
    title: str
    file_id: str
    place: Place | None = None
    other_names: tuple[str, ...] = ()


def encode_documents(documents: Iterable[NumberedDocument]) -> str:
    """Render documents as JSON text: the number first, the content last, the same bytes for the same values."""
    return json.dumps({"documents": list(map(_show, documents))}, ensure_ascii=False)


def _show(one: NumberedDocument) -> JsonObject:
    place: JsonObject = {} if one.place is None else {"place": one.place.model_dump()}
    others: JsonObject = {"other_names": list(one.other_names)} if one.other_names else {}
    head: JsonObject = {"document": one.number, "title": one.title, "file_id": one.file_id}
    return {**head, **place, **others, **one.metadata, "content": one.content}


def document_heads(text: str) -> Iterator[DocumentHead]:
    """Yield the documents of a rendered text, without decoding their contents.

    Inside a JSON string every quotation mark is escaped, so the head of a document is found nowhere else.
    """
    for head in _DOCUMENT_HEAD.finditer(text):
        number, title, file_id, place, names = head.groups()
        try:
            where = Place.model_validate_json(place) if place else None
            others = _NAMES.validate_json(names) if names else ()
            yield DocumentHead(int(number), _decode(title), _decode(file_id), where, others)
        except ValueError:
            continue


def _decode(json_string: str) -> str:
    """Decode a JSON string.

    Raises:
        ValueError: it contains an invalid escape, or half of a surrogate pair.
    """
    text: str = json.loads(json_string) if "\\" in json_string else json_string[1:-1]
    text.encode()
    return text
