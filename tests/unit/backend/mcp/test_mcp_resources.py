"""Documents as resources of `/mcp`, read by the official client."""

from urllib.parse import quote

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ReadResourceResult, TextResourceContents

from backend.mcp.domain.resource_addresses import (
    MAX_ADDRESS_CHARACTERS,
    DocumentAddress,
    ListPlace,
    address_of,
    cursor_of,
    read_address,
    read_cursor,
)
from backend.mcp.services.lookups import Lookups
from shared.errors import InvalidRequest
from tests.fakes.mcp_client import Mode, mcp_client
from tests.unit.backend.conftest import BASES, MANUAL, Members

both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])


def content(read: ReadResourceResult) -> TextResourceContents:
    (only,) = read.contents
    assert isinstance(only, TextResourceContents)
    return only


@both_eras
async def test_documents_are_resources_that_can_be_read(members: Members, mode: Mode):
    await members.put(quote("手册/a b?.md"), MANUAL)
    await members.put("page.html", "<h1>Rules</h1><p>Be kind.</p>", "text/html")
    async with mcp_client(members.reader, mode) as client:
        listed = await client.list_resources()
        texts = {one.name: content(await client.read_resource(one.uri)) for one in listed.resources}
        (whole, paged) = (await client.list_resource_templates()).resource_templates
    assert listed.next_cursor is None
    assert [(one.name, one.mime_type) for one in listed.resources] == [
        ("page.html", "text/markdown"),
        ("手册/a b?.md", "text/markdown"),
    ]
    assert texts["手册/a b?.md"].text == MANUAL
    assert texts["page.html"].text.startswith("# Rules")
    assert paged.uri_template == whole.uri_template + "{?offset,limit}"


async def test_a_long_document_is_read_in_pages(members: Members):
    text = "one two three 四" * 4_000
    assert (await members.put("long.md", text)).status_code == 201
    uri = address_of(members.base_id, "long.md")
    async with mcp_client(members.reader) as client:
        first = content(await client.read_resource(uri))
        meta = (first.meta or {})["ballast/page"]
        rest = content(await client.read_resource(f"{uri}?offset={meta['next_offset']}"))
        small = content(await client.read_resource(f"{uri}?offset=10&limit=5"))
    assert meta == {"offset": 0, "next_offset": 50_000, "total_characters": 60_000}
    assert first.text + rest.text == text
    assert small.text == "ree 四"


async def test_the_list_goes_on_over_bases_in_pages(members: Members):
    second = (await members.owner.post(BASES, json={"name": "Second"})).json()["id"]
    for name in ("a.md", "b.md", "c.md"):
        await members.put(name, MANUAL)
        await members.owner.put(f"{BASES}/{second}/documents/{name}", content=MANUAL.encode())
    services, caller = members.house.services(resources_a_page=2), await members.house.caller("olga")
    listing = next(one for one in services if isinstance(one, Lookups)).resources
    pages = [await listing(caller, None)]
    while (place := pages[-1].next_place) is not None:
        pages.append(await listing(caller, read_cursor(cursor_of(place))))
    found = [(one.knowledge_base_id, one.name) for page in pages for one in page.documents]
    assert [len(page.documents) for page in pages] == [2, 2, 2]
    assert found == [(base, name) for base in sorted([members.base_id, second]) for name in ("a.md", "b.md", "c.md")]


@both_eras
async def test_restricted_documents_are_no_resources(members: Members, mode: Mode):
    await members.put("manual.md", MANUAL)
    async with mcp_client(members.restricted, mode) as client:
        assert (await client.list_resources()).resources == []
        refusals = [await refusal(client, address_of(members.base_id, name)) for name in ("manual.md", "missing.md")]
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor=cursor_of(ListPlace(members.base_id, "doc_1")))
    assert len(set(refusals)) == 1
    assert "restricted" in refusals[0]


async def test_someone_elses_document_reads_like_none(members: Members):
    await members.put("manual.md", MANUAL)
    async with mcp_client(members.stranger) as client:
        refusals = [await refusal(client, address_of(base, "manual.md")) for base in (members.base_id, "kb_none")]
    assert len(set(refusals)) == 1


async def refusal(client: Client, uri: str) -> str:
    with pytest.raises(MCPError) as error:
        await client.read_resource(uri)
    return error.value.message


@pytest.mark.parametrize(
    "uri",
    [
        "", "file:///etc/passwd", "ballast://knowledge_bases/kb_1", "ballast://knowledge_bases/kb_1/documents/",
        "ballast://other/kb_1/documents/a", "ballast://knowledge_bases/kb_1/documents/a/b", "http://[",
        "ballast://knowledge_bases/kb_1/documents/a?offset=-1", "ballast://knowledge_bases/kb_1/documents/a?limit=x",
        "ballast://knowledge_bases/kb_1/documents/a?other=1", "ballast://knowledge_bases/kb_1/documents/a?offset",
        f"ballast://knowledge_bases/kb_1/documents/a?offset={'9' * 10}",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(uri: str):
    with pytest.raises(InvalidRequest) as refused:
        read_address(uri)
    assert refused.value.param == "uri"


def test_an_address_names_any_document():
    for name in ("a b?.md", "手册/#1%2F.md", "..", "x" * 512):
        assert read_address(address_of("kb_1", name)) == DocumentAddress("kb_1", name)


@pytest.mark.parametrize("cursor", ["", "kb_1", "/doc_1", "kb_1/"])
def test_what_is_no_cursor_is_refused(cursor: str):
    with pytest.raises(InvalidRequest):
        read_cursor(cursor)


def test_a_long_address_is_refused_for_its_length() -> None:
    with pytest.raises(InvalidRequest, match=f"at most {MAX_ADDRESS_CHARACTERS} characters"):
        read_address(address_of("kb_1", "%" * MAX_ADDRESS_CHARACTERS))
    with pytest.raises(InvalidRequest):
        read_cursor(f"kb_1/{'x' * MAX_ADDRESS_CHARACTERS}")
