"""The files of agents in turns: shown once with numbers, or searched where they are too long."""

from typing import Any

import orjson
import pytest

from backend.conversations.domain.conversation_log import EntryKind
from backend.knowledge.domain.file_indexes import FileIndexState
from backend.knowledge.domain.labels import Label
from backend.knowledge.domain.tickets import verify_ticket
from backend.turns.services.request.project_files import SHOWN_PERCENT
from shared.models.events import (
    FinishReason,
    MessagesAdded,
    ModelCallFinished,
    ModelCallStarted,
    ModelCard,
    TextDelta,
    TurnFinished,
)
from shared.models.execution import AccessMode, ExecutionRequest
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from shared.prompts.documents import NumberedDocument, encode_documents
from shared.prompts.message_order import FILES_GONE, FILES_REPLACED
from shared.prompts.project_files import SHOWN, project_documents
from tests.fakes.attached_files import FakeText
from tests.fakes.chat_shell_scripted import USAGE
from tests.fakes.openai_house import SECRET, TurnHouse, open_house
from tests.unit.backend.turns.placing import change_agent, many, put_agent

CARD = ModelCard(name="", context_window_tokens=128_000, max_output_tokens=8_000)
LIMIT_TOKENS = CARD.input_budget_tokens * SHOWN_PERCENT // 100


def put_files(house: TurnHouse, agent_id: str, **files: FakeText) -> None:
    house.agent_files.stored |= {(f"shelf_{agent_id}", file_id): text for file_id, text in files.items()}


def projects_in(sent: ExecutionRequest) -> list[str]:
    said = [message.content for message in sent.history if isinstance(message, UserMessage)]
    return [text for text in said if isinstance(text, str) and "belong to the assistant" in text]


def searched(number: int) -> list[Any]:
    """Script a turn whose search found one document, and its answer."""
    call = ToolCall(call_id="c1", name="knowledge_base_search", arguments="{}")
    found = encode_documents([NumberedDocument(number, "b.md", "doc_b", {}, "Text")])
    return [
        ModelCallStarted(call=1),
        ModelCallFinished(call=1, finish_reason=FinishReason.TOOL_CALLS, usage=USAGE),
        MessagesAdded(
            messages=(AssistantMessage(text="", tool_calls=(call,)), ToolMessage(call_id="c1", content=found))
        ),
        ModelCallStarted(call=2),
        TextDelta(text="Yes."),
        ModelCallFinished(call=2, finish_reason=FinishReason.STOP, usage=USAGE),
        MessagesAdded(messages=(AssistantMessage(text="Yes."),)),
        TurnFinished(finish_reason=FinishReason.STOP, usage=USAGE),
    ]


async def test_files_stand_once_in_the_order_of_the_agent_with_numbers_first_and_texts_last() -> None:
    async with open_house(*many(3)) as house:
        agent_id = await put_agent(house, file_ids=["file_b", "file_a"])
        put_files(house, agent_id, file_a=FakeText("a.md", 'The "Rhine" 莱茵河'), file_b=FakeText("b.md", "The Oder"))
        first = await house.ask(model="helper")
        await house.ask(previous_response_id=first.id)
        (text,) = projects_in(house.sent[0])
        said, documents = text.split("\n")
        assert said == SHOWN
        assert orjson.loads(documents) == {
            "documents": [
                {"document": 1, "title": "b.md", "file_id": "file_b", "content": "The Oder"},
                {"document": 2, "title": "a.md", "file_id": "file_a", "content": 'The "Rhine" 莱茵河'},
            ]
        }
        assert documents.startswith('{"documents": [{"document": 1, "title": "b.md"')
        assert projects_in(house.sent[1]) == [text]
        assert [head.file_id for head in project_documents(text)] == ["file_b", "file_a"]
        assert house.agent_files.reads == ["file_b", "file_a"]
        assert house.observer.drifts == []
        assert house.sent[0].knowledge.bases == ()


async def test_numbers_go_on_behind_those_of_the_conversation_and_stay() -> None:
    async with open_house(searched(2), *many(4)) as house:
        agent_id = await put_agent(house, file_ids=["file_a"])
        put_files(house, agent_id, file_a=FakeText("a.md", "A"), file_c=FakeText("c.md", "C"))
        first = await house.ask(model="helper")
        second = await house.ask(previous_response_id=first.id)
        await change_agent(house, agent_id, file_ids=["file_a", "file_c"])
        third = await house.ask(previous_response_id=second.id)
        fourth = await house.ask(previous_response_id=third.id)
        await change_agent(house, agent_id)
        await house.ask(previous_response_id=fourth.id)
        assert len(projects_in(house.sent[1])) == 1
        old, new = projects_in(house.sent[2])
        assert new.startswith(FILES_REPLACED)
        assert [[head.number for head in project_documents(text)] for text in (old, new)] == [[1], [3, 4]]
        assert projects_in(house.sent[3]) == [old, new]
        assert FILES_GONE in [m.content for m in house.sent[4].history if isinstance(m, UserMessage)]
        assert house.observer.drifts == []


