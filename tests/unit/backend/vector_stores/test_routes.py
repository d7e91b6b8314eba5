"""Vector stores over HTTP: who may do what, whose files are whose, and what each refusal names."""

from typing import Any

import httpx2
import pytest

from tests.fakes.http_api import FILES, uploaded
from tests.unit.backend.conftest import Members

STORES = "/v1/vector_stores"
SOME_FILE = "file-0"
"""An id that nobody has."""


def store_of(members: Members) -> str:
    """Return the address of the members' base as a store."""
    return f"{STORES}/{members.base_id}"


async def attached(members: Members, client: httpx2.AsyncClient, text: str, **said: Any) -> str:
    """Upload a file, attach it and have it read."""
    file_id = await uploaded(client, text)
    answer = await client.post(f"{store_of(members)}/files", json={"file_id": file_id, **said})
    assert (answer.status_code, answer.json()["status"]) == (201, "in_progress")
    await members.house.reading.step()
    return file_id


def error_of(answer: httpx2.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["param"]


TOO_MANY: dict[str, int] = {str(number): 1 for number in range(17)}


def deep(levels: int) -> Any:
    """Return a filter of so many levels."""
    lowest: Any = {"type": "eq", "key": "a", "value": 1}
    return lowest if levels == 1 else {"type": "and", "filters": [deep(levels - 1)]}


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("", {"name": " "}, "name"),
    ("", {"name": "a" * 201}, "name"),
    ("", {"expires_after": {"anchor": "last_active_at", "days": 1}}, "expires_after"),
    ("", {"file_ids": "file-1"}, "file_ids"),
    ("", {"file_ids": [""]}, "file_ids[0]"),
    ("", {"chunking_strategy": {"type": "static"}}, "chunking_strategy.type"),
    ("", {"metadata": {"a": 1}}, "metadata.a"),
    ("", {"colour": "red"}, "colour"),
    ("/{store}", {"name": ""}, "name"),
    ("/{store}/files", {}, "file_id"),
    ("/{store}/files", {"file_id": 7}, "file_id"),
    ("/{store}/files", {"file_id": SOME_FILE, "attributes": TOO_MANY}, "attributes"),
    ("/{store}/files", {"file_id": SOME_FILE, "attributes": {"a": "a" * 513}}, "attributes.a"),
    ("/{store}/files", {"file_id": SOME_FILE, "attributes": {"a": ["b"]}}, "attributes.a"),
    ("/{store}/file_batches", {}, "file_ids"),
    ("/{store}/file_batches", {"file_ids": []}, "file_ids"),
    ("/{store}/file_batches", {"file_ids": [SOME_FILE] * 501}, "file_ids"),
    ("/{store}/file_batches", {"files": [{"attributes": {}}]}, "files[0].file_id"),
    ("/{store}/search", {}, "query"),
    ("/{store}/search", {"query": ""}, "query"),
    ("/{store}/search", {"query": ["tea", ""]}, "query[1]"),
    ("/{store}/search", {"query": "tea", "max_num_results": 51}, "max_num_results"),
    ("/{store}/search", {"query": "tea", "rewrite_query": True}, "rewrite_query"),
    ("/{store}/search", {"query": "tea", "ranking_options": {"ranker": "best"}}, "ranking_options.ranker"),
    (
        "/{store}/search",
        {"query": "tea", "ranking_options": {"score_threshold": 2}},
        "ranking_options.score_threshold",
    ),
    ("/{store}/search", {"query": "tea", "filters": {"type": "like", "key": "a", "value": "b"}}, "filters.type"),
    ("/{store}/search", {"query": "tea", "filters": {"type": "eq", "key": "a"}}, "filters.value"),
    ("/{store}/search", {"query": "tea", "filters": deep(9)}, "filters"),
]


@pytest.mark.parametrize(("path", "body", "param"), WRONG)
async def test_what_is_wrong_is_refused_by_its_name(
    members: Members, path: str, body: dict[str, Any], param: str
) -> None:
    refused = await members.owner.post(STORES + path.format(store=members.base_id), json=body)
    assert error_of(refused) == (400, param)


