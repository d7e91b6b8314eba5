"""A backend with a base that its asker may use without reading it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from backend.knowledge.domain.knowledge import MemberRole
from tests.contract.knowledge_cases import make_base, put
from tests.fakes.chat_shell_scripted import Step
from tests.fakes.openai_house import TurnHouse, open_house

PASSAGE = "The escalation ladder begins with the duty engineer and ends with the vault keeper of the northern site."
CHINESE = "值班工程师先通知北区金库的保管员，再由保管员在名册上签字确认。"
BENIGN = "Escalation seems slow here, so it would help to name one person who decides at night and by when. "
TOOLS = [{"type": "file_search", "vector_store_ids": ["kb_a"]}]


@asynccontextmanager
async def restricted_house(*scripts: Sequence[Step]) -> AsyncGenerator[TurnHouse]:
    async with open_house(*scripts) as house:
        await house.knowledge.create_base(make_base("kb_a", tenant="default"), "bob")
        await house.knowledge.set_member("kb_a", "ada", MemberRole.RESTRICTED_ANALYST)
        await put(house.knowledge, "ladder.md", [PASSAGE, CHINESE])
        yield house
