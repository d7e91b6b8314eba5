"""Knowledge bases, members and documents over HTTP: who may do what, and what is refused."""

import asyncio
from hashlib import sha256
from urllib.parse import quote

import httpx2
import pytest

from backend.knowledge.domain.description_rules import NEUTRAL_NAME
from backend.knowledge.http.knowledge_shapes import GRADE_NOT_CHOSEN, TOO_SMALL, TOO_SMALL_AND_OPEN
from shared.models.safe_summary import LEAST_SUPPORT, RestrictedGrade
from tests.unit.backend.conftest import BASES, MANUAL, Members


def error_of(answer: httpx2.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json()["error"]["param"]


async def test_a_base_shows_what_its_owner_said(members: Members) -> None:
    shown = (await members.owner.get(members.base)).json()
    assert shown["id"].startswith("kb_")
    assert {key: shown[key] for key in ("object", "name", "summary", "topics", "role", "version")} == {
        "object": "knowledge_base",
        "name": "Travel",
        "summary": "All about trips",
        "topics": ["trains"],
        "role": "owner",
        "version": 0,
    }


async def test_a_restricted_member_sees_name_hint_and_keywords(members: Members) -> None:
    expected = {
        "id": members.base_id,
        "name": "Travel",
        "routing_hint": "Ask about trips",
        "routing_keywords": ["trip", "差旅"],
        "role": "restricted_analyst",
    }
    assert (await members.restricted.get(members.base)).json() == expected
    assert (await members.restricted.get(BASES)).json()["data"] == [expected]


async def test_what_tells_the_content_is_not_shown_to_a_restricted_member(members: Members) -> None:
    await members.put("a.md", "Trains are booked by the travel desk seven days ahead of any trip abroad.")
    hint = "Say that trains are booked by the travel desk seven days ahead"
    described = {"routing_hint": hint, "routing_keywords": ["trip", "42 trips"]}
    patched = (await members.owner.patch(members.base, json=described)).json()
    assert patched["left_out"] == ["routing_hint", "routing_keywords[1]"]
    assert patched["left_out_reasons"]["routing_keywords[1]"] == ["figures"]
    assert "overlap" in patched["left_out_reasons"]["routing_hint"]
    assert patched["left_out_words"]["routing_keywords[1]"][0] == "42"
    assert (await members.editor.get(members.base)).json() == {**patched, "role": "editor", "support_notice": None}
    for answer in (
        (await members.restricted.get(members.base)).json(),
        *(await members.restricted.get(BASES)).json()["data"],
    ):
        assert (answer["routing_hint"], answer["routing_keywords"]) == ("", ["trip"])
    assert (await members.owner.get(members.base)).json()["routing_hint"] == hint
    assert (await members.reader.get(members.base)).json()["routing_hint"] == hint
    assert not any(field.startswith("left_out") for field in (await members.reader.get(members.base)).json())
    mended: dict[str, object] = {"routing_hint": "Ask about trips", "routing_keywords": []}
    again = (await members.owner.patch(members.base, json=mended)).json()
    assert [again[field] for field in ("left_out", "left_out_reasons", "left_out_words")] == [[], {}, {}]


async def test_the_owner_of_a_base_of_few_documents_is_told_what_may_leave_it(members: Members) -> None:
    told = (await members.owner.get(members.base)).json()
    assert (told["support"], told["support_notice"]) == (LEAST_SUPPORT, TOO_SMALL_AND_OPEN)
    asked = {"support": LEAST_SUPPORT, "content": "records"}
    chosen = (await members.owner.patch(members.base, json=asked)).json()
    assert (chosen["support"], chosen["content"], chosen["support_notice"]) == (LEAST_SUPPORT, "records", TOO_SMALL)
    assert (await members.owner.patch(members.base, json={"support": LEAST_SUPPORT - 1})).status_code == 400
    assert (await members.editor.patch(members.base, json={"support": 5})).status_code == 403
    assert (await members.editor.patch(members.base, json={"content": "documents"})).status_code == 403
    for name in ("a.md", "b.md", "c.md"):
        await members.put(name, "Trips are booked early.")
    assert (await members.owner.get(members.base)).json()["support_notice"] is None


async def test_a_name_that_tells_is_not_shown_to_a_restricted_member(members: Members) -> None:
    patched = (await members.owner.patch(members.base, json={"name": "Rules of 1987"})).json()
    assert (patched["name"], patched["left_out"], patched["left_out_words"]) == (
        "Rules of 1987",
        ["name"],
        {"name": ["1987"]},
    )
    for answer in (
        (await members.restricted.get(members.base)).json(),
        *(await members.restricted.get(BASES)).json()["data"],
    ):
        assert (answer["id"], answer["name"]) == (members.base_id, NEUTRAL_NAME)
    assert (await members.reader.get(members.base)).json()["name"] == "Rules of 1987"


async def test_a_new_base_says_what_of_its_description_is_left_out(members: Members) -> None:
    described = {"name": "a", "routing_keywords": ["trip", "42 trips"]}
    created = (await members.owner.post(BASES, json=described)).json()
    assert (created["left_out"], created["left_out_reasons"]) == (
        ["routing_keywords[1]"],
        {"routing_keywords[1]": ["figures"]},
    )
    for base in (await members.owner.get(BASES)).json()["data"]:
        assert "left_out" not in base


async def test_a_document_may_take_a_hint_away(members: Members) -> None:
    assert (await members.owner.get(members.base)).json()["left_out"] == []
    hint = "Ask who signs for the keys of the northern vault"
    await members.owner.patch(members.base, json={"routing_hint": hint})
    await members.put("a.md", f"{hint} on every working day.")
    assert (await members.owner.get(members.base)).json()["left_out"] == ["routing_hint"]


async def test_no_answer_to_a_restricted_member_says_whether_a_document_is_there(members: Members) -> None:
    await members.put("a.md", MANUAL)
    for method in ("GET", "PUT", "DELETE"):
        there, absent = [
            await members.restricted.request(method, f"{members.base}/documents/{name}", content=MANUAL)
            for name in ("a.md", "absent.md")
        ]
        assert (there.status_code, there.json()) == (403, absent.json())


async def test_the_chunks_of_a_document_come_in_its_order(members: Members) -> None:
    paragraph = "The travel desk books trains for everyone who asks in time. " * 12
    await members.put("trips/a.md", "\n\n".join(f"# Part {number}\n\n{paragraph}" for number in range(3)))
    address, asked = f"{members.base}/chunks", {"document": "trips/a.md"}
    whole = (await members.owner.get(address, params=asked)).json()
    assert [each["heading_path"] for each in whole["data"]] == [["Part 0"], ["Part 1"], ["Part 2"]]
    assert all(each["text"].startswith("The travel desk") and each["tokens"] > 20 for each in whole["data"])
    first = (await members.reader.get(address, params={**asked, "limit": 2})).json()
    assert (first["data"], first["has_more"]) == (whole["data"][:2], True)
    rest = (await members.reader.get(address, params={**asked, "after": first["last_id"]})).json()
    assert (rest["data"], rest["has_more"]) == (whole["data"][2:], False)
    assert error_of(await members.owner.get(address, params={"document": "b.md"})) == (404, "document")
    assert error_of(await members.owner.get(address, params={**asked, "after": "chunk_x"})) == (404, "after")
    assert error_of(await members.owner.get(address)) == (400, "document")


async def test_a_document_says_what_was_guessed_of_it_and_takes_the_told_encoding(members: Members) -> None:
    address, body = f"{members.base}/documents/a.txt", ("Отдел разработки получает бюджет. " * 9).encode("cp1251")
    guessed = (await members.owner.put(address, content=body)).json()
    assert guessed["notes"] == ["The encoding is not declared: the text was read as CP1251."]
    listed = (await members.owner.get(f"{members.base}/documents")).json()["data"]
    assert [each["notes"] for each in listed if each["name"] == "a.txt"] == [guessed["notes"]]
    told = {"Content-Type": "text/plain; charset=windows-1251"}
    assert (await members.owner.put(address, content=body, headers=told)).json()["notes"] == []


async def test_who_is_no_member_finds_nothing(members: Members) -> None:
    await members.put("a.md", MANUAL)
    for client in (members.stranger, members.foreigner):
        answers = [
            await client.get(members.base),
            await client.patch(members.base, json={"name": "Mine"}),
            await client.delete(members.base),
            await client.get(f"{members.base}/documents"),
            await client.get(f"{members.base}/documents/a.md"),
            await client.put(f"{members.base}/documents/a.md", content=b"mine"),
            await client.delete(f"{members.base}/documents/a.md"),
            await client.get(f"{members.base}/chunks", params={"document": "a.md"}),
            await client.get(f"{members.base}/members"),
            await client.get(f"{members.base}/members/olga"),
            await client.put(f"{members.base}/members/sam", json={"role": "owner"}),
            await client.delete(f"{members.base}/members/olga"),
            await client.post(f"{members.base}/search", json={"query": "trains"}),
        ]
        assert [answer.status_code for answer in answers] == [404] * len(answers)
        assert (await client.get(BASES)).json()["data"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "allowed"),
    [
        ("GET", "", None, "owner editor reader restricted"),
        ("PATCH", "", {"summary": "New"}, "owner editor"),
        ("DELETE", "", None, "owner"),
        ("GET", "/documents", None, "owner editor reader"),
        ("GET", "/documents/a.md", None, "owner editor reader"),
        ("GET", "/chunks?document=a.md", None, "owner editor reader"),
        ("PUT", "/documents/b.md", "text", "owner editor"),
        ("DELETE", "/documents/a.md", None, "owner editor"),
        ("GET", "/members", None, "owner editor reader"),
        ("GET", "/members/ana", None, "owner editor reader"),
        ("PUT", "/members/new", {"role": "reader"}, "owner"),
        ("DELETE", "/members/rae", None, "owner"),
        ("POST", "/search", {"query": "trains"}, "owner editor reader"),
    ],
)
@pytest.mark.parametrize("who", ["owner", "editor", "reader", "restricted"])
async def test_a_role_lets_and_does_not_let(
    members: Members, who: str, method: str, path: str, body: object, allowed: str
) -> None:
    await members.put("a.md", MANUAL)
    client: httpx2.AsyncClient = getattr(members, who)
    address = f"{members.base}{path}"
    if isinstance(body, str):
        answer = await client.request(method, address, content=body.encode())
    else:
        answer = await client.request(method, address, json=body)
    assert answer.status_code in ((200, 201) if who in allowed.split() else (403,)), answer.text
    if answer.status_code == 403:
        assert "trip" not in answer.text.lower() + answer.text


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": 5}, "name"),
        ({"name": "a", "routing_hint": "x" * 201}, "routing_hint"),
        ({"name": "a", "routing_keywords": ["k"] * 25}, "routing_keywords"),
        ({"name": "a", "routing_keywords": ["k" * 49]}, "routing_keywords[0]"),
        ({"name": "a", "topics": ["t", ""]}, "topics[1]"),
        ({"name": "a", "colour": "red"}, "colour"),
        ({"name": "a", "summary": None}, "summary"),
    ],
)
async def test_a_wrong_field_is_named(members: Members, body: object, param: str) -> None:
    assert error_of(await members.owner.post(BASES, json=body)) == (400, param)


