"""A shared conversation with an agent that one of its members may not use: what that member gets of its words."""

from typing import Any

import pytest

from tests.e2e.pair import Pair
from tests.e2e.prefixes import check_never_moves
from tests.e2e.turns import Body, bare_client, everything_about, text_of, turn
from tests.fakes.model_server import FakeModelControl, Reply
from tests.servers.services import lines_of

pytestmark = pytest.mark.combination

WORDS, FILES, OPENING, REMINDER = "instrument-owl", "ledger-heron", "opening-wren", "reminder-kite"
SECRETS = (WORDS, FILES, OPENING, REMINDER)


def found_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


async def put_agent(client: Any, name: str, **fields: Any) -> None:
    file = {"file": ("ledger.txt", f"The ledger says {FILES}.".encode())}
    stored = await client.post("/v1/files", data={"purpose": "user_data"}, files=file)
    agent = {"instructions": WORDS, "file_ids": [stored.json()["id"]], "reminder": REMINDER, **fields}
    answer = await client.put(f"/v1/agents/{name}", json=agent)
    assert answer.is_success, answer.text


def shown_texts(prompts: Body) -> str:
    return " ".join(str(message["content"]) for call in prompts["data"] for message in call["messages"])


FORMS: dict[str, dict[str, str]] = {
    "anchored": {},
    "classic": {"placement": "classic"},
    "opening": {"system_prompt": OPENING},
}


@pytest.mark.parametrize("form", FORMS)
async def test_who_may_not_use_an_agent_reads_none_of_its_words_and_no_model_gets_them(
    pair: Pair, model: FakeModelControl, form: str
) -> None:
    name, fields = f"own-{form}", FORMS[form]
    owner_id, reader_id = f"maker-of-{name}", f"member-with-{name}"
    async with bare_client(pair, owner_id) as owner, bare_client(pair, reader_id) as other:
        await put_agent(owner, name, **fields)
        await model.script(*(Reply(text=(said,)) for said in (f"It says {FILES}.", "Nothing.", "Again.", "Last.")))
        first = await turn(owner, "What does the ledger say?", model=name)
        place = first["conversation"]["id"]
        expected = set(SECRETS) - ({OPENING} if "system_prompt" not in fields else set[str]())
        assert set(found_in((await model.requests())[-1].body.decode())) == expected
        shared = await owner.put(f"/v1/conversations/{place}/members/{reader_id}", json={"role": "writer"})
        assert shared.status_code == 201

        assert found_in(await everything_about(other, first)) == []
        refused = await other.post("/v1/responses", json={"input": "Go on.", "conversation": place})
        assert (refused.status_code, f"'{name}'" in refused.text) == (404, True)
        second = await turn(other, "And you?", conversation=place, model="fake-model")
        assert found_in((await model.requests())[-1].body.decode()) == []
        assert found_in(await everything_about(other, second)) == []

        third = await turn(owner, "And to me?", conversation=place, model=name)
        assert set(found_in((await model.requests())[-1].body.decode())) == expected
        shown = (await owner.get(f"/v1/responses/{first['id']}/prompts")).json()
        assert set(found_in(shown_texts(shown))) == expected
        assert found_in(await everything_about(other, third)) == []
        await turn(owner, "Still?", conversation=place)
        if form != "classic":
            check_never_moves((await model.requests())[-2:])

        member = f"/v1/agents/{name}/members/{reader_id}"
        assert (await owner.put(member, json={"role": "reader"})).is_success
        assert set(found_in(await everything_about(other, third))) == expected
        assert text_of(second) == "Nothing."
    events = {line["event"] for line in lines_of(pair.backend, conversation_id=place)}
    assert "Prompt drift" not in events


async def test_words_of_a_deleted_agent_are_not_read_under_a_new_one_of_its_name(
    pair: Pair, model: FakeModelControl
) -> None:
    async with bare_client(pair, "first-maker") as owner, bare_client(pair, "second-maker") as other:
        await put_agent(owner, "renamed")
        await model.script(Reply(text=("Yes.",)))
        first = await turn(owner, "Hello", model="renamed")
        path = f"/v1/conversations/{first['conversation']['id']}/members/second-maker"
        assert (await owner.put(path, json={"role": "reader"})).status_code == 201
        assert (await owner.delete("/v1/agents/renamed")).is_success
        assert (await other.put("/v1/agents/renamed", json={"instructions": "Mine."})).status_code == 201
        assert found_in(await everything_about_read(other, first)) == []


async def everything_about_read(client: Any, response: Body) -> str:
    """Read all that a reader may, who may not cancel."""
    ways = ("", "/prompts", "/input_items", "?stream=true")
    answers = [await client.get(f"/v1/responses/{response['id']}{way}") for way in ways]
    assert {answer.status_code for answer in answers} == {200}
    return "\n".join(answer.text for answer in answers)
