"""Whoever is to blame for a miss of the cache is named: in `/prompts`, by the command, and in the metric."""

import re
from pathlib import Path

import pytest

from tests.e2e.ballast_command import ballast, environ_of
from tests.e2e.conftest import Pairs
from tests.e2e.pair import Pair, PairOptions, start_model, start_pair
from tests.e2e.turns import bare_client, prompts, tamper, turn

MODELS = """
- {{name: plain, base_url: '{url}', affinity_header: X-Conversation}}
- {{name: large, base_url: '{url}', affinity_header: X-Conversation, cache: {{minimum_tokens: 100000}}}}
- name: openai
  api: responses
  base_url: '{url}'
  affinity_header: X-Conversation
  cache: {{kind: breakpoints, diagnostics: true}}
- name: anthropic
  api: anthropic_messages
  base_url: '{url}'
  affinity_header: X-Conversation
  cache: {{diagnostics: true}}
"""
pytestmark = pytest.mark.combination

LONG = "The keeper boils a kettle. " * 400
NOT_ASKED = None


@pytest.fixture(scope="module")
def pair(pairs: Pairs, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pair whose models share a provider with a cache."""
    folder = tmp_path_factory.mktemp("cache")
    provider, url = start_model(pairs.launch, folder, module="tests.fakes.caching_provider")
    models = folder / "models.yaml"
    models.write_text(MODELS.format(url=url), encoding="utf-8")
    provider.wait_ready()
    return start_pair(pairs.launch, folder / "pair", PairOptions(chat_shell={"CHAT_SHELL_MODELS_FILE": str(models)}))


@pytest.mark.parametrize(
    ("model", "asked", "cause", "diagnosis", "shortfall"),
    [
        ("plain", "And then?", None, NOT_ASKED, None),
        ("openai", "And then?", None, "cache_hit", None),
        ("anthropic", "And then?", None, "unchanged", None),
        ("plain", "[tampered]", "ours", NOT_ASKED, "ours"),
        ("openai", "[rewritten]", "ours", "input_changed", "provider_miss"),
        ("anthropic", "[rewritten]", "ours", "messages_changed", "provider_miss"),
        ("plain", "[evict]", "evicted", NOT_ASKED, "provider_miss"),
        ("openai", "[evict]", "evicted", "cache_hit", "provider_miss"),
        ("anthropic", "[evict]", "evicted", "unchanged", "provider_miss"),
        ("large", "[elsewhere]", "below_minimum", NOT_ASKED, None),
        ("plain", "[elsewhere]", "routed_elsewhere", NOT_ASKED, "provider_miss"),
        ("openai", "[elsewhere]", "routed_elsewhere", "cache_hit", "provider_miss"),
        ("anthropic", "[elsewhere]", "routed_elsewhere", "unchanged", "provider_miss"),
    ],
)
async def test_the_cause_of_a_miss_is_named(
    pair: Pair, tmp_path: Path, model: str, asked: str, cause: str | None, diagnosis: str | None, shortfall: str | None
) -> None:
    async with bare_client(pair, "missed") as client:
        first = await turn(client, LONG, model=model)
        second = await turn(client, LONG, previous_response_id=first["id"])
        if asked == "[tampered]":
            tamper(pair, first["conversation"]["id"], "keeper", "keeping")
        before = counted((await pair.metrics())[0], cause, diagnosis)
        third = await turn(client, asked, previous_response_id=second["id"])
        (call,) = await prompts(client, third)
        after = counted((await pair.metrics())[0], cause, diagnosis)
    assert (call["cache_miss"], call["cache_diagnosis"], call["shortfall"]) == (cause, diagnosis, shortfall)
    assert after - before == (cause is not None)
    said = ballast(environ_of(pair, "missed", tmp_path), "prompts", third["id"]).stdout
    assert (f"missed: {cause}" in said) == (cause is not None)


def counted(text: str, cause: str | None, diagnosis: str | None) -> float:
    series = re.escape(f'ballast_cache_misses_total{{cause="{cause}",diagnosis="{diagnosis or ""}"}}')
    found = re.search(rf"^{series} (.+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0
