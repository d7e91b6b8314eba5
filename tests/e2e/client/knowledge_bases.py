"""Knowledge bases put through the API, and the model's ways to ask for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from openai.types.responses import FileSearchToolParam

from tests.e2e.pair import Pair
from tests.fakes.model_server import RecordedRequest, Reply, ScriptedCall

SEARCH = "knowledge_base_search"


@dataclass(frozen=True)
class Base:
    """A base and the ids of its documents by name."""

    id: str
    file_ids: Mapping[str, str]

    @property
    def tool(self) -> FileSearchToolParam:
        """The tool that binds it."""
        return file_search(self)


def file_search(*bases: Base) -> FileSearchToolParam:
    """Make the tool that binds bases, in OpenAI's words."""
    return {"type": "file_search", "vector_store_ids": [base.id for base in bases]}


def new_base(pair: Pair, name: str, documents: Mapping[str, str | bytes], **members: str) -> Base:
    """Create a base of ann's with documents by name, and members with their roles."""
    with pair.http(pair.key("ann")) as http:
        created = http.post("/v1/knowledge_bases", json={"name": name, "summary": f"All about {name}."})
        assert created.status_code == 201, created.text
        url = f"/v1/knowledge_bases/{created.json()['id']}"
        file_ids: dict[str, str] = {}
        for document, text in documents.items():
            stored = http.put(f"{url}/documents/{document}", content=text.encode() if isinstance(text, str) else text)
            assert stored.status_code == 201, stored.text
            file_ids[document] = stored.json()["id"]
    for user_id, role in members.items():
        set_role(pair, created.json()["id"], user_id, role)
    return Base(created.json()["id"], file_ids)


def set_role(pair: Pair, base_id: str, user_id: str, role: str) -> None:
    """Make a user a member, or change their role."""
    with pair.http(pair.key("ann")) as http:
        answer = http.put(f"/v1/knowledge_bases/{base_id}/members/{user_id}", json={"role": role})
    assert answer.status_code in (200, 201), answer.text


def searches(*queries: str, **arguments: Any) -> Reply:
    """The model asks for searches, all in one answer."""
    asked = (orjson.dumps({"query": query, **arguments}).decode() for query in queries)
    return Reply(tool_calls=tuple(ScriptedCall(name=SEARCH, arguments=arguments) for arguments in asked))


def messages_of(request: RecordedRequest) -> list[Any]:
    """The messages that a model was sent."""
    return request.json_body["messages"]


def tool_texts(request: RecordedRequest) -> list[str]:
    """The tool results that a model was sent, in order."""
    return [message["content"] for message in messages_of(request) if message["role"] == "tool"]


def numbered(tool_text: str) -> dict[str, int]:
    """Read which number each document has in a result, by title."""
    return {document["title"]: document["document"] for document in orjson.loads(tool_text)["documents"]}


def offered(request: RecordedRequest) -> list[str]:
    """The names of the tools that a model was offered."""
    return [tool["function"]["name"] for tool in request.json_body.get("tools", [])]


def usage(prompt: int, cached: int, completion: int, reasoning: int) -> dict[str, Any]:
    """Figures as a provider of chat completions reports them."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
