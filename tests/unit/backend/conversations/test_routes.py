"""Conversations over HTTP: shapes, pages, and what is refused."""

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from backend.conversations.domain.responses import Item
from tests.fakes.http_api import FakeHouse, client_of

UNKNOWN = "/v1/conversations/conv_none"


async def _filled(user: httpx2.AsyncClient, count: int) -> str:
    items = [{"role": "user", "content": f"m{place}"} for place in range(count)]
    created = await user.post("/v1/conversations", json={"items": items})
    return f"/v1/conversations/{created.json()['id']}"


def _texts(page: dict[str, Any]) -> list[str]:
    return [item["content"][0]["text"] for item in page["data"]]


async def test_a_conversation_lives_its_life(user: httpx2.AsyncClient) -> None:
    created = await user.post("/v1/conversations", json={"metadata": {"topic": "tea"}})
    assert created.status_code == 201
    body = created.json()
    assert set(body) == {"id", "object", "created_at", "metadata"}
    address = f"/v1/conversations/{body['id']}"
    assert (await user.get(address)).json() == body
    assert (await user.post(address, json={"metadata": {"a": "b"}})).json()["metadata"] == {"a": "b"}
    assert (await user.post(address, json={"metadata": None})).json()["metadata"] == {}
    gone = {"id": body["id"], "object": "conversation.deleted", "deleted": True}
    assert (await user.delete(address)).json() == gone
    assert (await user.get(address)).status_code == 404
    assert (await user.delete(address)).status_code == 404


async def test_pages_go_through_everything_in_both_directions(user: httpx2.AsyncClient) -> None:
    address = await _filled(user, 5)
    for order, expected in (("desc", ["m4", "m3", "m2", "m1", "m0"]), ("asc", ["m0", "m1", "m2", "m3", "m4"])):
        seen: list[str] = []
        params: dict[str, Any] = {"limit": 2, "order": order}
        while True:
            page = (await user.get(f"{address}/items", params=params)).json()
            seen += _texts(page)
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
            if not page["has_more"]:
                break
            params["after"] = page["last_id"]
        assert seen == expected


async def test_the_usual_page_is_the_newest_twenty(user: httpx2.AsyncClient) -> None:
    address = await _filled(user, 21)
    page = (await user.get(f"{address}/items")).json()
    assert (len(page["data"]), _texts(page)[0], page["has_more"]) == (20, "m20", True)


async def test_an_empty_page_has_empty_ids(user: httpx2.AsyncClient) -> None:
    address = await _filled(user, 0)
    page = (await user.get(f"{address}/items")).json()
    assert page == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        (f"limit={'9' * 5000}", "limit"),
        ("order=up", "order"),
        ("include[]=everything", "include[]"),
        ("include[]=file_search_call.results&include[]=zz", "include[]"),
    ],
)
async def test_a_wrong_query_is_named(user: httpx2.AsyncClient, query: str, param: str) -> None:
    address = await _filled(user, 1)
    answer = await user.get(f"{address}/items?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_an_unknown_after_is_404(user: httpx2.AsyncClient) -> None:
    answer = await user.get(f"{await _filled(user, 1)}/items?after=msg_none")
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "after")


async def test_items_are_added_and_read_one_by_one(user: httpx2.AsyncClient) -> None:
    address = await _filled(user, 0)
    added = await user.post(f"{address}/items", json={"items": [{"role": "user", "content": "a"}]})
    assert (added.status_code, added.json()["has_more"]) == (201, False)
    (item,) = added.json()["data"]
    assert (await user.get(f"{address}/items/{item['id']}")).json() == item
    assert (await user.get(f"{address}/items/msg_none")).status_code == 404


async def test_only_the_last_item_is_deleted(user: httpx2.AsyncClient) -> None:
    address = await _filled(user, 2)
    newest, older = (await user.get(f"{address}/items")).json()["data"]
    refused = await user.delete(f"{address}/items/{older['id']}")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (405, "method_not_allowed", "item_id")
    assert refused.headers["allow"] == "GET"
    assert (await user.get(f"{address}/items/{older['id']}")).status_code == 200
    taken = await user.delete(f"{address}/items/{newest['id']}")
    assert (taken.status_code, taken.json()) == (200, (await user.get(address)).json())
    assert (await user.get(f"{address}/items/{newest['id']}")).status_code == 404
    assert (await user.delete(f"{address}/items/{newest['id']}")).status_code == 404
    assert (await user.delete(f"{address}/items/{older['id']}")).status_code == 200
    assert (await user.get(f"{address}/items")).json()["data"] == []


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "items"),
        ({"items": []}, "items"),
        ({"items": "x"}, "items"),
        ({"items": [{"role": "user", "content": "a"}, 5]}, "items[1]"),
        ({"items": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]}, "items[0].content[0].text"),
        ({"items": [{"type": "nonsense"}]}, "items[0].type"),
        ({"items": [{"role": "user", "content": "a", "colour": 1}]}, "items[0].colour"),
        ({"items": [{"role": "system", "content": "a"}]}, "items[0].role"),
    ],
)
async def test_wrong_items_are_named(user: httpx2.AsyncClient, body: object, param: str) -> None:
    answer = await user.post(f"{await _filled(user, 0)}/items", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    "metadata",
    [{str(number): "x" for number in range(17)}, {"k" * 65: "x"}, {"k": "x" * 513}, {"k": 5}, ["k"], {"k": None}],
)
async def test_metadata_keeps_openais_limits(user: httpx2.AsyncClient, metadata: object) -> None:
    answer = await user.post("/v1/conversations", json={"metadata": metadata})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith("metadata")


