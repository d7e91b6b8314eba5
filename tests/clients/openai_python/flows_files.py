"""Flows of the official client over files and vector stores."""

import base64
import io
import tempfile
from pathlib import Path

from flow_kit import FILE_CODE_WORD, FILE_TEXT, KNOWLEDGE_BASE_ID, MODEL, check, flow, refused, run
from openai import OpenAI

client = OpenAI(max_retries=0)
QUESTION = "Which code word does the inventory name?"


def upload(name: str = "inventory.md", purpose: str = "assistants"):
    """Upload the text of the flows."""
    return client.files.create(file=(name, io.BytesIO(FILE_TEXT.encode())), purpose=purpose)


@flow("files", "files: create, list, retrieve, content, delete")
def files():
    """A file's life."""
    file = upload()
    check(file.filename == "inventory.md" and file.bytes == len(FILE_TEXT), file)
    check(file.id in [each.id for each in client.files.list(purpose="assistants")])
    check(client.files.retrieve(file.id).id == file.id)
    check(client.files.content(file.id).text == FILE_TEXT)
    check(client.files.delete(file.id).deleted)
    with refused("404", "file_id"):
        client.files.retrieve(file.id)


@flow("files", "files: wrong purpose, empty file")
def wrong_files():
    """Each a message that names the field."""
    with refused("purpose", "user_data"):
        upload(purpose="fine-tune")
    with refused("file"):
        client.files.create(file=("empty.md", b""), purpose="assistants")


@flow("files", "vector_stores: create, upload_and_poll, search, delete")
def vector_store():
    """A store from nothing to an answer."""
    store = client.vector_stores.create(name="Inventory", metadata={"shelf": "1"})
    attached = client.vector_stores.files.upload_and_poll(
        vector_store_id=store.id, file=("inventory.md", FILE_TEXT.encode()), attributes={"year": 2026}
    )
    check(attached.status == "completed", attached)
    found = client.vector_stores.search(store.id, query="code word of the inventory", max_num_results=3)
    check(FILE_CODE_WORD in found.data[0].content[0].text and found.data[0].filename == "inventory.md", found)
    none = client.vector_stores.search(
        store.id, query=["code word"], filters={"type": "eq", "key": "year", "value": 1999}
    )
    check(none.data == [], none)
    check(client.vector_stores.retrieve(store.id).file_counts.completed == 1)
    check(client.vector_stores.update(store.id, name="Stock").name == "Stock")
    check(store.id in [each.id for each in client.vector_stores.list(limit=100)])
    check([each.id for each in client.vector_stores.files.list(store.id)] == [attached.id])
    tool = {"type": "file_search", "vector_store_ids": [store.id]}
    response = client.responses.create(model=MODEL, input=QUESTION, tools=[tool], include=["file_search_call.results"])
    check(FILE_CODE_WORD in response.output_text, response.output_text)
    notes = [note for item in response.output if item.type == "message" for note in item.content[0].annotations]
    check([note.file_id for note in notes] == [attached.id], notes)
    client.vector_stores.files.delete(attached.id, vector_store_id=store.id)
    check(client.vector_stores.delete(store.id).deleted)


@flow("files", "vector_stores: file_batches.upload_and_poll, content, attributes")
def batches():
    """Several files at once."""
    store = client.vector_stores.create(name="Batch")
    batch = client.vector_stores.file_batches.upload_and_poll(
        store.id, files=[("a.md", FILE_TEXT.encode()), ("b.md", b"# Other\n\nNothing here.")]
    )
    check(batch.status == "completed" and batch.file_counts.completed == 2, batch)
    listed = list(client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id))
    check(len(listed) == 2, listed)
    changed = client.vector_stores.files.update(listed[0].id, vector_store_id=store.id, attributes={"kind": "x"})
    check(changed.attributes == {"kind": "x"}, changed)
    texts = [part.text for part in client.vector_stores.files.content(listed[0].id, vector_store_id=store.id)]
    check(texts, texts)


@flow("files", "vector_stores: file_search with filters")
def filtered():
    """A turn that sees the files of one year only."""
    store = client.vector_stores.create(name="Years")
    for year, word in ((2025, "LARCH"), (2026, "MARIGOLD")):
        text = f"# Inventory {year}\n\nThe code word of the inventory is {word}.\n".encode()
        client.vector_stores.files.upload_and_poll(
            vector_store_id=store.id, file=(f"{year}.md", text), attributes={"year": year}
        )
    tool = {
        "type": "file_search",
        "vector_store_ids": [store.id],
        "filters": {"type": "eq", "key": "year", "value": 2025},
    }
    response = client.responses.create(model=MODEL, input=QUESTION, tools=[tool])
    check("LARCH" in response.output_text, response.output_text)


