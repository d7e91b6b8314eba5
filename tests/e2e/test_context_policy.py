"""The policy `tail`, and a conversation that outgrows its model's window."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from backend.knowledge.domain.context_texts import BASES_ARE_NOW
from shared.prompts.message_order import TOOL_RESULT_ELIDED
from shared.prompts.summary import SUMMARY_INSTRUCTION, frame_summary
from tests.e2e.conftest import SMALL, Pairs
from tests.e2e.pair import MODEL, Pair, PairOptions, start_pair, start_replica
from tests.e2e.prefixes import added, check_never_moves, check_pairs
from tests.e2e.turns import SUFFIX, Body, bare_client, file_search, messages_in, new_base, turn
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall
from tests.servers.services import Launch, lines_of

pytestmark = pytest.mark.combination

TINY = "tiny-model"
BUDGET = 3_500
"""Of the tiny model: 4,000 less 5 percent and 300 for the answer."""

SUMMED = Reply(text=("All of it.",))
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
    async with tiny_pair.fresh_model() as control:
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


async def test_a_conversation_that_outgrows_its_window_goes_on_with_a_summary_of_its_oldest_turns(
    tiny_pair: Pair, tiny_model: FakeModelControl
) -> None:
    await tiny_model.script(*[SUMMED] * 20, when=SUMMARY_INSTRUCTION[:60])
    async with bare_client(tiny_pair, "long") as client:
        base_id = await new_base(client, "Rules")
        latest = await turn(client, "Start 0?", model=TINY, tools=[file_search(base_id)])
        ids = [latest["id"]]
        for number in range(1, 13):
            await tiny_model.script(Reply(tool_calls=(LOOK,)), Reply(text=("z" * 400,)))
            latest = await turn(client, f"Go {number}? {'x' * 520}", previous_response_id=latest["id"])
            ids.append(latest["id"])
        shown = [(await client.get(f"/v1/responses/{each}/prompts")).json()["data"] for each in ids]
    requests = await tiny_model.requests()
    summaries = [request for request in requests if is_summary(request)]
    answers = [request for request in requests if not is_summary(request)]
    lines = [line for turn_id in ids for line in lines_of(tiny_pair.backend, turn_id=turn_id)]
    epochs = {ids.index(line["turn_id"]): line["reason"] for line in lines if line["event"] == "Epoch started"}
    assert list(epochs.values()) == ["new_conversation", *["compaction"] * len(summaries)]
    assert len(summaries) > 1
    assert [line["outcome"] for line in lines if line["event"] == "History compacted"] == ["summarised"] * len(
        summaries
    )
    left = iter(summaries)
    for earlier, later in pairwise(answers):
        before, after = messages_in(earlier), messages_in(later)
        check_pairs(after)
        if turn_number(after) in epochs and turn_number(before) != turn_number(after):
            check_cut(before, messages_in(next(left)), after)
        else:
            assert added(earlier, later)
    assert not lines_of(tiny_pair.backend, event="Prompt drift")
    calls = [call for prompts in shown for call in prompts]
    assert [call["purpose"] for call in calls].count("summary") == len(summaries)
    gauges = [call["gauge"] for call in calls]
    assert {(gauge["window_tokens"], gauge["reserved_tokens"]) for gauge in gauges} == {(4_000, 300)}
    assert all(0 < gauge["used_tokens"] < BUDGET for gauge in gauges)


async def test_a_turn_that_outgrows_its_window_between_two_calls_goes_on_with_a_summary(
    tiny_pair: Pair, tiny_model: FakeModelControl
) -> None:
    await tiny_model.script(SUMMED, when=SUMMARY_INSTRUCTION[:60])
    long_call = ScriptedCall(name="no_such_tool", arguments=f'{{"for": "{"y" * 1_600}"}}', call_id="call_1")
    async with bare_client(tiny_pair, "long") as client:
        first = await turn(client, f"One? {'x' * 4_000}", model=TINY)
        replies = [Reply(tool_calls=(long_call.model_copy(update={"call_id": f"call_{n}"}),)) for n in range(3)]
        await tiny_model.script(*replies, Reply(text=("Done.",)))
        last = await turn(client, "Go 1?", previous_response_id=first["id"])
        shown = (await client.get(f"/v1/responses/{last['id']}/prompts")).json()["data"]
    requests = await tiny_model.requests()
    (summary,) = [place for place, request in enumerate(requests) if is_summary(request)]
    before, after = requests[summary - 1], requests[summary + 1]
    assert summary > 2
    assert messages_in(requests[summary])[:-1] == messages_in(before)[:3]
    own = [message for message in messages_in(before)[3:] if "<system-reminder>" not in str(message["content"])]
    system, summed, *rest = messages_in(after)
    assert [system, summed] == [messages_in(before)[0], {"role": "user", "content": frame_summary("All of it.")}]
    assert [elided(message) for message in rest[: len(own)]] == [elided(message) for message in own]
    assert [item["type"] for item in last["output"]] == ["compaction", "message"]
    assert [call["purpose"] for call in shown].count("summary") == 1
    assert [call["call"] for call in shown] == [*range(1, len(shown) + 1)]
    assert last["usage"]["input_tokens"] > 0
    check_pairs(messages_in(after))
    lines = lines_of(tiny_pair.backend, turn_id=last["id"])
    assert [line["reason"] for line in lines if line["event"] == "Epoch started"] == ["compaction"]
    assert not lines_of(tiny_pair.backend, event="Prompt drift")


def is_summary(request: RecordedRequest) -> bool:
    """Return whether a request asks for a summary."""
    return messages_in(request)[-1]["content"] == SUMMARY_INSTRUCTION


def turn_number(messages: list[Body]) -> int:
    """Return the number in the newest question."""
    asked = [str(m["content"]) for m in messages if m["role"] == "user" and SUFFIX.search(str(m["content"]))]
    return int(asked[-1].split(" ")[1].split("?")[0])


def check_cut(before: list[Body], summary: list[Body], after: list[Body]) -> None:
    """Check that whole turns are gone, what was summarised was sent before, and the rest is as it was but for results.

    What was said of knowledge stays, behind the summary.
    """
    asked = len(summary) - 1
    assert summary[:asked] == before[:asked]
    assert after[:2] == [before[0], {"role": "user", "content": frame_summary("All of it.")}]
    assert after[2]["content"].startswith(BASES_ARE_NOW)
    *kept, question = after[3:]
    assert SUFFIX.search(question["content"])
    assert SUFFIX.search(kept[0]["content"])
    assert [elided(message) for message in before[asked:]] == kept[:-1]
    assert kept[-1]["role"] == "assistant"


def elided(message: Body) -> Body:
    """Return a message as it stands behind a compaction."""
    return {**message, "content": TOOL_RESULT_ELIDED} if message["role"] == "tool" else message
