"""Stored files in messages: shown whole where they fit, listed and read by a tool where they do not."""

from typing import Any

import pytest

from backend.conversations.domain.conversation_log import EntryKind, EpochReason
from backend.knowledge.domain.file_indexes import FileIndexState
from backend.knowledge.domain.knowledge import MemberRole
from backend.knowledge.domain.tickets import Ticket, verify_ticket
from shared.errors import ContextTooLong
from shared.models.execution import AccessMode, ExecutionRequest, Purpose
from shared.models.messages import UserMessage
from shared.prompts.attached_files import BEING_READ, LEFT_OUT, LISTED
from tests.contract.knowledge_cases import make_base
from tests.fakes.attached_files import FakeText
from tests.fakes.chat_shell_scripted import answer, function_calls
from tests.fakes.openai_house import ADA, SECRET, TurnHouse, open_house
from tests.fakes.replicas import Replicas
from tests.unit.backend.turns.attaching import file, files_in, part, stored, user

LONG = "Barrel upon barrel holds wine.\n" * 14_000
"""About 110,000 tokens; the window of the fake model has 128,000."""

WEATHER: dict[str, Any] = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
READ_FILE: dict[str, Any] = {"type": "function", "name": "read_file", "parameters": {"type": "object"}}


def ticket_of(house: TurnHouse, sent: ExecutionRequest) -> Ticket:
    return verify_ticket(sent.knowledge.ticket, SECRET, house.clock.now())


