"""What was sent stays sent: knowledge that is edited, bound and let go between turns, at the recorded model bytes."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from backend.knowledge.domain.context_texts import BASES_ARE_NONE, BASES_ARE_NOW, BASES_HAVE_CHANGED
from tests.e2e.conftest import LARGE, SMALL, Pairs
from tests.e2e.pair import Pair, start_replica
from tests.e2e.prefixes import added, asking, check_never_moves, check_pairs, neutral
from tests.e2e.turns import (
    SUFFIX,
    Body,
    bare_client,
    file_search,
    is_reminder,
    messages_in,
    new_base,
    new_conversation,
    turn,
)
from tests.fakes.model_server import FakeModelControl, RecordedRequest, Reply, ScriptedCall
from tests.servers.services import Launch, lines_of

WEATHER: Body = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}
SUFFIX_AT_THE_END = re.compile(rb"(?<=<time>)[^<]+(?=</time>\"}],)")
LONG = "How trips are planned, booked, paid for and accounted for, at home and abroad, by whom and when."


async def edit(client: httpx2.AsyncClient, base_id: str, **changes: Any) -> None:
    answer = await client.patch(f"/v1/knowledge_bases/{base_id}", json=changes)
    assert answer.status_code == 200, answer.text


async def turns(client: httpx2.AsyncClient, count: int, **fields: Any) -> Body:
    """Run so many turns and return the last."""
    for number in range(count - 1):
        await turn(client, f"And {number}?", **fields)
    return await turn(client, f"And {count}?", **fields)


def contexts(messages: list[Body]) -> list[str]:
    """Return the texts of the user's messages that no user wrote, without reminders."""
    ours = [m for m in messages if m["role"] == "user" and not is_reminder(m)]
    return [m["content"] for m in ours if not SUFFIX.search(str(m["content"]))]


def roles(messages: list[Body]) -> list[str]:
    return [message["role"] for message in messages]


@pytest.fixture
def no_drift(pair: Pair) -> Iterator[None]:
    """Check that the test brings no drift; others that share the pair may have made some on purpose."""
    before = len(lines_of(pair.backend, event="Prompt drift"))
    yield
    assert len(lines_of(pair.backend, event="Prompt drift")) == before


@pytest.mark.usefixtures("no_drift")
async def test_an_edit_adds_one_message_and_five_further_turns_none(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "stable") as client:
        rules, travel = await new_base(client, "Rules"), await new_base(client, "Travel")
        for base_id in (rules, travel):
            await edit(client, base_id, summary=LONG)
        conversation = await new_conversation(client)
        go_on = {"conversation": conversation}
        await turn(client, "What holds?", tools=[file_search(rules, travel)], **go_on)
        await turns(client, 5, **go_on)
        await edit(client, rules, summary=f"{LONG} Amounts >= 100.")
        await turns(client, 6, **go_on)
        await edit(client, travel, summary=f"{LONG} By train.")
        await turns(client, 6, **go_on)
    requests = await model.requests()
    check_never_moves(requests)
    assert len({one.body[: one.body.index(b'"messages":')] for one in requests}) == 1
    steps = [added(earlier, later) for earlier, later in pairwise(requests)]
    assert [len(step) for step in steps] == [2] * 5 + [3] + [2] * 5 + [3] + [2] * 5
    for step in steps:
        assert roles(step) == ["assistant", *["user"] * (len(step) - 1)]
        assert SUFFIX.search(step[-1]["content"])
    first, second, third = contexts(messages_in(requests[-1]))
    assert first.startswith(BASES_ARE_NOW)
    for delta, named, other in ((second, rules, travel), (third, travel, rules)):
        assert delta.startswith(BASES_HAVE_CHANGED)
        assert (named in delta, other in delta) == (True, False)


async def test_a_rule_that_comes_back_is_said_again_and_none_is_said_once(
    small_pair: Pair, small_model: FakeModelControl
) -> None:
    async with bare_client(small_pair, "stable") as client:
        base_id = await new_base(client, "Rules")
        go_on = {"conversation": await new_conversation(client)}
        said = [f"{LONG} Amounts {sign} 100." for sign in (">=", ">", ">=")]
        for summary in said:
            await edit(client, base_id, summary=summary)
            await turns(client, 2, tools=[file_search(base_id)], **go_on)
        await turns(client, 3, tools=[], **go_on)
        await turns(client, 2, tools=[file_search(base_id)], **go_on)
    requests = await small_model.requests()
    check_never_moves(requests)
    one, two, three, none, again = contexts(messages_in(requests[-1]))
    assert [said[0] in one, said[1] in two, said[2] in three] == [True, True, True]
    assert none == BASES_ARE_NONE
    assert said[2] in again


