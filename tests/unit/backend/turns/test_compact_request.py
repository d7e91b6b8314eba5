"""`POST /v1/responses/compact`: what it summarises, what clients carry of it, and who may read that again."""

import asyncio
from typing import Any, cast

import orjson
import pytest
from openai import BadRequestError

from backend.conversations.domain.conversation_log import WITHHELD
from backend.foundation.domain.json_objects import result_of, scan_json
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import MemberRole
from backend.turns.domain.input_requests import compact_request_cooperatively
from backend.turns.services.compact_input import CompactedInput
from shared.errors import BallastError, ChatShellUnavailable, DeadlineExceeded, InvalidRequest, ModelUnavailable
from shared.models.execution import Purpose
from shared.models.messages import UserMessage
from shared.prompts.authors import texts_of_user
from shared.prompts.summary import SUMMARY_INSTRUCTION, frame_summary
from tests.contract.knowledge_cases import make_base
from tests.fakes.chat_shell_scripted import answer
from tests.fakes.chat_shell_talking import whole_prompt
from tests.fakes.openai_house import ADA, BOB, TurnHouse, open_house
from tests.fakes.openai_types import check_item
from tests.fakes.served_turns import serve_api

SEARCH = {"type": "file_search", "vector_store_ids": ["kb_a"]}
GIVEN = [
    {"role": "user", "content": "What is FACT-one?"},
    {"role": "assistant", "content": "It is heliotrope."},
    {"role": "user", "content": [{"type": "input_text", "text": "And FACT-two?"}]},
    {"role": "assistant", "content": "It is mauve."},
]
SUMMARY = UserMessage(content=frame_summary("Both are colours."))


async def compacted(
    house: TurnHouse, caller: Caller = ADA, left: asyncio.Event | None = None, **fields: Any
) -> CompactedInput:
    asked = result_of(compact_request_cooperatively(scan_json(orjson.dumps(fields))))
    return await house.services.compact(caller, asked, "req_1", left or asyncio.Event())


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def texts_of(output: Any) -> list[str]:
    return [part["text"] for item in output[:-1] for part in item["content"]]


async def test_the_official_client_gets_the_users_messages_and_one_item_to_carry() -> None:
    async with serve_api(answer("Both are colours."), answer("Yes.")) as api:
        made = await api.openai.responses.compact(model="demo-model", input=cast(Any, GIVEN), instructions="Be kind.")
        (sent,) = api.turns.sent
        assert whole_prompt(sent)[-1] == UserMessage(content=SUMMARY_INSTRUCTION)
        assert sent.purpose is Purpose.SUMMARY
        assert sent.system_prompt.startswith("Be kind.")
        assert (made.object, made.usage.total_tokens) == ("response.compaction", 18)
        output = cast(Any, made.to_dict(warnings=False)["output"])
        assert texts_of(output) == ["What is FACT-one?", "And FACT-two?"]
        check_item(output[-1])
        assert api.turns.state.entries == {}, "nothing is stored"
        await api.openai.responses.create(model="demo-model", input=cast(Any, [*output, user("Are they?")]))
        told = api.turns.sent[1].history
        assert [texts_of_user(each.content)[0] for each in told[:2] if isinstance(each, UserMessage)] == [
            "What is FACT-one?",
            "And FACT-two?",
        ]
        assert told[2:] == (SUMMARY,)


async def test_a_stored_conversation_is_summarised_with_the_prefix_that_was_sent() -> None:
    async with open_house(answer("Heliotrope."), answer("Mauve."), answer("Both are colours.")) as house:
        first = await house.ask(input="What is one?")
        second = await house.ask(input="And two?", previous_response_id=first.id)
        made = await compacted(house, previous_response_id=second.id, input=[user("Thanks.")])
        before, asked = whole_prompt(house.sent[1]), whole_prompt(house.sent[2])
        assert asked[: len(before)] == before
        assert ("Thanks." in str(asked[-2]), asked[-1]) == (True, UserMessage(content=SUMMARY_INSTRUCTION))
        assert texts_of(made.output) == ["What is one?", "And two?", "Thanks."]
        without_input = await compacted(house, previous_response_id=second.id)
        assert texts_of(without_input.output) == ["What is one?", "And two?"]


async def test_a_conversation_that_begins_with_a_summary_is_recognised_when_it_is_resent() -> None:
    async with open_house(answer("Both are colours."), answer("Yes."), answer("Twice.")) as house:
        made = await compacted(house, input=GIVEN)
        first = await house.ask(input=[*made.output, user("Are they?")])
        again = await house.ask(
            input=[*made.output, user("Are they?"), {"role": "assistant", "content": "Yes."}, user("Sure?")]
        )
        assert again.conversation_id == first.conversation_id
        assert house.sent[2].history[: len(house.sent[1].history)] == house.sent[1].history
        shown = [item["role"] for item in first.input_items]
        assert shown == ["user", "user", "user", "user"], "what the model read is among the items"