@flow("files", "vector_stores: expires_after refused, base seen as a store")
def refusals():
    """What is not done is said; a knowledge base is a store."""
    with refused("expires_after"):
        client.vector_stores.create(name="x", expires_after={"anchor": "last_active_at", "days": 1})
    check(client.vector_stores.retrieve(KNOWLEDGE_BASE_ID).name == "Handbook")
    check(client.vector_stores.search(KNOWLEDGE_BASE_ID, query="code word").data)


@flow("files", "files: from a path, an open file and bytes, a name with blanks and umlauts")
def file_sources():
    """Each way of naming what to upload; the bytes come back into a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "Größe und Maß (1).md"
        path.write_text(FILE_TEXT, encoding="utf-8")
        stored = [client.files.create(file=path, purpose="user_data")]
        with path.open("rb") as opened:
            stored.append(client.files.create(file=opened, purpose="user_data"))
        check([file.filename for file in stored] == [path.name] * 2, stored)
        with client.files.with_streaming_response.content(stored[0].id) as answer:
            answer.stream_to_file(path)
        check(path.read_text(encoding="utf-8") == FILE_TEXT)
    stored.append(client.files.create(file=b"plain bytes", purpose="user_data"))
    check(stored[2].bytes == len(b"plain bytes"), stored[2])
    for file in stored:
        check(client.files.wait_for_processing(file.id, max_wait_seconds=20).id == file.id)
        client.files.delete(file.id)


@flow("files", "vector_stores: update, attributes in batches, filters of every kind, what is cited read back")
def store_filters():
    """Two files of one batch with attributes of their own, found by them."""
    store = client.vector_stores.create(name="Stock", metadata={"team": "red"})
    check(client.vector_stores.update(store.id, name="Stores").metadata == {"team": "red"})
    old, new = upload("old.md"), upload("new.md")
    batch = client.vector_stores.file_batches.create_and_poll(
        store.id,
        files=[
            {"file_id": old.id, "attributes": {"year": 2020}},
            {"file_id": new.id, "attributes": {"year": 2025}, "chunking_strategy": {"type": "auto"}},
        ],
        poll_interval_ms=50,
    )
    check(batch.file_counts.completed == 2, batch)
    kinds = {"eq": 2025, "ne": 2020, "gt": 2024, "gte": 2025, "in": [2025, 2026], "nin": [2020]}
    for kind, value in kinds.items():
        hits = list(
            client.vector_stores.search(store.id, query=QUESTION, filters={"type": kind, "key": "year", "value": value})
        )
        check(hits and all(hit.file_id == new.id and hit.attributes == {"year": 2025} for hit in hits), kind, hits)
    neither = [{"type": "lt", "key": "year", "value": 2020}, {"type": "gt", "key": "year", "value": 2025}]
    check(
        not list(
            client.vector_stores.search(store.id, query=[QUESTION, "code"], filters={"type": "or", "filters": neither})
        )
    )
    listed = client.vector_stores.files.list(store.id, filter="completed", limit=1)  # more than a page of them
    check({file.id for file in listed} == {old.id, new.id})
    tool = {"type": "file_search", "vector_store_ids": [store.id], "max_num_results": 1}
    response = client.responses.create(model=MODEL, input=QUESTION, tools=[tool])
    cited = [each for item in response.output if item.type == "message" for each in item.content[0].annotations]
    check(client.files.content(cited[0].file_id).text == FILE_TEXT, cited)
    client.vector_stores.delete(store.id)


@flow("files", "responses input_file with file_data")
def input_file():
    """A document in the message."""
    coded = base64.b64encode(FILE_TEXT.encode()).decode()
    part = {"type": "input_file", "filename": "inventory.md", "file_data": f"data:text/markdown;base64,{coded}"}
    asked = [{"role": "user", "content": [part, {"type": "input_text", "text": QUESTION}]}]
    response = client.responses.create(model=MODEL, input=asked)
    check(FILE_CODE_WORD in response.output_text, response.output_text)


@flow("files", "responses input_file with file_id, file_url refused")
def input_file_id():
    """A document that was uploaded before."""
    part = {"type": "input_file", "file_id": upload(purpose="user_data").id}
    asked = [{"role": "user", "content": [part, {"type": "input_text", "text": QUESTION}]}]
    check(FILE_CODE_WORD in client.responses.create(model=MODEL, input=asked).output_text)
    asked[0]["content"][0] = {"type": "input_file", "file_url": "https://example.com/a.pdf"}
    with refused("input[0].content[0]", "file_url"):
        client.responses.create(model=MODEL, input=asked)


@flow("files", "chat file part")
def chat_file():
    """The same in Chat Completions."""
    coded = base64.b64encode(FILE_TEXT.encode()).decode()
    file = {"filename": "inventory.md", "file_data": f"data:text/markdown;base64,{coded}"}
    parts = [{"type": "file", "file": file}, {"type": "text", "text": QUESTION}]
    completion = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}])
    check(FILE_CODE_WORD in completion.choices[0].message.content, completion)


run()