async def test_what_means_the_same_says_nothing(small_pair: Pair, small_model: FakeModelControl) -> None:
    """Twenty turns with other hits in another order, other spaces, other orders: not one message."""
    for number in range(20):
        search = ScriptedCall(name="knowledge_base_search", arguments='{"query": "fox hen"}')
        await small_model.script(Reply(tool_calls=(search,)), Reply(text=(f"Found {number}.",)))
    async with bare_client(small_pair, "stable") as client:
        farm = await new_base(client, "Farm", fox="The fox is red.", hen="The hen is brown.")
        barn = await new_base(client, "Barn", owl="The owl is grey.")
        await edit(client, farm, topics=["foxes", "hens"], routing_keywords=["red", "brown"], summary=LONG)
        go_on = {"conversation": await new_conversation(client)}
        await turn(client, "Who?", tools=[file_search(farm, barn)], **go_on)
        for number in range(19):
            document = f"/v1/knowledge_bases/{farm}/documents/fox.md"
            assert (await client.put(document, content=b"The fox met a hen. " * (number % 3 + 1))).status_code < 300
            spaces = " " * (number % 4 + 1)
            turned = slice(None, None, -1 if number % 2 else 1)
            await edit(
                client,
                farm,
                summary=LONG.replace(" ", spaces),
                topics=["foxes", "hens"][turned],
                routing_keywords=["red", "brown"][turned],
            )
            await turn(client, f"Who {number}?", tools=[file_search(*[farm, barn][turned])], **go_on)
    requests = await small_model.requests()
    assert len(requests) == 40
    check_never_moves(requests)
    check_pairs(messages_in(requests[-1]))
    assert len(contexts(messages_in(requests[-1]))) == 1


@pytest.mark.usefixtures("no_drift")
async def test_a_delta_never_parts_calls_from_their_results(pair: Pair, model: FakeModelControl) -> None:
    ours = [ScriptedCall(name="knowledge_base_search", arguments='{"query": "fox"}', call_id=f"call_{n}") for n in "ba"]
    theirs = [ScriptedCall(name="weather", call_id=f"call_{n}") for n in "dc"]
    outputs = [{"type": "function_call_output", "call_id": f"call_{n}", "output": n} for n in "cd"]
    await model.script(Reply(tool_calls=tuple(ours)), Reply(tool_calls=(theirs[0], ours[0], theirs[1]), hold_after=0))
    async with bare_client(pair, "stable") as client:
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        await edit(client, base_id, summary=LONG)
        tools = [WEATHER, file_search(base_id)]
        running = await turn(client, "Who?", tools=tools, background=True)
        await model.wait_held()
        await edit(client, base_id, summary=f"{LONG} In the middle of a turn.")
        await model.release()
        await client.get(f"/v1/responses/{running['id']}?stream=true")
        asked: list[Body] = [*outputs, {"role": "user", "content": "And now?"}]
        go_on = {"conversation": running["conversation"]["id"]}
        await turn(client, asked, **go_on)
        await model.script(Reply(tool_calls=(theirs[0],)))
        await turn(client, "Weather?", **go_on)
        await edit(client, base_id, summary=f"{LONG} Between call and result.")
        await turn(client, [outputs[1]], **go_on)
        await turn(client, "Thanks", **go_on)
    requests = await model.requests()
    check_never_moves(requests)
    for request in requests:
        check_pairs(messages_in(request))
    one, two, three, _, _, six = requests
    assert roles(added(one, two)) == ["assistant", "tool", "tool", "user"]
    assert roles(added(two, three)) == ["assistant", "tool", "tool", "tool", "user", "user"]
    assert "In the middle" in added(two, three)[-2]["content"]
    assert "Between call and result" in messages_in(six)[-2]["content"]
    assert len(contexts(messages_in(six))) == 3


@pytest.mark.usefixtures("no_drift")
async def test_a_fork_shares_all_up_to_the_branch(pair: Pair, model: FakeModelControl) -> None:
    async with bare_client(pair, "stable") as client:
        base_id = await new_base(client, "Rules")
        await edit(client, base_id, summary=LONG)
        first = await turn(client, "Root?", tools=[file_search(base_id)])
        await edit(client, base_id, summary=f"{LONG} Newer.")
        second = await turn(client, "Branch?", previous_response_id=first["id"])
        await turn(client, "Trunk?", previous_response_id=second["id"])
        fork = await turn(client, "Fork?", previous_response_id=second["id"])
        await turn(client, "Twig?", previous_response_id=fork["id"])
        await turn(client, "Early?", previous_response_id=first["id"])
    requests = await model.requests()
    root, branch, trunk, forked, twig, early = (
        asking(requests, f"{words}?") for words in ("Root", "Branch", "Trunk", "Fork", "Twig", "Early")
    )
    check_never_moves([root, branch, trunk])
    check_never_moves([root, branch, forked, twig])
    check_never_moves([root, early])
    assert roles(added(branch, forked)) == roles(added(branch, trunk)) == ["assistant", "user"]
    # What the trunk was told after the branch, the branch is told anew: as a delta at its own place.
    assert "Newer." in added(root, early)[1]["content"]
    assert messages_in(early)[-2] == messages_in(branch)[-2]
    assert len({one.json_body["prompt_cache_key"] for one in requests}) == 1