async def test_fields_at_their_limits_are_taken(members: Members) -> None:
    body = {"name": "a", "routing_hint": "河" * 200, "routing_keywords": ["键" * 48] * 5}
    assert (await members.owner.post(BASES, json=body)).status_code == 201


async def test_a_patch_changes_what_it_names(members: Members) -> None:
    changed = (await members.editor.patch(members.base, json={"name": "Trips", "topics": []})).json()
    assert (changed["name"], changed["topics"], changed["summary"]) == ("Trips", [], "All about trips")
    assert error_of(await members.owner.patch(members.base, json={"name": None})) == (400, "name")
    assert error_of(await members.owner.patch(members.base, json={"id": "kb_x"})) == (400, "id")


async def test_only_owners_allow_the_translation_of_what_restricted_members_are_given(members: Members) -> None:
    field = "restricted_translation"
    assert (await members.owner.get(members.base)).json()[field] is False
    assert error_of(await members.owner.patch(members.base, json={field: "true"})) == (400, field)
    assert (await members.editor.patch(members.base, json={field: True})).status_code == 403
    assert (await members.editor.patch(members.base, json={field: False, "name": "Trips"})).status_code == 200
    before = (await members.owner.get(members.base)).json()
    assert (before[field], before["name"], before["version"]) == (False, "Trips", 0)
    changed = (await members.owner.patch(members.base, json={field: True})).json()
    assert (changed[field], changed["version"]) == (True, 1)
    assert (await members.reader.get(members.base)).json()[field] is True
    assert field not in (await members.restricted.get(members.base)).json()
    kept = (await members.owner.patch(members.base, json={"summary": "New"})).json()
    assert (kept[field], kept["version"]) == (True, 1)


