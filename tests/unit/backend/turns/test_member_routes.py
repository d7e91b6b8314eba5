"""Members of a conversation over HTTP, and what one with fewer rights gets of events as they come."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from backend.conversations.domain.responses import StoredResponse
from backend.knowledge.domain.knowledge import MemberRole
from tests.contract.event_cases import CountedSilence
from tests.e2e.turns import events_of
from tests.fakes.chat_shell_scripted import answered, searched
from tests.fakes.http_api import FakeHouse, client_of
from tests.fakes.openai_types import check_item, check_response
from tests.fakes.served_turns import ServedApi, serve_api
from tests.fakes.store_state import StoreState
from tests.fakes.store_turns import FakeTurnStore
from tests.patience import eventually
from tests.unit.backend.turns.asking import add_base, searching

CANARY = "kanary-7731"


async def key_of(api: ServedApi, user_id: str) -> str:
    """Return a key of another user."""
    house = FakeHouse(state=api.turns.state)
    return await house.key(user_id)


async def share(api: ServedApi, place: str, user_id: str, role: str = "writer") -> int:
    answer = await api.http.put(f"/v1/conversations/{place}/members/{user_id}", json={"role": role})
    return answer.status_code


async def test_members_are_put_listed_and_deleted() -> None:
    async with serve_api() as api:
        place = (await api.http.post("/v1/conversations", json={})).json()["id"]
        path = f"/v1/conversations/{place}/members"
        assert [await share(api, place, "bob"), await share(api, place, "bob", "reader")] == [201, 200]
        assert await share(api, place, "bob", "editor") == 400
        listed = (await api.http.get(path)).json()
        assert [(one["user_id"], one["role"]) for one in listed["data"]] == [("ada", "owner"), ("bob", "reader")]
        assert (listed["object"], listed["has_more"]) == ("list", False)
        async with (
            client_of(api.app, await key_of(api, "bob")) as bob,
            client_of(api.app, await key_of(api, "cat")) as cat,
        ):
            assert (await bob.get(f"{path}/ada")).json()["role"] == "owner"
            refused = await bob.post("/v1/responses", json={"input": "Hi", "conversation": place})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "permission_denied")
            assert (await cat.get(path)).status_code == 404
            assert (await bob.delete(f"{path}/bob")).status_code == 403
        gone = (await api.http.delete(f"{path}/bob")).json()
        assert gone == {"id": "bob", "object": "conversation.member.deleted", "deleted": True}
        assert (await api.http.delete(f"{path}/ada")).status_code == 409


@pytest.mark.parametrize("is_queued", [False, True])
async def test_who_may_not_read_a_base_follows_no_words_of_it(is_queued: bool) -> None:
    gate = asyncio.Event()
    told: Sequence[Any] = [*searched(1), gate, *answered(2, f"It says {CANARY}.")]
    before = [[gate, *answered(1)]] if is_queued else []
    async with serve_api(*before, told, rights_seconds=0.0) as api:
        await add_base(api.turns, "kb_1")
        await api.turns.knowledge.set_member("kb_1", "bob", MemberRole.RESTRICTED_ANALYST)
        place = (await api.http.post("/v1/conversations", json={})).json()["id"]
        await share(api, place, "bob")
        asked = {"conversation": place, "background": True, "input": f"Quote {CANARY}!"}
        if is_queued:
            await api.http.post("/v1/responses", json={**asked, "input": "First."})
        tools = [searching("kb_1")]
        body = {**asked, "tools": tools, "if_running": "queue"}
        created = (await api.http.post("/v1/responses", json=body)).json()
        assert created["status"] == ("queued" if is_queued else "in_progress")
        check_response(created, open_responses=False)
        async with client_of(api.app, await key_of(api, "bob")) as bob:
            path = f"/v1/responses/{created['id']}"
            following = asyncio.create_task(bob.get(f"{path}?stream=true"))
            gate.set()
            while api.turns.state.waiting:
                await api.turns.services.waiting.step()
            followed = (await following).text
            assert followed.endswith("data: [DONE]\n\n")
            assert "event: response.completed" in followed
            ways = [path, f"{path}/input_items", f"{path}/prompts", f"{path}?stream=true"]
            items = (await bob.get(f"/v1/conversations/{place}/items")).json()["data"]
            seen = [followed, str(items), *[(await bob.get(way)).text for way in ways]]
            assert [CANARY in each or "Whale 1" in each for each in seen] == [False] * len(seen)
            assert CANARY in (await api.http.get(f"{path}?stream=true")).text
        for item in items:
            check_item(item)


async def test_a_message_that_steers_is_answered_with_the_response_that_it_enters() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answered(1, "One.")], answered(2, "Two.")) as api:
        place = (await api.http.post("/v1/conversations", json={})).json()["id"]
        asked = {"conversation": place, "input": "Hi"}
        running = (await api.http.post("/v1/responses", json={**asked, "background": True})).json()
        steer = {**asked, "if_running": "steer"}
        again = await api.http.post("/v1/responses", json={**steer, "background": True})
        assert (again.json()["id"], again.headers["x-ballast-response-id"]) == (running["id"], running["id"])
        waiting = await api.http.get(f"/v1/responses/{again.headers['x-ballast-steer-id']}")
        assert waiting.json()["status"] == "queued"
        whole = asyncio.create_task(api.http.post("/v1/responses", json=steer))
        streamed = asyncio.create_task(api.http.post("/v1/responses", json={**steer, "stream": True}))
        await eventually(lambda: api.turns.state.waiting, lambda waiting: len(waiting) == 3)
        gate.set()
        assert ((await whole).json()["id"], (await whole).json()["status"]) == (running["id"], "completed")
        assert running["id"] in (await streamed).text
        assert (await api.http.get(f"/v1/responses/{again.headers['x-ballast-steer-id']}")).json()["id"] == running[
            "id"
        ]


class CountedFinds(FakeTurnStore):
    """Counts how often each response was looked up."""

    finds: Counter[str]

    def __init__(self, state: StoreState) -> None:
        super().__init__(state)
        self.finds = Counter()

    async def find(self, response_id: str) -> StoredResponse | None:
        self.finds[response_id] += 1
        return await super().find(response_id)


async def test_who_is_removed_while_a_turn_waits_follows_nothing_of_it() -> None:
    gate = asyncio.Event()
    scripts: Sequence[Any] = [[gate, *answered(1)], answered(1, f"It says {CANARY}.")]
    # shorter than a look for the beginning of a turn that waits, and longer than its events take
    async with serve_api(*scripts, rights_seconds=0.2, turns_class=CountedFinds) as api:
        place = (await api.http.post("/v1/conversations", json={})).json()["id"]
        await share(api, place, "bob")
        body = {"conversation": place, "background": True, "input": "Ask.", "if_running": "queue"}
        await api.http.post("/v1/responses", json=body)
        path = f"/v1/responses/{(await api.http.post('/v1/responses', json=body)).json()['id']}"
        async with client_of(api.app, await key_of(api, "bob")) as bob:
            turns = api.turns.turns
            assert isinstance(turns, CountedFinds)
            turns.finds.clear()
            following = asyncio.create_task(bob.get(f"{path}?stream=true"))
            await eventually(lambda: turns.finds[path.rpartition("/")[2]], lambda finds: finds > 1)
            await api.http.delete(f"/v1/conversations/{place}/members/bob")
            gate.set()
            while api.turns.state.waiting:
                await api.turns.services.waiting.step()
            events = events_of((await following).text, is_whole=False)
        assert events[-1]["type"] == "error"
        assert (events[-1]["error"]["type"], CANARY in str(events)) == ("PermissionDenied", False)
        assert CANARY in (await api.http.get(f"{path}?stream=true")).text


async def test_who_is_removed_while_their_turn_runs_gets_no_answer_of_it() -> None:
    gate = asyncio.Event()
    async with serve_api([gate, *answered(1, f"It says {CANARY}.")], rights_seconds=0.0) as api:
        place = (await api.http.post("/v1/conversations", json={})).json()["id"]
        members = f"/v1/conversations/{place}/members/bob"
        await api.http.put(members, json={"role": "writer"})
        body = {"conversation": place, "input": "Ask."}
        async with client_of(api.app, await key_of(api, "bob")) as bob:
            asking = asyncio.create_task(bob.post("/v1/responses", json=body))
            await eventually(lambda: api.turns.sent, lambda sent: len(sent) == 1)
            await api.http.delete(members)
            gate.set()
            refused = await asking
        assert (refused.status_code, CANARY in refused.text) == (403, False)


@pytest.mark.parametrize("lost", ["conversation", "base", "own base"])
async def test_a_stream_ends_when_its_reader_loses_their_rights_and_the_turn_goes_on(lost: str) -> None:
    gate = asyncio.Event()
    silent = CountedSilence()
    told: Sequence[Any] = [*searched(1), gate, *answered(2, f"It says {CANARY}.")]
    async with serve_api(told, events=silent, rights_seconds=0.0) as api:
        await add_base(api.turns, "kb_1")
        await api.turns.knowledge.set_member("kb_1", "bob", MemberRole.READER)
        place = (await api.http.post("/v1/conversations", json={})).json()["id"]
        await share(api, place, "bob")
        body = {"conversation": place, "background": True, "input": "Ask.", "tools": [searching("kb_1")]}
        async with client_of(api.app, await key_of(api, "bob")) as bob:
            asker, reader = (bob, bob) if lost == "own base" else (api.http, bob)
            created = (await asker.post("/v1/responses", json=body)).json()
            path = f"/v1/responses/{created['id']}"
            following = asyncio.create_task(reader.get(f"{path}?stream=true"))
            await eventually(lambda: silent.silences, lambda silences: silences > 0)
            if lost == "conversation":
                await api.http.delete(f"/v1/conversations/{place}/members/bob")
            else:
                await api.turns.knowledge.set_member("kb_1", "bob", MemberRole.RESTRICTED_ANALYST)
            events = events_of((await following).text, is_whole=False)
            assert events[-1]["type"] == "error"
            assert events[-1]["error"]["type"] == "PermissionDenied"
            assert CANARY not in str(events)
            gate.set()
            again = await reader.get(f"{path}?stream=true")
            assert (CANARY in again.text, again.status_code) == (False, 404 if lost == "conversation" else 200)
        await eventually(lambda: api.turns.observer.finished, lambda finished: len(finished) == 1)
        ended = (await api.http.get(path)).json()
        assert (ended["status"], CANARY in str(ended)) == ("completed", True)
