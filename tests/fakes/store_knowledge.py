"""In-memory knowledge: a store and an exact retrieval over it."""

from collections import Counter
from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

from backend.foundation.domain.idempotency import KeyClaim
from backend.groups.domain import group_in
from backend.knowledge.domain.attachments import Attachment, AttachmentClaim, number_name
from backend.knowledge.domain.knowledge import Binding, Document, KnowledgeBase, MemberRole
from backend.search.domain.bm25 import Scorer, Statistics, find_looked_up_terms, greatest_score, plan
from backend.search.domain.chunks import Chunk, ChunkHit
from backend.search.domain.filters import Attributes, Filter, matches
from backend.search.domain.fusion import score_by_words
from backend.search.domain.shared_runs import WordSequence, holds_any, join_runs
from backend.search.domain.tokenizing import count_terms, tokenize_indexed
from shared.errors import Conflict, NotFound
from tests.fakes.store_attachments import FakeQueue
from tests.fakes.store_claims import take_key
from tests.fakes.store_groups import FakeGroupStore


@dataclass
class _StoredDocument:
    document: Document
    body: bytes
    chunks: tuple[Chunk, ...]


@dataclass
class _StoredBase:
    base: KnowledgeBase
    members: dict[str, MemberRole]
    documents: dict[str, _StoredDocument] = field(default_factory=dict[str, _StoredDocument])


