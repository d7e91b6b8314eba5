"""What the release before finds of an agent's words in the rows that it reads."""

import orjson
import pytest

from backend.conversations.domain.conversation_log import Entry, EntryKind, EpochReason, EpochState
from backend.conversations.domain.placed_blocks import AgentRef, BlockMark
from backend.conversations.sql.codec import entry_parameters, to_entries
from shared.models.messages import UserMessage
from tests.unit.backend.conversations.logs import T0

KNOWN_KINDS = {"user", "dynamic_context", "assistant", "tool_result", "system", "notice", "void"}
KNOWN_PLACED = KNOWN_KINDS | {"custom_instructions", "project_files", "file", "summary"}
KNOWN_OF_RESET = {"reason", "begins_at", "says_from", "withheld", "access_mode", "template_version"}
OF_USERS = sorted(set(EntryKind) - {EntryKind.ASSISTANT, EntryKind.TOOL_RESULT, EntryKind.SYSTEM, EntryKind.VOID})


@pytest.mark.parametrize("kind", OF_USERS)
def test_rows_hold_kinds_and_fields_that_the_release_before_reads(kind: EntryKind) -> None:
    reset = EpochState(
        reason=EpochReason.NEW_CONVERSATION, blocks_from=2, opening="Hi", opening_of="d", placement="classic"
    )
    message = UserMessage(content="Text")
    plain = Entry(position=0, epoch=0, turn_id="t", kind=kind, message=message, created_at=T0, reset=reset)
    agents = (AgentRef(name="helper", id="agent_1"),) if kind in (EntryKind.SUMMARY, EntryKind.REMINDER) else ()
    entry = plain.model_copy(update={"block": _mark(kind), "summarised": agents})
    (row,) = entry_parameters("conv_1", [entry])
    assert row["kind"] in KNOWN_KINDS
    assert row["placed"] is None or orjson.loads(str(row["placed"]))["kind"] in KNOWN_PLACED
    assert set(orjson.loads(str(row["reset"]))) == KNOWN_OF_RESET
    assert to_entries("conv_1", [row]) == (entry,)


def test_a_plain_reset_has_no_additions() -> None:
    reset = EpochState(reason=EpochReason.MODEL_CHANGED, says_from=3)
    entry = Entry(position=0, epoch=0, turn_id="t", kind=EntryKind.VOID, message=None, created_at=T0, reset=reset)
    (row,) = entry_parameters("conv_1", [entry])
    assert (row["reset_additions"], row["placed"]) == (None, None)
    assert to_entries("conv_1", [row]) == (entry,)


def _mark(kind: EntryKind) -> BlockMark | None:
    is_block = kind in (EntryKind.CUSTOM_INSTRUCTIONS, EntryKind.PROJECT_FILES)
    return BlockMark(digest="d1") if is_block else None
