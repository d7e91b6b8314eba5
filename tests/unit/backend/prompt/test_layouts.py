"""What other layouts of the same prompts would have cost."""

from collections.abc import Sequence
from typing import Any

from backend.conversations.domain.model_calls import ModelCall, PromptHeader, PromptPart
from backend.conversations.domain.prompt_record import Reuse
from backend.prompt.domain.layouts import list_layout_costs
from shared.models.messages import UserMessage

TOOLS = 100
TALK = [
    ("system", None, 50),
    ("dynamic_context", "one", 200),
    ("user", "one", 10),
    ("assistant", "one", 5),
    ("tool_result", "one", 1_000),
    ("assistant", "one", 20),
    ("user", "two", 10),
    ("assistant", "two", 5),
    ("tool_result", "two", 500),
]


def costs(
    parts: Sequence[tuple[str, str | None, int]], turn_id: str, reused: int, moved: int = 0
) -> dict[str, tuple[int, int, int]]:
    """Lay out a call that begins with the tools and so many messages of the call before; so many tokens have moved."""
    call = ModelCall(
        call=1,
        epoch=0,
        epoch_reason=None,
        log_end=len(parts),
        header=PromptHeader(tools="t" * 4 * TOOLS, system_prompt=""),
        reuse=Reuse(messages=reused, size_bytes=reused),
        rewritten_tokens=moved,
    )
    made = [PromptPart(kind, UserMessage(content="x"), at, turn) for at, (kind, turn, _) in enumerate(parts)]
    shown: list[Any] = [{"tokens": size, "reused": at < reused} for at, (_, _, size) in enumerate(parts)]
    listed: list[Any] = [*list_layout_costs(call, made, {"messages": shown}, turn_id)]
    return {one["layout"]: (one["sent_tokens"], one["cached_tokens"], one["cost_tokens"]) for one in listed}


def test_the_first_call_costs_the_same_in_each() -> None:
    assert set(costs(TALK[:3], "one", 0).values()) == {(360, 0, 360)}


def test_a_further_turn_reads_as_far_as_nothing_of_its_layout_has_moved() -> None:
    assert costs(TALK[:7], "two", 5) == {
        "as_sent": (1_395, 1_365, 30 + 136),
        "context_in_system": (1_395, 1_365, 30 + 136),
        "context_before_question": (1_395, 150, 1_245 + 15),
        "results_forgotten": (395, 365, 30 + 36),
    }


def test_a_turn_that_says_something_new_of_knowledge_moves_all_where_that_is_in_the_system_message() -> None:
    changed = [*TALK[:6], ("dynamic_context", "two", 40), TALK[6]]
    assert costs(changed, "two", 5)["context_in_system"] == (1_435, 100, 1_335 + 10)
    assert costs(changed, "two", 5)["as_sent"] == (1_435, 1_365, 70 + 136)


def test_within_a_turn_nothing_moves_but_what_was_forgotten_stays_away() -> None:
    assert costs(TALK, "two", 7) == {
        "as_sent": (1_900, 1_395, 505 + 139),
        "context_in_system": (1_900, 1_395, 505 + 139),
        "context_before_question": (1_900, 1_395, 505 + 139),
        "results_forgotten": (900, 395, 505 + 39),
    }


def test_words_of_an_agent_that_only_move_would_stay_in_the_system_message() -> None:
    """By `classic` the words stand before the newest question: what stood behind them is sent elsewhere as well."""
    classic = [*TALK[:1], *TALK[2:4], TALK[5], ("custom_instructions", "two", 200), TALK[6]]
    assert costs(classic, "two", 2, 225) == {
        "as_sent": (395, 160, 235 + 16),
        "context_in_system": (395, 385, 10 + 38),
        "context_before_question": (395, 150, 245 + 15),
        "results_forgotten": (395, 160, 235 + 16),
    }
    assert costs([*classic[:4], ("custom_instructions", "two", 300), TALK[6]], "two", 2, 25)["context_in_system"] == (
        495,
        100,
        395 + 10,
    )


def test_a_reminder_moves_nothing_where_the_context_is_in_the_system_message() -> None:
    reminded = [*TALK[:5], ("reminder", "one", 20), TALK[5]]
    assert costs(reminded, "one", 4)["context_in_system"] == costs(reminded, "one", 4)["as_sent"]
