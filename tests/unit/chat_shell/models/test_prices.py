"""What model calls cost."""

import pytest
from prometheus_client import REGISTRY
from pydantic import ValidationError

from chat_shell.models.configured.prices import Prices, cost_of
from chat_shell.models.ports import ModelAnswerEnd
from chat_shell.models.telemetry.calls import CallPricer
from shared.models.events import Cost, Usage
from tests.fakes.model_calls import FAR, model_call
from tests.fakes.model_scripted import ScriptedModel, says

PRICES = Prices(input=2.0, cached_input=0.5, cache_write=2.5, output=10.0)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(input_tokens=1_000_000, output_tokens=0), (2.0, 0.0)),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000), (2.4, 0.6)),
        (
            Usage(input_tokens=1_000_000, cached_tokens=400_000, cache_write_tokens=100_000, output_tokens=0),
            (1.45, 0.6),
        ),
        (Usage(input_tokens=1_000_000, cached_tokens=9_000_000, output_tokens=0), (0.5, 1.5)),
        (Usage(input_tokens=3, output_tokens=1), (0.000016, 0.0)),
    ],
)
def test_costs(usage: Usage, expected: tuple[float, float]):
    assert cost_of(usage, PRICES) == Cost(currency="USD", amount=expected[0], saved=expected[1])


def test_what_is_unknown_costs_nothing_known():
    assert cost_of(Usage(output_tokens=1), PRICES) is None
    assert cost_of(Usage(input_tokens=1), PRICES) is None


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"input": 1}, "output"),
        ({"input": -1, "output": 1}, "input"),
        ({"input": float("nan"), "output": 1}, "input"),
        ({"input": 1, "output": 1, "currency": "dollars"}, "currency"),
        ({"input": 1, "output": 1, "cached_input": 2}, "cached_input"),
        ({"input": 1, "output": 1, "reasoning": 2}, "reasoning"),
    ],
)
def test_wrong_prices_are_named(wrong: dict[str, object], place: str):
    with pytest.raises(ValidationError, match=place):
        Prices.model_validate(wrong)


async def test_each_answer_tells_its_cost_and_is_counted():
    def counted(name: str) -> float:
        return REGISTRY.get_sample_value(name, {"model": "dear"}) or 0.0

    model = ScriptedModel(says("Hello"), observers=[CallPricer("dear", PRICES).observe])
    before = counted("ballast_model_cost_total")
    *_, end = [fragment async for fragment in model.stream(model_call(), FAR)]

    assert isinstance(end, ModelAnswerEnd)
    assert end.cost == Cost(currency="USD", amount=0.00007, saved=0.0)
    assert counted("ballast_model_cost_total") - before == pytest.approx(0.00007)
    assert counted("ballast_model_cost_saved_total") == 0.0
