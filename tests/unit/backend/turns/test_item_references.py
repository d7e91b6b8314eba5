"""Items that an input names by the ids under which they are stored."""

from typing import Any

import pytest

from backend.conversations.domain.withheld import WITHHELD
from backend.knowledge.domain.knowledge import MemberRole
from shared.errors import InvalidRequest
from shared.models.messages import AssistantMessage
from shared.models.values import objects_in
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.openai_house import ADA, BOB, open_house

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
SEARCH = {"type": "file_search", "vector_store_ids": ["kb_a"]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def reference(item_id: object) -> dict[str, Any]:
    return {"type": "item_reference", "id": item_id}


async def test_references_to_all_earlier_items_continue_as_the_items_do() -> None:
    """As the Vercel AI SDK does: the user's messages in full, the rest by reference."""
    async with open_house(answer("One."), function_calls("call_1", text="I look."), answer("Rain.")) as house:
        first = await house.ask(input=[user("A")])
        (one,) = objects_in(first.body["output"])
        second = await house.ask(input=[user("A"), reference(one["id"]), user("B")], tools=[WEATHER])
        output = [reference(item["id"]) for item in objects_in(second.body["output"])]
        result = {"type": "function_call_output", "call_id": "call_1", "output": "wet"}
        third = await house.ask(input=[user("A"), reference(one["id"]), user("B"), *output, result])
        assert first.conversation_id == second.conversation_id == third.conversation_id
        assert [message.role for message in house.sent[2].history] == ["user", "assistant", "user", "assistant", "tool"]
        assert [item["type"] for item in third.input_items] == ["function_call_output"]


async def test_a_referenced_item_stands_in_a_new_conversation_as_if_it_was_given() -> None:
    async with open_house(answer("One.")) as house:
        first = await house.ask(input=[user("A")])
        (one,) = objects_in(first.body["output"])
        second = await house.ask(input=[user("Something else"), reference(one["id"]), user("B")])
        assert second.conversation_id != first.conversation_id
        assert house.sent[1].history[1] == AssistantMessage(text="One.")
        shown = second.input_items[1]
        assert (shown["role"], shown["id"] != one["id"]) == ("assistant", True)


@pytest.mark.parametrize("caller", [BOB, ADA.model_copy(update={"tenant": "elsewhere"})])
async def test_the_items_of_others_do_not_exist(caller: Any) -> None:
    async with open_house(answer("One.")) as house:
        first = await house.ask(input=[user("A")])
        (one,) = objects_in(first.body["output"])
        for unknown in (one["id"], "msg_never"):
            with pytest.raises(InvalidRequest) as caught:
                await house.ask(caller, input=[user("A"), reference(unknown), user("B")])
            assert caught.value.param == "input[1].id"
        assert len(house.sent) == 1


async def test_a_reference_names_one_that_was_not_stored_in_vain() -> None:
    async with open_house(answer("One.")) as house:
        first = await house.ask(input=[user("A")], store=False)
        (one,) = objects_in(first.body["output"])
        with pytest.raises(InvalidRequest):
            await house.ask(input=[user("A"), reference(one["id"]), user("B")])


async def test_a_withheld_item_comes_without_its_text_and_others_keep_their_label() -> None:
    base = make_base(tenant="default")
    async with open_house(answer("The vault is heliotrope.")) as house:
        await house.knowledge.create_base(base, "owner")
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
        first = await house.ask(input=[user("A")], tools=[SEARCH])
        (one,) = objects_in(first.body["output"])
        moved = await house.ask(input=[user("Elsewhere"), reference(one["id"]), user("B")], tools=[])
        assert [label.base_id for label in moved.label] == ["kb_a"]
        await house.knowledge.remove_member("kb_a", ADA.user_id)
        await house.ask(input=[user("A"), reference(one["id"]), user("C")], tools=[])
        assert AssistantMessage(text=WITHHELD) in house.sent[2].history
        await house.ask(input="D", previous_response_id=moved.id)
        await house.ask(input=[user("A"), {"role": "assistant", "content": "The vault is heliotrope."}, user("E")])
        for sent in house.sent[2:]:
            assert "heliotrope" not in str(sent)
