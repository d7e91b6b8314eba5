"""What a prompt begins with that the call before had sent, and whose doing a shortfall is."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.conversations.domain.model_calls import ModelCall, PromptHeader
from backend.conversations.domain.prompt_record import (
    NO_REUSE,
    CacheTerms,
    MissCause,
    Reuse,
    SentPrompt,
    Shortfall,
    cause_of_miss,
    inherit_prompt,
    measure_message,
    measure_tools,
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
    digests = tuple(measure_message(message).digest for message in messages)
    count = len(digests) if fixed is None else fixed
    return SentPrompt(epoch=0, tools=measure_tools(tools).digest, messages=digests, fixed=count)


def reuse(last: SentPrompt | None, messages: Sequence[Message], tools: Sequence[ToolDefinition] = ()) -> Reuse:
    return reuse_of(last, measure_tools(tools), [measure_message(message) for message in messages])


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
    branch = inherit_prompt(sent(PROMPT), 1)
    assert branch.messages == sent(PROMPT).messages[:2]
    assert branch.fixed == 2
    assert inherit_prompt(sent(PROMPT[1:]), 1).fixed == 1


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
    assert shortfall_of(found, cause_of_miss(found, 5_000, usage)) == verdict


FIRM = Reuse(tokens=4_000)
UNREAD, PARTLY = Usage(cached_tokens=0), Usage(cached_tokens=1_500)


@pytest.mark.parametrize(
    ("found", "usage", "terms", "cause"),
    [
        (FIRM, Usage(cached_tokens=3_968), CacheTerms(), None),
        (FIRM, Usage(), CacheTerms(diagnosis="messages_changed"), None),
        (Reuse(tokens=4_000, first_difference="tools"), UNREAD, CacheTerms(), MissCause.OURS),
        (FIRM, UNREAD, CacheTerms(diagnosis="messages_changed"), MissCause.OURS),
        (FIRM, UNREAD, CacheTerms(minimum_tokens=4_096), MissCause.BELOW_MINIMUM),
        (FIRM, UNREAD, CacheTerms(minimum_tokens=4_096, diagnosis="unchanged"), MissCause.BELOW_MINIMUM),
        (FIRM, UNREAD, CacheTerms(ttl_seconds=300, idle_seconds=300), MissCause.EVICTED),
        (FIRM, UNREAD, CacheTerms(ttl_seconds=300, idle_seconds=300, diagnosis="unchanged"), MissCause.EVICTED),
        (FIRM, PARTLY, CacheTerms(ttl_seconds=300, idle_seconds=9), MissCause.EVICTED),
        (FIRM, UNREAD, CacheTerms(ttl_seconds=300, idle_seconds=299), MissCause.ROUTED_ELSEWHERE),
        (FIRM, UNREAD, CacheTerms(ttl_seconds=300, diagnosis="cache_hit"), MissCause.ROUTED_ELSEWHERE),
        (FIRM, UNREAD, CacheTerms(diagnosis="unavailable"), MissCause.ROUTED_ELSEWHERE),
    ],
)
def test_why_a_cache_was_missed(found: Reuse, usage: Usage, terms: CacheTerms, cause: MissCause | None) -> None:
    assert cause_of_miss(found, 5_000, usage, terms) == cause


def test_what_no_cache_keeps_is_nobodys_shortfall_and_what_the_provider_finds_changed_is_a_miss_of_its() -> None:
    assert shortfall_of(FIRM, MissCause.BELOW_MINIMUM) is None
    assert shortfall_of(FIRM, MissCause.OURS) is Shortfall.PROVIDER_MISS


@pytest.mark.parametrize("missed", [None, Shortfall.PROVIDER_MISS])
def test_a_policy_that_moves_messages_is_named_whatever_the_provider_found(missed: Shortfall | None) -> None:
    header = PromptHeader(tools="", system_prompt="")
    call = ModelCall(call=1, epoch=0, epoch_reason=None, log_end=0, header=header, reuse=FIRM, shortfall=missed)
    assert call.shown_shortfall is missed
    assert call.model_copy(update={"rewritten_tokens": 5}).shown_shortfall is Shortfall.POLICY
    moved = call.model_copy(
        update={"rewritten_tokens": 5, "reuse": Reuse(first_difference="tools"), "shortfall": Shortfall.OURS}
    )
    assert moved.shown_shortfall is Shortfall.OURS
