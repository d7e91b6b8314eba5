"""The policy `tail`, and a conversation that outgrows its model's window."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from backend.conversations.domain.conversation_log import COMPACTED
from backend.knowledge.domain.context_texts import BASES_ARE_NOW
from tests.e2e.conftest import SMALL, Pairs
from tests.e2e.pair import MODEL, Pair, PairOptions, start_pair, start_replica
from tests.e2e.prefixes import added, check_never_moves, check_pairs
from tests.e2e.test_logs import lines_of
from tests.e2e.turns import SUFFIX, Body, bare_client, file_search, messages_in, new_base, turn
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.servers.services import Launch

TINY = "tiny-model"
BUDGET = 3_500
"""Of the tiny model: 4,000 less 5 percent and 300 for the answer."""

LOOK = ScriptedCall(name="no_such_tool", arguments=f'{{"for": "{"y" * 200}"}}', call_id="call_1")


@pytest.fixture(scope="module")
def tiny_pair(pairs: Pairs, launch_for_module: Launch, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """A pair whose chat_shell offers a second model with a tiny window, at the provider of the small pair."""
    directory = tmp_path_factory.mktemp("tiny")
    address = pairs.get(SMALL).model_url
    window = "context_window_tokens: 4000, max_output_tokens: 300"
    tiny = f"- {{name: {TINY}, model: {MODEL}, base_url: '{address}', {window}}}"
    models = directory / "models.yaml"
    models.write_text(tiny)
    options = PairOptions(chat_shell={"CHAT_SHELL_MODELS_FILE": str(models)})
    return replace(start_pair(launch_for_module, directory, options), model_url=address)


@pytest.fixture
async def tiny_model(tiny_pair: Pair) -> AsyncIterator[FakeModelControl]:
    async with tiny_pair.control() as control:
        await control.reset()
        yield control


async def test_the_tail_says_all_in_every_turn_and_keeps_nothing(
    small_pair: Pair, small_model: FakeModelControl, launch: Launch, tmp_path: Path
) -> None:
    database = f"sqlite+aiosqlite:///{tmp_path}/tail.db"
    pair = start_replica(launch, tmp_path, small_pair, BACKEND_CONTEXT_POLICY="tail", BACKEND_DATABASE_URL=database)
    pair.keys = {}
    await small_model.script(Reply(text=("One.",)), Reply(tool_calls=(LOOK,)), Reply(text=("Two.",)))
    async with bare_client(pair, "tail") as client:
        base_id = await new_base(client, "Rules")
        first = await turn(client, "One?", tools=[file_search(base_id)])
        go_on = {"conversation": first["conversation"]["id"]}
        await turn(client, "Two?", **go_on)
        await client.patch(f"/v1/knowledge_bases/{base_id}", json={"summary": "Newer."})
        await turn(client, "Three?", **go_on)
        await turn(client, "Four?", tools=[], **go_on)
    requests = await small_model.requests()
    one, two, two_again, three, four = map(messages_in, requests)
    check_never_moves(requests[1:3])
    full = one[-2]["content"]
    assert full.startswith(BASES_ARE_NOW)
    assert "All about Rules." in full
    assert two[-2]["content"] == two_again[-4]["content"] == full
    assert three[-2]["content"] == full.replace("All about Rules.", "Newer.")
    kept = [message for message in four[1:] if message["role"] == "user"]
    assert [message["content"].split("?")[0] for message in kept] == ["One", "Two", "Three", "Four"]
    for messages in (one, two, three):
        said = [m for m in messages[:-2] if m["role"] == "user" and not SUFFIX.search(m["content"])]
        assert said == []
    assert four[: len(three) - 2] == three[:-2]
    assert four[len(three) - 2] == three[-1]


async def test_a_conversation_that_outgrows_its_window_goes_on_without_its_oldest_turns(
    tiny_pair: Pair, tiny_model: FakeModelControl
) -> None:
    async with bare_client(tiny_pair, "long") as client:
        base_id = await new_base(client, "Rules")
        latest = await turn(client, "Start 0?", model=TINY, tools=[file_search(base_id)])
        ids = [latest["id"]]
        for number in range(1, 13):
            await tiny_model.script(Reply(tool_calls=(LOOK,)), Reply(text=("z" * 400,)))
            latest = await turn(client, f"Go {number}? {'x' * 400}", previous_response_id=latest["id"])
            ids.append(latest["id"])
    requests = await tiny_model.requests()
    lines = [line for turn_id in ids for line in lines_of(tiny_pair.backend, turn_id=turn_id)]
    epochs = {ids.index(line["turn_id"]): line["reason"] for line in lines if line["event"] == "Epoch started"}
    assert list(epochs.values()) == ["new_conversation", *["compaction"] * (len(epochs) - 1)]
    assert len(epochs) > 2
    for earlier, later in pairwise(requests):
        before, after = messages_in(earlier), messages_in(later)
        check_pairs(after)
        if turn_number(after) in epochs and turn_number(before) != turn_number(after):
            check_cut(before, after)
        else:
            assert added(earlier, later)
    assert not lines_of(tiny_pair.backend, event="Prompt drift")


def turn_number(messages: list[Body]) -> int:
    """Return the number in the newest question."""
    asked = [str(m["content"]) for m in messages if m["role"] == "user" and SUFFIX.search(str(m["content"]))]
    return int(asked[-1].split(" ")[1].split("?")[0])


def check_cut(before: list[Body], after: list[Body]) -> None:
    """Check that whole turns from the oldest on are gone, and the rest is as it was, context at the head."""
    assert after[:2] == before[:2]
    assert after[1]["content"].startswith(BASES_ARE_NOW)
    *kept, notice, question = after[2:]
    assert notice == {"role": "user", "content": COMPACTED}
    assert SUFFIX.search(question["content"])
    assert kept[0]["role"] == "user"
    assert SUFFIX.search(kept[0]["content"]) or kept[0]["content"] == COMPACTED
    # The last answer is new; what stood before it stood in the request before, at its end.
    stood = [message for message in before if not str(message["content"]).startswith(BASES_ARE_NOW)]
    assert kept[:-1] == stood[1 - len(kept) :]
    assert kept[-1]["role"] == "assistant"
    assert len(kept) < len(before)


async def test_a_message_that_no_request_can_hold_is_refused_with_the_figures(
    tiny_pair: Pair, tiny_model: FakeModelControl
) -> None:
    async with bare_client(tiny_pair, "long") as client:
        first = await turn(client, "Hello?", model=TINY)
        body = {"input": "x" * 4 * BUDGET, "previous_response_id": first["id"]}
        for more in ({}, {"stream": True}, {"background": True}):
            answer = await client.post("/v1/responses", json=body | more)
            assert answer.status_code == 400, answer.text
            error = answer.json()["error"]
            assert (error["type"], error["code"], error["param"]) == (
                "invalid_request_error",
                "context_length_exceeded",
                "input",
            )
            assert f"the model takes {BUDGET}" in error["message"]
        await turn(client, "Still there?", previous_response_id=first["id"])
        await turn(client, "x" * 4 * BUDGET, previous_response_id=first["id"], model=MODEL)
    requests = await tiny_model.requests()
    assert [len(messages_in(request)) for request in requests] == [2, 4]
    check_never_moves(requests)
