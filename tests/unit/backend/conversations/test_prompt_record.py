"""What a prompt begins with that the call before had sent, and whose doing a shortfall is."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.prompt_record import (
    NO_REUSE,
    Reuse,
    SentPrompt,
    Shortfall,
    inherited,
    measured,
    measured_tools,
    reuse_of,
    shortfall_of,
)
from shared.models.canonical import canonical_parts
from shared.models.events import Usage
from shared.models.execution import ToolDefinition
from shared.models.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

TOOL = ToolDefinition(name="now", description=None, parameters=None, strict=None)
CALL = ToolCall(call_id="call_1", name="now", arguments="{}")
PROMPT: tuple[Message, ...] = (
    SystemMessage(content="Be brief."),
    UserMessage(content="What time is it? 几点了"),
    AssistantMessage(text="", tool_calls=(CALL,)),
    ToolMessage(call_id="call_1", content="Nine."),
)


def sent(messages: Sequence[Message], *, fixed: int | None = None, tools: Sequence[ToolDefinition] = ()) -> SentPrompt:
    digests = tuple(measured(message).digest for message in messages)
    count = len(digests) if fixed is None else fixed
    return SentPrompt(epoch=0, tools=measured_tools(tools).digest, messages=digests, fixed=count)


def reuse(last: SentPrompt | None, messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> Reuse:
    return reuse_of(last, measured_tools(tools), [measured(message) for message in messages])


def test_a_first_call_reuses_nothing() -> None:
    assert reuse(None, PROMPT) == NO_REUSE


def test_a_prompt_that_goes_on_reuses_all() -> None:
    found = reuse(sent(PROMPT[:2], tools=(TOOL,)), PROMPT, (TOOL,))
    assert found.messages == 2
    assert found.size_bytes == sum(map(len, canonical_parts((TOOL,), PROMPT[:2])))
    assert 0 < found.tokens < found.size_bytes
    assert found.first_difference is None


@pytest.mark.parametrize(
    ("place", "message", "path"),
    [
        (0, SystemMessage(content="Be long."), "messages[0].content"),
        (1, AssistantMessage(text="What time is it? 几点了"), "messages[1].role"),
        (2, AssistantMessage(text="Hm.", tool_calls=(CALL,)), "messages[2].content"),
        (2, AssistantMessage(text="", tool_calls=(CALL, CALL)), "messages[2]"),
        (3, ToolMessage(call_id="call_2", content="Nine."), "messages[3]"),
        (3, ToolMessage(call_id="call_1", content="Ten."), "messages[3].content"),
    ],
)
def test_the_first_difference_is_named(place: int, message: Message, path: str) -> None:
    changed = (*PROMPT[:place], message, *PROMPT[place + 1 :])
    found = reuse(sent(PROMPT), changed)
    assert (found.messages, found.first_difference) == (place, path)


def test_other_tools_leave_nothing() -> None:
    assert reuse(sent(PROMPT), PROMPT, (TOOL,)) == Reuse(first_difference="tools")


def test_a_prompt_that_ends_early_differs_where_it_ends() -> None:
    assert reuse(sent(PROMPT), PROMPT[:2]).first_difference == "messages[2]"


def test_a_declared_tail_may_be_something_else() -> None:
    last = sent((*PROMPT[:1], UserMessage(content="In scope: A."), PROMPT[1]), fixed=1)
    found = reuse(last, PROMPT)
    assert (found.messages, found.first_difference) == (1, None)


MESSAGES = st.lists(st.sampled_from([*PROMPT, UserMessage(content="Hm?")]), max_size=6)


@given(MESSAGES, MESSAGES, st.data())
def test_what_is_reused_is_the_longest_common_beginning(
    before: list[Message], now: list[Message], data: st.DataObject
) -> None:
    fixed = data.draw(st.integers(0, len(before)))
    found = reuse(sent(before, fixed=fixed), now)
    alike = next(
        (place for place, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(now)),
    )
    assert found.messages == alike
    assert found.size_bytes == sum(map(len, canonical_parts((), now[:alike])))
    assert (found.first_difference is None) == (now[:fixed] == before[:fixed])


def test_a_branch_inherits_what_it_begins_with() -> None:
    branch = inherited(sent(PROMPT), 1)
    assert branch.messages == sent(PROMPT).messages[:2]
    assert branch.fixed == 2
    assert inherited(sent(PROMPT[1:]), 1).fixed == 1


@pytest.mark.parametrize(
    ("found", "usage", "verdict"),
    [
        (Reuse(tokens=4_000), Usage(cached_tokens=3_968), None),
        (Reuse(tokens=4_000), Usage(cached_tokens=3_872), None),
        (Reuse(tokens=4_000), Usage(cached_tokens=3_840), Shortfall.PROVIDER_MISS),
        (Reuse(tokens=4_000), Usage(cached_tokens=0), Shortfall.PROVIDER_MISS),
        (Reuse(tokens=4_000), Usage(), None),
        (Reuse(tokens=1_000), Usage(cached_tokens=0), None),
        # The provider counts half of our estimate: 2,000 of its tokens could have been read.
        (Reuse(tokens=4_000), Usage(input_tokens=2_500, cached_tokens=1_920), None),
        (Reuse(tokens=4_000, first_difference="tools"), Usage(cached_tokens=4_000), Shortfall.OURS),
    ],
)
def test_whose_doing_a_shortfall_is(found: Reuse, usage: Usage, verdict: Shortfall | None) -> None:
    assert shortfall_of(found, 5_000, usage) == verdict
