"""Messages with files, and files that their users have stored."""

from base64 import b64encode
from typing import Any

from shared.models.execution import ExecutionRequest
from shared.models.messages import UserMessage
from shared.prompts.attached_files import is_attached_file
from tests.fakes.attached_files import FakeAttachedFiles, FakeText
from tests.fakes.openai_house import ADA

RIVERS = "# Rivers\n\nThe Rhine rises in the Alps. 莱茵河"


def inline(body: str | bytes, media_type: str = "text/markdown") -> str:
    raw = body.encode() if isinstance(body, str) else body
    return f"data:{media_type};base64,{b64encode(raw).decode()}"


def file(name: str | None = "rivers.md", body: str | bytes = RIVERS, **fields: Any) -> dict[str, Any]:
    given = {"type": "input_file", "filename": name, "file_data": inline(body), **fields}
    return {key: value for key, value in given.items() if value is not None}


def user(*parts: dict[str, Any], text: str = "Where does it rise?") -> dict[str, Any]:
    return {"role": "user", "content": [*parts, {"type": "input_text", "text": text}]}


def files_in(sent: ExecutionRequest) -> list[str]:
    """Return the messages of files, in the order of the prompt."""
    said = [message.content for message in sent.history if isinstance(message, UserMessage)]
    return [content for content in said if isinstance(content, str) and is_attached_file(content)]


def part(file_id: str = "file_1") -> dict[str, Any]:
    return {"type": "input_file", "file_id": file_id}


def stored(**files: FakeText) -> FakeAttachedFiles:
    found = FakeAttachedFiles()
    found.stored = {(ADA.user_id, file_id): text for file_id, text in files.items()}
    return found
