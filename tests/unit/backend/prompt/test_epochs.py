"""When an epoch starts, for which reason, and what it begins with."""

from typing import Any

import pytest

from backend.conversations.domain.conversation_log import (
    WITHHELD,
    ContextState,
    EpochReason,
    EpochState,
    find_announced_cut,
    find_break,
    find_stated_context,
    history,
    newest_epoch_state,
    select_sent,
)
from backend.knowledge.domain.context_texts import BaseText
from backend.prompt.domain.compaction import Load
from backend.prompt.domain.epochs import CallerAccess, Epoch, compact, plan_epoch
from shared.errors import ContextTooLong
from shared.models.execution import AccessMode, ToolDefinition
from shared.models.messages import AssistantMessage, ToolMessage, UserMessage
from shared.prompts.knowledge_base import KNOWLEDGE_SECTIONS, TEMPLATE_VERSION
from tests.unit.backend.conversations.logs import (
    SETTINGS,
    answer,
    card,
    context,
    conversation,
    log_of,
    notice,
    result,
    user,
    void,
)

FULL = CallerAccess(mode=AccessMode.FULL, withheld=(), modes={})
FIRST = EpochState(reason=EpochReason.NEW_CONVERSATION)
LOG = log_of([context(), user(), answer()], epoch=3, reset=FIRST)
WEATHER = ToolDefinition(name="weather", description="", parameters={"type": "object"}, strict=None)
RETIRED_VERSION = max(KNOWLEDGE_SECTIONS) + 1
LIGHT = Load(system_prompt="", current="Hi", needs_end=False, tools_tokens=0)


def settings(**changes: Any) -> Any:
    return SETTINGS.model_copy(update=changes)


def began(**fields: Any) -> EpochState:
    """Return what an epoch began with that started for access."""
    return EpochState(reason=EpochReason.ACCESS_CHANGED, **fields)


def test_a_turn_like_the_one_before_goes_on() -> None:
    assert plan_epoch(conversation(), LOG, SETTINGS, FULL) == Epoch(number=3, reset=FIRST, starts=False)


def test_a_log_without_any_reset_goes_on_too() -> None:
    epoch = plan_epoch(conversation(), log_of([user(), answer()], epoch=3), SETTINGS, FULL)
    assert (epoch.number, epoch.starts, epoch.reset.begins_at, epoch.reset.withheld) == (3, False, 0, ())


def test_other_bases_start_nothing() -> None:
    changed = settings(knowledge_base_ids=("kb_1",))
    assert not plan_epoch(conversation(), LOG, changed, FULL).starts


def test_a_new_conversation_starts_its_epoch_without_counting_up() -> None:
    epoch = plan_epoch(conversation(model="", epoch=0), (), SETTINGS, FULL)
    assert (epoch.number, epoch.reset, epoch.starts) == (0, FIRST, True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "other-model"}, EpochReason.MODEL_CHANGED),
        ({"functions": (WEATHER,)}, EpochReason.TOOLS_CHANGED),
        ({"instructions": "Be brief."}, EpochReason.INSTRUCTIONS_CHANGED),
    ],
)
def test_a_changed_setting_starts_an_epoch(changes: dict[str, Any], reason: EpochReason) -> None:
    epoch = plan_epoch(conversation(), LOG, settings(**changes), FULL)
    assert (epoch.number, epoch.reset.reason, epoch.starts) == (4, reason, True)


def test_a_retired_template_starts_an_epoch_with_the_newest() -> None:
    log = log_of([user(), answer()], epoch=3, reset=began(template_version=RETIRED_VERSION))
    epoch = plan_epoch(conversation(), log, SETTINGS, FULL)
    assert (epoch.number, epoch.reset.reason, epoch.starts) == (4, EpochReason.TEMPLATE_VERSION, True)
    assert epoch.reset.template_version == TEMPLATE_VERSION


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ((AccessMode.FULL, ()), (AccessMode.RESTRICTED, ())),
        ((AccessMode.RESTRICTED, ()), (AccessMode.FULL, ())),
        ((AccessMode.FULL, ()), (AccessMode.FULL, ("turn_0",))),
        ((AccessMode.FULL, ("turn_0",)), (AccessMode.FULL, ())),
        ((AccessMode.FULL, ("turn_0",)), (AccessMode.FULL, ("turn_1",))),
        ((AccessMode.FULL, ("turn_0",)), (AccessMode.FULL, ("turn_0", "turn_1"))),
    ],
)
def test_other_access_starts_an_epoch_whether_it_narrows_or_widens(
    before: tuple[AccessMode, tuple[str, ...]], now: tuple[AccessMode, tuple[str, ...]]
) -> None:
    log = log_of([user(), answer()], epoch=3, reset=began(access_mode=before[0], withheld=before[1]))
    epoch = plan_epoch(conversation(), log, SETTINGS, CallerAccess(mode=now[0], withheld=now[1], modes={}))
    assert (epoch.number, epoch.reset.reason, epoch.starts) == (4, EpochReason.ACCESS_CHANGED, True)
    assert (epoch.reset.access_mode, epoch.reset.withheld) == now
    same = plan_epoch(conversation(), log, SETTINGS, CallerAccess(mode=before[0], withheld=before[1], modes={}))
    assert (same.number, same.starts) == (3, False)


