"""Who observes a model call is told of its first fragment, of each, of its end, and of how it ended."""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager

import pytest

from chat_shell.models.ports import ModelAnswerEnd, ModelCall, ModelFragment, TextFragment
from chat_shell.models.transport.observing import CallHooks, ObserveCall
from shared.errors import ModelUnavailable
from shared.models.events import Cost
from tests.fakes.model_calls import FAR, model_call
from tests.fakes.model_scripted import ScriptedModel, ScriptLine, says


def noting(name: str, told: list[str]) -> ObserveCall:
    """An observer that writes down what it is told, and adds to the cost of the answer."""

    def on_end(end: ModelAnswerEnd) -> ModelAnswerEnd:
        told.append(f"{name} end {end.cost.amount if end.cost else 0}")
        cost = Cost(currency="USD", amount=(end.cost.amount if end.cost else 0) + 1, saved=0)
        return end.model_copy(update={"cost": cost})

    @contextmanager
    def observe(_call: ModelCall) -> Generator[CallHooks]:
        outcome = "left"
        try:
            yield CallHooks(lambda: told.append(f"{name} first"), lambda _: told.append(f"{name} fragment"), on_end)
            outcome = "done"
        except ModelUnavailable:
            outcome = "failed"
            raise
        finally:
            told.append(f"{name} {outcome}")

    return observe


def stream(told: list[str], *script: ScriptLine) -> AsyncGenerator[ModelFragment]:
    model = ScriptedModel(script, observers=[noting("outer", told), noting("inner", told)])
    return model.stream(model_call(), FAR)


async def test_the_inner_observer_completes_the_end_that_the_outer_one_is_told():
    told: list[str] = []
    *texts, end = [fragment async for fragment in stream(told, *says("a", "b"))]
    assert texts == [TextFragment(text="a"), TextFragment(text="b")]
    assert isinstance(end, ModelAnswerEnd)
    assert end.cost is not None
    assert end.cost.amount == 2
    assert sorted(told[:2]) == ["inner first", "outer first"]
    assert told[2:] == [
        *["outer fragment", "inner fragment"] * 2,
        *["inner end 0", "outer end 1.0", "inner done", "outer done"],
    ]


async def test_a_failure_passes_through_all_observers():
    told: list[str] = []
    with pytest.raises(ModelUnavailable):
        _ = [fragment async for fragment in stream(told, ModelUnavailable("away"))]
    assert told == ["inner failed", "outer failed"]


async def test_observers_see_that_the_caller_left():
    told: list[str] = []
    async with aclosing(stream(told, *says("a", "b"))) as fragments:
        await anext(fragments)
    assert told[-2:] == ["inner left", "outer left"]
