"""Only the fields that are meant for a model reach its prompt, and nothing of one tenant reaches another's."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from backend.identity.domain import Caller
from backend.knowledge.domain.kb_meta import render_bases
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase, MemberRole
from backend.openai_api.domain.turn_request import TurnRequest
from shared.errors import NotFound
from shared.models.canonical import canonical_parts
from shared.models.execution import ExecutionRequest
from shared.prompts.knowledge_tools import tools_of_request
from shared.prompts.message_order import messages_of_request
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.openai_house import ADA, TurnHouse, open_house
from tests.unit.backend.turns.samples import NOW

SHOWN = {
    MemberRole.READER: {"id", "name", "summary", "topics", "routing_hint", "routing_keywords"},
    MemberRole.RESTRICTED_ANALYST: {"id", "name", "routing_hint", "routing_keywords"},
}
"""The fields of a base that a model reads, by the role of the user who asks."""

STRANGER = ADA.model_copy(update={"tenant": "another"})


def marked_base() -> KnowledgeBase:
    """Return a base each of whose texts is the name of its field."""
    plain: dict[str, Any] = {"version": 7_654_321, "created_at": NOW, "last_active_at": NOW}
    return KnowledgeBase.model_validate({**dict(_marked_fields()), **plain})


def _marked_fields() -> Iterator[tuple[str, Any]]:
    for name, field in KnowledgeBase.model_fields.items():
        kinds = get_args(field.annotation)
        if field.annotation is str:
            yield name, _mark(name)
        elif kinds[:1] == (str,):
            yield name, ({_mark(name): _mark(name)} if len(kinds) == 2 and kinds[1] is str else (_mark(name),))


def _mark(name: str) -> str:
    return f"field-{name.replace('_', '-')}-end"


def prompt_of(request: ExecutionRequest) -> str:
    """Return all that a model gets of a request."""
    return b"\n".join(canonical_parts(tools_of_request(request), messages_of_request(request))).decode()


@pytest.mark.parametrize("role", SHOWN)
def test_the_description_of_a_base_shows_its_allowed_fields_and_no_others(role: MemberRole) -> None:
    (base,) = render_bases([Binding(base=marked_base(), role=role)])
    shown = {name for name in KnowledgeBase.model_fields if _mark(name) in base.text}
    assert shown == SHOWN[role]
    assert str(7_654_321) not in base.text
    assert str(NOW.year) not in base.text


async def test_a_prompt_holds_no_field_of_the_request_that_is_not_meant_for_the_model() -> None:
    options: dict[str, Any] = {
        "metadata": {"mark-key": "mark-metadata"},
        "user": "mark-user",
        "safety_identifier": "mark-safety",
        "prompt_cache_key": "mark-cache",
        "service_tier": "priority",
        "temperature": 0.123456,
        "seed": 987_654_321,
        "stop": ["mark-stop"],
    }
    assert options.keys() <= TurnRequest.model_fields.keys()
    async with open_house() as house:
        base = marked_base().model_copy(update={"tenant": ADA.tenant})
        await house.knowledge.create_base(base, ADA.user_id)
        tools = [{"type": "file_search", "vector_store_ids": [base.id]}]
        await house.ask(input="Who?", tools=tools)
        await house.ask(input="Who?", tools=tools, **options)
        plain, marked = map(prompt_of, house.sent)
        assert plain == marked
        assert _mark("summary") in plain
        assert "mark-" not in plain
        request = house.sent[-1]
        for private in (request.request_id, request.turn_id, request.conversation_id, request.cache_key, ADA.tenant):
            assert private not in plain


async def opened_by(house: TurnHouse, caller: Caller) -> tuple[ExecutionRequest, str]:
    ended = await house.ask(caller, input="Who?")
    return house.sent[-1], ended.id


async def test_tenants_share_no_key_and_no_log() -> None:
    async with open_house(*[answer("Nobody.") for _ in range(4)]) as house:
        own, own_id = await opened_by(house, ADA)
        other, other_id = await opened_by(house, STRANGER)
        assert prompt_of(own) == prompt_of(other)
        assert own.conversation_id != other.conversation_id
        assert own.cache_key != other.cache_key
        for caller, theirs in ((ADA, other_id), (STRANGER, own_id)):
            with pytest.raises(NotFound):
                await house.ask(caller, input="And?", previous_response_id=theirs)
        with pytest.raises(NotFound):
            await house.ask(STRANGER, input="And?", conversation=own.conversation_id)
        # What both have seen is the same to the letter, and each goes on in their own conversation.
        seen = [
            {"role": "user", "content": "Who?"},
            {"role": "assistant", "content": "Nobody."},
            {"role": "user", "content": "And?"},
        ]
        for caller, before in ((STRANGER, other), (ADA, own)):
            await house.ask(caller, input=seen)
            assert (house.sent[-1].conversation_id, house.sent[-1].cache_key) == (
                before.conversation_id,
                before.cache_key,
            )


async def test_equal_openings_of_one_user_have_one_key_and_those_of_two_tenants_have_two() -> None:
    async with open_house() as house:
        keys = {(caller.tenant, (await opened_by(house, caller))[0].cache_key) for caller in (ADA, STRANGER) * 2}
        tenants_of = {key: {tenant for tenant, one in keys if one == key} for _, key in keys}
        assert all(len(tenants) == 1 for tenants in tenants_of.values())
