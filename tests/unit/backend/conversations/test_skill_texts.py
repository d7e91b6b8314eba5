"""What the placement `classic` keeps of earlier turns: the texts of skills, and no other result."""

import pytest

from backend.conversations.domain.conversation_log import EntryKind, EpochReason, EpochState, select_sent
from backend.prompt.domain.turn_calls import CallRecorder, FirstPrompt
from shared.models.events import ModelCallStarted
from shared.models.messages import AssistantMessage, ToolCall, ToolMessage
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from shared.prompts.skills import READ_SKILL
from tests.fakes.chat_shell_requests import full_request
from tests.unit.backend.conversations.logs import Said, answer, log_of, result, user


def calling(**names: str) -> Said:
    calls = tuple(ToolCall(call_id=call_id, name=name, arguments="{}") for call_id, name in names.items())
    return EntryKind.ASSISTANT, AssistantMessage(text="", tool_calls=calls)


def results(version: int, *turns: list[Said], elides_below: int = 0) -> list[object]:
    reset = EpochState(
        reason=EpochReason.NEW_CONVERSATION, placement="classic", template_version=version, elides_below=elides_below
    )
    sent = select_sent(log_of(*turns, reset=reset), reset)
    return [entry.message.content for entry in sent if isinstance(entry.message, ToolMessage)]


READING = [user(), calling(a=READ_SKILL, b="look"), result("a", "Be formal."), result("b"), answer()]
"""A turn that reads a skill and something else."""


@pytest.mark.parametrize(("version", "kept"), [(1, TOOL_RESULT_ELIDED), (2, "Be formal.")])
def test_a_skill_stays_and_an_epoch_of_an_earlier_version_has_left_it_out(version: int, kept: str) -> None:
    assert results(version, READING, [user()]) == [kept, TOOL_RESULT_ELIDED]
    assert results(version, READING, [user()], [user()]) == [kept, TOOL_RESULT_ELIDED]


def test_a_call_with_the_id_of_an_earlier_reading_is_no_reading() -> None:
    looking = [user(), calling(a="look"), result("a", "Found."), answer()]
    assert results(2, READING, looking, [user()]) == ["Be formal.", TOOL_RESULT_ELIDED, TOOL_RESULT_ELIDED]


def test_a_compaction_leaves_skills_out_like_all_results() -> None:
    assert results(2, READING, [user()], elides_below=5) == [TOOL_RESULT_ELIDED, TOOL_RESULT_ELIDED]


@pytest.mark.parametrize(("keeps_skills", "fixed"), [(True, 6), (False, 3)])
def test_the_next_prompt_is_compared_up_to_the_newest_message_of_the_user_with_skills_that_stay(
    fixed: int, *, keeps_skills: bool
) -> None:
    reset = EpochState(reason=EpochReason.NEW_CONVERSATION, placement="classic")
    sent = select_sent(log_of(READING, [user()], reset=reset), reset)
    history = tuple(entry.message for entry in sent if entry.message is not None)
    request = full_request().model_copy(
        update={"history": history[:-1], "prompt": "Go on.", "kb_meta_prompt": "", "dynamic_blocks": (), "added": ()}
    )
    start = FirstPrompt(request, 6, epoch_reason=None, last=None, placement="classic", keeps_skills=keeps_skills)
    recorder = CallRecorder(start)
    recorder.feed(ModelCallStarted(call=1))
    made = recorder.list_changed_calls().sent
    assert made is not None
    # The system message stands first; the text of the skill is behind the question and the call.
    assert made.fixed == fixed
