"""One contract for every `AttachmentStore`, and for the documents that attached files become."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from backend.foundation.domain.idempotency import KeyClaim
from backend.foundation.sql.chosen import open_database
from backend.knowledge.domain.attachments import (
    AttachedQuery,
    AttachedStatus,
    Attachment,
    AttachmentClaim,
    FileBatch,
    FileError,
    TakenAttachment,
)
from backend.knowledge.domain.knowledge import Document
from backend.knowledge.ports.attachments import AttachmentStore
from backend.knowledge.ports.knowledge import KnowledgeStore
from backend.knowledge.sql.attachments import SqlAttachmentStore
from backend.migrations.migrate import migrate
from backend.search.domain.filters import Comparison
from backend.search.ports.index import Retrieval
from backend.search.sql.retrieval import SqlRetrieval
from shared.errors import Conflict, KeyHeld, NotFound
from tests.contract.knowledge_cases import T0, indexed, make_base, make_document
from tests.fakes.clock import FakeClock
from tests.fakes.sql_knowledge import knowledge_store
from tests.fakes.store_attachments import FakeAttachments
from tests.fakes.store_knowledge import FakeKnowledge

LEASE = 60.0
ENDED = -1.0
"""A lease that has ended as soon as it is taken."""


class Stores(NamedTuple):
    queue: AttachmentStore
    knowledge: KnowledgeStore
    retrieval: Retrieval


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    if request.param == "fake":
        fake = FakeKnowledge()
        await fake.create_base(make_base(), "ann")
        yield Stores(FakeAttachments(fake, FakeClock()), fake, fake)
        return
    sqlite_url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    database = open_database(sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url"))
    try:
        await migrate(database)
        store = knowledge_store(database, FakeClock())
        await store.create_base(make_base(), "ann")
        yield Stores(SqlAttachmentStore(database, FakeClock()), store, SqlRetrieval(database))
    finally:
        await database.close()


def attachment(file_id: str, *, user: str = "ann", age: int = 0, name: str = "a.txt", **said: str) -> Attachment:
    return Attachment(
        knowledge_base_id="kb_a",
        file_id=file_id,
        tenant="acme",
        user_id=user,
        filename=name,
        attributes={**said},
        created_at=T0 - timedelta(seconds=age),
    )


async def taken(stores: Stores, served: str = "", lease: float = LEASE) -> TakenAttachment:
    found = await stores.queue.take(("acme", served) if served else None, lease)
    assert found is not None
    return found


async def complete(stores: Stores, claim: AttachmentClaim, text: str = "Tea is green.") -> Document:
    document, body, chunks = make_document("ignored", [text], document_id=f"doc_{claim.file_id}")
    stored, is_new = await stores.knowledge.put_document(document, body, indexed(chunks), claim)
    assert is_new
    return stored


async def ids(stores: Stores, **query: object) -> list[str]:
    asked = {"base_id": "kb_a", "limit": 9, "descending": True, **query}
    return [one.id for one in await stores.queue.list_attached(AttachedQuery(**asked))]  # type: ignore[arg-type]


async def test_a_file_waits_and_becomes_a_document(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a", kind="tea")])
    waiting = await stores.queue.find_attached("kb_a", "file-a")
    assert waiting is not None
    assert (waiting.status, waiting.document_name, waiting.attributes) == ("in_progress", None, {"kind": "tea"})
    claim = (await taken(stores)).claim
    assert await stores.queue.take(None, LEASE) is None
    document = await complete(stores, claim)
    assert (document.name, document.source_id, document.title) == ("a.txt", "file-a", "a.txt")
    done = await stores.queue.find_attached("kb_a", "file-a")
    assert done is not None
    assert (done.status, done.document_name, done.attributes) == ("completed", "a.txt", {"kind": "tea"})
    assert done.size_bytes == document.size_bytes
    assert await stores.queue.take(None, LEASE) is None
    assert await stores.knowledge.documents_from(["file-a"]) == (document,)


async def test_a_base_is_created_with_files_that_wait_or_not_at_all(stores: Stores) -> None:
    new = [attachment(file_id, kind="tea").model_copy(update={"knowledge_base_id": "kb_b"}) for file_id in ("f", "g")]
    claim = KeyClaim(id="key", fingerprint="body", claimed_at=T0, created="kb_b")
    await stores.knowledge.create_base(make_base("kb_b"), "ann", claim, new[:1])
    waiting = await stores.queue.find_attached("kb_b", "f")
    assert waiting is not None
    assert (waiting.status, waiting.attributes) == ("in_progress", {"kind": "tea"})
    with pytest.raises(KeyHeld):
        await stores.knowledge.create_base(make_base("kb_c"), "ann", claim, new[1:])
    assert (await taken(stores)).claim.file_id == "f"
    assert await stores.queue.take(None, LEASE) is None


async def test_only_the_newest_lease_stores_the_document(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a")])
    first = await taken(stores, lease=ENDED)
    second = await taken(stores)
    assert second.attempts == 2
    assert await stores.queue.renew(first.claim, LEASE) is False
    with pytest.raises(Conflict):
        await complete(stores, first.claim)
    await stores.queue.fail(first.claim, FileError(code="server_error", message="late"))
    assert await stores.queue.renew(second.claim, LEASE) is True
    await complete(stores, second.claim)
    with pytest.raises(Conflict):
        await complete(stores, second.claim)
    assert len(await stores.knowledge.all_documents(["kb_a"])) == 1


async def test_a_released_file_is_taken_again_and_counts_no_attempt(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a")])
    first = await taken(stores)
    await stores.queue.release(first.claim, ENDED)
    again = await taken(stores)
    assert again.attempts == 1
    await stores.queue.release(again.claim, LEASE)
    assert await stores.queue.take(None, LEASE) is None
    await stores.queue.release_all()
    assert (await taken(stores)).attachment.file_id == "file-a"


async def test_users_take_turns(stores: Stores) -> None:
    await stores.queue.attach([attachment(f"file-{number}", age=9 - number) for number in range(4)])
    await stores.queue.attach([attachment("file-b", user="bob")])
    assert (await taken(stores, "bob")).attachment.file_id == "file-0"
    assert (await taken(stores, "ann")).attachment.file_id == "file-b"
    assert (await taken(stores, "ann")).attachment.file_id == "file-1"


async def test_who_was_served_last_waits_for_the_others(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a", age=5), attachment("file-b", user="bob")])
    first = await taken(stores, "ann")
    assert first.attachment.file_id == "file-b"


async def test_namesakes_both_live_and_keep_their_filename(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a", name="r.md", age=2), attachment("file-b", name="r.md", age=1)])
    names = [(await complete(stores, (await taken(stores)).claim, text)).name for text in ("Red tea.", "Red wine.")]
    assert names == ["r.md", "r (2).md"]
    hits = await stores.retrieval.search(["kb_a"], "red", 9)
    assert {(hit.source_id, hit.title) for hit in hits} == {("file-a", "r.md"), ("file-b", "r.md")}


async def test_a_failed_file_tells_why_and_waits_again_when_it_is_attached_again(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a")])
    error = FileError(code="invalid_file", message="'a.txt' is damaged.")
    await stores.queue.fail((await taken(stores)).claim, error)
    failed = await stores.queue.find_attached("kb_a", "file-a")
    assert failed is not None
    assert (failed.status, failed.error) == ("failed", error)
    assert await stores.queue.take(None, LEASE) is None
    await stores.queue.attach([attachment("file-a", kind="tea")])
    again = await stores.queue.find_attached("kb_a", "file-a")
    assert again is not None
    assert (again.status, again.error, again.attributes) == ("in_progress", None, {"kind": "tea"})
    assert (await taken(stores)).attempts == 1


async def test_attaching_a_document_again_sets_its_attributes(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a")])
    await complete(stores, (await taken(stores)).claim)
    await stores.queue.attach([attachment("file-a", kind="new")])
    assert await stores.queue.take(None, LEASE) is None
    assert (await stores.knowledge.documents_from(["file-a"]))[0].attributes == {"kind": "new"}


async def test_a_batch_counts_its_files_and_can_be_cancelled(stores: Stores) -> None:
    batch = FileBatch(id="vsfb_a", knowledge_base_id="kb_a", created_at=T0)
    await stores.queue.attach([attachment("file-a", age=3), attachment("file-b", age=2)], batch)
    await stores.queue.attach([attachment("file-c", age=1)])
    await complete(stores, (await taken(stores)).claim)
    running = (await taken(stores)).claim
    found = await stores.queue.find_batch("kb_a", "vsfb_a")
    assert found is not None
    assert (found[1].completed, found[1].in_progress, found[1].total) == (1, 1, 2)
    assert await ids(stores, batch_id="vsfb_a") == ["file-b", "file-a"]
    assert await stores.queue.cancel_batch("kb_b", "vsfb_a") is False
    assert await stores.queue.cancel_batch("kb_a", "vsfb_a") is True
    found = await stores.queue.find_batch("kb_a", "vsfb_a")
    assert found is not None
    assert (found[0].is_cancelled, found[1].completed, found[1].cancelled) == (True, 1, 1)
    with pytest.raises(Conflict):
        await complete(stores, running)
    assert await stores.queue.find_batch("kb_b", "vsfb_a") is None
    assert (await stores.queue.file_counts(["kb_a"]))["kb_a"].total == 3


async def test_files_and_documents_are_one_list_in_pages(stores: Stores) -> None:
    await stores.queue.attach([attachment(f"file-{number}", age=number) for number in range(1, 4)])
    document, body, chunks = make_document("own.txt", ["Mine."], document_id="doc_own")
    await stores.knowledge.put_document(document, body, indexed(chunks))
    assert await ids(stores) == ["doc_own", "file-1", "file-2", "file-3"]
    assert await ids(stores, descending=False, limit=1) == ["file-3", "file-2"]
    assert await ids(stores, after="file-1") == ["file-2", "file-3"]
    assert await ids(stores, before="file-3", limit=1) == ["file-2", "file-1"]
    assert await ids(stores, status=AttachedStatus.COMPLETED) == ["doc_own"]
    for cursor in ("after", "before"):
        with pytest.raises(NotFound):
            await ids(stores, **{cursor: "file-x"})


async def test_attributes_of_a_document_that_is_put_are_kept_when_it_is_replaced(stores: Stores) -> None:
    document, body, chunks = make_document("own.txt", ["Mine."], document_id="doc_own")
    await stores.knowledge.put_document(document, body, indexed(chunks))
    assert await stores.queue.set_attributes("kb_a", "doc_own", {"kind": "own"}) is True
    assert await stores.queue.set_attributes("kb_a", "doc_none", {}) is False
    newer, body, chunks = make_document("own.txt", ["Mine again."], document_id="doc_other")
    await stores.knowledge.put_document(newer, body, indexed(chunks))
    (stored,) = await stores.knowledge.documents_from(["doc_own"])
    assert stored.attributes == {"kind": "own"}


async def test_a_search_with_filters_finds_their_documents_alone_with_the_same_scores(stores: Stores) -> None:
    for number, kind in enumerate(("red", "green", "red")):
        await stores.queue.attach([attachment(f"file-{number}", kind=kind)])
        await complete(stores, (await taken(stores)).claim, f"Tea {'leaf ' * number}number {number}.")
    everything = {hit.source_id: hit.score for hit in await stores.retrieval.search(["kb_a"], "tea", 9)}
    only_red = Comparison(type="eq", key="kind", value="red")
    hits = await stores.retrieval.search(["kb_a"], "tea", 9, only_red)
    assert {hit.source_id for hit in hits} == {"file-0", "file-2"}
    assert all(everything[hit.source_id] == hit.score for hit in hits)
    (best,) = await stores.retrieval.search(["kb_a"], "tea", 1, Comparison(type="ne", key="kind", value="red"))
    assert best.attributes == {"kind": "green"}


async def test_a_withdrawn_file_leaves_queue_and_base(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a", age=2), attachment("file-b", age=1)])
    await complete(stores, (await taken(stores)).claim)
    for file_id in ("file-a", "file-b"):
        await stores.knowledge.withdraw_file(file_id)
    assert await ids(stores) == []
    assert await stores.knowledge.all_documents(["kb_a"]) == ()
    assert await stores.queue.take(None, LEASE) is None


async def test_a_detached_file_cannot_be_completed(stores: Stores) -> None:
    await stores.queue.attach([attachment("file-a")])
    claim = (await taken(stores)).claim
    await stores.queue.drop_attachment("kb_a", "file-a")
    with pytest.raises(Conflict):
        await complete(stores, claim)
    assert await ids(stores) == []


async def test_nothing_is_attached_to_a_base_that_is_gone(stores: Stores) -> None:
    gone = attachment("file-a").model_copy(update={"knowledge_base_id": "kb_gone"})
    with pytest.raises(NotFound):
        await stores.queue.attach([gone])


async def test_a_batch_and_its_key_are_stored_together_or_not_at_all(stores: Stores) -> None:
    claim = KeyClaim(id="key", fingerprint="body", claimed_at=T0)
    batches = [FileBatch(id=f"vsfb_{number}", knowledge_base_id="kb_a", created_at=T0) for number in range(3)]
    many = [attachment(f"file-{number}") for number in range(250)]
    await stores.queue.attach(many, batches[0], claim.of(batches[0].id))
    found = await stores.queue.find_batch("kb_a", batches[0].id)
    assert found is not None
    assert found[1].in_progress == 250
    with pytest.raises(KeyHeld):
        await stores.queue.attach(many, batches[1], claim.of(batches[1].id))
    assert await stores.queue.find_batch("kb_a", batches[1].id) is None
    gone = attachment("file-a").model_copy(update={"knowledge_base_id": "kb_gone"})
    unused = claim.model_copy(update={"id": "unused"})
    with pytest.raises(NotFound):
        await stores.queue.attach([gone], batches[2].model_copy(update={"knowledge_base_id": "kb_gone"}), unused)
    await stores.queue.attach(many[:1], batches[2], unused.of(batches[2].id))
