"""The operator's list of models."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from chat_shell.models.configured.directory import build_models
from chat_shell.models.configured.entries import (
    DEFAULT_CONTEXT_WINDOW_TOKENS,
    DEFAULT_MAX_OUTPUT_TOKENS,
    ModelConfigurationError,
    ModelEntry,
    read_models_file,
)
from chat_shell.models.configured.prices import Prices
from chat_shell.models.transport.streaming import open_session
from shared.errors import UnknownModel
from tests.fakes.model_calls import StandingClock

FULL = """
models:
  - name: big
    api: chat_completions
    base_url: https://models.example/v1
    api_key_env: BIG_KEY
    model: vendor/big-2
    context_window_tokens: 200000
    max_output_tokens: 32000
    prices: {input: 1.25, cached_input: 0.125, output: 10}
  - name: small
    base_url: http://localhost:9/v1
"""

TWO_CURRENCIES = """
- {name: a, base_url: 'http://x', prices: {input: 1, output: 1}}
- {name: b, base_url: 'http://x', prices: {input: 1, output: 1, currency: EUR}}
"""


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session() as session:
        yield session


def written(directory: Path, text: str) -> Path:
    path = directory / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file(tmp_path: Path):
    big, small = read_models_file(written(tmp_path, FULL), {"BIG_KEY": " sk-1\n"})

    assert big.api_key is not None
    assert big.api_key.get_secret_value() == "sk-1"
    assert (big.model, big.context_window_tokens, big.max_output_tokens) == ("vendor/big-2", 200_000, 32_000)
    assert big.prices == Prices(input=1.25, cached_input=0.125, output=10)
    assert small.api_key is None
    assert small.context_window_tokens == DEFAULT_CONTEXT_WINDOW_TOKENS
    assert small.max_output_tokens == DEFAULT_MAX_OUTPUT_TOKENS
    assert "sk-1" not in repr(big)


def test_a_bare_list(tmp_path: Path):
    assert [entry.name for entry in read_models_file(written(tmp_path, "[{name: a, base_url: 'http://x'}]"), {})] == [
        "a"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {base_url: 'http://x'}", ["models[0].name"]),
        ("- {name: a}", ["models[0].base_url"]),
        ("- {name: a, base_url: 'http://x'}\n- {name: b, base_url: 'ftp://x'}", ["models[1].base_url", "http"]),
        ("- {name: a, base_url: 'http://u:p@x'}", ["models[0].base_url", "credentials"]),
        ("- {name: a, base_url: 'http://x', api: telepathy}", ["models[0].api", "telepathy", "chat_completions"]),
        ("- {name: a, base_url: 'http://x', api_key: sk-1}", ["models[0].api_key"]),
        (
            "- {name: a, base_url: 'http://x', context_window_tokens: 0}",
            ["models[0].context_window_tokens: must be at least 1."],
        ),
        (
            f"- {{name: a, base_url: 'http://x', max_output_tokens: 1{'0' * 30}}}",
            ["max_output_tokens: must be at most"],
        ),
        ("- {name: a, base_url: 'http://x', prices: {input: 1, output: 1.0e+10}}", ["prices.output: must be at most"]),
        ("- {name: a, base_url: 'http://x', api_key_env: ABSENT}", ["models[0].api_key_env", "ABSENT"]),
        ("- {name: a, base_url: 'http://x', api_key_env: BAD}", ["models[0].api_key_env", "BAD"]),
        ("- {name: a, base_url: 'http://x'}\n- {name: a, base_url: 'http://x'}", ["'a'", "twice"]),
        ("- {name: a, base_url: 'http://x', prices: {input: 1}}", ["models[0].prices.output"]),
        (TWO_CURRENCIES, ["prices.currency", "EUR", "USD"]),
        ("- {name: a, base_url: 'http://x', cache: {kind: marks}}", ["models[0].cache.kind: must be automatic or b"]),
        (
            "- {name: a, api: anthropic_messages, base_url: 'http://x', cache: {kind: breakpoints}}",
            ["models[0].cache.kind: must be marks or automatic for this api"],
        ),
        ("- {name: a, base_url: 'http://x', cache: {kind: magic}}", ["models[0].cache.kind", "'automatic'"]),
        (
            "- {name: a, base_url: 'http://x', cache: {kind: breakpoints, ttl_seconds: 60}}",
            ["models[0].cache.ttl_seconds: must be 1800 or 43200 with breakpoints"],
        ),
        (
            "- {name: a, base_url: 'http://x', cache: {kind: breakpoints, diagnostics: true}}",
            ["models[0].cache.diagnostics: must be false for this api with breakpoints"],
        ),
        (
            "- {name: a, base_url: 'http://x', cache: {read_factor: 2}}",
            ["models[0].cache.read_factor: must be at most"],
        ),
        ("- {name: a, base_url: 'http://x', cache: {ttl: 5}}", ["models[0].cache.ttl: there is no such field"]),
        (
            "- {name: a, base_url: 'http://x', compact_when: {input_cost_per_turn: 0.1}}",
            ["models[0].compact_when.input_cost_per_turn: needs prices"],
        ),
        (
            "- {name: a, base_url: 'http://x', compact_when: {input_cost_per_turn: 1}, prices: {input: 0, output: 1}}",
            ["models[0].compact_when.input_cost_per_turn: needs a price of cached_input above 0"],
        ),
        (
            "- {name: a, base_url: 'http://x', compact_when: {input_cost_per_turn: 0}, prices: {input: 1, output: 1}}",
            ["models[0].compact_when.input_cost_per_turn: must be greater than 0"],
        ),
        ("- {name: a, base_url: 'http://x', affinity_header: Host}", ["models[0].affinity_header", "anyway"]),
        ("- {name: a, base_url: 'http://x', affinity_header: 'a b'}", ["models[0].affinity_header", "pattern"]),
        ("- {name: a, base_url: 'http://x', cache_salt_env: ABSENT}", ["models[0].cache_salt_env", "ABSENT"]),
        ("- {name: a, base_url: 'http://x', cache_salt_env: BAD}", ["models[0].cache_salt_env", "BAD", "characters"]),
        (
            "- {name: a, api: anthropic_messages, base_url: 'http://x', cache_salt_env: ABSENT}",
            ["models[0].cache_salt_env: this api has no salt"],
        ),
        ("[]", ["empty"]),
        ("just words", ["models"]),
        ("a: [", ["line", "YAML"]),
    ],
)
def test_a_wrong_file_is_told_in_one_line_with_its_place(tmp_path: Path, text: str, words: list[str]):
    path = written(tmp_path, text)

    with pytest.raises(ModelConfigurationError) as caught:
        read_models_file(path, {"BAD": "sk-\x07secret"})

    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert "sk-" not in message
    assert all(word in message for word in words), message


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(ModelConfigurationError, match="cannot be read"):
        read_models_file(tmp_path / "none.yaml", {})


async def test_models_stand_in_the_operators_order_and_the_first_entry_of_a_name_holds(session: aiohttp.ClientSession):
    entries = (
        ModelEntry(name="m", base_url="http://x", context_window_tokens=1000),
        ModelEntry(name="a", base_url="http://x"),
        ModelEntry(name="m", base_url="http://y", context_window_tokens=2000),
    )

    directory = build_models(entries, session, StandingClock(), logs_requests=True)

    assert [card.name for card in directory.cards()] == ["m", "a"]
    assert directory.card("m").context_window_tokens == 1000
    assert directory.model("a") is not directory.model("m")


async def test_a_model_that_is_not_offered(session: aiohttp.ClientSession):
    directory = build_models((ModelEntry(name="m", base_url="http://x"),), session, StandingClock())

    for ask in (directory.card, directory.model):
        with pytest.raises(UnknownModel) as caught:
            ask("other")
        assert caught.value.param == "model"


async def test_no_model_at_all(session: aiohttp.ClientSession):
    with pytest.raises(ModelConfigurationError):
        build_models((), session, StandingClock())


async def test_what_a_turn_may_cost_is_a_number_of_tokens(session: aiohttp.ClientSession, tmp_path: Path):
    text = """
    - {name: plain, base_url: 'http://x', prices: {input: 2, output: 10}}
    - {name: dear, base_url: 'http://x', prices: {input: 2, output: 10}, compact_when: {input_cost_per_turn: 0.04}}
    - name: cached
      base_url: http://x
      prices: {input: 2, output: 10}
      cache: {read_factor: 0.5}
      compact_when: {input_cost_per_turn: 0.04}
    """
    entries = read_models_file(written(tmp_path, text), {})
    cards = build_models(entries, session, StandingClock()).cards()
    assert [card.compact_from_tokens for card in cards] == [0, 20_000, 40_000]


async def test_which_further_parameters_a_model_takes(session: aiohttp.ClientSession, tmp_path: Path):
    text = """
    - {name: open, base_url: 'http://x'}
    - {name: hosted, base_url: 'http://x', api: responses}
    - {name: claude, base_url: 'http://x', api: anthropic_messages}
    - {name: own, base_url: 'http://x', api: responses, extra_parameters: [top_a, verbosity_x]}
    - {name: none, base_url: 'http://x', extra_parameters: []}
    """
    cards = build_models(read_models_file(written(tmp_path, text), {}), session, StandingClock()).cards()
    assert {card.name: card.extra_parameters for card in cards} == {
        "open": ("top_k", "min_p", "repetition_penalty", "chat_template_kwargs", "thinking", "logit_bias"),
        "hosted": (),
        "claude": ("top_k", "thinking"),
        "own": ("top_a", "verbosity_x"),
        "none": (),
    }
