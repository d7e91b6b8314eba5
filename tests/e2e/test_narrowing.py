"""A role that narrows between two turns: what came from the base leaves the prompt and every way of reading."""

import httpx2

from tests.e2e.pair import Pair
from tests.e2e.prefixes import check_never_moves
from tests.e2e.turns import bare_client, events_of, everything_about, file_search, new_base, says, text_of, turn
from tests.fakes.model_server import FakeModelControl, Reply, ScriptedCall
from tests.servers.services import lines_of

CANARY = "marmalade-quorum"
NAMES = ("zephyrine", "obsidian ledger")
TEXT = f"The {NAMES[0]} reserve holds {CANARY} units, says the {NAMES[1]}."
ANSWER = f"It holds {CANARY} units [1]."
SEARCH = ScriptedCall(name="knowledge_base_search", arguments='{"query": "zephyrine reserve"}')
SUMMARY = "Nobody but readers may know of the tangerine protocol."
SECRETS = (CANARY, *NAMES, "tangerine protocol")


def secrets_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text.lower()]


async def set_role(owner: httpx2.AsyncClient, base_id: str, user_id: str, role: str | None) -> None:
    member = f"/v1/knowledge_bases/{base_id}/members/{user_id}"
    answer = await (owner.delete(member) if role is None else owner.put(member, json={"role": role}))
    assert answer.is_success, answer.text


async def test_after_narrowing_neither_model_nor_reader_gets_a_byte_of_it_and_after_widening_both_do(
    pair: Pair, model: FakeModelControl
) -> None:
    async with bare_client(pair, "owner-of-rules") as owner, bare_client(pair, "narrowed") as client:
        base_id = await new_base(owner, "Reserve rules", reserve=TEXT)
        await owner.patch(f"/v1/knowledge_bases/{base_id}", json={"summary": SUMMARY})
        await set_role(owner, base_id, "narrowed", "reader")
        await model.script(Reply(text=(f"I look for {NAMES[0]}.",), tool_calls=(SEARCH,)), Reply(text=(ANSWER,)))
        first = await turn(client, "What is held?", tools=[file_search(base_id)], include=["file_search_call.results"])
        assert text_of(first).endswith(ANSWER)
        assert set(secrets_in(await everything_about(client, first))) == set(SECRETS)
        go_on = {"conversation": first["conversation"]["id"]}

        for number, role in enumerate(("restricted_analyst", None)):
            await set_role(owner, base_id, "narrowed", role)
            await says(model, f"Going on {number}.")
            later = await turn(client, f"And what follows {number}?", **go_on)
            sent = (await model.requests())[-1].body.decode()
            assert secrets_in(sent) == []
            assert "What is held?" in sent
            assert secrets_in(await everything_about(client, first)) == []
            assert secrets_in(await everything_about(client, later)) == []

        await set_role(owner, base_id, "narrowed", "reader")
        await says(model, "Again.")
        widened = await turn(client, "And now?", **go_on)
        assert set(secrets_in((await model.requests())[-1].body.decode())) >= {CANARY, *NAMES}
        assert set(secrets_in(await everything_about(client, first))) == set(SECRETS)
        await says(model, "Stays.")
        await turn(client, "Still?", **go_on)
        check_never_moves((await model.requests())[-2:])
    lines = lines_of(pair.backend, conversation_id=go_on["conversation"])
    reasons = [line["reason"] for line in lines if line["event"] == "Epoch started"]
    assert reasons[0] == "new_conversation"
    assert set(reasons[1:]) == {"access_changed"}
    assert "Prompt drift" not in {line["event"] for line in lines}
    assert widened["status"] == "completed"


async def test_a_replay_of_what_was_streamed_before_holds_nothing_either(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "owner-of-more") as owner, bare_client(pair, "replaying") as client:
        base_id = await new_base(owner, "Reserve rules", reserve=TEXT)
        await set_role(owner, base_id, "replaying", "reader")
        await model.script(Reply(tool_calls=(SEARCH,)), Reply(text=(ANSWER,)))
        body = {"input": "What is held?", "tools": [file_search(base_id)], "stream": True}
        streamed = events_of((await client.post("/v1/responses", json=body)).text)
        response_id = streamed[-1]["response"]["id"]
        await set_role(owner, base_id, "replaying", None)
        for query in ("stream=true", "stream=true&starting_after=3", "include[]=file_search_call.results"):
            assert secrets_in((await client.get(f"/v1/responses/{response_id}?{query}")).text) == []
