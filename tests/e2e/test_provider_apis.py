"""A turn with a tool, reasoning and a citation, and the turn after it, through each provider API but the usual one."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.e2e.conftest import Pairs
from tests.e2e.pair import Pair, PairOptions, start_pair
from tests.e2e.turns import Body, bare_client, file_search, new_base, search, text_of, turn
from tests.fakes.model_server import FakeModelServer, RecordedRequest, Reply
from tests.fakes.model_server.messages_frames import signature
from tests.fakes.model_server.responses_frames import sealed

pytestmark = pytest.mark.combination

MODELS = """
- {{name: by-responses, api: responses, base_url: '{url}', prices: {{input: 2, cached_input: 1, output: 10}}}}
- {{name: by-messages, api: anthropic_messages, base_url: '{url}', prices: {{input: 2, cached_input: 1, output: 10}}}}
"""
KEPT = {"by-responses": sealed, "by-messages": signature}
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 500},
}


async def test_the_same_talk_through_each_api(pairs: Pairs, tmp_path: Path) -> None:
    async with FakeModelServer() as server:
        models = tmp_path / "models.yaml"
        models.write_text(MODELS.format(url=server.base_url), encoding="utf-8")
        options = PairOptions(chat_shell={"CHAT_SHELL_MODELS_FILE": str(models)})
        pair = start_pair(pairs.launch, tmp_path / "pair", options)
        for model in KEPT:
            server.reset()
            await _talk(pair, server, model)
        _, metrics = await pair.metrics()
    # Three calls, each 500 * 2 + 500 * 1 + 100 * 10 for a million.
    assert 'ballast_model_cost_total{model="by-messages"} 0.0075' in metrics
    assert 'ballast_model_cost_saved_total{model="by-responses"} 0.0015' in metrics


async def _talk(pair: Pair, server: FakeModelServer, model: str) -> None:
    server.script(
        Reply(reasoning=("Hm", "."), text=("Let me look. ",), tool_calls=(search("fox", "call_1"),), usage=USAGE),
        Reply(reasoning=("So.",), text=("The fox is ", "red [1]."), usage=USAGE),
        Reply(text=("Bye.",), usage=USAGE),
    )
    async with bare_client(pair, "ann") as client:
        base_id = await new_base(client, f"Farm {model}", fox="The fox is red.")
        first = await turn(client, "Who is red?", model=model, tools=[file_search(base_id)])
        second = await turn(client, "Thanks.", previous_response_id=first["id"])
        prompts = (await client.get(f"/v1/responses/{first['id']}/prompts")).json()
    assert [text_of(response) for response in (first, second)] == ["Let me look. The fox is red [1].", "Bye."]
    _check_citation(first)
    _check_requests(server.requests, KEPT[model]("Hm."), KEPT[model]("So."))
    assert KEPT[model]("Hm.") not in orjson.dumps([first, second, prompts]).decode()
    cost = {"currency": "USD", "amount": 0.0025, "saved": 0.0005}
    assert [call["cost"] for call in prompts["data"]] == [cost, cost]
    assert first["usage"]["input_tokens"] == 2000


def _check_citation(response: Body) -> None:
    said = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    assert [note["filename"] for part in said for note in part["annotations"]] == ["fox.md"]


def _check_requests(requests: list[RecordedRequest], *kept: str) -> None:
    first, second, third = (_unmarked(request.body) for request in requests)
    one, two, three = (_parts(body) for body in (first, second, third))
    assert two[: len(one)] == one
    assert three[: len(two)] == two
    assert [b"<system-reminder>" in request.body for request in requests] == [False, True, True]
    written = [orjson.dumps(part).decode() for part in three]
    assert [sum(text in part for part in written) for text in kept] == [1, 1]
    assert written.index(next(part for part in written if kept[0] in part)) == len(one)
    assert {name: first[name] for name in ("tools", "model")} == {name: third[name] for name in ("tools", "model")}


def _unmarked(body: bytes) -> Body:
    """Return a body without its cache marks, as the provider's cache compares it."""
    return orjson.loads(body.replace(b',"cache_control":{"type":"ephemeral"}', b""))


def _parts(body: Body) -> list[Any]:
    """Return the parts of a request, without the reminder at its end."""
    if "input" in body:
        parts = [body["instructions"], *body["input"]]
    else:
        parts = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
    return parts[:-1] if b"<system-reminder>" in orjson.dumps(parts[-1]) else parts
