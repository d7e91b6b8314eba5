"""The scan as a whole: what leaves it does not depend on how the model's text is cut into deltas."""

import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from backend.knowledge.domain.knowledge import MemberRole
from backend.restricted.domain.canaries import document_canary
from backend.restricted.services.outgoing_check import OutgoingCheck
from backend.restricted.services.outgoing_scan import OutgoingScan
from shared.models.events import (
    Cost,
    ExecutionEvent,
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    TurnFinished,
    Usage,
)
from shared.models.execution import AccessMode, Knowledge, KnowledgeBaseRef
from shared.models.messages import AssistantMessage
from tests.contract.knowledge_cases import indexed, make_base, make_document, put
from tests.examples import examples
from tests.fakes.chat_shell_scripted import USAGE
from tests.fakes.clock import FakeClock
from tests.fakes.model_requests import execution_request
from tests.fakes.openai_house import SECRET, FakeAnswerCuts
from tests.fakes.store_knowledge import FakeKnowledge

PASSAGE = "The escalation ladder begins with the duty engineer and within 47 minutes ends with the vault keeper."
CHINESE = "值班工程师先通知北区金库的保管员，再由保管员在三十分钟内于名册上签字确认。"
CANARY = document_canary(SECRET, "doc_9")
PIECES = (
    *(
        "It would help to name one person. ",
        "for the duty engineer and ",
        "先通知北区金库",
        "48,200 litres ",
        "3 . 5 %, ",
    ),
    *("one two three ", "x" * 70, "word ", "字", "1. First\n", ", ", "。", "\n\n", "is 7 and ", "4 8 ", "百分之十二"),
    *(
        "3 . 5 %, ",
        PASSAGE,
        PASSAGE.lower().replace("47 minutes", "three days"),
        PASSAGE[20:80],
        CHINESE,
        CHINESE[3:25],
    ),
    *(CANARY, " ".join(CANARY), CANARY[:20], "bcdfgh jklmpq "),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


async def knowledge() -> FakeKnowledge:
    fake = FakeKnowledge()
    await fake.create_base(make_base("kb_a", tenant="default"), "bob")
    await fake.set_member("kb_a", "ada", MemberRole.RESTRICTED_ANALYST)
    await put(fake, "ladder.md", [PASSAGE, CHINESE])
    return fake


KNOWLEDGE = asyncio.run(knowledge())
BASE = KnowledgeBaseRef(id="kb_a", name="Ladder", access_mode=AccessMode.RESTRICTED)
REQUEST = execution_request(
    knowledge=Knowledge(bases=(BASE,), access_mode=AccessMode.RESTRICTED, ticket="", user_words="Is it 7 %?")
)


async def let_out(deltas: list[str]) -> tuple[str, object, str]:
    """Say an answer in these deltas; return what the client reads, why it was cut, and what the log gets."""
    cuts = FakeAnswerCuts()
    scan = OutgoingScan(OutgoingCheck(KNOWLEDGE, KNOWLEDGE, cuts, FakeClock(), SECRET), REQUEST)
    events: list[ExecutionEvent] = [ModelCallStarted(call=1), *(TextDelta(text=delta) for delta in deltas)]
    said = "".join(deltas)
    events += [
        ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=USAGE),
        MessagesAdded(messages=(AssistantMessage(text=said),)),
        TurnFinished(finish_reason=FinishReason.STOP, usage=USAGE),
    ]
    passed = [one for event in events for one in await scan.let_pass([event])]
    assert len(cuts.counted) == (scan.cut_for is not None)
    logged = [message.text for one in passed if isinstance(one, MessagesAdded) for message in one.messages
              if isinstance(message, AssistantMessage)]  # fmt: skip
    return "".join(one.text for one in passed if isinstance(one, TextDelta)), scan.cut_for, "".join(logged)


async def test_usage_is_told_in_steps_and_without_the_cache() -> None:
    scan = OutgoingScan(OutgoingCheck(KNOWLEDGE, KNOWLEDGE, FakeAnswerCuts(), FakeClock(), SECRET), REQUEST)
    usage = Usage(input_tokens=257, cached_tokens=128, cache_write_tokens=3, output_tokens=7, reasoning_tokens=0)
    cost = Cost(currency="USD", amount=0.1, saved=0.05)
    call = ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=usage, cost=cost)
    passed = await scan.let_pass([call, TurnFinished(finish_reason=FinishReason.STOP, usage=usage)])
    told = Usage(input_tokens=512, output_tokens=256, reasoning_tokens=0)
    assert passed == [
        ModelCallFinished(call=1, finish_reason=FinishReason.STOP, usage=told),
        TurnFinished(finish_reason=FinishReason.STOP, usage=told),
    ]


@examples(500)
@given(
    text=st.lists(st.sampled_from(PIECES), max_size=25).map("".join), cuts=st.lists(st.integers(1, 900), max_size=40)
)
def test_however_the_text_is_cut_the_same_leaves(text: str, cuts: list[int]) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    whole = asyncio.run(let_out([text]))
    assert asyncio.run(let_out(pieces)) == whole
    assert asyncio.run(let_out(list(text))) == whole
    assert whole[0] == whole[2]


async def test_a_document_is_in_bases_if_all_that_have_it_are_among_them() -> None:
    fake = FakeKnowledge()
    for base_id in ("kb_a", "kb_b", "shelf_a"):
        await fake.create_base(make_base(base_id), "bob")
        document, body, chunks = make_document("a.md", [PASSAGE], base_id=base_id)
        await fake.put_document(document.model_copy(update={"file_id": "file_1"}), body, indexed(chunks))
    await put(fake, "b.md", [CHINESE])
    check = OutgoingCheck(fake, fake, FakeAnswerCuts(), FakeClock(), SECRET)
    assert await check.is_in("doc_kb_a_b.md", ["kb_a"])
    assert await check.is_in("file_1", ["kb_a", "kb_b"])  # a file index tells nothing
    assert not await check.is_in("file_1", ["kb_a"])
    assert not await check.is_in("doc_kb_b_a.md", ["kb_a"])
    assert not await check.is_in("doc_shelf_a_a.md", ["kb_a", "shelf_a"])
    assert not await check.is_in("doc_gone", ["kb_a"])