@pytest.mark.parametrize(
    ("path", "param"),
    [("files?filter=done", "filter"), ("files?limit=0", "limit"), ("files?after=a&before=b", "before")],
)
async def test_a_wrong_query_is_refused_by_its_name(members: Members, path: str, param: str) -> None:
    assert error_of(await members.owner.get(f"{store_of(members)}/{path}")) == (400, param)


async def test_a_cursor_of_nothing_is_refused_by_its_name(members: Members) -> None:
    for path in (f"{STORES}?after=kb_none", f"{store_of(members)}/files?after=file-0"):
        assert error_of(await members.owner.get(path)) == (404, "after")


CALLS: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("GET", "/files", None),
    ("GET", "/files/{file}", None),
    ("GET", "/files/{file}/content", None),
    ("GET", "/file_batches/batch", None),
    ("GET", "/file_batches/batch/files", None),
    ("POST", "/search", {"query": "tea"}),
    ("POST", "", {"name": "Mine"}),
    ("POST", "/files", {"file_id": SOME_FILE}),
    ("POST", "/files/{file}", {"attributes": {"a": "b"}}),
    ("DELETE", "/files/{file}", None),
    ("POST", "/file_batches", {"file_ids": [SOME_FILE]}),
    ("POST", "/file_batches/batch/cancel", None),
    ("DELETE", "", None),
)
READS = 6
"""So many of the calls above only read."""


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_a_restricted_member_is_refused_and_a_stranger_finds_nothing(
    members: Members, method: str, path: str, body: dict[str, Any] | None
) -> None:
    file_id = await attached(members, members.owner, "Tea is green.")
    address = store_of(members) + path.format(file=file_id)
    refused = await members.restricted.request(method, address, json=body)
    assert refused.status_code == 403
    assert "Tea" not in refused.text
    # Whether the file exists is not told: the answer for any other id is the same.
    other = await members.restricted.request(method, store_of(members) + path.format(file=SOME_FILE), json=body)
    assert (other.status_code, other.json()) == (403, refused.json())
    for nobody in (members.stranger, members.foreigner):
        hidden = await nobody.request(method, address, json=body)
        assert error_of(hidden) == (404, "vector_store_id")


@pytest.mark.parametrize(("method", "path", "body"), CALLS[READS:])
async def test_a_reader_changes_nothing(members: Members, method: str, path: str, body: dict[str, Any] | None) -> None:
    file_id = await attached(members, members.owner, "Tea is green.", attributes={"kind": "green"})
    refused = await members.reader.request(method, store_of(members) + path.format(file=file_id), json=body)
    assert refused.status_code == 403
    kept = (await members.reader.get(f"{store_of(members)}/files/{file_id}")).json()
    assert (kept["status"], kept["attributes"]) == ("completed", {"kind": "green"})


async def test_a_restricted_member_sees_id_and_name(members: Members) -> None:
    await attached(members, members.owner, "Tea is green.")
    seen = (await members.restricted.get(store_of(members))).json()
    none = {"in_progress": 0, "completed": 0, "failed": 0, "cancelled": 0, "total": 0}
    assert (seen["id"], seen["name"], seen["file_counts"]) == (members.base_id, "Travel", none)
    assert (seen["usage_bytes"], seen["created_at"], seen["last_active_at"]) == (0, 0, None)


async def test_somebody_elses_file_cannot_be_attached(members: Members) -> None:
    theirs = await uploaded(members.owner, "Tea is green.")
    answers = [
        (await members.editor.post(f"{store_of(members)}/{path}", json=body), param)
        for path, body, param in (
            ("files", {"file_id": theirs}, "file_id"),
            ("file_batches", {"file_ids": [theirs]}, "file_ids"),
            ("file_batches", {"files": [{"file_id": theirs}]}, "files"),
        )
    ]
    answers.append((await members.editor.post(STORES, json={"file_ids": [theirs]}), "file_ids"))
    for answer, param in answers:
        assert error_of(answer) == (404, param)
    # A file of nobody is refused in the same words.
    nobodys = await members.editor.post(f"{store_of(members)}/files", json={"file_id": SOME_FILE})
    assert nobodys.text.replace(SOME_FILE, theirs) == answers[0][0].text
    assert (await members.editor.get(f"{store_of(members)}/files")).json()["data"] == []
    assert [one["id"] for one in (await members.editor.get(STORES)).json()["data"]] == [members.base_id]