async def test_a_summary_takes_the_place_of_an_earlier_one() -> None:
    async with open_house(
        answer("Both are colours."), answer("Yes."), answer("All is said."), answer("It is.")
    ) as house:
        made = await compacted(house, input=GIVEN)
        carried = [*made.output, user("Are they?")]
        again = await compacted(house, input=carried)
        assert SUMMARY in whole_prompt(house.sent[1])
        stored = await house.ask(input=carried)
        behind = await compacted(house, previous_response_id=stored.id)
        questions = ["What is FACT-one?", "And FACT-two?", "Are they?"]
        assert [texts_of(again.output), texts_of(behind.output)] == [questions, questions]


@pytest.mark.parametrize("sealed", ["made-up", "e30.e30", "gAAAAAB", ""])
async def test_what_this_server_has_not_made_is_refused(sealed: str) -> None:
    async with open_house() as house:
        item = {"type": "compaction", "encrypted_content": sealed or f"{(await sealed_by(house))[:-4]}AAAA"}
        with pytest.raises(InvalidRequest, match="no compaction") as caught:
            await house.ask(input=[item, user("And?")])
        assert caught.value.param == "input[0].encrypted_content"


async def sealed_by(house: TurnHouse, caller: Caller = ADA) -> str:
    made = await compacted(house, caller, input=GIVEN)
    return str(made.output[-1]["encrypted_content"])


async def test_it_serves_its_user_alone() -> None:
    async with open_house() as house:
        item = {"type": "compaction", "encrypted_content": await sealed_by(house)}
        with pytest.raises(InvalidRequest, match="another user"):
            await house.ask(BOB, input=[item, user("And?")])


async def test_an_item_of_a_conversation_that_was_compacted_by_itself_is_left_out() -> None:
    async with open_house() as house:
        await house.ask(input=[{"type": "compaction", "id": "cmp_1", "encrypted_content": "cmp_1"}, user("And?")])
        assert house.sent[0].history == ()


async def test_who_lost_access_to_what_it_tells_finds_a_notice_and_so_do_later_turns() -> None:
    base = make_base(tenant="default")
    async with open_house(answer("Heliotrope."), answer("The vault is heliotrope.")) as house:
        await house.knowledge.create_base(base, "owner")
        await house.knowledge.set_member("kb_a", ADA.user_id, MemberRole.READER)
        first = await house.ask(input="A", tools=[SEARCH])
        made = await compacted(house, previous_response_id=first.id)
        moved = await house.ask(input=[*made.output, user("B")], tools=[])
        assert [label.base_id for label in moved.label] == ["kb_a"]
        assert "heliotrope" in str(house.sent[2])
        await house.knowledge.remove_member("kb_a", ADA.user_id)
        await house.ask(input=[*made.output, user("C")], tools=[])
        assert UserMessage(content=WITHHELD) in house.sent[3].history
        await house.ask(input="D", previous_response_id=moved.id)
        assert all("heliotrope" not in str(sent) for sent in house.sent[3:])
        shown = await house.ports.stored.withheld.show_input(ADA, moved, moved.input_items)
        assert "heliotrope" not in str(shown)


@pytest.mark.parametrize(
    ("failure", "error"),
    [(ChatShellUnavailable("gone"), ModelUnavailable), (DeadlineExceeded("late"), DeadlineExceeded)],
)
async def test_a_summary_that_fails_is_an_error(failure: BallastError, error: type[BallastError]) -> None:
    async with open_house([failure]) as house:
        with pytest.raises(error):
            await compacted(house, input=GIVEN)


async def test_a_client_that_leaves_ends_the_call() -> None:
    left = asyncio.Event()
    left.set()
    async with open_house([asyncio.Event()]) as house:
        with pytest.raises(ModelUnavailable):
            await compacted(house, left=left, input=GIVEN)


async def test_nothing_to_compact_is_said_so() -> None:
    async with open_house() as house:
        with pytest.raises(InvalidRequest, match="nothing to compact"):
            await compacted(house)


async def test_a_summary_is_given_to_no_conversation_without_a_turn() -> None:
    async with serve_api() as api:
        made = await api.openai.responses.compact(model="demo-model", input=cast(Any, GIVEN))
        with pytest.raises(BadRequestError, match="Summaries are read"):
            await api.openai.conversations.create(items=cast(Any, [made.output[-1].model_dump(exclude_none=True)]))
