"""One contract for every `KnowledgeStore`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.ports.knowledge import KnowledgeStore
from shared.errors import Conflict, NotFound
from shared.models.safe_summary import BaseContent, RestrictedGrade
from tests.contract.knowledge_cases import fake_knowledge, indexed, make_base, make_document, put, sql_knowledge


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KnowledgeStore]:
    if request.param == "fake":
        yield fake_knowledge().store
        return
    sqlite_url = f"sqlite+aiosqlite:///{tmp_path}/ballast.db"
    url = sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    async with sql_knowledge(url) as knowledge:
        yield knowledge.store


async def test_a_base_comes_back_with_its_owner(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    (binding,) = await store.bindings("acme", "ann", None)
    assert binding.base == make_base()
    assert binding.role is MemberRole.OWNER


async def test_bindings_are_those_of_the_member_and_tenant_by_id(store: KnowledgeStore) -> None:
    for base_id in ("kb_c", "kb_a", "kb_b"):
        await store.create_base(make_base(base_id), "ann")
    await store.create_base(make_base("kb_d", tenant="other"), "ann")
    await store.set_member("kb_b", "bob", MemberRole.READER)
    assert [found.base.id for found in await store.bindings("acme", "ann", None)] == ["kb_a", "kb_b", "kb_c"]
    assert [found.base.id for found in await store.bindings("acme", "ann", ["kb_c", "kb_d", "kb_x"])] == ["kb_c"]
    assert [found.base.id for found in await store.bindings("acme", "bob", None)] == ["kb_b"]
    assert await store.bindings("acme", "ann", []) == ()


async def test_a_description_changes_and_the_version_does_not(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await store.update_base("kb_a", {"name": "New", "topics": ()})
    (binding,) = await store.bindings("acme", "ann", None)
    assert binding.base == make_base().model_copy(update={"name": "New", "topics": ()})


async def test_two_who_change_different_fields_both_keep_theirs(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await store.update_base("kb_a", {"restricted_grade": RestrictedGrade.STRICT})
    await store.update_base("kb_a", {"routing_keywords": ("vans",)})
    (binding,) = await store.bindings("acme", "ann", None)
    assert (binding.base.restricted_grade, binding.base.routing_keywords) == (RestrictedGrade.STRICT, ("vans",))


async def test_the_version_grows_where_translation_is_allowed_or_forbidden(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    for is_allowed, version in ((True, 1), (True, 1), (False, 2)):
        await store.update_base("kb_a", {"restricted_translation": is_allowed})
        (binding,) = await store.bindings("acme", "ann", None)
        assert (binding.base.restricted_translation, binding.base.version) == (is_allowed, version)


async def test_the_version_grows_where_another_grade_is_chosen(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    open_, strict = RestrictedGrade
    for grade, version in ((open_, 1), (strict, 2), (strict, 2), (None, 3)):
        await store.update_base("kb_a", {"restricted_grade": grade})
        (binding,) = await store.bindings("acme", "ann", None)
        assert (binding.base.restricted_grade, binding.base.version) == (grade, version)


@pytest.mark.parametrize("said", [{"support": 5}, {"content": BaseContent.RECORDS}])
async def test_the_version_grows_with_what_an_owner_says_of_a_base(store: KnowledgeStore, said: dict[str, Any]) -> None:
    await store.create_base(make_base(), "ann")
    for _ in range(2):
        await store.update_base("kb_a", said)
        (binding,) = await store.bindings("acme", "ann", None)
        assert binding.base == make_base().model_copy(update={**said, "version": 1})


async def test_documents_are_counted_by_base(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    assert await store.count_documents(["kb_a"]) == {}
    await put(store, "a.md", ["one", "two"])
    await put(store, "b.md", ["three"])
    assert await store.count_documents(["kb_a", "kb_b"]) == {"kb_a": 2}


async def test_a_base_that_allows_translation_comes_back_so(store: KnowledgeStore) -> None:
    base = make_base().model_copy(update={"restricted_translation": True})
    await store.create_base(base, "ann")
    (binding,) = await store.bindings("acme", "ann", ["kb_a"])
    assert binding.base == base


async def test_members_are_set_changed_and_removed(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await store.set_member("kb_a", "bob", MemberRole.EDITOR)
    await store.set_member("kb_a", "bob", MemberRole.RESTRICTED_ANALYST)
    assert await store.members("kb_a") == {"ann": MemberRole.OWNER, "bob": MemberRole.RESTRICTED_ANALYST}
    assert await store.remove_member("kb_a", "bob") is True
    assert await store.remove_member("kb_a", "bob") is False
    assert await store.members("kb_a") == {"ann": MemberRole.OWNER}


async def test_the_last_owner_stays(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    with pytest.raises(Conflict):
        await store.remove_member("kb_a", "ann")
    with pytest.raises(Conflict):
        await store.set_member("kb_a", "ann", MemberRole.READER)
    assert await store.members("kb_a") == {"ann": MemberRole.OWNER}


async def test_of_two_owners_who_leave_at_once_one_stays(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await store.set_member("kb_a", "bob", MemberRole.OWNER)
    left = await asyncio.gather(
        store.remove_member("kb_a", "ann"), store.remove_member("kb_a", "bob"), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in left) == ["Conflict", "bool"]
    assert len(await store.members("kb_a")) == 1


async def test_a_document_comes_back_with_body_and_chunks(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    document, body, chunks = make_document("a/河.md", ["one", "two"])
    assert await store.put_document(document, body, indexed(chunks)) == (document, True)
    assert await store.find_document("kb_a", "a/河.md") == document
    assert await store.documents_from([document.id]) == (document,)
    assert await store.document_body(document.id) == body
    assert await store.chunks(document.id) == tuple(chunks)


async def test_chunks_come_in_pages_of_their_document(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    document, chunks = await put(store, "a", ["one", "two", "three"]), make_document("a", ["one", "two", "three"])[2]
    other = await put(store, "b", ["four"])
    assert await store.chunks(document.id, limit=2) == tuple(chunks[:2])
    assert await store.chunks(document.id, after=chunks[1].id, limit=2) == (chunks[2],)
    assert await store.chunks(document.id, after=chunks[2].id) == ()
    for wrong in ("chunk_x", (await store.chunks(other.id))[0].id):
        with pytest.raises(NotFound) as refused:
            await store.chunks(document.id, after=wrong)
        assert refused.value.param == "after"


async def test_what_is_not_there_is_none(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    assert await store.find_document("kb_a", "x") is None
    assert await store.find_document("kb_x", "x") is None
    assert await store.documents_from(["doc_x"]) == ()
    assert await store.chunks("doc_x") == ()
    assert await store.delete_document("kb_a", "x") is False
    with pytest.raises(NotFound):
        await store.document_body("doc_x")
    with pytest.raises(NotFound):
        await put(store, "a", ["one"], base_id="kb_x")


async def test_a_namesake_is_replaced_whole_and_keeps_its_id(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await put(store, "a", ["one", "two"])
    document, body, chunks = make_document("a", ["three"], document_id="doc_newer")
    newer, is_new = await store.put_document(document, body, indexed(chunks))
    assert (newer.model_copy(update={"id": "doc_newer"}), is_new) == (document, False)
    assert await store.all_documents(["kb_a"]) == (newer,)
    assert await store.documents_from(["doc_newer"]) == ()
    assert await store.document_body(newer.id) == body
    assert await store.chunks(newer.id) == (chunks[0].model_copy(update={"document_id": "doc_kb_a_a"}),)


async def test_a_document_replaces_the_one_that_is_meant_and_no_later_one(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await put(store, "a.md", ["Old."])
    found = await store.find_document("kb_a", "a.md")
    assert found is not None
    again, body, chunks = make_document("a.md", ["Old.", "Read better."])
    stored, is_new = await store.put_document(again, body, indexed(chunks), instead_of=found)
    assert (stored.chunk_count, is_new) == (2, False)
    with pytest.raises(Conflict):
        await store.put_document(again, body, indexed(chunks), instead_of=found.model_copy(update={"sha256": "1" * 64}))
    assert await store.delete_document("kb_a", "a.md")
    with pytest.raises(Conflict):
        await store.put_document(again, body, indexed(chunks), instead_of=found)
    assert await store.find_document("kb_a", "a.md") is None


async def test_outdated_are_the_documents_that_an_earlier_reader_has_read(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    for name, version in (("a", None), ("b", 1), ("c", 2), ("d", 3)):
        document, body, chunks = make_document(name, ["Text."])
        await store.put_document(document.model_copy(update={"reader_version": version}), body, indexed(chunks))
    assert await store.find_outdated({"text/plain": 2, "text/csv": 9}) == ("doc_kb_a_a", "doc_kb_a_b")
    assert await store.find_outdated({"text/plain": 0}) == ()
    document, body, chunks = make_document("e", ["Text."])
    await store.put_document(document.model_copy(update={"unread_pictures": 2}), body, indexed(chunks))
    assert await store.find_outdated({"text/plain": 0}) == ()
    assert await store.find_outdated({"text/plain": 0}, reads_pictures=True) == ("doc_kb_a_e",)


async def test_one_new_name_put_at_once_is_one_document(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    made = [make_document("a", [f"text {number}"] * number, document_id=f"doc_{number}") for number in range(8)]
    puts = [store.put_document(document, body, indexed(chunks)) for document, body, chunks in made]
    stored = await asyncio.gather(*puts)
    assert len({document.id for document, _ in stored}) == 1
    assert [is_new for _, is_new in stored].count(True) == 1
    (last,) = await store.all_documents(["kb_a"])
    assert last in [document for document, _ in stored]
    assert len(await store.chunks(last.id)) == last.chunk_count


async def test_the_version_grows_with_every_change_of_documents(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    versions: list[int] = []
    for change in (put(store, "a", ["one"]), put(store, "a", ["two"]), store.delete_document("kb_a", "a")):
        await change
        versions.append((await store.bindings("acme", "ann", None))[0].base.version)
    assert versions == sorted(set(versions))
    assert versions[0] > 0


async def test_documents_are_paged_by_name_both_ways(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    names = ["B", "a", "b/c", "é", "河", "😀"]
    for name in reversed(names):
        await put(store, name, ["text"])
    first = await store.documents("kb_a", after=None, limit=4, descending=False)
    rest = await store.documents("kb_a", after=first[-1].id, limit=4, descending=False)
    assert [document.name for document in first + rest] == names
    down = await store.documents("kb_a", after=rest[0].id, limit=2, descending=True)
    assert [document.name for document in down] == ["é", "b/c"]
    with pytest.raises(NotFound):
        await store.documents("kb_a", after="doc_x", limit=4, descending=False)


async def test_writers_to_one_base_wait_for_each_other(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await asyncio.gather(*(put(store, f"n{number}", ["some words", "more words"]) for number in range(8)))
    documents = await store.all_documents(["kb_a"])
    assert [document.name for document in documents] == [f"n{number}" for number in range(8)]


async def test_a_deleted_base_takes_everything_along(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    await store.create_base(make_base("kb_b"), "ann")
    gone = await put(store, "a", ["one"])
    kept = await put(store, "a", ["one"], base_id="kb_b")
    await store.delete_base("kb_a")
    assert [found.base.id for found in await store.bindings("acme", "ann", None)] == ["kb_b"]
    assert await store.members("kb_a") == {}
    assert await store.documents_from([gone.id]) == ()
    assert await store.all_documents(["kb_a", "kb_b"]) == (kept,)
    await store.create_base(make_base(), "ann")
    assert await store.all_documents(["kb_a"]) == ()


async def test_a_base_is_ensured_once_however_many_ask(store: KnowledgeStore) -> None:
    base = make_base("shelf_a")
    await asyncio.gather(*[store.ensure_base(base, "ann") for _ in range(5)])
    await put(store, "a.md", ["one"], base_id="shelf_a")
    await store.ensure_base(base, "bob")
    assert dict(await store.members("shelf_a")) == {"ann": MemberRole.OWNER}
    (binding,) = await store.bindings("acme", "ann", None)
    assert binding.base == base.model_copy(update={"version": 1})
    assert len(await store.all_documents(["shelf_a"])) == 1


async def test_the_tokens_of_documents_are_counted(store: KnowledgeStore) -> None:
    await store.create_base(make_base(), "ann")
    first, second = await put(store, "a.md", ["one", "two"]), await put(store, "b.md", ["three"])
    counts = await store.token_counts([first.id, second.id, "doc_none"])
    assert dict(counts) == {first.id: 20, second.id: 10}
    assert await store.token_counts([]) == {}
