"""The reminder at the end of a request: which parts it has, in which order, and that it is kept nowhere."""

import json
from itertools import pairwise
from typing import Any

import pytest

from chat_shell.knowledge.domain.user_words import last_user_message
from chat_shell.models.chat_completions.encoder import ChatCompletionsApi
from chat_shell.models.ports import ModelCall
from shared.models.events import MessagesAdded, ModelCallStarted
from shared.models.execution import AccessMode, ExecutionRequest, Purpose, TurnLimits
from shared.models.messages import AssistantMessage, ToolMessage, UserMessage
from shared.prompts.knowledge_base import KNOWLEDGE_BASE_READ_DOCUMENT, KNOWLEDGE_BASE_SEARCH
from shared.prompts.message_order import CITATIONS, LAST_CALL, SUPERSEDED, reminder_text
from shared.prompts.read_file import READ_FILE
from tests.fakes.chat_shell_requests import PLAIN
from tests.fakes.knowledge_in_memory import KnowledgeInMemory
from tests.fakes.model_calls import model_call
from tests.fakes.model_requests import execution_request, knowledge
from tests.fakes.model_scripted import ScriptedModel, ScriptLine, call, calls, says
from tests.unit.chat_shell.turns.turn_cases import DOCUMENTS, FunctionTool, Stage, only

CITE, LAST = reminder_text((CITATIONS,)), reminder_text((LAST_CALL,))


def search(call_id: str) -> list[ScriptLine]:
    return calls(call(KNOWLEDGE_BASE_SEARCH, json.dumps({"query": call_id}), call_id))


def staged(*scripts: list[ScriptLine], text: str = "Thirty days.") -> Stage:
    stored = KnowledgeInMemory({"kb_a": {"leave.md": text} if text else {}})
    return Stage(ScriptedModel(*scripts), stored, tools=[FunctionTool("clock")])


def asks(calls_at_most: int | None = None, **changes: Any) -> ExecutionRequest:
    limits = TurnLimits(max_knowledge_calls=10, max_model_calls=calls_at_most)
    return execution_request(**{"knowledge": knowledge("kb_a"), "limits": limits, **changes})


def roles(sent: ModelCall) -> list[str]:
    return [message.role for message in sent.sent_messages]


async def test_one_reminder_stands_last_from_the_first_search_to_the_end():
    stage = staged(search("a"), search("b"), says("Done [1]."))
    events = await stage.run(asks())
    assert [roles(sent) for sent in stage.model.calls] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool", "user"],
        ["system", "user", "assistant", "tool", "assistant", "tool", "user"],
    ]
    assert [sent.reminder for sent in stage.model.calls] == ["", CITE, CITE]
    assert stage.model.calls[1].sent_messages[-1] == UserMessage(content=CITE)
    assert [event.reminder for event in only(ModelCallStarted, events)] == ["", CITE, CITE]
    assert "system-reminder" not in str(only(MessagesAdded, events))


@pytest.mark.parametrize("script", [calls(call("clock", "{}", "a")), search("a")])
async def test_without_documents_there_is_nothing_to_cite(script: list[ScriptLine]):
    stage = staged(script, says("Done."), text="")
    await stage.run(asks())
    assert [sent.reminder for sent in stage.model.calls] == ["", ""]


async def test_a_turn_that_is_taken_over_is_reminded_from_its_first_call():
    asked = AssistantMessage(text="", tool_calls=(call(KNOWLEDGE_BASE_SEARCH, "{}", "a"),))
    stage = staged(says("Done."))
    await stage.run(asks(added=(asked, ToolMessage(call_id="a", content=DOCUMENTS))))
    assert [sent.reminder for sent in stage.model.calls] == [CITE]


@pytest.mark.parametrize("name", [KNOWLEDGE_BASE_READ_DOCUMENT, READ_FILE])
async def test_whatever_tool_brings_documents_the_model_is_told_how_to_cite(name: str):
    asked = AssistantMessage(text="", tool_calls=(call(name, "{}", "a"),))
    stage = staged(says("Done."))
    await stage.run(asks(added=(asked, ToolMessage(call_id="a", content=DOCUMENTS))))
    assert [sent.reminder for sent in stage.model.calls] == [CITE]


