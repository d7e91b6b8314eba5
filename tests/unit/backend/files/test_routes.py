"""Files over HTTP: what an upload must be, who finds a file, and what each refusal names."""

from typing import Any

import httpx2
import pytest

from backend.files.domain import FileQuota
from tests.unit.backend.conftest import Members

FILES = "/v1/files"
BOUNDARY = "b0undary"


async def upload(
    client: httpx2.AsyncClient, name: str = "tea.md", body: bytes = b"# Tea\n\nGreen.", purpose: str = "assistants"
) -> httpx2.Response:
    return await client.post(FILES, data={"purpose": purpose}, files={"file": (name, body)})


def form(*parts: str, end: str = f"--{BOUNDARY}--\r\n") -> bytes:
    return ("".join(f"--{BOUNDARY}\r\n{part}\r\n" for part in parts) + end).encode("utf-8", "surrogateescape")


def field(name: str, value: str) -> str:
    return f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'


def file(disposition: str = 'form-data; name="file"; filename="a.txt"', body: str = "text") -> str:
    return f"Content-Disposition: {disposition}\r\nContent-Type: text/plain\r\n\r\n{body}"


PURPOSE = field("purpose", "user_data")


async def test_a_file_comes_back_as_it_was_uploaded(members: Members) -> None:
    answer = await upload(members.owner, "河 流.md", "河流".encode())
    assert answer.status_code == 201
    shown = answer.json()
    assert shown["id"].startswith("file-")
    assert shown == {
        "id": shown["id"],
        "object": "file",
        "bytes": 6,
        "created_at": shown["created_at"],
        "filename": "河 流.md",
        "purpose": "assistants",
        "status": "processed",
        "expires_at": None,
        "status_details": None,
    }
    assert (await members.owner.get(f"{FILES}/{shown['id']}")).json() == shown
    content = await members.owner.get(f"{FILES}/{shown['id']}/content")
    assert content.content == "河流".encode()
    assert content.headers["x-content-type-options"] == "nosniff"
    deleted = await members.owner.delete(f"{FILES}/{shown['id']}")
    assert deleted.json() == {"id": shown["id"], "object": "file", "deleted": True}
    assert (await members.owner.get(f"{FILES}/{shown['id']}")).status_code == 404


@pytest.mark.parametrize("address", ["{}", "{}/content"])
async def test_somebody_elses_file_does_not_exist(members: Members, address: str) -> None:
    file_id = (await upload(members.owner)).json()["id"]
    for other in (members.editor, members.foreigner):
        assert (await other.get(f"{FILES}/{address.format(file_id)}")).status_code == 404
        assert (await other.delete(f"{FILES}/{file_id}")).status_code == 404
        assert (await other.get(FILES)).json()["data"] == []
        assert (await other.get(FILES, params={"after": file_id})).json()["error"]["param"] == "after"
    assert (await members.owner.get(f"{FILES}/{address.format(file_id)}")).status_code == 200


async def test_files_are_listed_in_pages_by_purpose(members: Members) -> None:
    ids: list[str] = []
    for number in range(3):
        purpose = "user_data" if number == 1 else "assistants"
        ids.append((await upload(members.owner, f"{number}.txt", purpose=purpose)).json()["id"])
    query: dict[str, str | int] = {"order": "asc", "limit": 2}
    page = (await members.owner.get(FILES, params=query)).json()
    rest = (await members.owner.get(FILES, params={**query, "after": page["last_id"]})).json()
    assert {one["id"] for one in (*page["data"], *rest["data"])} == set(ids)
    assert (page["has_more"], rest["has_more"]) == (True, False)
    assert [one["id"] for one in (await members.owner.get(FILES, params={"purpose": "user_data"})).json()["data"]] == [
        ids[1]
    ]