async def test_metadata_may_be_as_large_as_that(user: httpx2.AsyncClient) -> None:
    metadata = {f"{number:064}": "é" * 512 for number in range(16)}
    assert (await user.post("/v1/conversations", json={"metadata": metadata})).json()["metadata"] == metadata


async def test_an_update_without_metadata_is_refused(user: httpx2.AsyncClient) -> None:
    answer = await user.post(await _filled(user, 0), json={})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "metadata")


async def test_a_conversation_with_a_running_turn_stays(user: httpx2.AsyncClient, house: FakeHouse) -> None:
    address = await _filled(user, 1)
    for conversation in house.state.conversations.values():
        held = conversation.model_copy(update={"running_response_id": "resp_1"})
        house.state.conversations[conversation.id] = held
    refused = await user.delete(address)
    assert (refused.status_code, refused.headers["x-should-retry"]) == (409, "false")
    assert refused.json()["error"]["type"] == "conflict_error"


async def test_results_of_a_search_are_shown_to_who_asks(user: httpx2.AsyncClient, house: FakeHouse) -> None:
    address = await _filled(user, 0)
    results: list[dict[str, Any]] = [
        {"file_id": "doc_1", "filename": "a.md", "score": 0.5, "text": "tea", "attributes": {}}
    ]
    body: dict[str, Any] = {
        "id": "fs_1",
        "type": "file_search_call",
        "status": "completed",
        "queries": ["tea"],
        "results": results,
    }
    conversation_id = address.rpartition("/")[2]
    house.state.items[conversation_id].append(Item(id="fs_1", sequence=0, response_id=None, body=body))
    asked = {"include[]": "file_search_call.results"}
    assert (await user.get(f"{address}/items")).json()["data"][0]["results"] is None
    assert (await user.get(f"{address}/items", params=asked)).json()["data"][0]["results"] == results
    assert (await user.get(f"{address}/items/fs_1")).json()["results"] is None
    assert (await user.get(f"{address}/items/fs_1", params=asked)).json()["results"] == results


@pytest.mark.parametrize(
    ("method", "end"),
    [("GET", ""), ("DELETE", ""), ("GET", "/items"), ("GET", "/items/msg_1"), ("DELETE", "/items/msg_1")],
)
async def test_an_unknown_conversation_is_404(user: httpx2.AsyncClient, method: str, end: str) -> None:
    answer = await user.request(method, UNKNOWN + end)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    assert answer.json()["error"]["param"] == "conversation_id"


async def test_conversations_are_listed_for_those_who_may_read_them(
    house: FakeHouse, app: FastAPI, user: httpx2.AsyncClient
) -> None:
    made = [(await user.post("/v1/conversations", json={"metadata": {"n": str(n)}})).json() for n in range(3)]
    page = (await user.get("/v1/conversations", params={"order": "asc", "limit": 2})).json()
    assert page["data"] == sorted(made, key=lambda each: (each["created_at"], each["id"]))[:2]
    assert (page["object"], page["has_more"], page["last_id"]) == ("list", True, page["data"][1]["id"])
    rest = (await user.get("/v1/conversations", params={"order": "asc", "after": page["last_id"]})).json()
    assert [*page["data"], *rest["data"]] == sorted(made, key=lambda each: (each["created_at"], each["id"]))
    wrong = await user.get("/v1/conversations", params={"after": "conv_none"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (404, "after")

    async with client_of(app, await house.key("bob")) as other:
        assert (await other.get("/v1/conversations")).json()["data"] == []
        foreign = await other.get("/v1/conversations", params={"after": made[0]["id"]})
        assert foreign.status_code == 404
        shared = f"/v1/conversations/{made[1]['id']}/members/bob"
        assert (await user.put(shared, json={"role": "reader"})).is_success
        assert (await other.get("/v1/conversations")).json()["data"] == [made[1]]
        assert (await user.delete(shared)).is_success
        assert (await other.get("/v1/conversations")).json()["data"] == []


async def test_items_name_their_response_where_that_is_asked_for(user: httpx2.AsyncClient) -> None:
    address = await _filled(user, 1)
    plain = (await user.get(f"{address}/items")).json()
    assert "response_id" not in plain["data"][0]
    named = (await user.get(f"{address}/items", params={"include[]": "response_id"})).json()
    assert named["data"][0]["response_id"] is None