async def test_a_client_that_glues_an_answer_and_its_continuation_goes_on_behind_both(
    pair: Pair, model: FakeModelControl
) -> None:
    await model.script(Reply(text=("Half",)), Reply(text=(" of\n", "it.\n")), Reply(text=("Sure.",)))
    told: list[Body] = [{"role": "user", "content": "How much?"}]
    async with bare_client(pair, "gluer") as client:
        for glued in ("Half", "Half of\nit."):
            await completion(client, told)
            told[1:] = [{"role": "assistant", "content": glued}]
        told.append({"role": "user", "content": "Sure?"})
        answered = await completion(client, told)
        told += [{"role": "assistant", "content": answered}, {"role": "user", "content": "And now?"}]
        await completion(client, told)
    requests = await model.requests()
    check_never_moves(requests)
    said = [message["content"] for message in messages_in(requests[-1]) if message["role"] == "assistant"]
    assert said == ["Half", " of\nit.\n", "Sure."]


async def completion(client: httpx2.AsyncClient, messages: list[Body]) -> str:
    answer = await client.post("/v1/chat/completions", json={"messages": messages})
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


@pytest.mark.combination
async def test_a_replica_in_another_environment_and_through_the_other_server_sends_the_same(
    pairs: Pairs, launch: Launch, tmp_path: Path
) -> None:
    """Hash seed, locale, time zone, protocol: none of it is in a request, whoever rebuilds it from the log."""
    here = pairs.get(LARGE)
    there = start_replica(
        launch,
        tmp_path,
        here,
        BACKEND_CHAT_SHELL_URL=f"grpc://{here.chat_shell_grpc_target}",
        PYTHONHASHSEED="4242",
        LC_ALL="tr_TR.UTF-8",
        TZ="Asia/Kolkata",
    )
    search = ScriptedCall(name="knowledge_base_search", arguments='{"query": "狐"}')
    async with (
        here.control() as model,
        bare_client(here, "roamer") as client,
        bare_client(there, "roamer") as elsewhere,
    ):
        await model.reset()
        base_id = await new_base(client, "İstanbul ı", fox="The 狐 is red.")
        await edit(client, base_id, summary=LONG, topics=["ß", "é", "Z", "a"])
        bound = {"tools": [WEATHER, file_search(base_id)], "instructions": "Be brief."}
        latest = await turn(client, "Start?", **bound)
        for number, one_of_them in enumerate([elsewhere, client, elsewhere, elsewhere]):
            await edit(client, base_id, summary=f"{LONG} Number {number}.")
            await model.script(Reply(text=("Let me see. ",), tool_calls=(search,)))
            latest = await turn(one_of_them, f"On {number}?", previous_response_id=latest["id"])
        trunk = await turn(client, "End?", previous_response_id=latest["id"])
        fork = await turn(elsewhere, "End?", previous_response_id=latest["id"])
        *path, one, two = await model.requests()
    assert fork["conversation"] != trunk["conversation"]
    assert len(path) == 9
    check_never_moves([*path, one])
    check_never_moves([*path, two])
    assert SUFFIX_AT_THE_END.sub(b"", one.body) == SUFFIX_AT_THE_END.sub(b"", two.body)
    for one_of_both in (here, there):
        assert not lines_of(one_of_both.backend, event="Prompt drift")


async def told(pair: Pair) -> list[RecordedRequest]:
    """Run a conversation with edits and tool calls, and return its requests."""
    call = ScriptedCall(name="knowledge_base_search", arguments='{"query": "fox"}', call_id="call_1")
    async with pair.control() as model, bare_client(pair, "twin") as client:
        await model.reset()
        base_id = await new_base(client, "Farm", fox="The fox is red.")
        await edit(client, base_id, summary=LONG, topics=["b", "a"])
        await model.script(Reply(text=("Let ", "me see.")), Reply(tool_calls=(call,)), Reply(text=("Red.",)))
        first = await turn(client, "Hello?", tools=[file_search(base_id), WEATHER])
        second = await turn(client, "Who?", previous_response_id=first["id"])
        await edit(client, base_id, summary=f"{LONG} Newer.")
        third = await turn(client, "And now?", previous_response_id=second["id"])
        await turn(client, "Bye", previous_response_id=third["id"], tools=[WEATHER])
        return await model.requests()


async def test_either_database_and_either_api_give_the_same_bytes(pairs: Pairs) -> None:
    small, large = await told(pairs.get(SMALL)), await told(pairs.get(LARGE))
    check_never_moves(small)
    assert len(small) == 5
    assert [neutral(one) for one in small] == [neutral(one) for one in large]