def test_two_reasons_start_one_epoch_which_knows_both() -> None:
    """The setting gives the name; the turn after it finds the access as it is and goes on."""
    now = CallerAccess(mode=AccessMode.RESTRICTED, withheld=("turn_0",), modes={})
    changed = settings(model="other-model")
    epoch = plan_epoch(conversation(), LOG, changed, now)
    assert (epoch.number, epoch.reset.reason) == (4, EpochReason.MODEL_CHANGED)
    assert (epoch.reset.access_mode, epoch.reset.withheld) == (AccessMode.RESTRICTED, ("turn_0",))
    log = log_of([user(), answer()], epoch=4, reset=epoch.reset, after=LOG)
    assert not plan_epoch(conversation(model="other-model", epoch=4), log, changed, now).starts


@pytest.mark.parametrize("changes", [{"model": "other-model"}, {"functions": (WEATHER,)}, {"instructions": "Brief."}])
def test_what_was_said_of_knowledge_stands_where_only_a_setting_changed(changes: dict[str, Any]) -> None:
    epoch = plan_epoch(conversation(), LOG, settings(**changes), FULL)
    assert epoch.reset.says_from == 0
    narrowed = CallerAccess(mode=AccessMode.RESTRICTED, withheld=(), modes={})
    assert plan_epoch(conversation(), LOG, settings(**changes), narrowed).reset.says_from == len(LOG)
    retired = log_of([context(), user(), answer()], epoch=3, reset=began(template_version=RETIRED_VERSION))
    assert plan_epoch(conversation(), retired, settings(**changes), FULL).reset.says_from == len(retired)


def test_what_was_said_of_knowledge_is_said_anew_for_other_access_and_behind_a_cut() -> None:
    narrowed = CallerAccess(mode=AccessMode.RESTRICTED, withheld=(), modes={})
    assert plan_epoch(conversation(), LOG, SETTINGS, narrowed).reset.says_from == len(LOG)
    long = log_of(*([context(), user("x" * 4_000), answer()] for _ in range(3)), epoch=3, reset=FIRST)
    cut = compact(Epoch(number=3, reset=FIRST, starts=False), long, LIGHT, card())
    assert (cut.reset.begins_at > 0, cut.reset.says_from) == (True, len(long))
    assert find_stated_context(long, cut.reset) is None


def test_what_was_cut_stays_cut_in_every_later_epoch() -> None:
    log = log_of([user(), answer()], [user(), answer()], epoch=3, reset=began(begins_at=2))
    epoch = plan_epoch(conversation(), log, settings(model="other-model"), FULL)
    assert epoch.reset.begins_at == 2


def test_the_newest_reset_counts() -> None:
    log = log_of([user()], epoch=4, reset=began(withheld=("turn_0",)), after=LOG)
    assert newest_epoch_state(log).withheld == ("turn_0",)


def test_an_epoch_leaves_out_context_of_others_and_void_turns() -> None:
    begins = began(says_from=len(LOG))
    log = log_of([context(), user("Lost"), void()], [context("New."), user("Kept")], epoch=4, reset=begins, after=LOG)
    texts = [message.content for message in history(log) if isinstance(message, UserMessage)]
    assert texts == ["Go on.", "New.", "Kept"]


def test_the_context_of_a_void_turn_was_never_said() -> None:
    assert find_stated_context(log_of([context(), user(), void()], [user()]), FIRST) is None
    assert find_stated_context(log_of([context(), user(), answer()], [user()]), FIRST) is not None
    assert find_stated_context(log_of([context(), user(), answer()]), began(says_from=3)) is None


def test_a_withheld_turn_keeps_its_shape_and_the_words_of_its_user() -> None:
    log = log_of([user("Mine"), answer("Look.", "call_1"), result("call_1", "Secret."), answer("Secret!")])
    sent = [entry.message for entry in select_sent(log, began(withheld=("turn_0",)))]
    asked, called, found, said = sent
    assert asked == UserMessage(content="Mine")
    assert isinstance(called, AssistantMessage)
    assert (called.text, called.tool_calls[0].call_id) == (WITHHELD, "call_1")
    assert found == ToolMessage(call_id="call_1", content=WITHHELD)
    assert said == AssistantMessage(text=WITHHELD)