async def test_documents_that_a_client_makes_up_bring_no_reminder():
    asked = AssistantMessage(text="", tool_calls=(call("clock", "{}", "a"),))
    stage = staged(says("Done."))
    await stage.run(asks(added=(asked, ToolMessage(call_id="a", content=DOCUMENTS))))
    assert [sent.reminder for sent in stage.model.calls] == [""]


async def test_documents_of_earlier_turns_bring_no_reminder():
    asked = AssistantMessage(text="", tool_calls=(call(KNOWLEDGE_BASE_SEARCH, "{}", "a"),))
    history = (UserMessage(content="Hi"), asked, ToolMessage(call_id="a", content=DOCUMENTS))
    stage = staged(says("Done."))
    await stage.run(asks(history=(*history, AssistantMessage(text="Hello [4]."))))
    assert [sent.reminder for sent in stage.model.calls] == [""]


async def test_the_last_call_of_a_turn_that_has_called_tools_is_announced():
    stage = staged(calls(call("clock", "{}", "a")), says("Noon."))
    await stage.run(asks(calls_at_most=2))
    assert [sent.reminder for sent in stage.model.calls] == ["", LAST]


@pytest.mark.parametrize("limit", [1, None])
async def test_a_plain_turn_has_no_reminder(limit: int | None):
    stage = staged(says("Hello."))
    await stage.run(asks(calls_at_most=limit))
    assert [sent.reminder for sent in stage.model.calls] == [""]


async def test_who_forbade_tools_needs_no_notice_of_it():
    asked = AssistantMessage(text="", tool_calls=(call("clock", "{}", "a"),))
    forbidding = PLAIN.model_copy(update={"tool_choice": "none"})
    stage = staged(says("Done."))
    added = (asked, ToolMessage(call_id="a", content="noon"))
    await stage.run(asks(calls_at_most=2, added=added, parameters=forbidding))
    assert [sent.reminder for sent in stage.model.calls] == [""]


async def test_the_parts_stand_in_their_order():
    stage = staged(search("a"), says("Done [1]."))
    await stage.run(asks(calls_at_most=2, reminder="Be kind."))
    assert [sent.reminder for sent in stage.model.calls] == [
        "<system-reminder>\nBe kind.\n</system-reminder>",
        f"<system-reminder>\nBe kind.\n\n{LAST_CALL}\n\n{CITATIONS}\n</system-reminder>",
    ]


async def test_a_blank_reminder_is_none():
    stage = staged(says("Done."))
    await stage.run(asks(reminder=" \n"))
    assert stage.model.calls[0].reminder == ""


async def test_a_summary_has_no_reminder():
    asked = AssistantMessage(text="", tool_calls=(call(KNOWLEDGE_BASE_SEARCH, "{}", "a"),))
    stage = staged(says("They spoke."))
    added = (asked, ToolMessage(call_id="a", content=DOCUMENTS))
    await stage.run(asks(reminder="Be kind.", added=added, purpose=Purpose.SUMMARY))
    assert stage.model.calls[0].reminder == ""


async def test_restricted_turns_have_nothing_to_cite():
    stage = staged(search("a"), says("Done."))
    await stage.run(asks(knowledge=knowledge("kb_a", mode=AccessMode.RESTRICTED)))
    assert [sent.reminder for sent in stage.model.calls] == ["", ""]


KIND = reminder_text(("Be kind.",))


def keeping(*said: str, turns_after: int = 0, **changes: Any) -> ExecutionRequest:
    """Ask in a conversation that keeps its reminders, of which it holds these, and then so many more turns."""
    history = [UserMessage(content="Hi"), *(UserMessage(content=text) for text in said), AssistantMessage(text="Ho.")]
    history += [UserMessage(content="And?"), AssistantMessage(text="Well.")] * turns_after
    fields: dict[str, Any] = {"keeps_reminders": True, "history": tuple(history), **changes}
    return asks(**fields)


async def reminders_of(request: ExecutionRequest, *scripts: list[ScriptLine]) -> list[str]:
    """Run a turn and return what its calls ended with, as its events tell."""
    stage = staged(*scripts, says("Done."))
    events = await stage.run(request)
    started = only(ModelCallStarted, events)
    for event, sent in zip(started, stage.model.calls, strict=True):
        assert event.reminder_stays == bool(event.reminder)
        assert sent.reminder == ""
        assert not event.reminder or sent.messages[-1] == UserMessage(content=event.reminder)
    for one, other in pairwise(stage.model.calls):
        assert other.messages[: len(one.messages)] == one.messages
    assert "system-reminder" not in str(only(MessagesAdded, events))
    return [event.reminder for event in started]