@pytest.mark.parametrize(
    ("body", "param", "told"),
    [
        (form(file()), "purpose", "lacks the field 'purpose'"),
        (form(field("purpose", "batch"), file()), "purpose", "'assistants' or 'user_data'"),
        (form(PURPOSE), "file", "lacks the part 'file'"),
        (form(PURPOSE, field("file", "text")), "file", "needs a file name"),
        (form(PURPOSE, file(body="")), "file", "is empty"),
        (form(PURPOSE, file('form-data; name="file"; filename="  "')), "file", "printable characters"),
        (form(PURPOSE, file('form-data; name="file"; filename="a\tb"')), "file", "printable characters"),
        (form(PURPOSE, file(f'form-data; name="file"; filename="{"a" * 300}"')), "file", "255"),
        (form(PURPOSE, file('form-data; name="file"; filename="\udcff"')), "file", "UTF-8"),
        (form(PURPOSE, file(), file()), "file", "more than one part 'file'"),
        (form(PURPOSE, field("colour", "red"), file()), "colour", "unknown part"),
        (form(PURPOSE, field("expires_after[seconds]", "3600"), file()), "expires_after", "do not expire"),
        (form(PURPOSE, file("attachment")), None, "Content-Disposition"),
        (form(field("purpose", "a" * 2000), file()), "purpose", "too long"),
        (form(PURPOSE, file(), end=""), "file", "ends in the middle"),
        (form(PURPOSE, file())[:-20], "file", "ends in the middle"),
        (b"", "file", "ends in the middle"),
        (b"no form", "file", "not a well-formed"),
        (form(*(field("purpose", "x") for _ in range(2))), "purpose", "more than one part"),
    ],
)
async def test_what_is_no_upload_is_refused_by_name(
    members: Members, body: bytes, param: str | None, told: str
) -> None:
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    answer = await members.owner.post(FILES, content=body, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert told in error["message"]


@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data", f"multipart/form-data; boundary={'b' * 300}", "text/plain"]
)
async def test_a_body_of_another_kind_is_refused(members: Members, kind: str) -> None:
    answer = await members.owner.post(FILES, content=b"{}", headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")


async def test_a_body_over_the_limit_is_refused(members: Members) -> None:
    assert (await upload(members.owner, body=b"x" * members.house.max_body_bytes)).status_code == 413


async def test_bytes_that_look_like_the_boundary_belong_to_the_file(members: Members) -> None:
    body = b"\r\n--b0undar\r\n--\r\n\r" * 2000
    content = form(PURPOSE).removesuffix(f"--{BOUNDARY}--\r\n".encode())
    content += f"--{BOUNDARY}\r\n{file(body='')}".encode() + body + f"\r\n--{BOUNDARY}--\r\n".encode()
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    shown = (await members.owner.post(FILES, content=content, headers=headers)).json()
    assert (await members.owner.get(f"{FILES}/{shown['id']}/content")).content == body


async def test_an_upload_that_is_sent_again_under_its_key_is_one_file(members: Members) -> None:
    key = {"Idempotency-Key": "once"}

    async def send(body: bytes, name: str = "tea.md", purpose: str = "assistants") -> httpx2.Response:
        return await members.owner.post(FILES, data={"purpose": purpose}, files={"file": (name, body)}, headers=key)

    first, again = await send(b"Green."), await send(b"Green.")
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    for other in (await send(b"Black."), await send(b"Green.", "a.md"), await send(b"Green.", purpose="user_data")):
        assert (other.status_code, other.json()["error"]["param"]) == (422, "Idempotency-Key")
    assert len((await members.owner.get(FILES)).json()["data"]) == 1
    assert (await members.foreigner.post(FILES, data={"purpose": "user_data"}, files={"file": ("a", b"b")})).is_success
    await members.owner.delete(f"{FILES}/{first.json()['id']}")
    assert (await send(b"Green.")).status_code == 404


async def test_a_refused_upload_does_not_use_its_key(members: Members) -> None:
    form: dict[str, Any] = {"data": {"purpose": "assistants"}, "headers": {"Idempotency-Key": "once"}}
    assert (await members.owner.post(FILES, files={"file": ("a.txt", b"")}, **form)).status_code == 400
    assert (await members.owner.post(FILES, files={"file": ("a.txt", b"text")}, **form)).status_code == 201


async def test_one_file_too_many_is_refused_with_the_bound(members: Members) -> None:
    members.house.quota = FileQuota(files=2)
    members.rebuild()
    assert [(await upload(members.owner, f"{number}.txt", b"x")).status_code for number in range(3)] == [201, 201, 413]
    refused = (await upload(members.owner, body=b"x")).json()["error"]
    assert refused["param"] == "file"
    assert "no more than 2" in refused["message"]
    assert (await upload(members.foreigner, body=b"x")).status_code == 201
