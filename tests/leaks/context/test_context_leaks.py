"""The context cases in small: one of each kind against the real pair, an honest control, and a gate that lets all out.

`python -m tests.leaks.context` plays all of them.
"""

from pathlib import Path

import pytest

from tests.leaks.context.__main__ import play_cases
from tests.leaks.context.cases import Case, context_cases
from tests.leaks.context.judging import is_released
from tests.leaks.pair import Way
from tests.servers.forks import ForkServers

pytestmark = pytest.mark.whole

CHOSEN = (
    "agent_instructions_lend_words",
    "project_file_half_passage",
    "upload_dictionary",
    "labelled_tool_server_echo_released",
    "tool_fixed_before_restriction",
    "skill_lends_figures",
    "skill_unlabelled",
    "reader_writes_half",
    "role_lost_midway",
    "queued_before_demotion",
    "steer_after_demotion",
    "lanes_add_budgets",
    "summary_of_full_turns",
    "summary_scanned",
    "others_agent_anchored_words",
    "others_agent_classic_words",
    "others_agent_system_prompt",
)
HONEST = "The rules are sound, but practice is uneven. A review would help."


def chosen(*names: str) -> list[Case]:
    return [case for case in context_cases() if case.name in names]


async def test_nothing_gets_out_by_what_stands_beside_the_words_of_the_user(tmp_path: Path, forks: ForkServers) -> None:
    (step,) = chosen("agent_instructions_lend_words")[0].turns[:1]
    control = chosen("agent_instructions_lend_words")[0]._replace(
        name="honest_control", turns=(step | {"secondary": HONEST},)
    )
    outcomes = await play_cases(tmp_path, [control, *chosen(*CHOSEN)], Way(forks=forks))
    assert [fault for outcome in outcomes for fault in outcome.faults] == []
    assert [outcome.played.refusals for outcome in outcomes if outcome.played.refusals] == []
    assert any(is_released(result) for asked in outcomes[0].played.asked for result in asked.results)
    assert all(outcome.played.asked and outcome.played.received for outcome in outcomes)


async def test_what_a_gate_lets_out_is_noticed(tmp_path: Path, forks: ForkServers) -> None:
    names = ("agent_instructions_lend_words", "labelled_tool_server_echo_released", "upload_half_passage")
    outcomes = await play_cases(tmp_path, chosen(*names), Way(forks=forks), is_gated=False)
    assert [outcome.played.case.name for outcome in outcomes if not outcome.faults] == []
    assert {"released", "main model"} <= {fault.sink for outcome in outcomes for fault in outcome.faults}