async def test_a_reminder_that_stays_is_said_once_and_again_where_it_says_more():
    both = reminder_text(("Be kind.", CITATIONS))
    asked = keeping(reminder="Be kind.")
    assert await reminders_of(asked, search("a"), search("b")) == [KIND, both, ""]


async def test_what_stands_near_is_not_said_again():
    both = reminder_text(("Be kind.", CITATIONS))
    assert await reminders_of(keeping(both, reminder="Be kind."), search("a")) == ["", ""]
    assert await reminders_of(keeping(KIND, reminder="Be kind.")) == [""]


@pytest.mark.parametrize(("turns_after", "said"), [(4, ""), (5, KIND)])
async def test_what_stands_far_is_said_again(turns_after: int, said: str):
    """The newest message of the user and the answer behind the reminder are two of twelve."""
    asked = keeping(KIND, reminder="Be kind.", turns_after=turns_after)
    assert await reminders_of(asked) == [said]


async def test_in_a_long_turn_it_is_said_again():
    scripts = [calls(call("clock", "{}", f"c{number}")) for number in range(7)]
    said = await reminders_of(keeping(reminder="Be kind."), *scripts)
    assert said == [KIND, *[""] * 5, KIND, ""]


async def test_a_changed_reminder_says_that_it_replaces_the_one_before():
    changed = reminder_text((SUPERSEDED, "Be brief."))
    assert await reminders_of(keeping(KIND, reminder="Be brief.", turns_after=20)) == [changed]
    assert await reminders_of(keeping(KIND, changed, reminder="Be brief.")) == [""]
    assert await reminders_of(keeping(KIND, changed, reminder="Be kind.")) == [reminder_text((SUPERSEDED, "Be kind."))]


async def test_of_a_reminder_that_is_gone_one_line_says_so():
    gone = reminder_text((SUPERSEDED,))
    assert await reminders_of(keeping(KIND, turns_after=20)) == [gone]
    assert await reminders_of(keeping(KIND, gone, turns_after=20)) == [""]
    assert await reminders_of(keeping(CITE)) == [""]


async def test_the_last_call_of_another_turn_is_taken_back_and_that_of_this_one_announced():
    last = reminder_text(("Be kind.", LAST_CALL))
    asked = keeping(last, reminder="Be kind.", calls_at_most=2)
    assert await reminders_of(asked, calls(call("clock", "{}", "a"))) == [
        reminder_text((SUPERSEDED, "Be kind.")),
        last,
    ]


async def test_a_turn_that_is_taken_over_finds_the_reminder_that_it_has_stored():
    asked = AssistantMessage(text="", tool_calls=(call("clock", "{}", "a"),))
    added = (UserMessage(content=KIND), asked, ToolMessage(call_id="a", content="noon"))
    assert await reminders_of(keeping(reminder="Be kind.", added=added[:1])) == [""]
    assert await reminders_of(keeping(reminder="Be kind.", added=added)) == [""]
    assert await reminders_of(keeping(reminder="Be kind.")) == [KIND]


def test_a_reminder_that_stays_does_not_pass_for_the_message_of_the_user():
    asked = AssistantMessage(text="", tool_calls=(call("clock", "{}", "a"),))
    history = (UserMessage(content="When?"), UserMessage(content=KIND), asked, ToolMessage(call_id="a", content="noon"))
    assert last_user_message(asks(prompt=None, history=history)) == "When?"


@pytest.mark.parametrize("reminders", [(), (KIND,)])
def test_a_reminder_that_stays_does_not_hide_results(reminders: tuple[str, ...]):
    """Servers get the reasoning of answers that go on from results again."""
    asked = AssistantMessage(text="", tool_calls=(call("clock", "{}", "a"),))
    results = (UserMessage(content="When?"), asked, ToolMessage(call_id="a", content="noon"))
    sent = model_call(messages=(*results, *(UserMessage(content=text) for text in reminders)))
    reader = ChatCompletionsApi().assembler(sent)
    assert vars(reader)["_follows_results"] is True
