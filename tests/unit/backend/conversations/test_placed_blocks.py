"""What a turn states of its agent's instructions and project files, and what later requests hold of it."""

from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    EpochReason,
    EpochState,
    select_sent,
    user_words,
)
from backend.conversations.domain.placed_blocks import BlockMark, PlacedBlocks, text_digest, words_digest
from backend.prompt.domain.block_policy import BlockStatement, block_statements, find_stated_blocks
from shared.prompts.message_order import FILES_GONE, FILES_REPLACED, INSTRUCTIONS_GONE, INSTRUCTIONS_REPLACED
from tests.unit.backend.conversations.logs import Said, answer, log_of, user, void

FIRST = EpochState(reason=EpochReason.NEW_CONVERSATION)
CA = EntryKind.CUSTOM_INSTRUCTIONS
P = EntryKind.PROJECT_FILES


def blocks(instructions: str = "", project_files: str = "") -> PlacedBlocks:
    return PlacedBlocks(instructions=instructions, project_files=project_files)


def said(statements: tuple[BlockStatement, ...]) -> list[tuple[EntryKind, str]]:
    return [(each.kind, each.text) for each in statements]


def marks(statements: tuple[BlockStatement, ...]) -> dict[EntryKind, BlockMark]:
    return {each.kind: each.mark for each in statements}


def stated(log: tuple[Entry, ...], *places: int) -> tuple[Entry, ...]:
    """Mark the entries at these places as statements of their kind's block."""
    return tuple(
        entry.model_copy(update={"block": BlockMark(digest=f"d{entry.position}")})
        if entry.position in places
        else entry
        for entry in log
    )


def instructions(text: str = "Be brief.") -> Said:
    return CA, user(text)[1]


def test_the_first_statement_is_the_text_itself_and_instructions_come_first() -> None:
    assert said(block_statements({}, blocks("Be brief.", "[file]"))) == [(CA, "Be brief."), (P, "[file]")]
    assert block_statements({}, blocks("  \n", "")) == ()


def test_what_is_unchanged_says_nothing_and_a_change_replaces_its_own_kind_alone() -> None:
    before = marks(block_statements({}, blocks("Be brief.", "[file]")))
    assert block_statements(before, blocks("Be  brief.\n", "[file]")) == ()
    changed = block_statements(before, blocks("Be long.", "[file]"))
    assert said(changed) == [(CA, f"{INSTRUCTIONS_REPLACED}\n\nBe long.")]
    assert said(block_statements(before, blocks("Be brief.", "[file] "))) == [(P, f"{FILES_REPLACED}\n\n[file] ")]


def test_what_is_gone_is_said_once_and_coming_back_is_a_first_statement() -> None:
    before = marks(block_statements({}, blocks("Be brief.", "[file]")))
    gone = block_statements(before, blocks())
    assert said(gone) == [(CA, INSTRUCTIONS_GONE), (P, FILES_GONE)]
    assert block_statements(marks(gone), blocks()) == ()
    assert said(block_statements(marks(gone), blocks("Be brief."))) == [(CA, "Be brief.")]


def test_digests_tell_texts_apart_and_blank_ones_have_none() -> None:
    assert words_digest("a  b\n") == words_digest("a b") != words_digest("ab")
    assert text_digest("a  b") != text_digest("a b")
    assert (words_digest(" \n"), text_digest(" \n")) == ("", "")


def test_a_void_turn_has_stated_nothing() -> None:
    log = stated(log_of([instructions(), user(), void()], [instructions("B"), user()], reset=FIRST), 0, 3)
    assert find_stated_blocks(log, FIRST) == {CA: BlockMark(digest="d3")}
    assert [entry.position for entry in select_sent(log, FIRST)] == [3, 4]


def test_a_cut_keeps_the_newest_statement_before_it_and_all_behind() -> None:
    turns = [[instructions(text), user(), answer()] for text in ("A", "B", "C")]
    log = stated(log_of(*turns, reset=FIRST), 0, 3, 6)
    cut = FIRST.model_copy(update={"begins_at": 6})
    assert [entry.position for entry in select_sent(log, cut)] == [3, 6, 7, 8]
    assert find_stated_blocks(log, cut) == {CA: BlockMark(digest="d6")}


def test_statements_before_a_declared_position_are_neither_sent_nor_count() -> None:
    log = stated(log_of([instructions(), user(), answer()], reset=FIRST), 0)
    anew = FIRST.model_copy(update={"blocks_from": 3})
    assert [entry.position for entry in select_sent(log, anew)] == [1, 2]
    assert find_stated_blocks(log, anew) == {}


def test_the_words_of_the_user_hold_neither_blocks_nor_files() -> None:
    own = (EntryKind.FILE, user("A file.")[1]), (P, user("Files.")[1]), instructions(), user("Mine.")
    assert user_words(log_of(own), "ann") == "Mine."