async def test_a_base_may_be_created_with_translation_allowed(members: Members) -> None:
    created = await members.owner.post(BASES, json={"name": "a", "restricted_translation": True})
    assert (created.status_code, created.json()["restricted_translation"]) == (201, True)


async def test_only_owners_choose_the_grade_of_what_restricted_members_are_given(members: Members) -> None:
    field = "restricted_grade"
    assert (await members.owner.get(members.base)).json()[field] == "open"
    for wrong in ("loose", None, True):
        assert error_of(await members.owner.patch(members.base, json={field: wrong})) == (400, field)
        assert error_of(await members.owner.post(BASES, json={"name": "a", field: wrong})) == (400, field)
    assert (await members.editor.patch(members.base, json={field: "strict"})).status_code == 403
    changed = (await members.owner.patch(members.base, json={field: "strict"})).json()
    assert (changed[field], changed["version"]) == ("strict", 1)
    kept = (await members.owner.patch(members.base, json={"summary": "New"})).json()
    assert (kept[field], kept["version"]) == ("strict", 1)
    assert field not in (await members.restricted.get(members.base)).json()


async def test_a_new_base_has_the_grade_that_it_asks_for_or_else_the_operators(members: Members) -> None:
    members.house.grade = RestrictedGrade.STRICT
    members.rebuild()
    asked = {"name": "a"}, {"name": "b", "restricted_grade": "open"}
    made = [(await members.owner.post(BASES, json=body)).json() for body in asked]
    assert [(base["restricted_grade"], base["grade_notice"]) for base in made] == [("strict", None), ("open", None)]