async def test_a_file_that_does_not_fit_is_listed_and_read_by_a_tool() -> None:
    files = stored(file_1=FakeText("cellar.txt", LONG), file_2=FakeText("r.txt", "The Rhine."))
    async with open_house(answer("One."), answer("Two."), answer("Three."), files=files) as house:
        first = await house.ask(input="Hello")
        second = await house.ask(input=[user(part(), part("file_2"))], previous_response_id=first.id)
        await house.ask(input="And?", previous_response_id=second.id)
        plain, listing, later = house.sent
        block, whole = files_in(listing)
        assert block.splitlines()[0].endswith('name="cellar.txt" file_id="file_1">')
        assert LISTED.partition("{")[0] in block
        assert str(len(LONG) // 4) in block
        assert "Barrel upon barrel" not in block
        assert "The Rhine." in whole
        assert (plain.reads_files, listing.reads_files, later.reads_files) == (False, True, True)
        assert [epoch for _, epoch in house.observer.epochs] == ["new_conversation", "tools_changed"]
        assert [ticket_of(house, sent).file_ids for sent in house.sent] == [
            (),
            ("file_1", "file_2"),
            ("file_1", "file_2"),
        ]
        assert later.history[: len(listing.history)] == listing.history
        assert house.observer.drifts == []


async def test_beside_long_functions_a_file_is_listed_that_would_fit_otherwise() -> None:
    files = stored(file_1=FakeText("cellar.txt", LONG[: len(LONG) // 3]))
    async with open_house(answer("One."), answer("Two."), files=files) as house:
        await house.ask(input=[user(part())])
        await house.ask(input=[user(part())], tools=[{**WEATHER, "description": "word " * 50_000}])
        assert [sent.reads_files for sent in house.sent] == [False, True]


async def test_a_conversation_that_begins_with_a_long_file_has_one_epoch() -> None:
    async with open_house(answer("One."), answer("Two."), files=stored(file_1=FakeText("c.txt", LONG))) as house:
        first = await house.ask(input=[user(part())])
        await house.ask(input="And?", previous_response_id=first.id)
        assert [epoch for _, epoch in house.observer.epochs] == ["new_conversation"]


@pytest.mark.parametrize(
    ("text", "said", "reads_files"),
    [
        (FakeText("scan.pdf", "", FileIndexState.BEING_READ), BEING_READ, True),
        (
            FakeText("scan.pdf", "it holds pictures alone.", FileIndexState.UNREADABLE),
            "it holds pictures alone.",
            False,
        ),
    ],
)
async def test_a_file_without_text_is_said_so_and_the_turn_goes_on(
    text: FakeText, said: str, reads_files: bool
) -> None:
    async with open_house(answer("One."), files=stored(file_1=text)) as house:
        done = await house.ask(input=[user(part())])
        (block,) = files_in(house.sent[0])
        assert (done.status.value, house.sent[0].reads_files) == ("completed", reads_files)
        assert said in block


async def test_beside_a_function_of_the_same_name_a_long_file_is_refused_with_the_figures() -> None:
    async with open_house(files=stored(file_1=FakeText("c.txt", LONG))) as house:
        with pytest.raises(
            ContextTooLong, match=r"about 108600 tokens are needed, \d+ of the model's window of 128000"
        ) as caught:
            await house.ask(input=[user(part())], tools=[READ_FILE])
        assert caught.value.param == "input[0].content[0].file_id"
        assert house.observer.started == []


async def test_a_file_that_is_longer_than_what_instructions_leave_is_refused_with_the_figures() -> None:
    async with open_house() as house:
        with pytest.raises(
            ContextTooLong, match=r"about \d+ tokens are needed, \d+ of the model's window of 128000"
        ) as caught:
            await house.ask(input=[user(file("c.txt", LONG))], instructions="Be brief. " * 38_000)
        assert caught.value.param == "input[0].content[0].file_data"
        assert "upload it and name it by 'file_id'" in caught.value.message
        assert house.observer.started == []


def answers(house: TurnHouse) -> list[ExecutionRequest]:
    """Return the requests of turns, without those that made summaries."""
    return [request for request in house.sent if request.purpose is Purpose.ANSWER]


async def test_a_file_that_is_cut_from_a_conversation_stays_listed() -> None:
    files = stored(file_1=FakeText("cellar.txt", LONG[: len(LONG) // 3]))
    async with open_house(*[answer("Yes.") for _ in range(4)], files=files) as house:
        first = await house.ask(input=[user(part())])
        second = await house.ask(input="word " * 20_000, previous_response_id=first.id)
        third = await house.ask(input="word " * 40_000, previous_response_id=second.id)
        sent = answers(house)
        assert not sent[1].reads_files
        cut = sent[2]
        (block,) = files_in(cut)
        assert (LEFT_OUT in block, 'file_id="file_1"' in block, cut.reads_files) == (True, True, True)
        assert "Barrel upon barrel" not in str(cut.history)
        assert ticket_of(house, cut).file_ids == ("file_1",)
        await house.ask(input="And?", previous_response_id=third.id)
        assert files_in(answers(house)[3]) == [block]
        assert [epoch for _, epoch in house.observer.epochs] == ["new_conversation", "compaction"]


async def test_a_cut_between_calls_and_results_is_listed_in_the_next_turn() -> None:
    files = stored(file_1=FakeText("cellar.txt", LONG[: len(LONG) // 3]))
    async with open_house(answer("Yes."), function_calls("c"), answer("Yes."), answer("Yes."), files=files) as house:
        first = await house.ask(input=[user(part())], tools=[WEATHER])
        second = await house.ask(input="word " * 20_000, previous_response_id=first.id)
        result = {"type": "function_call_output", "call_id": "c", "output": "word " * 40_000}
        third = await house.ask(input=[result], previous_response_id=second.id)
        await house.ask(input="And?", previous_response_id=third.id)
        assert [(len(files_in(sent)), sent.reads_files) for sent in answers(house)] == [
            (1, False),
            (1, False),
            (0, True),
            (1, True),
        ]
        assert LEFT_OUT in files_in(answers(house)[3])[0]
        assert house.observer.drifts == []


async def test_a_file_whose_message_was_taken_out_is_not_listed() -> None:
    files = stored(file_1=FakeText("r.txt", "The Rhine."), file_2=FakeText("c.txt", "The Oder."))
    async with open_house(*[answer("Yes.") for _ in range(4)], files=files) as house:
        first = await house.ask(input=[user(part())])
        there = first.conversation_id
        for _ in range(2):
            (newest,) = await house.conversations.items(first.conversation_id, after=None, limit=1, descending=True)
            await house.caller_conversations.remove_item(ADA, first.conversation_id, newest.id)
        await house.ask(input=[user(part("file_2"))], conversation=there)
        await house.ask(input="word " * 40_000, conversation=there)
        await house.ask(input="word " * 40_000, conversation=there)
        (block,) = files_in(answers(house)[3])
        assert (LEFT_OUT in block, 'file_id="file_2"' in block) == (True, True)


async def test_files_are_no_words_of_the_user_and_no_item_shows_their_text() -> None:
    files = stored(file_1=FakeText("r.txt", "The zinfandel is secret."))
    async with open_house(answer("One."), answer("Two."), files=files) as house:
        base = make_base(tenant=ADA.tenant)
        await house.knowledge.create_base(base, "olga")
        await house.knowledge.set_member(base.id, ADA.user_id, MemberRole.RESTRICTED_ANALYST)
        tools = [{"type": "file_search", "vector_store_ids": [base.id]}]
        first = await house.ask(input=[user(part(), text="Which one?")], tools=tools)
        await house.ask(input="And?", previous_response_id=first.id)
        assert house.sent[1].knowledge.access_mode is AccessMode.RESTRICTED
        assert house.sent[1].knowledge.user_words == "Which one?\nAnd?"
        assert "zinfandel" not in str(first.input_items)
        kinds = [entry.kind for entry in house.log_of(first.conversation_id)]
        assert kinds[: kinds.index(EntryKind.USER)] == [EntryKind.FILE, EntryKind.DYNAMIC_CONTEXT]


async def test_a_message_that_is_nothing_but_a_file_leaves_no_empty_message_in_a_history() -> None:
    async with open_house(answer("One."), answer("Two.")) as house:
        alone = {"role": "user", "content": [file()]}
        await house.ask(input=[alone, {"role": "assistant", "content": "Fine."}, user(text="And?")], store=False)
        roles = [message.role for message in house.sent[0].history]
        assert roles == ["user", "assistant"]
        assert isinstance(house.sent[0].history[0], UserMessage)


async def test_the_epoch_of_a_conversation_says_which_tools_it_has() -> None:
    async with open_house(answer("One."), files=stored(file_1=FakeText("c.txt", LONG))) as house:
        first = await house.ask(input=[user(part())])
        reset = house.log_of(first.conversation_id)[0].reset
        assert reset is not None
        assert (reset.reason, reset.reads_files) == (EpochReason.NEW_CONVERSATION, True)


async def test_a_turn_that_is_taken_over_sends_the_same_bytes_and_reads_the_same_files() -> None:
    replicas = Replicas(files=stored(file_1=FakeText("c.txt", LONG)))
    lost = await replicas.killed([], input=[user(part())])
    house, first = replicas.last, replicas.last.sent[0]
    replicas.state.clock.advance(70)
    await replicas.continued(lost, answer("Hello."))
    (again,) = replicas.last.sent
    assert again == first.model_copy(update={"knowledge": again.knowledge})
    assert (again.reads_files, len(files_in(again))) == (True, 1)
    assert ticket_of(house, again).file_ids == ticket_of(house, first).file_ids == ("file_1",)
    assert not replicas.last.observer.drifts
