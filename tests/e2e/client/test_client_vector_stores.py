"""Knowledge through the official client alone: files, vector stores, their files, batches and search."""

import json
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, PermissionDeniedError
from openai.types import FileObject, VectorStore, VectorStoreSearchResponse
from openai.types.vector_stores import VectorStoreFile, VectorStoreFileBatch
from pydantic import BaseModel

from tests.e2e.client.knowledge_bases import messages_of, searches
from tests.e2e.pair import MODEL, Pair
from tests.fakes.model_server import FakeModelControl, Reply

POLL_MILLISECONDS = 50
GREEN = b"# Green tea\n\nSteep it at seventy degrees."


def strictly(kind: type[BaseModel], answer: BaseModel) -> None:
    """Check an answer against the client's own type, which it does not do itself."""
    kind.model_validate_json(answer.to_json(), strict=True, extra="forbid")  # type: ignore[attr-defined]


async def test_a_file_is_uploaded_read_searched_and_deleted(pair: Pair) -> None:
    async with pair.async_client("shelf") as client:
        store = await client.vector_stores.create(name="Teas", metadata={"team": "tasting"})
        strictly(VectorStore, store)
        file = await client.vector_stores.files.upload_and_poll(
            vector_store_id=store.id,
            file=("green.md", GREEN),
            attributes={"kind": "green", "grade": 2},
            poll_interval_ms=POLL_MILLISECONDS,
        )
        strictly(VectorStoreFile, file)
        assert (file.status, file.last_error, file.attributes) == ("completed", None, {"kind": "green", "grade": 2})
        uploaded = await client.files.retrieve(file.id)
        strictly(FileObject, uploaded)
        assert (await client.files.content(file.id)).content == GREEN
        (found,) = (await client.vector_stores.search(store.id, query="steep degrees")).data
        strictly(VectorStoreSearchResponse, found)
        assert (found.file_id, found.filename, found.attributes) == (file.id, "green.md", file.attributes)
        assert 0 < found.score <= 1
        seen = await client.vector_stores.retrieve(store.id)
        assert (seen.file_counts.completed, seen.file_counts.total, seen.status) == (1, 1, "completed")
        assert seen.usage_bytes == uploaded.bytes
        assert (seen.last_active_at or 0) >= seen.created_at

        await client.files.delete(file.id)
        while (await client.vector_stores.retrieve(store.id)).file_counts.total:
            continue
        assert (await client.vector_stores.search(store.id, query="steep degrees")).data == []
        await client.vector_stores.delete(store.id)
        with pytest.raises(NotFoundError):
            await client.vector_stores.retrieve(store.id)


async def test_a_batch_tells_of_each_file_and_namesakes_both_live(pair: Pair) -> None:
    async with pair.async_client("shelf") as client:
        store = await client.vector_stores.create(name="Teas")
        batch = await client.vector_stores.file_batches.upload_and_poll(
            store.id,
            files=[("tea.md", GREEN), ("tea.md", b"# Black tea\n\nSteep it at ninety degrees."), ("tea.bin", b"\x00")],
            poll_interval_ms=POLL_MILLISECONDS,
        )
        strictly(VectorStoreFileBatch, batch)
        counts = batch.file_counts
        assert (batch.status, counts.completed, counts.failed, counts.total) == ("completed", 2, 1, 3)
        failed = [file async for file in client.vector_stores.files.list(store.id, filter="failed", limit=1)]
        (error,) = [file.last_error for file in failed]
        assert error is not None
        assert error.code == "unsupported_file"
        assert "'tea.bin'" in error.message
        listed = [
            file async for file in client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id)
        ]
        assert len(listed) == 3
        found = (await client.vector_stores.search(store.id, query=["seventy", "ninety degrees"])).data
        assert [hit.filename for hit in found] == ["tea.md", "tea.md"]
        assert len({hit.file_id for hit in found}) == 2
        file_id = found[0].file_id
        (text,) = [part.text async for part in client.vector_stores.files.content(file_id, vector_store_id=store.id)]
        assert "Steep" in (text or "")
        await client.vector_stores.files.delete(file_id, vector_store_id=store.id)
        assert (await client.files.retrieve(file_id)).filename == "tea.md"
        left = (await client.vector_stores.search(store.id, query="steep degrees")).data
        assert [hit.file_id for hit in left] == [hit.file_id for hit in found if hit.file_id != file_id]


async def test_a_turn_cites_the_file(pair: Pair, model: FakeModelControl) -> None:
    results: Any = ["file_search_call.results"]
    async with pair.async_client("shelf") as client:
        store, file = await _stored(client, "green.md", GREEN)
        await model.script(searches("steep"), Reply(text=("Seventy", " [", "1]", ".")))
        tools: Any = [{"type": "file_search", "vector_store_ids": [store]}]
        response = await client.responses.create(input="How hot?", tools=tools, include=results)
        output: Any = response.to_dict()["output"]
        search, message = output
        (found,) = search["results"]
        (cited,) = message["content"][0]["annotations"]
        assert (found["file_id"], found["filename"]) == (cited["file_id"], cited["filename"]) == (file, "green.md")


