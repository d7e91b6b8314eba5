"""The demo's own descriptions pass the rules that they stand under."""

import pytest

from backend.extraction.formats.reader import LibraryDocumentReader
from backend.knowledge.domain.knowledge import KnowledgeBase, MemberRole
from backend.knowledge.services.knowledge_documents import IngestDocument, NewDocument
from backend.knowledge.services.safe_descriptions import SafeDescriptions
from deploy.demo.bases import BASES, DemoBase
from tests.contract.knowledge_cases import make_base
from tests.fakes.clock import FakeClock
from tests.fakes.openai_house import ADA, RecordingObserver
from tests.fakes.store_knowledge import FakeKnowledge


@pytest.mark.parametrize("demo", BASES, ids=lambda demo: demo.directory)
async def test_nothing_of_a_demo_base_is_left_out(demo: DemoBase) -> None:
    knowledge = FakeKnowledge()
    base = KnowledgeBase.model_validate({**dict(make_base(tenant=ADA.tenant)), **demo.description()})
    await knowledge.create_base(base, ADA.user_id)
    ingest = IngestDocument(knowledge, LibraryDocumentReader(), FakeClock())
    for file in demo.documents:
        await ingest.put(ADA, base.id, NewDocument(file.name, "text/markdown", file.read_bytes()))
    (binding,) = await knowledge.bindings(ADA.tenant, ADA.user_id, [base.id])
    assert (binding.role, binding.base.version) == (MemberRole.OWNER, len(demo.documents))
    descriptions = SafeDescriptions(knowledge, knowledge, RecordingObserver())
    assert await descriptions.places_left_out(binding.base) == {}