async def test_the_owners_of_a_base_from_before_the_grades_are_told_that_it_is_open(members: Members) -> None:
    stored = members.house.knowledge
    await stored.update_base(members.base_id, {"restricted_grade": None})
    told = (await members.owner.get(members.base)).json()
    assert (told["restricted_grade"], told["grade_notice"]) == ("open", GRADE_NOT_CHOSEN)
    assert (await members.editor.get(members.base)).json()["grade_notice"] is None
    chosen = (await members.owner.patch(members.base, json={"restricted_grade": "open"})).json()
    assert (chosen["restricted_grade"], chosen["grade_notice"]) == ("open", None)


async def test_restricted_members_are_shown_all_keywords(members: Members) -> None:
    words = ["help", "room", "team", "plan", "work", "time"]
    assert (await members.owner.patch(members.base, json={"routing_keywords": words})).status_code == 200
    assert (await members.restricted.get(members.base)).json()["routing_keywords"] == words


async def test_bases_are_paged_newest_first(members: Members) -> None:
    for name in "bcd":
        members.house.clock.advance(1)
        await members.owner.post(BASES, json={"name": name})
    first = (await members.owner.get(BASES, params={"limit": 3})).json()
    assert ([base["name"] for base in first["data"]], first["has_more"]) == (["d", "c", "b"], True)
    rest = (await members.owner.get(BASES, params={"after": first["last_id"]})).json()
    assert ([base["name"] for base in rest["data"]], rest["has_more"]) == (["Travel"], False)
    assert error_of(await members.owner.get(BASES, params={"after": "kb_x"})) == (404, "after")