async def test_files_of_one_name_of_two_people_never_mix(members: Members) -> None:
    green = await attached(members, members.owner, "Tea is green.")
    black = await attached(members, members.editor, "Tea is black.")
    store = store_of(members)
    for file_id, colour in ((green, "green"), (black, "black")):
        (found,) = (await members.reader.post(f"{store}/search", json={"query": colour})).json()["data"]
        assert (found["file_id"], found["filename"]) == (file_id, "tea.md")
        (text,) = (await members.reader.get(f"{store}/files/{file_id}/content")).json()["data"]
        assert text["text"] == f"Tea is {colour}."
    assert (await members.editor.get(f"{FILES}/{green}/content")).status_code == 404
    assert (await members.owner.delete(f"{store}/files/{green}")).status_code == 200
    assert (await members.owner.get(f"{FILES}/{green}/content")).text == "Tea is green."
    (left,) = (await members.reader.post(f"{store}/search", json={"query": "tea"})).json()["data"]
    assert left["file_id"] == black


async def test_a_store_that_is_created_again_under_its_key_has_its_files_once(members: Members) -> None:
    file_id = await uploaded(members.owner, "Tea is green.")
    request: dict[str, Any] = {"json": {"file_ids": [file_id]}, "headers": {"Idempotency-Key": "once"}}
    first = await members.owner.post(STORES, **request)
    again = await members.owner.post(STORES, **request)
    assert (first.status_code, again.json()["id"]) == (201, first.json()["id"])
    assert again.json()["file_counts"]["in_progress"] == 1
    await members.house.reading.step()
    found = (await members.owner.get(f"{STORES}/{first.json()['id']}")).json()
    assert (found["file_counts"]["completed"], found["file_counts"]["total"]) == (1, 1)


async def test_a_batch_that_is_sent_again_under_its_key_is_one_batch(members: Members) -> None:
    files = [await uploaded(members.owner, text) for text in ("Tea is green.", "Tea is black.")]
    batches = f"{store_of(members)}/file_batches"
    key = {"Idempotency-Key": "once"}
    first = await members.owner.post(batches, json={"file_ids": files}, headers=key)
    await members.house.reading.step()
    again = await members.owner.post(batches, json={"file_ids": files}, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert (again.json()["id"], again.headers["idempotent-replayed"]) == (first.json()["id"], "true")
    assert (again.json()["file_counts"]["completed"], again.json()["file_counts"]["total"]) == (1, 2)
    other = await members.owner.post(batches, json={"file_ids": files[:1]}, headers=key)
    assert error_of(other) == (422, "Idempotency-Key")


async def test_an_attachment_that_is_sent_again_under_its_key_changes_nothing(members: Members) -> None:
    file_id = await uploaded(members.owner, "Tea is green.")
    address = f"{store_of(members)}/files"
    request: dict[str, Any] = {
        "json": {"file_id": file_id, "attributes": {"kind": "tea"}},
        "headers": {"Idempotency-Key": "once"},
    }
    assert (await members.owner.post(address, **request)).status_code == 201
    await members.owner.post(f"{address}/{file_id}", json={"attributes": {"kind": "drink"}})
    again = await members.owner.post(address, **request)
    assert (again.status_code, again.json()["attributes"]) == (201, {"kind": "drink"})
    assert again.headers["idempotent-replayed"] == "true"


async def test_a_refused_batch_does_not_use_its_key(members: Members) -> None:
    file_id = await uploaded(members.owner, "Tea is green.")
    batches, key = f"{store_of(members)}/file_batches", {"Idempotency-Key": "once"}
    refused = await members.owner.post(batches, json={"file_ids": [file_id, SOME_FILE]}, headers=key)
    assert error_of(refused) == (404, "file_ids")
    assert (await members.owner.post(batches, json={"file_ids": [file_id]}, headers=key)).status_code == 201
