"""Whatever order checkpoints and exchanges are stored in, what calls have used is in the store at the end of a turn."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.conversations.domain.model_calls import CacheMiss, CallsMade, ModelCall
from backend.conversations.domain.prompt_record import MissCause
from backend.prompt.domain.turn_calls import CallRecorder, FirstPrompt
from shared.models.events import FinishReason, ModelCallFinished, ModelCallStarted, ModelCard, Usage
from tests.fakes.chat_shell_requests import full_request

EVENTS = tuple(
    event
    for call in (1, 2, 3)
    for event in (
        ModelCallStarted(call=call),
        ModelCallFinished(call=call, finish_reason=FinishReason.STOP, usage=Usage(output_tokens=call)),
    )
)


class Recording:
    """A recorder beside a store, whose answers may come late or never."""

    def __init__(self) -> None:
        request = full_request()
        self.events = list(EVENTS)
        self.log_length = len(request.history)
        self.calls = CallRecorder(FirstPrompt(request, self.log_length, epoch_reason=None, last=None))
        self.under_way: list[CallsMade] = []
        self.stored: dict[int, ModelCall] = {}

    def hear(self) -> None:
        if self.events:
            self.calls.feed(self.events.pop(0))

    def take_checkpoint(self) -> None:
        self.under_way.append(self.calls.list_unstored_calls(self.log_length))

    def store_checkpoint(self) -> None:
        if self.under_way:
            made = self.under_way[0]
            self.store_without_answer()
            self.calls.note_added(made)

    def store_without_answer(self) -> None:
        if self.under_way:
            for call in self.under_way.pop(0).calls:
                self.stored.setdefault(call.call, call)

    def store_exchange(self) -> None:
        made = self.calls.list_changed_calls()
        self.stored.update((call.call, call) for call in made.calls)
        self.calls.note_stored(made)


STEPS = (
    Recording.hear,
    Recording.take_checkpoint,
    Recording.store_checkpoint,
    Recording.store_without_answer,
    Recording.store_exchange,
)


@example([Recording.hear, Recording.take_checkpoint] * 2 + [Recording.store_checkpoint] * 2)
@example([Recording.hear, Recording.take_checkpoint, Recording.store_without_answer] * 2 + [Recording.store_exchange])
@given(st.lists(st.sampled_from(STEPS), max_size=30))
def test_the_newest_form_of_each_call_is_stored(steps: list[Callable[[Recording], None]]) -> None:
    recording = Recording()
    for step in steps:
        step(recording)
    while recording.events:
        recording.hear()
    recording.store_exchange()
    while recording.under_way:
        recording.store_checkpoint()
    used = {number: call.usage for number, call in recording.stored.items()}
    assert used == {number: Usage(output_tokens=number) for number in (1, 2, 3)}


@pytest.mark.parametrize(
    ("minimum_tokens", "ttl_seconds", "idle_seconds", "cause"),
    [
        (0, 0, 9_999, MissCause.ROUTED_ELSEWHERE),
        (0, 300, 301, MissCause.EVICTED),
        (0, 300, 299, MissCause.ROUTED_ELSEWHERE),
        (1_000_000, 300, 301, MissCause.BELOW_MINIMUM),
    ],
)
def test_a_miss_is_read_by_the_card_of_the_model_and_the_time_since_the_turn_before(
    minimum_tokens: int, ttl_seconds: int, idle_seconds: float, cause: MissCause
) -> None:
    request = full_request().model_copy(update={"system_prompt": "word " * 8_000})
    begun = CallRecorder(FirstPrompt(request, len(request.history), epoch_reason=None, last=None))
    begun.feed(EVENTS[0])
    card = ModelCard(
        name="m",
        context_window_tokens=9,
        max_output_tokens=9,
        cache_minimum_tokens=minimum_tokens,
        cache_ttl_seconds=ttl_seconds,
    )
    last = begun.list_changed_calls().sent
    calls = CallRecorder(FirstPrompt(request, 9, epoch_reason=None, last=last, idle_seconds=idle_seconds), card)

    def end(number: int) -> object:
        calls.feed(ModelCallStarted(call=number))
        usage = Usage(cached_tokens=0)
        return calls.feed(ModelCallFinished(call=number, finish_reason=FinishReason.STOP, usage=usage))

    assert end(1) == CacheMiss(cause=cause)
    if cause is not MissCause.BELOW_MINIMUM:
        assert end(2) == CacheMiss(cause=MissCause.ROUTED_ELSEWHERE), "within a turn no time passes"