def test_a_short_conversation_is_left_alone() -> None:
    epoch = Epoch(number=3, reset=FIRST, starts=False)
    assert compact(epoch, LOG, LIGHT, card()) is epoch


def test_a_long_one_starts_an_epoch_further_on() -> None:
    log = log_of(*([user("x" * 4_000), answer()] for _ in range(3)), epoch=3, reset=FIRST)
    epoch = compact(Epoch(number=3, reset=FIRST, starts=False), log, LIGHT, card())
    assert (epoch.number, epoch.reset.reason, epoch.reset.begins_at, epoch.starts) == (
        4,
        EpochReason.COMPACTION,
        4,
        True,
    )


def test_an_epoch_that_starts_anyway_keeps_its_reason() -> None:
    """A smaller model's first turn cuts as well: one epoch, not two."""
    log = log_of(*([user("x" * 4_000), answer()] for _ in range(3)), epoch=3, reset=FIRST)
    started = plan_epoch(conversation(), log, settings(model="other-model"), FULL)
    epoch = compact(started, log, LIGHT, card())
    assert (epoch.number, epoch.reset.reason, epoch.reset.begins_at) == (4, EpochReason.MODEL_CHANGED, 4)


def test_a_message_that_fits_no_request_is_refused_with_the_figures() -> None:
    load = LIGHT._replace(current="x" * 12_004)
    with pytest.raises(ContextTooLong, match=r"needs about 3001 tokens; the model takes 3000") as caught:
        compact(Epoch(number=3, reset=FIRST, starts=False), LOG, load, card())
    assert caught.value.param == "input"


def test_a_void_turn_has_told_nothing_of_the_cut_that_it_began() -> None:
    cut = began(begins_at=len(LOG))
    void_one = log_of([notice("Cut."), context(), user("Lost"), void()], epoch=4, reset=cut, after=LOG)
    assert (newest_epoch_state(void_one).begins_at, find_announced_cut(void_one)) == (len(LOG), 0)
    texts = [message.content for message in history(void_one) if isinstance(message, UserMessage)]
    assert not {"Cut.", "Lost"}.intersection(texts)
    told = log_of([notice("Cut."), user(), answer()], epoch=4, reset=cut, after=LOG)
    assert find_announced_cut(told) == len(LOG)


@pytest.mark.parametrize("mode", AccessMode)
def test_a_base_whose_mode_changed_starts_an_epoch_though_another_keeps_the_turn_restricted(mode: AccessMode) -> None:
    """No epoch holds both renderings of a base, not of one either that was unbound in between."""
    other = AccessMode.FULL if mode is AccessMode.RESTRICTED else AccessMode.RESTRICTED
    base = BaseText(id="kb_a", name="A", text="- id: kb_a", mode=mode)
    log = log_of(
        [context(), user(), answer()], [user(), answer()], epoch=3, reset=began(access_mode=AccessMode.RESTRICTED)
    )
    log = (log[0].model_copy(update={"context": ContextState(bases=(base,), blocks=())}), *log[1:])
    for today, starts in ((mode, False), (other, True)):
        access = CallerAccess(mode=AccessMode.RESTRICTED, withheld=(), modes={"kb_a": today})
        epoch = plan_epoch(conversation(), log, SETTINGS, access)
        assert epoch.starts is starts
    assert epoch.reset.says_from == len(log)
    unbound = CallerAccess(mode=AccessMode.RESTRICTED, withheld=(), modes={})
    assert not plan_epoch(conversation(), log, SETTINGS, unbound).starts


@pytest.mark.parametrize(("before", "now"), [(0, 0.0), (1, True), (0, False)])
def test_schemas_that_are_equal_but_no_equal_bytes_start_an_epoch(before: Any, now: Any) -> None:
    """Python takes them for the same; the provider's cache does not."""
    functions = [WEATHER.model_copy(update={"parameters": {"minimum": value}}) for value in (before, now)]
    old = conversation(functions=(functions[0],))
    epoch = plan_epoch(old, LOG, settings(functions=(functions[1],)), FULL)
    assert epoch.reset.reason is EpochReason.TOOLS_CHANGED
    assert not plan_epoch(old, LOG, settings(functions=(functions[0],)), FULL).starts


def test_a_log_is_broken_where_an_entry_is_missing_or_an_epoch_has_no_beginning() -> None:
    whole = log_of([user(), answer()], epoch=4, reset=began(), after=LOG)
    assert find_break(whole, len(whole)) is None
    assert find_break(whole, len(whole) + 1) == len(whole)
    assert find_break((), 2) == 0
    assert find_break((*whole[:2], *whole[3:]), len(whole)) == 2
    headless = [entry.model_copy(update={"reset": None}) for entry in whole]
    assert find_break(headless, len(whole)) == len(LOG)
