"""Where a conversation that has outgrown its model's window is cut, and that a cut parts no result from its call."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.conversations.domain.attached_files import FileMessage
from backend.conversations.domain.conversation_log import (
    Entry,
    EntryKind,
    EpochReason,
    EpochState,
    find_pending_calls,
    messages_of,
    select_sent,
)
from backend.conversations.domain.placed_blocks import BlockMark
from backend.prompt.domain.compaction import (
    MAX_CONTEXT_BYTES,
    TARGET_PERCENT,
    TRIGGER_PERCENT,
    Cut,
    Load,
    find_cut,
    hand_back_tokens,
)
from backend.prompt.domain.epochs import Epoch, compact
from backend.prompt.domain.listed_files import find_left_out
from backend.prompt.domain.truncation import PromptBudget, leave_out_of_running, summary_limit_tokens
from shared.errors import ContextTooLong
from shared.models.messages import AssistantMessage, HistoryMessage, ToolMessage, UserMessage
from shared.prompts.attached_files import render_file
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from shared.tokens import message_tokens
from tests.fakes.chat_shell_talking import check_pairs
from tests.unit.backend.conversations.logs import Said, answer, card, context, log_of, notice, result, user, void

FIRST = EpochState(reason=EpochReason.NEW_CONVERSATION)
RUNNING = Epoch(number=0, reset=FIRST, starts=False)
LOAD = Load(system_prompt="s" * 400, current="Hi", needs_end=False, tools_tokens=200)
BUDGET = 3_000

sizes = st.sampled_from([1, 40, 400, 2_000, 6_000])
long_texts = sizes.map(lambda size: "x" * size)


@st.composite
def turns(draw: st.DrawFn) -> list[list[Said]]:
    """Make turns of every form that a log can hold; the calls of a client are answered by the turn behind."""
    made: list[list[Said]] = []
    for number in range(draw(st.integers(0, 7))):
        opening = draw(st.sampled_from([[], [context("c" * 300)], [notice()], [notice(), context()]]))
        asked = [*opening, user(draw(long_texts))]
        form = draw(st.sampled_from(["plain", "tools", "client", "mixed", "void", "broken", "given"]))
        ours, theirs = f"ours_{number}", f"theirs_{number}"
        match form:
            case "tools":
                calls = [answer("", ours, theirs), result(ours, draw(long_texts)), result(theirs, draw(long_texts))]
                made.append([*asked, *calls, answer("Done.")])
            case "client":
                made.append([*asked, answer("Look.", theirs)])
                made.append([result(theirs, draw(long_texts)), answer("Thanks.")])
            case "mixed":
                made.append([*asked, answer("", theirs, ours), result(ours)])
                made.append([result(theirs), context(), user(draw(long_texts)), answer("Thanks.")])
            case "void":
                made.append([*asked, void()])
            case "broken":
                made.append([*asked, answer("", ours), result(ours, draw(long_texts))])
            case "given":
                made.append([user("Before"), answer("Given."), *asked, answer(draw(long_texts))])
            case _:
                made.append([*asked, answer(draw(long_texts))])
    return made


def tokens(messages: Sequence[HistoryMessage]) -> int:
    return sum(message_tokens(message) for message in messages)


def sent_after(epoch: Epoch, log: Sequence[Entry]) -> tuple[HistoryMessage, ...]:
    return messages_of(select_sent(log, epoch.reset))


def begins_at(cut: Cut | None) -> int | None:
    return None if cut is None else cut.begins_at


def starts_of_turns(log: Sequence[Entry]) -> set[int]:
    """Return where turns begin of which something is sent, their context apart."""
    first: dict[str, int] = {}
    for entry in select_sent(log, FIRST):
        if entry.kind is not EntryKind.DYNAMIC_CONTEXT:
            first.setdefault(entry.turn_id, entry.position)
    return set(first.values())


@given(turns())
def test_a_cut_parts_nothing_and_leaves_room(made: list[list[Said]]) -> None:
    log = log_of(*made)
    before = tokens(sent_after(RUNNING, log)) + LOAD.tokens
    epoch = compact(RUNNING, log, LOAD, card())
    if before * 100 <= BUDGET * TRIGGER_PERCENT:
        assert epoch is RUNNING
        return
    left = sent_after(epoch, log)
    check_pairs(left)
    assert not left or isinstance(left[0], UserMessage)
    assert (tokens(left) + LOAD.tokens) * 100 <= BUDGET * TARGET_PERCENT
    assert (epoch.number, epoch.starts, epoch.reset.reason) == (1, True, EpochReason.COMPACTION)
    assert compact(Epoch(number=1, reset=epoch.reset, starts=False), log, LOAD, card()).number == 1


@given(turns())
@example(
    [[user("x"), answer("", "a", "b"), result("a", "x" * 6_000), result("b"), answer("Done.")], [user("x" * 2_000)]]
)
def test_no_more_turns_go_than_must(made: list[list[Said]]) -> None:
    log = log_of(*made)
    epoch = compact(RUNNING, log, LOAD, card())
    earlier = [at for at in starts_of_turns(log) if at < epoch.reset.begins_at]
    for at in earlier:
        kept = messages_of(select_sent(log, epoch.reset.model_copy(update={"begins_at": at})))
        if kept and isinstance(kept[0], UserMessage):
            assert (tokens(kept) + LOAD.tokens) * 100 > BUDGET * TARGET_PERCENT


@given(turns(), long_texts)
def test_calls_that_wait_for_results_stay(made: list[list[Said]], asked: str) -> None:
    log = log_of(*made, [user(asked), answer("", "call_other", "call_last"), result("call_other")])
    load = LOAD._replace(needs_end=True, current=None)
    try:
        epoch = compact(RUNNING, log, load, card())
    except ContextTooLong:
        assert tokens(messages_of(log[-3:])) + load.tokens > BUDGET
        return
    left = sent_after(epoch, log)
    check_pairs([*left, ToolMessage(call_id="call_last", content="")])
    assert find_pending_calls(left) == ("call_last",)
    assert tokens(left) + load.tokens <= BUDGET


@given(turns(), long_texts)
def test_cut_after_cut_never_goes_back(made: list[list[Said]], more: str) -> None:
    epoch, log = RUNNING, log_of()
    for turn in made:
        log = log_of(turn, after=log, epoch=epoch.number)
        planned = compact(epoch._replace(starts=False), log, LOAD, card())
        if not find_pending_calls(sent_after(epoch, log)):
            assert planned.reset.begins_at >= epoch.reset.begins_at
            epoch = planned
            check_pairs(sent_after(epoch, log))


def test_a_turn_that_began_with_a_notice_may_be_where_the_next_cut_is() -> None:
    """Such a turn began an epoch; were it stuck to the one before, a cut would take more than it must."""
    log = log_of([user("x" * 8_000), answer()], [notice(), context(), user(), answer()])
    assert begins_at(find_cut(log, LOAD, card(), FIRST)) == log[2].position


def test_at_three_quarters_nothing_moves_and_one_token_more_cuts() -> None:
    room = BUDGET * TRIGGER_PERCENT // 100 - LOAD.tokens
    for size, place in ((room, None), (room + 1, 1)):
        log = log_of([user("x" * 4 * size)])
        assert begins_at(find_cut(log, LOAD, card(), FIRST)) == place


def test_where_the_message_alone_is_long_all_before_it_goes() -> None:
    load = LOAD._replace(current="x" * 8_000)
    log = log_of(*[[user("x" * 800), answer()]] * 3)
    assert begins_at(find_cut(log, load, card(), FIRST)) == len(log)
    assert find_cut((), load, card(), FIRST) is None


def test_results_that_do_not_fit_are_refused_with_the_figures() -> None:
    log = log_of([user("x" * 12_000), answer("", "call_1")])
    load = LOAD._replace(current=None, needs_end=True)
    with pytest.raises(ContextTooLong, match=r"needs about 3302 tokens; the model takes 3000"):
        find_cut(log, load, card(), FIRST)


@pytest.mark.parametrize(
    ("changes", "param", "advice"),
    [
        ({"system_prompt": "s" * 12_000}, "model", "instructions and tools alone take 3200: shorten these"),
        ({"blocks": ("b" * 12_000, "")}, "model", "shorten these, or use a model with a larger window"),
        ({"current": "c" * 12_000}, "input", "use a shorter input"),
    ],
)
def test_what_does_not_fit_is_named_by_who_can_shorten_it(changes: dict[str, Any], param: str, advice: str) -> None:
    with pytest.raises(ContextTooLong, match=advice) as caught:
        find_cut((), LOAD._replace(**changes), card(), FIRST)
    assert caught.value.param == param


def test_a_window_that_the_answer_fills_takes_nothing() -> None:
    assert card(1_000, 1_000).input_budget_tokens == 0
    assert card().input_budget_tokens == BUDGET


def test_context_over_its_bound_is_said_anew_with_all_turns_kept() -> None:
    """Restating leaves the deltas out: the epoch's own context is what follows, once."""
    said = "c" * (MAX_CONTEXT_BYTES // 4)
    log = log_of([context("First."), user(), answer()], *[[context(said), user(), answer()] for _ in range(4)])
    roomy = card(1_000_000, 1)
    assert find_cut(log, LOAD, roomy, FIRST) is None
    log = log_of([context("c"), user(), answer()], after=log)
    epoch = compact(RUNNING, log, LOAD, roomy)
    assert (epoch.number, epoch.reset.reason, epoch.reset.begins_at) == (1, EpochReason.COMPACTION, 0)
    kinds = [entry.kind for entry in select_sent(log, epoch.reset)]
    assert kinds == [EntryKind.USER, EntryKind.ASSISTANT] * 6


def test_context_that_is_over_the_bound_when_said_once_is_not_said_anew_every_turn() -> None:
    log = log_of([context("c" * (MAX_CONTEXT_BYTES + 1)), user(), answer()], [user(), answer()])
    assert find_cut(log, LOAD, card(1_000_000, 1), FIRST) is None


def test_where_it_is_enough_only_results_go() -> None:
    long = [user(), answer("", "a"), result("a", "r" * 6_000), answer()]
    log = log_of(long, [user("x" * 2_000), answer()], reset=FIRST)
    epoch = compact(RUNNING, log, LOAD, card())
    reset = FIRST.model_copy(update={"reason": EpochReason.COMPACTION, "elides_below": len(log)})
    assert (epoch.number, epoch.starts, epoch.reset) == (1, True, reset)
    left = sent_after(epoch, log)
    assert [message.content for message in left if isinstance(message, ToolMessage)] == [TOOL_RESULT_ELIDED]
    assert len(left) == len(log)
    assert find_cut(select_sent(log, reset), LOAD, card(), reset) is None


def test_a_conversation_that_costs_too_much_is_shortened_before_its_window_is_full() -> None:
    window = card(100_000, 4_000)
    dear = window.model_copy(update={"compact_from_tokens": 3_000})
    log = log_of(*[[user("x" * 4_000), answer()]] * 3)
    assert find_cut(log, LOAD, window, FIRST) is None
    assert begins_at(find_cut(log, LOAD, dear, FIRST)) == 4
    assert find_cut(log[4:], LOAD, dear, FIRST) is None
    assert summary_limit_tokens(dear) == 400
    assert hand_back_tokens(dear) == hand_back_tokens(window)


def test_nothing_goes_to_save_money_where_what_must_stay_costs_too_much() -> None:
    dear = card(100_000, 1).model_copy(update={"compact_from_tokens": 3_000})
    log = log_of(*[[user("x" * 4_000), answer()]] * 3)
    assert find_cut(log, LOAD._replace(system_prompt="s" * 8_000), dear, FIRST) is None


def test_given_history_counts() -> None:
    load = LOAD._replace(given=(UserMessage(content="x" * 4_000), AssistantMessage(text="y" * 4_000)))
    assert load.tokens == LOAD.tokens + 2_000
    assert begins_at(find_cut(log_of([user("x" * 800), answer()]), load, card(), FIRST)) == 2


def test_the_context_of_the_turn_counts() -> None:
    log = log_of(*[[context("c" * 400), user("x" * 2_000), answer("y" * 1_000)]] * 2)
    assert find_cut(log, LOAD, card(), FIRST) is None
    said = LOAD._replace(context_tokens=800, restated_tokens=900)
    assert begins_at(find_cut(log, said, card(), FIRST)) == len(log)
    with pytest.raises(ContextTooLong):
        find_cut(log, said._replace(context_tokens=3_000, restated_tokens=3_000), card(), FIRST)


def test_what_was_said_of_knowledge_stays_at_the_head_unless_to_say_it_anew_is_shorter_by_half() -> None:
    log = log_of([context("c" * 1_200), user("x" * 8_000), answer()], [user("x" * 400), answer()])
    for restated_tokens, restates in ((150, False), (149, True)):
        load = LOAD._replace(restated_tokens=restated_tokens)
        assert find_cut(log, load, card(), FIRST) == Cut(begins_at=3, restates=restates, elides_below=5)
        epoch = compact(RUNNING, log, load, card())
        kinds = [entry.kind for entry in select_sent(log, epoch.reset)]
        assert kinds == [*[EntryKind.DYNAMIC_CONTEXT][restates:], EntryKind.USER, EntryKind.ASSISTANT]


def test_nothing_is_said_anew_where_no_message_of_the_user_follows() -> None:
    log = log_of([context("c" * 1_200), user("x" * 8_000), answer()], [user("x" * 400), answer("", "call_1")])
    load = LOAD._replace(current=None, needs_end=True)
    assert find_cut(log, load, card(), FIRST) == Cut(begins_at=3, restates=False, elides_below=3)
    deltas = [[context("c" * MAX_CONTEXT_BYTES), user(), answer()] for _ in range(2)]
    assert find_cut(log_of(*deltas), load, card(1_000_000, 1), FIRST) is None


def test_an_agents_words_stay_through_a_cut_and_are_counted_once_each() -> None:
    said = EntryKind.PROJECT_FILES, UserMessage(content="p" * 1_200)
    turns = [[said, user("u" * 400), answer("a" * 3_200)] for _ in range(4)]
    log = tuple(
        entry.model_copy(update={"block": BlockMark(digest=f"d{entry.position}")})
        if entry.kind is EntryKind.PROJECT_FILES
        else entry
        for entry in log_of(*turns, reset=FIRST)
    )
    load = Load(system_prompt="", current="Hi", needs_end=False, tools_tokens=0)
    cut = find_cut(select_sent(log, FIRST), load, card(), FIRST)
    assert cut == Cut(begins_at=10, restates=False, elides_below=12)
    assert [entry.position for entry in select_sent(log, FIRST.model_copy(update={"begins_at": 10}))] == [9, 10, 11]
    with pytest.raises(ContextTooLong, match="needs about 3301 tokens"):
        find_cut(select_sent(log, FIRST), load._replace(current="h" * 12_004), card(), FIRST)


@pytest.mark.parametrize(("withholds_users", "listed"), [(False, 2), (True, 1)])
def test_files_of_users_whose_turns_are_withheld_are_not_listed(withholds_users: bool, listed: int) -> None:
    blocks = [render_file(f"{name}.txt", name * 8, "Text.", file_id=f"file_{name}") for name in "ab"]
    log = log_of(*([(EntryKind.FILE, FileMessage(content=block)), user(), answer()] for block in blocks), [user()])
    reset = EpochState(
        reason=EpochReason.COMPACTION, begins_at=6, withheld=("turn_0",), withholds_users=withholds_users
    )
    found = find_left_out(log, reset)
    assert len(found) == listed
    assert ("a.txt" in str(found), "b.txt" in str(found)) == (not withholds_users, True)


def test_a_running_turn_drops_no_earlier_turn_where_their_results_are_enough() -> None:
    earlier = [user("One"), answer("", "a"), result("a", "x" * 6_000), answer("Done.")]
    running = [user("Two"), answer("", "b"), result("b", "y" * 2_000)]
    log = log_of(earlier, running)
    left_out = leave_out_of_running(log, log[-1].turn_id, PromptBudget(card(), fixed_tokens=200))
    assert left_out is not None
    assert (left_out.reset.begins_at, left_out.reset.elides_below) == (0, len(earlier))
    assert left_out.entries == ()


def test_a_running_turn_drops_earlier_turns_where_their_results_are_not_enough() -> None:
    earlier = [user("One " * 1_500), answer("Done.")]
    running = [user("Two"), answer("", "b"), result("b", "y" * 6_000)]
    log = log_of(earlier, running)
    left_out = leave_out_of_running(log, log[-1].turn_id, PromptBudget(card(), fixed_tokens=200))
    assert left_out is not None
    assert (left_out.reset.begins_at, [entry.position for entry in left_out.entries]) == (2, [0, 1])
