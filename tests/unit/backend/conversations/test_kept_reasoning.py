"""What a provider wants back with an answer: kept with it in the log, and gone with it."""

from datetime import UTC, datetime

import orjson

from backend.conversations.domain.conversation_log import Entry, EntryKind, empty_message
from backend.conversations.domain.model_calls import ModelCall, PromptHeader, WithheldTurns, prompt_parts, show_prompt
from backend.conversations.domain.prompt_record import measure_message
from backend.conversations.domain.turn_log import TurnLog
from backend.conversations.sql.codec import entry_parameters, to_entries
from backend.restricted.domain.outgoing_events import texts_of, with_texts
from shared.models.events import MessagesAdded
from shared.models.messages import AssistantMessage, OpaqueItem, ProviderReasoning, ToolCall, ToolMessage

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SEALED = "gAAA-sealed"
REASONING = ProviderReasoning(api="responses", items=(OpaqueItem(content=f'{{"encrypted_content":"{SEALED}"}}'),))
CALL = ToolCall(call_id="c1", name="look", arguments="{}")
SAID = AssistantMessage(text="Well.", tool_calls=(CALL,), reasoning=REASONING)


def entry(message: AssistantMessage) -> Entry:
    return Entry(position=0, epoch=0, turn_id="resp_1", kind=EntryKind.ASSISTANT, message=message, created_at=NOW)


def test_it_is_stored_and_read_as_it_was():
    (row,) = entry_parameters("conv_1", (entry(SAID),))

    assert to_entries("conv_1", [row]) == (entry(SAID),)


def test_an_answer_without_any_is_stored_as_ever():
    (row,) = entry_parameters("conv_1", (entry(AssistantMessage(text="Well.")),))

    assert row["content"] == '{"role":"assistant","text":"Well.","tool_calls":[]}'


def test_it_goes_with_the_text_that_is_withheld():
    assert SEALED not in repr(empty_message(SAID))


def test_nothing_of_a_restricted_turn_is_kept_that_cannot_be_scanned():
    event = MessagesAdded(messages=(SAID,))

    passed = with_texts(event, lambda text: text)

    assert SEALED not in repr(passed)
    assert passed == MessagesAdded(messages=(SAID.model_copy(update={"reasoning": None}),))
    assert SEALED not in "".join(texts_of(event))


def test_a_call_that_is_dropped_takes_it_along():
    whole, cut = TurnLog("resp_1", 0, 0), TurnLog("resp_1", 0, 0)
    whole.feed(MessagesAdded(messages=(SAID, ToolMessage(call_id="c1", content="seen"))))
    cut.feed(MessagesAdded(messages=(SAID,)))

    assert whole.end(NOW, is_success=False)[0].message == SAID
    assert cut.end(NOW, is_success=False)[0].message == AssistantMessage(text="Well.")


def test_prompts_count_it_and_show_nothing_of_it():
    plain = SAID.model_copy(update={"reasoning": None})
    header = PromptHeader(tools="", system_prompt="")
    call = ModelCall(call=1, epoch=0, epoch_reason=None, log_end=1, header=header)

    shown = show_prompt(
        call, prompt_parts(call, (entry(SAID),)), "resp_1", WithheldTurns(frozenset(), with_users=False)
    )

    assert measure_message(SAID).digest != measure_message(plain).digest
    assert measure_message(SAID).size_bytes > measure_message(plain).size_bytes
    assert SEALED not in orjson.dumps(shown).decode()