class FakeKnowledge:
    """A `KnowledgeStore`, a `Retrieval` and a `WordRuns` at once."""

    def __init__(self) -> None:
        self._bases: dict[str, _StoredBase] = {}
        self.claims: dict[str, KeyClaim] = {}
        self.queue = FakeQueue()
        self.groups = FakeGroupStore()

    @property
    def base_ids(self) -> list[str]:
        return list(self._bases)

    def base(self, base_id: str) -> KnowledgeBase | None:
        return self._bases[base_id].base if base_id in self._bases else None

    def texts_of_chunks(self) -> Mapping[str, str]:
        return {chunk.id: chunk.text for stored in self._documents_of(self.base_ids) for chunk in stored.chunks}

    def chunk_count(self, base_id: str) -> int:
        return sum(len(stored.chunks) for stored in self._documents_of([base_id]))

    async def create_base(
        self, base: KnowledgeBase, owner_id: str, claim: KeyClaim | None = None, attached: Sequence[Attachment] = ()
    ) -> None:
        take_key(self.claims, claim)
        self.queue.add(attached)
        self._bases[base.id] = _StoredBase(base, {owner_id: MemberRole.OWNER})

    async def ensure_base(self, base: KnowledgeBase, owner_id: str) -> None:
        self._bases.setdefault(base.id, _StoredBase(base, {owner_id: MemberRole.OWNER}))

    async def bindings(self, tenant: str, user_id: str, base_ids: Sequence[str] | None) -> tuple[Binding, ...]:
        names = {user_id, *self.groups.named(tenant, user_id)}
        found: list[Binding] = []
        for base_id, stored in sorted(self._bases.items()):
            if stored.base.tenant != tenant or (base_ids is not None and base_id not in base_ids):
                continue
            ways = [(role.rights, group_in(name) or "", role) for name, role in stored.members.items() if name in names]
            if ways:
                _, via, role = min(ways)
                found.append(Binding(base=stored.base, role=role, via=via or None))
        return tuple(found)

    async def update_base(self, base_id: str, changes: Mapping[str, object]) -> None:
        if stored := self._bases.get(base_id):
            base = stored.base.model_copy(update=changes)
            is_other = _terms_of(stored.base) != _terms_of(base)
            stored.base = base.model_copy(update={"version": stored.base.version + is_other})

    async def delete_base(self, base_id: str) -> None:
        self._bases.pop(base_id, None)

    async def members(self, base_id: str) -> Mapping[str, MemberRole]:
        stored = self._bases.get(base_id)
        return dict(sorted(stored.members.items())) if stored else {}

    async def set_member(self, base_id: str, user_id: str, role: MemberRole) -> None:
        self._replace_members(base_id, {**self._base(base_id).members, user_id: role})

    async def remove_member(self, base_id: str, user_id: str) -> bool:
        members = self._base(base_id).members
        self._replace_members(base_id, {user: role for user, role in members.items() if user != user_id})
        return user_id in members

    async def put_document(
        self,
        document: Document,
        body: bytes | bytearray,
        batches: AsyncIterable[Sequence[Chunk]],
        claim: AttachmentClaim | None = None,
        *,
        instead_of: Document | None = None,
    ) -> tuple[Document, bool]:
        chunks = [chunk async for batch in batches for chunk in batch]
        stored = self._base(document.knowledge_base_id)
        if claim is not None:
            document = self._completed(document, claim)
        earlier = stored.documents.get(document.name)
        if instead_of is not None and (earlier is None or earlier.document.sha256 != instead_of.sha256):
            raise Conflict("The document has changed meanwhile.")
        if earlier is not None:
            kept = {"id": earlier.document.id, "attributes": {**earlier.document.attributes, **document.attributes}}
            document = document.model_copy(update=kept)
        own = tuple(chunk.model_copy(update={"document_id": document.id}) for chunk in chunks)
        stored.documents[document.name] = _StoredDocument(document, bytes(body), own)
        self._grow_version(stored)
        return document, earlier is None

    async def documents_from(self, source_ids: Sequence[str]) -> tuple[Document, ...]:
        found = [one.document for one in self._documents_of(list(self._bases))]
        return tuple(one for one in found if one.id in source_ids or one.file_id in source_ids)

    async def find_outdated(self, versions: Mapping[str, int], *, reads_pictures: bool = False) -> tuple[str, ...]:
        found = [one.document for one in self._documents_of(list(self._bases))]
        outdated = [
            one.id
            for one in found
            if (one.reader_version or 0) < versions.get(one.media_type, 0) or (reads_pictures and one.unread_pictures)
        ]
        return tuple(sorted(outdated))

    async def withdraw_file(self, file_id: str) -> None:
        self.queue.forget(file_id)
        for document in await self.documents_from([file_id]):
            await self.delete_document(document.knowledge_base_id, document.name)

    def _completed(self, document: Document, claim: AttachmentClaim) -> Document:
        queued = self.queue.complete(claim)
        taken = self._base(claim.base_id).documents
        names = (number_name(queued.filename, number) for number in count(1))
        its = {"file_id": queued.file_id, "filename": queued.filename, "attributes": queued.attributes}
        name = next(name for name in names if name not in taken)
        return document.model_copy(update={"name": name, "created_at": queued.created_at, **its})

    def set_document_attributes(self, base_id: str, source_id: str, attributes: Attributes) -> bool:
        for one in self._documents_of([base_id]):
            if one.document.source_id == source_id:
                one.document = one.document.model_copy(update={"attributes": attributes})
                return True
        return False

    async def find_document(self, base_id: str, name: str) -> Document | None:
        found = self._bases[base_id].documents.get(name) if base_id in self._bases else None
        return found.document if found else None

    async def document_body(self, document_id: str) -> bytes:
        found = self._by_id(document_id)
        if found is None:
            raise NotFound("No such document.")
        return found.body

    async def delete_document(self, base_id: str, name: str, source_id: str | None = None) -> bool:
        stored = self._bases.get(base_id)
        found = stored.documents.get(name) if stored is not None else None
        if stored is None or found is None or source_id not in (None, found.document.source_id):
            return False
        del stored.documents[name]
        self._grow_version(stored)
        return True

    async def documents(self, base_id: str, *, after: str | None, limit: int, descending: bool) -> tuple[Document, ...]:
        ordered = sorted(await self.all_documents([base_id]), key=lambda document: document.name, reverse=descending)
        ids = [document.id for document in ordered]
        if after is not None and after not in ids:
            raise NotFound("No such document.", param="after")
        start = ids.index(after) + 1 if after is not None else 0
        return tuple(ordered[start : start + limit])

    async def count_documents(self, base_ids: Sequence[str]) -> Mapping[str, int]:
        return Counter(stored.document.knowledge_base_id for stored in self._documents_of(base_ids))

    async def all_documents(self, base_ids: Sequence[str]) -> tuple[Document, ...]:
        return tuple(stored.document for stored in self._documents_of(base_ids))

    async def chunks(
        self, document_id: str, *, after: str | None = None, limit: int | None = None
    ) -> tuple[Chunk, ...]:
        found = self._by_id(document_id)
        chunks = found.chunks if found else ()
        ids = [chunk.id for chunk in chunks]
        if after is not None and after not in ids:
            raise NotFound("No such chunk.", param="after")
        start = ids.index(after) + 1 if after is not None else 0
        return chunks[start:][:limit]

    async def token_counts(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        found = {document_id: self._by_id(document_id) for document_id in document_ids}
        return {key: sum(chunk.tokens for chunk in one.chunks) for key, one in found.items() if one is not None}

    async def search(
        self, base_ids: Sequence[str], query: str, limit: int, filters: Filter | None = None
    ) -> tuple[ChunkHit, ...]:
        chunks = [(stored.document, chunk) for stored in self._documents_of(base_ids) for chunk in stored.chunks]
        texts = [tokenize_indexed(chunk.join_headings) for _, chunk in chunks]
        terms = find_looked_up_terms(query)
        entries = [(count_terms(terms, Counter(chain(*text))), len(text.tokens)) for text in texts]
        statistics = _statistics(entries)
        planned = plan(terms, statistics)
        scorer = Scorer(planned, statistics)
        hits = [
            _hit(document, chunk, scorer.score(counts, length))
            for (document, chunk), (counts, length) in zip(chunks, entries, strict=True)
            if not counts.keys().isdisjoint(planned.leading)
            and (filters is None or matches(filters, document.attributes))
        ]
        ordered = sorted(hits, key=lambda hit: (-hit.score, hit.chunk.text, hit.document_name, hit.chunk.ordinal))
        return tuple(score_by_words(hit, greatest_score(terms, statistics)) for hit in ordered[:limit])

    async def read_all(self, base_ids: Sequence[str], token_limit: int) -> tuple[ChunkHit, ...] | None:
        stored = self._documents_of(base_ids)
        if sum(chunk.tokens for one in stored for chunk in one.chunks) > token_limit:
            return None
        return tuple(_hit(one.document, chunk, 1.0) for one in stored for chunk in one.chunks)

    async def beginnings(self, document_ids: Sequence[str], limit: int, most: int) -> tuple[ChunkHit, ...]:
        found = [one for document_id in document_ids if (one := self._by_id(document_id))]
        return tuple(_hit(one.document, chunk, 0.0) for one in found for chunk in one.chunks[:limit])[:most]

    async def holds_run(self, base_ids: Sequence[str], sequences: Sequence[WordSequence]) -> bool:
        runs = join_runs(sequences)
        texts = [
            "\n".join((chunk.join_headings, *(after.text for after in one.chunks[place + 1 : place + 2])))
            for one in self._documents_of(base_ids)
            for place, chunk in enumerate(one.chunks)
        ]
        return any(holds_any(text, runs) for text in texts)

    def _base(self, base_id: str) -> _StoredBase:
        if base_id not in self._bases:
            raise NotFound("No such knowledge base.")
        return self._bases[base_id]

    def _documents_of(self, base_ids: Sequence[str]) -> list[_StoredDocument]:
        bases = [self._bases[base_id] for base_id in sorted(set(base_ids)) if base_id in self._bases]
        return [base.documents[name] for base in bases for name in sorted(base.documents)]

    def _by_id(self, document_id: str) -> _StoredDocument | None:
        stored = self._documents_of(list(self._bases))
        return next((one for one in stored if one.document.id == document_id), None)

    def owned_alone(self, tenant: str, member: str) -> list[str]:
        return [
            base_id
            for base_id, stored in self._bases.items()
            if stored.base.tenant == tenant and self._owners(stored.members) == [member]
        ]

    def _owners(self, members: Mapping[str, MemberRole]) -> list[str]:
        owners = [name for name, role in members.items() if role is MemberRole.OWNER]
        return [name for name in owners if (group := group_in(name)) is None or self.groups.has_anybody(group)]

    def _replace_members(self, base_id: str, members: dict[str, MemberRole]) -> None:
        if not self._owners(members):
            raise Conflict("A knowledge base keeps at least one owner.", param="role")
        self._base(base_id).members = members

    def _grow_version(self, stored: _StoredBase) -> None:
        stored.base = stored.base.model_copy(update={"version": stored.base.version + 1})


def _statistics(entries: Sequence[tuple[Mapping[str, int], int]]) -> Statistics:
    return Statistics(
        chunk_count=len(entries),
        token_count=sum(length for _, length in entries),
        chunk_counts=Counter(chain.from_iterable(counts for counts, _ in entries)),
    )


def _hit(document: Document, chunk: Chunk, score: float) -> ChunkHit:
    return ChunkHit(
        knowledge_base_id=document.knowledge_base_id,
        document_id=document.id,
        document_name=document.name,
        chunk=chunk,
        score=score,
        file_id=document.file_id,
        filename=document.filename,
        attributes=document.attributes,
        sha256=document.sha256,
    )


def _terms_of(base: KnowledgeBase) -> tuple[object, ...]:
    return base.restricted_translation, base.restricted_grade, base.support, base.content