async def test_a_document_is_put_read_replaced_and_deleted(members: Members) -> None:
    name = quote("guides/旅行 2026.md", safe="/")
    put = await members.put(name, MANUAL)
    shown = put.json()
    assert (put.status_code, shown["name"], shown["chunks"]) == (201, "guides/旅行 2026.md", 2)
    assert (shown["id"][:4], shown["bytes"], shown["media_type"]) == ("doc_", len(MANUAL.encode()), "text/markdown")
    assert shown["sha256"] == sha256(MANUAL.encode()).hexdigest()
    same = await members.put(name, MANUAL)
    assert (same.status_code, same.json()) == (200, shown)
    read = await members.reader.get(f"{members.base}/documents/{name}")
    assert read.content == MANUAL.encode()
    assert read.headers["content-type"] == "text/markdown; charset=utf-8"
    assert read.headers["x-content-type-options"] == "nosniff"
    replaced = await members.put(name, "One sentence.")
    assert (replaced.status_code, replaced.json()["id"], replaced.json()["chunks"]) == (200, shown["id"], 1)
    deleted = await members.editor.delete(f"{members.base}/documents/{name}")
    assert deleted.json() == {"id": shown["id"], "object": "knowledge_base.document.deleted", "deleted": True}
    assert (await members.owner.get(f"{members.base}/documents/{name}")).status_code == 404
    assert (await members.owner.delete(f"{members.base}/documents/{name}")).status_code == 404


async def test_the_same_bytes_again_change_nothing(members: Members) -> None:
    await members.put("a.md", MANUAL)
    before = (await members.owner.get(members.base)).json()["version"]
    members.house.clock.advance(60)
    await members.put("a.md", MANUAL)
    assert (await members.owner.get(members.base)).json()["version"] == before
    await members.put("a.md", MANUAL + " More.")
    assert (await members.owner.get(members.base)).json()["version"] > before


async def test_the_same_document_put_many_times_at_once_is_one(members: Members) -> None:
    answers = await asyncio.gather(*(members.put("m.md", MANUAL) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_documents_are_paged_by_name(members: Members) -> None:
    empty = (await members.reader.get(f"{members.base}/documents")).json()
    assert empty == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}
    for name in ("b.txt", "a.txt", "c.txt"):
        await members.put(name, "text", "text/plain")
    first = (await members.reader.get(f"{members.base}/documents", params={"limit": 2})).json()
    assert ([each["name"] for each in first["data"]], first["has_more"]) == (["a.txt", "b.txt"], True)
    rest = (await members.reader.get(f"{members.base}/documents", params={"after": first["last_id"]})).json()
    assert ([each["name"] for each in rest["data"]], rest["has_more"]) == (["c.txt"], False)
    down = (await members.reader.get(f"{members.base}/documents", params={"order": "desc"})).json()
    assert [each["name"] for each in down["data"]] == ["c.txt", "b.txt", "a.txt"]
    assert error_of(await members.reader.get(f"{members.base}/documents", params={"limit": 0})) == (400, "limit")


@pytest.mark.parametrize(
    ("name", "media_type", "body", "param"),
    [
        ("a.txt", "text/plain", b"\xff\xfe", "body"),
        ("a.txt", "text/plain", b"", "body"),
        ("a.pdf", "application/pdf", b"no pdf", "body"),
        ("a.png", "image/png", b"x", "Content-Type"),
        ("a", "application/octet-stream", b"\x00\x01\x02\x03" * 40, "Content-Type"),
        ("%0A", "text/plain", b"x", "name"),
        ("x" * 513, "text/plain", b"x", "name"),
        ("%20a", "text/plain", b"x", "name"),
    ],
)
async def test_a_document_that_cannot_be_taken_is_a_400(
    members: Members, name: str, media_type: str, body: bytes, param: str
) -> None:
    answer = await members.owner.put(
        f"{members.base}/documents/{name}", content=body, headers={"content-type": media_type}
    )
    assert error_of(answer) == (400, param)
    assert (await members.owner.get(f"{members.base}/documents")).json()["data"] == []


async def test_a_search_says_where_its_hits_are_from(members: Members) -> None:
    put = (await members.put("guides/a.md", MANUAL)).json()
    answer = (await members.reader.post(f"{members.base}/search", json={"query": "差旅费", "max_results": 1})).json()
    (hit,) = answer["data"]
    assert (hit["document"], hit["file_id"], hit["heading_path"]) == ("guides/a.md", put["id"], ["Travel"])
    assert hit["text"] == "Trains are booked early. 差旅费报销需要发票。"
    assert hit["chunk"].startswith("chunk_")
    assert 0 < hit["score"] < 1
    second = (await members.reader.post(f"{members.base}/search", json={"query": "hotels"})).json()["data"]
    assert second[0]["heading_path"] == ["Travel", "Hotels"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "query"),
        ({"query": 1}, "query"),
        ({"query": "x", "max_results": 0}, "max_results"),
        ({"query": "x", "max_results": 51}, "max_results"),
        ({"query": "x", "base": "y"}, "base"),
    ],
)
async def test_a_wrong_search_names_the_field(members: Members, body: object, param: str) -> None:
    assert error_of(await members.reader.post(f"{members.base}/search", json=body)) == (400, param)


