"""Blocks that a deployment adds by entry points."""

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from backend.identity.domain import Caller, KeyRole
from backend.knowledge.domain.knowledge import MemberRole
from backend.turns.dynamic_blocks.entry_points import GROUP, load_blocks, load_installed_blocks
from backend.turns.dynamic_blocks.identity import IdentityBlock
from backend.turns.ports.dynamic_blocks import TurnFacts
from shared.models.execution import DynamicBlock
from tests.contract.knowledge_cases import make_base
from tests.fakes.openai_house import ADA, open_house
from tests.unit.backend.turns.samples import NOW

IDENTITY = "backend.turns.dynamic_blocks.identity:IdentityBlock"


BASE = make_base(tenant="default")


class Ready:
    """A block that is registered as an object."""

    async def block(self, facts: TurnFacts) -> DynamicBlock | None:
        return DynamicBlock(name="ready", text=f"Bases: {len(facts.knowledge_base_ids)}")


ready = Ready()


async def test_the_worked_example_reaches_the_model_behind_the_metadata() -> None:
    async with open_house(blocks=load_blocks([EntryPoint("identity", IDENTITY, GROUP)])) as house:
        await house.ask()
        (block,) = house.sent[0].dynamic_blocks
        assert block.name == "identity"
        assert "ada" in block.text


class Open(Ready):
    """The same, for restricted turns too."""

    accepts_restricted = True


class Unsure(Ready):
    """A label that says neither yes nor no."""

    accepts_restricted = "yes"


@pytest.mark.parametrize(("source", "reaches"), [(Ready(), False), (Unsure(), False), (Open(), True)])
async def test_a_restricted_turn_has_only_blocks_that_accept_it(source: Any, reaches: bool) -> None:
    async with open_house(blocks=[source]) as house:
        await house.knowledge.create_base(BASE, "owner")
        await house.knowledge.set_member(BASE.id, ADA.user_id, MemberRole.READER)
        bound = [{"type": "file_search", "vector_store_ids": [BASE.id]}]
        first = await house.ask(tools=bound)
        await house.knowledge.set_member(BASE.id, ADA.user_id, MemberRole.RESTRICTED_ANALYST)
        await house.ask(conversation=first.conversation_id)
        full, restricted = house.sent
        assert [block.name for block in full.dynamic_blocks] == ["ready"]
        assert [block.name for block in restricted.dynamic_blocks] == ["ready"] * reaches


def test_blocks_are_loaded_in_the_order_of_their_names() -> None:
    points = [
        EntryPoint(name="b", value=IDENTITY, group=GROUP),
        EntryPoint(name="a", value=f"{__name__}:ready", group=GROUP),
    ]
    first, second = load_blocks(points)
    assert first is ready
    assert isinstance(second, IdentityBlock)


def test_what_is_no_block_is_named() -> None:
    with pytest.raises(TypeError, match="wrong"):
        load_blocks([EntryPoint(name="wrong", value="builtins:dict", group=GROUP)])


def test_none_is_enabled_by_itself() -> None:
    assert load_installed_blocks() == ()


async def test_the_example_names_user_and_organisation() -> None:
    facts = TurnFacts(
        caller=Caller(user_id="ada", tenant="acme", role=KeyRole.USER),
        turn_id="resp_1",
        conversation_id="conv_1",
        metadata={},
        knowledge_base_ids=(),
        sent_at=NOW,
        time_zone="UTC",
    )
    block = await IdentityBlock().block(facts)
    assert block is not None
    assert "ada of the organisation acme" in block.text