async def test_files_that_are_too_long_are_listed_and_searched() -> None:
    text = "word " * (LIMIT_TOKENS * 4 // 5)
    async with open_house(*many(2)) as house:
        agent_id = await put_agent(house, file_ids=["file_a", "file_b"])
        put_files(house, agent_id, file_a=FakeText("a.md", text), file_b=FakeText("b.md", "Short"))
        first = await house.ask(model="helper")
        await house.ask(previous_response_id=first.id, tool_choice={"type": "file_search"})
        sent = house.sent[0]
        (listing,) = projects_in(sent)
        assert orjson.loads(listing.split("\n")[1]) == {
            "files": [
                {"title": "a.md", "file_id": "file_a", "tokens": len(text) // 4},
                {"title": "b.md", "file_id": "file_b", "tokens": 2},
            ]
        }
        (base,) = sent.knowledge.bases
        assert (base.id, base.access_mode) == (f"shelf_{agent_id}", AccessMode.FULL)
        assert base.id in listing
        assert verify_ticket(sent.knowledge.ticket, SECRET, house.clock.now()).base_ids == (base.id,)
        assert projects_in(house.sent[1]) == [listing]
        assert house.agent_files.reads == []
        assert house.log_of(first.conversation_id)[0].label == (Label(base.id, AccessMode.FULL),)


async def test_a_little_less_is_shown_whole() -> None:
    text = "word " * (LIMIT_TOKENS * 4 // 5 - 200)
    async with open_house(*many(1)) as house:
        agent_id = await put_agent(house, file_ids=["file_a"])
        put_files(house, agent_id, file_a=FakeText("a.md", text))
        await house.ask(model="helper")
        assert text in projects_in(house.sent[0])[0]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (None, "deleted"),
        (FakeText("a.pdf", "", FileIndexState.BEING_READ), "its text is still being extracted"),
        (FakeText("a.pdf", "it is locked.", FileIndexState.UNREADABLE), "it is locked."),
    ],
)
async def test_a_file_without_text_is_listed_with_the_reason(text: FakeText | None, state: str) -> None:
    async with open_house(*many(1)) as house:
        agent_id = await put_agent(house, file_ids=["file_a", "file_b"])
        put_files(house, agent_id, file_b=FakeText("b.md", "B"), **({} if text is None else {"file_a": text}))
        ended = await house.ask(model="helper")
        said = projects_in(house.sent[0])[0].split("\n")
        assert orjson.loads(said[2])["files"][0]["state"] == state
        assert [head.number for head in project_documents("\n".join(said))] == [1]
        assert ended.status.value == "completed"


async def test_files_stand_above_those_of_the_message_and_are_no_words_of_the_user() -> None:
    async with open_house(*many(1)) as house:
        agent_id = await put_agent(house, file_ids=["file_a"])
        put_files(house, agent_id, file_a=FakeText("a.md", "A"))
        part = {"type": "input_file", "filename": "r.txt", "file_data": "data:text/plain;base64,Unk="}
        asked = {"role": "user", "content": [part, {"type": "input_text", "text": "Hi"}]}
        ended = await house.ask(model="helper", input=[asked])
        kinds = [entry.kind for entry in house.log_of(ended.conversation_id)]
        files = kinds.index(EntryKind.PROJECT_FILES)
        assert kinds[files : files + 3] == [EntryKind.PROJECT_FILES, EntryKind.FILE, EntryKind.USER]


async def test_under_classic_they_move_with_the_instructions_above_the_newest_message() -> None:
    """`S CA P F U1`, then `S F U1 A1 CA P U2`, with the same numbers although a search has given others."""
    async with open_house(searched(2), *many(1)) as house:
        agent_id = await put_agent(house, file_ids=["file_a"], placement="classic")
        put_files(house, agent_id, file_a=FakeText("a.md", "A"))
        part = {"type": "input_file", "filename": "r.txt", "file_data": "data:text/plain;base64,Unk="}
        asked = {"role": "user", "content": [part, {"type": "input_text", "text": "Hi"}]}
        first = await house.ask(model="helper", input=[asked])
        await house.ask(previous_response_id=first.id)
        one, two = [
            [message.content for message in sent.history if isinstance(message, UserMessage)] for sent in house.sent
        ]
        (project,) = projects_in(house.sent[0])
        assert one[0] == two[-2]
        assert one[1:] == [project, one[2]]
        assert two == [one[2], two[1], one[0], project]
        assert [head.number for head in project_documents(project)] == [1]
        assert house.observer.drifts == []


async def test_files_that_replace_others_of_half_the_window_leave_these_out() -> None:
    half = LIMIT_TOKENS * 4 * 9 // 10
    async with open_house(*many(3)) as house:
        agent_id = await put_agent(house, file_ids=["file_a"])
        put_files(house, agent_id, file_a=FakeText("a.md", "a" * half), file_b=FakeText("b.md", "b" * half))
        first = await house.ask(model="helper")
        await change_agent(house, agent_id, file_ids=["file_b"])
        second = await house.ask(previous_response_id=first.id)
        await house.ask(previous_response_id=second.id)
        for sent in house.sent[1:]:
            (text,) = projects_in(sent)
            assert [head.file_id for head in project_documents(text)] == ["file_b"]
        assert [reason for _, reason in house.observer.epochs] == ["new_conversation", "compaction"]
        assert house.observer.drifts == []