async def test_members_are_listed_changed_and_removed(members: Members) -> None:
    listed = (await members.reader.get(f"{members.base}/members")).json()
    assert [(each["user_id"], each["role"]) for each in listed["data"]] == [
        ("ana", "restricted_analyst"),
        ("ed", "editor"),
        ("olga", "owner"),
        ("rae", "reader"),
    ]
    changed = await members.owner.put(f"{members.base}/members/rae", json={"role": "editor"})
    assert (changed.status_code, changed.json()["role"]) == (200, "editor")
    assert (await members.editor.get(f"{members.base}/members/rae")).json()["role"] == "editor"
    assert (await members.owner.delete(f"{members.base}/members/rae")).json()["deleted"] is True
    assert (await members.reader.get(members.base)).status_code == 404
    assert (await members.owner.get(f"{members.base}/members/rae")).status_code == 404
    assert error_of(await members.owner.put(f"{members.base}/members/x", json={"role": "boss"})) == (400, "role")


async def test_the_last_owner_stays(members: Members) -> None:
    assert error_of(await members.owner.delete(f"{members.base}/members/olga")) == (409, "role")
    demoted = await members.owner.put(f"{members.base}/members/olga", json={"role": "reader"})
    assert error_of(demoted) == (409, "role")
    await members.owner.put(f"{members.base}/members/ed", json={"role": "owner"})
    assert (await members.owner.delete(f"{members.base}/members/olga")).status_code == 200


async def test_a_deleted_base_is_gone_for_all(members: Members) -> None:
    await members.put("a.md", MANUAL)
    assert (await members.owner.delete(members.base)).json()["object"] == "knowledge_base.deleted"
    for client in (members.owner, members.reader, members.restricted):
        assert (await client.get(members.base)).status_code == 404


async def test_when_its_file_was_changed_is_an_attribute_of_a_document(members: Members) -> None:
    address = f"{members.base}/documents/a.md"
    for date, body in (("Mon, 21 Sep 2026 14:13:20 GMT", "One."), ("no date", "Two."), ("", "Three.")):
        await members.owner.put(address, content=body, headers={"last-modified": date, "content-type": "text/markdown"})
        document = await members.house.knowledge.find_document(members.base_id, "a.md")
        assert document is not None
        assert document.attributes == {"modified_at": 1_790_000_000}


async def test_a_passage_says_where_it_stands(members: Members) -> None:
    await members.put("a.csv", "name,price\ntrain,90\n", "text/csv")
    await members.put("b.md", MANUAL)
    found = (await members.reader.post(f"{members.base}/search", json={"query": "train hotels"})).json()["data"]
    assert {hit["document"]: hit["place"] for hit in found} == {
        "a.csv": {"rows": [2, 2]},
        "b.md": {"heading": ["Travel", "Hotels"]},
    }
    (chunk,) = (await members.reader.get(f"{members.base}/chunks", params={"document": "a.csv"})).json()["data"]
    assert chunk["place"] == {"rows": [2, 2]}