async def _stored(client: AsyncOpenAI, name: str, body: bytes, **attributes: str) -> tuple[str, str]:
    store = await client.vector_stores.create(name="Teas")
    file = await client.files.create(file=(name, body), purpose="assistants")
    attached = await client.vector_stores.files.create_and_poll(
        vector_store_id=store.id, file_id=file.id, attributes={**attributes}, poll_interval_ms=POLL_MILLISECONDS
    )
    assert attached.status == "completed"
    return store.id, file.id


async def test_filters_of_a_turn_hold_in_its_searches(pair: Pair, model: FakeModelControl) -> None:
    results: Any = ["file_search_call.results"]
    async with pair.async_client("shelf") as client:
        store, file = await _stored(client, "green.md", GREEN, kind="green")
        other = await client.files.create(file=("black.md", b"# Black tea\n\nSteep it too."), purpose="user_data")
        await client.vector_stores.files.create_and_poll(
            vector_store_id=store, file_id=other.id, attributes={"kind": "black"}, poll_interval_ms=POLL_MILLISECONDS
        )
        is_green = {"type": "eq", "key": "kind", "value": "green"}
        tools: Any = [{"type": "file_search", "vector_store_ids": [store], "filters": is_green}]
        await model.script(searches("steep"), Reply(text=("Hot.",)), searches("steep"), Reply(text=("Hot.",)))
        first = await client.responses.create(input="How hot?", tools=tools, include=results)
        later = await client.responses.create(input="And now?", previous_response_id=first.id, include=results)
        for response in (first, later):
            shown: Any = response.to_dict()
            search = shown["output"][0]
            assert [(hit["file_id"], hit["attributes"]) for hit in search["results"]] == [(file, {"kind": "green"})]
            assert shown["tools"][0]["filters"] == is_green
        with pair.http(pair.key("shelf")) as http:
            http.put(f"/v1/knowledge_bases/{store}/members/warden", json={"role": "restricted_analyst"})
    async with pair.async_client("warden") as warden:
        with pytest.raises(PermissionDeniedError) as refused:
            await warden.responses.create(input="How hot?", tools=tools)
        assert refused.value.param == "tools[0].filters"
        seen = (await warden.vector_stores.retrieve(store)).to_dict()
        assert (seen["created_at"], seen["usage_bytes"], seen["metadata"]) == (0, 0, {})
        assert seen["file_counts"]["total"] == 0  # type: ignore[index]
        for forbidden in (
            warden.vector_stores.search(store, query="steep"),
            warden.vector_stores.files.retrieve(file, vector_store_id=store),
            warden.vector_stores.files.list(store).__aiter__().__anext__(),
        ):
            with pytest.raises(PermissionDeniedError):
                await forbidden


async def test_a_message_names_a_file_of_its_own_user(pair: Pair, model: FakeModelControl) -> None:
    """Files are taken by id through both APIs; somebody else's reads like none, and the error names the field."""
    await model.script(Reply(text=("Seventy.",)), Reply(text=("Seventy.",)))
    async with pair.async_client("shelf") as client, pair.async_client("thief") as thief:
        file = await client.files.create(file=("green.md", GREEN), purpose="user_data")
        text: Any = {"type": "input_text", "text": "How hot?"}
        items: Any = [{"role": "user", "content": [{"type": "input_file", "file_id": file.id}, text]}]
        part: Any = {"type": "file", "file": {"file_id": file.id}}
        messages: Any = [{"role": "user", "content": [part, {"type": "text", "text": "How hot?"}]}]
        await client.responses.create(model=MODEL, input=items)
        await client.chat.completions.create(model=MODEL, messages=messages)
        for sent in await model.requests():
            assert GREEN.decode() in json.dumps(messages_of(sent), ensure_ascii=False).replace("\\n", "\n")

        with pytest.raises(BadRequestError, match="There is no file") as by_item:
            await thief.responses.create(model=MODEL, input=items)
        assert by_item.value.param == "input[0].content[0].file_id"
        with pytest.raises(BadRequestError, match="There is no file") as by_message:
            await thief.chat.completions.create(model=MODEL, messages=messages)
        assert by_message.value.param == "messages[0].content[0].file.file_id"
        items[0]["content"][0]["file_id"] = file.id[:-1] + ("0" if file.id[-1] != "0" else "1")
        with pytest.raises(BadRequestError, match="There is no file"):
            await thief.responses.create(model=MODEL, input=items)
        await client.files.delete(file.id)
