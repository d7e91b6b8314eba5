"""The files in the input of a turn: which there are, and the input without their bytes."""

import binascii
import hashlib
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.conversations.domain.input_items import (
    AttachedFilePart,
    FunctionCallOutputItem,
    InputFilePart,
    InputItem,
    InputPart,
    UserItem,
)
from backend.foundation.domain.json_objects import Steps
from shared.errors import InvalidRequest, UnsupportedValue

MAX_FILES = 20
"""The maximum in one request; their bytes are bounded by those of the request."""

UNNAMED = "file"
DIGEST_BYTES = 16
STEP_CHARACTERS = 2**20
"""Characters that are hashed or decoded in one step, which takes about 2 ms; a multiple of the four of base64."""

_INLINE = re.compile(r"data:([^,;]*)((?:;[^,;]*)*?);base64,", re.IGNORECASE)
_MAX_HEAD_CHARACTERS = 1024


@dataclass(frozen=True)
class GivenFile:
    """A file as a client gives it; `param` is the field that holds it, such as `input[0].content[1].file_data`."""

    part: InputFilePart
    digest: str
    param: str

    @property
    def name(self) -> str:
        """The name of the file, as it is shown to the model."""
        return self.part.filename or UNNAMED

    def build_refusal(self, reason: str) -> InvalidRequest:
        """Return the error that names this file."""
        return InvalidRequest(f"The file {self.name!r} cannot be read: {reason}", param=self.param)


@dataclass(frozen=True)
class InputWithFiles:
    """Items whose files have no bytes any more, and the files by their digests."""

    items: list[InputItem]
    files: dict[str, GivenFile]


def without_bytes_cooperatively(items: Sequence[InputItem]) -> Steps[InputWithFiles]:
    """Separate the files of an input from its items.

    Raises:
        InvalidRequest: there are too many, or one of them names neither its bytes nor an id, or both.
    """
    read, files, count = list[InputItem](), dict[str, GivenFile](), 0
    for place, item in enumerate(items):
        field, parts = list_input_parts(item)
        if not any(isinstance(part, InputFilePart) for part in parts):
            read.append(item)
            continue
        changed = list[InputPart]()
        for number, part in enumerate(parts):
            if isinstance(part, InputFilePart):
                count += 1
                param = f"input[{place}].{field}[{number}]"
                if count > MAX_FILES:
                    raise InvalidRequest(f"The input holds more than {MAX_FILES} files.", param=param)
                file = yield from _read_file(part, param)
                files.setdefault(file.digest, file)
                part = _attach(file)
            changed.append(part)
        read.append(item.model_copy(update={field: changed}))
    return InputWithFiles(read, files)


def list_input_parts(item: InputItem) -> tuple[str, Sequence[InputPart]]:
    """Return the parts of an item that may hold files and images, and the field that they stand in."""
    match item:
        case UserItem():
            return "content", () if isinstance(item.content, str) else item.content
        case FunctionCallOutputItem():
            return "output", () if isinstance(item.output, str) else item.output
        case _:
            return "", ()


def _read_file(part: InputFilePart, param: str) -> Steps[GivenFile]:
    if part.file_data is not None and part.file_id is not None:
        raise InvalidRequest("Give either 'file_data' or 'file_id', not both.", param=f"{param}.file_id")
    if part.file_data is None and part.file_id is None:
        message = "Give the bytes of the file in 'file_data', or the id of a stored file in 'file_id'."
        raise InvalidRequest(message, param=f"{param}.file_data")
    field, value = ("file_id", part.file_id) if part.file_data is None else ("file_data", part.file_data)
    whole = hashlib.blake2b(field.encode(), digest_size=DIGEST_BYTES)
    for text in _slices(value or ""):
        whole.update(text.encode("utf-8", "surrogatepass"))
        yield
    whole.update(repr(part.filename).encode("utf-8", "surrogatepass"))
    return GivenFile(part, whole.hexdigest(), f"{param}.{field}")


def _attach(file: GivenFile) -> AttachedFilePart:
    return AttachedFilePart(
        type="input_file", filename=file.part.filename, file_id=file.part.file_id, digest=file.digest
    )


def _slices(text: str) -> Iterator[str]:
    for start in range(0, len(text), STEP_CHARACTERS):
        yield text[start : start + STEP_CHARACTERS]


def bytes_given(file: GivenFile) -> tuple[str | None, bytearray]:
    """Return the declared type and the bytes of a file that was given as text.

    Raises:
        InvalidRequest: the text is no base64.
    """
    text = file.part.file_data or ""
    head = _INLINE.match(text[:_MAX_HEAD_CHARACTERS])
    if head is None and text.startswith("data:"):
        raise file.build_refusal("give it as a data URL with base64, such as data:application/pdf;base64,JVBERi0…")
    if text.startswith(("http://", "https://")):
        raise UnsupportedValue("Files are not fetched: give the file itself in 'file_data'.", param=file.param)
    try:
        body = _decode(text, head.end() if head is not None else 0)
    except (binascii.Error, ValueError):
        raise file.build_refusal("its data is not valid base64.") from None
    return (f"{head[1]}{head[2]}" if head is not None else None), body


def _decode(text: str, start: int) -> bytearray:
    """Decode base64 slice by slice: as a whole it would be copied twice, and hold up all other threads meanwhile.

    Raises:
        ValueError: it is no base64, or goes on behind its padding.
    """
    body = bytearray()
    for place in range(start, len(text), STEP_CHARACTERS):
        piece = text[place : place + STEP_CHARACTERS]
        if "=" in piece and place + STEP_CHARACTERS < len(text):
            raise ValueError("padding before the end")
        body += b64decode(piece, validate=True)
    return body
